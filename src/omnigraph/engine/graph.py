"""The graph handle: one open graph in this process, with a default branch.

    with omnigraph.open("atlas.omni") as graph:
        graph.query('query all() { match { $p: Paper } return { $p.title } }')

Forwards to one function for each operation and renders nothing. A handle may be shared between threads.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from typing import IO, Any, Literal, Self, overload

from omnigraph.engine.arguments import (
    Source,
    check_text,
    checked_actor,
    checked_condition,
    checked_message,
    checked_progress,
    checked_settings,
    merged_params,
    refused_keyword,
    source_text,
    text_bytes,
)
from omnigraph.engine.core import GraphCore
from omnigraph.engine.effects import definite_failures
from omnigraph.engine.load.digest import digest_of
from omnigraph.engine.load.input import LoadInput, load_source
from omnigraph.engine.load.operation import LoadOperation, Mode
from omnigraph.engine.mutate import MutateOperation
from omnigraph.engine.namespaces import Branches, Commits, Maintenance, Schema
from omnigraph.engine.opening import init_core, open_core
from omnigraph.engine.progress import Progress, reporting
from omnigraph.engine.reading.context import Context
from omnigraph.engine.reading.entity import read_entity
from omnigraph.engine.reading.export import ExportInfo, export_pieces, export_to, records
from omnigraph.engine.reading.read import run_query
from omnigraph.engine.reading.selectors import Moment, Selector, manifest_of
from omnigraph.engine.reading.summary import GraphInfo, graph_info, summary
from omnigraph.engine.receipts import (
    Commit,
    LoadedType,
    LoadResult,
    Summary,
    WriteResult,
    as_datetime,
)
from omnigraph.engine.result import Result, ResultStream
from omnigraph.engine.statements import around, refuse_company, stated, unexplained, wrong_door
from omnigraph.engine.writing.entry import WriteRequest, Written
from omnigraph.engine.writing.fork_load import load_into_fork
from omnigraph.engine.writing.replay import idempotency
from omnigraph.engine.writing.write import write
from omnigraph.errors import InvalidParams, InvalidRequest
from omnigraph.escaping import safe_text
from omnigraph.lang.query.syntax import BranchStatement, ShowStatement
from omnigraph.manifest.builder import MAIN

Door = Literal["json", "python"]


def open_graph(
    uri: str | PathLike[str],
    *,
    branch: str = MAIN,
    actor: str | None = None,
    mode: Literal["rw", "r"] = "rw",
    settings: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Open an existing graph: a folder, `file://…` or `s3://bucket/prefix`.

    Raises GraphNotFound if there is none, FormatMismatch if a newer program wrote it, InvalidRequest for a bad address or
    setting, StorageFailure.
    """
    given = dict(checked_settings(settings))
    checked_actor(actor)
    text_bytes(branch, "A branch's name")
    if mode not in ("rw", "r"):
        raise InvalidRequest("`mode` is rw (read and write) or r (read only).")
    core = open_core(uri, writable=mode == "rw", storage_options=storage_options)
    return Graph(Context(core, branch, actor, read_only=mode == "r", settings=given))


def init_graph(
    uri: str | PathLike[str],
    *,
    schema: Source,
    actor: str | None = None,
    exist_ok: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Create a graph and open it. `schema` is text if a str, a file if a Path.

    Raises InvalidSchema before anything is written; AlreadyExists (`already_initialized`) unless `exist_ok`, and then, too,
    if the schema of the graph there means something else; StorageFailure. Repeating it after any failure is safe.
    """
    text = source_text(schema)
    checked_actor(actor)
    core = init_core(uri, text, actor=actor, exist_ok=exist_ok, storage_options=storage_options)
    return Graph(Context(core, actor=actor))


class Graph(AbstractContextManager["Graph"]):
    """One open graph. `on` and `at` give cheap views that share everything with it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.branches = Branches(context)
        self.commits = Commits(context)
        self.schema = Schema(context)
        self.maintenance = Maintenance(context)

    # the handle itself

    @property
    def uri(self) -> str:
        return self._core.store.uri

    @property
    def branch(self) -> str:
        """The branch of calls that name none."""
        return self._context.branch

    @property
    def actor(self) -> str | None:
        return self._context.actor

    @property
    def read_only(self) -> bool:
        return self._context.read_only

    @property
    def _core(self) -> GraphCore:
        return self._context.core

    @property
    def id(self) -> str:
        return self._core.graph_id

    @property
    def core(self) -> GraphCore:
        """For the server and for upkeep; not part of the public interface."""
        return self._core

    @property
    def head(self) -> Commit:
        """The head commit of this handle's branch, asked of storage; of a view of the past (`at`) the commit that it shows.

        Raises BranchNotFound, StorageFailure; of a view CommitNotFound, HistoryReclaimed.
        """
        return Commit.of(manifest_of(self._core, self._context.selector(), self.branch).head_commit)

    def on(self, branch: str) -> Graph:
        """The same graph with another default branch. Nothing is asked of storage."""
        text_bytes(branch, "A branch's name")
        return Graph(replace(self._context, branch=branch, pinned_at=None))

    def at(self, snapshot: str | Commit | dt.datetime) -> Graph:
        """A read-only view of a commit, or of this branch at a time. Nothing is asked of storage yet."""
        if isinstance(snapshot, dt.datetime):
            selector = Selector.asked(branch=self.branch, as_of=snapshot)
        else:
            commit = snapshot.graph_commit_id if isinstance(snapshot, Commit) else snapshot
            text_bytes(commit, "What `at` takes is a time or a commit id, which")
            selector = Selector.asked(snapshot=commit)
        return Graph(replace(self._context, read_only=True, pinned_at=selector))

    def info(self) -> GraphInfo:
        """Address, id, branches and types with counts."""
        return graph_info(self._core, self._context.selector(), self.branch)

    def summary(
        self, *, branch: str | None = None, snapshot: str | None = None, as_of: Moment | None = None
    ) -> Summary:
        """Tables and counts of one state."""
        return summary(self._core, self._context.selector(branch, snapshot, as_of), self.branch)

    def close(self) -> None:
        """Forget what this graph keeps in memory. Views that share it can still be used; they read again."""
        self._core.forget()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __repr__(self) -> str:
        past = self._context.pinned_at
        shown = f"on {self.branch}" if past is None else f"at {past.snapshot}"
        if past is not None and past.as_of is not None:
            shown = f"on {self.branch} as of {as_datetime(past.as_of).isoformat()}"
        return f"<Graph {safe_text(f'{self.uri} {shown}')}>"

    def _repr_html_(self) -> str:
        return self.info().html()

    # reading

    def query(
        self,
        source: Source,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        query_name: str | None = None,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: Moment | None = None,
        settings: Mapping[str, Any] | None = None,
        profile: bool = False,
        door: Door = "python",
        **kw_params: Any,
    ) -> Result:
        """Run a read. Keywords that are no option here are parameters; one named like an option goes into `params`.
        With `profile` the result's `profile` says what each step did.

        Raises InvalidQuery, InvalidParams, InvalidRequest (`wrong_verb`), BranchNotFound, CommitNotFound,
        HistoryReclaimed, LimitExceeded, QueryTimeout, StorageFailure.
        """
        text, values = source_text(source), merged_params(params, kw_params)
        check_text(query_name, "query_name")
        beside = around(text)
        asked = self._context.settings_of(settings).admitting(beside.settings, text)
        if beside.statement is not None:
            if self._context.explains:
                raise unexplained(text, None)
            refuse_company(beside.statement, params=values, target=branch or snapshot or as_of, name=query_name)
            return stated(self._core, self.branch, beside.statement, asked.with_lines(beside.settings))
        try:
            return run_query(
                self._core,
                text,
                values,
                query_name=query_name,
                selector=self._context.selector(branch, snapshot, as_of),
                default_branch=self.branch,
                settings=asked,
                door=door,
                profiled=profile,
                explained=self._context.explains,
            )
        except InvalidParams as refused:
            raise refused_keyword(refused, kw_params) from None

    def explain(self, source: Source, params: Mapping[str, Any] | None = None, /, **as_query: Any) -> Result:
        """The plan of a read instead of its rows, as if `explain` stood before it: nothing is run, and parameters may be
        given and are not needed. Options and errors as `query`; InvalidQuery (`Q004`) for what is no read.
        """
        return Graph(replace(self._context, explains=True)).query(source, params, **as_query)

    def stream(self, source: Source, params: Mapping[str, Any] | None = None, /, **as_query: Any) -> ResultStream:
        """A read whose answer is taken once, as Arrow batches. Options and errors as `query`."""
        return ResultStream(self.query(source, params, **as_query))

    def get(
        self,
        type: str,
        id: str,
        *,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: Moment | None = None,
    ) -> dict[str, Any] | None:
        """One entity by its id: `@id` (for an edge `@src` and `@dst` too) and all its properties; None if there is none.

        Raises InvalidRequest for an unknown type, the errors of the selector, StorageFailure.
        """
        return read_entity(self._core, self._context.state(branch, snapshot, as_of), type, id)

    @overload
    def export(
        self,
        out: None = None,
        *,
        types: Collection[str] | None = None,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: Moment | None = None,
        progress: Progress = False,
    ) -> Iterator[dict[str, Any]]: ...
    @overload
    def export(
        self,
        out: str | PathLike[str] | IO[bytes],
        *,
        types: Collection[str] | None = None,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: Moment | None = None,
        progress: Progress = False,
    ) -> ExportInfo: ...
    def export(
        self,
        out: str | PathLike[str] | IO[bytes] | None = None,
        *,
        types: Collection[str] | None = None,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: Moment | None = None,
        progress: Progress = False,
    ) -> ExportInfo | Iterator[dict[str, Any]]:
        """All entities as load records, which `load` takes again. To a path (written whole or not at all) or a binary file as
        NDJSON; without `out`, the records one by one, of the state at the time of the call.

        Raises InvalidRequest for an unknown type, the errors of the selector, StorageFailure.
        """
        checked_progress(progress)
        state = self._context.state(branch, snapshot, as_of)
        if out is None:
            return records(export_pieces(state, types=types, progress=progress if callable(progress) else None))
        with reporting(progress, "export") as report:
            return export_to(state, out, types=types, progress=report)

    def export_stream(
        self,
        *,
        types: Collection[str] | None = None,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: Moment | None = None,
    ) -> tuple[str, Iterator[bytes]]:
        """For the server and the command line: the commit whose state is exported, and its load records in pieces of NDJSON.
        Raises as `export`.
        """
        state = self._context.state(branch, snapshot, as_of)
        return state.commit_id, export_pieces(state, types=types)

    # writing

    @definite_failures()
    def mutate(
        self,
        source: Source,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        query_name: str | None = None,
        branch: str | None = None,
        settings: Mapping[str, Any] | None = None,
        if_commit: str | Commit | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
        door: Door = "python",
        **kw_params: Any,
    ) -> WriteResult:
        """Run a mutation as one commit, or nothing. `settings` are checked; none of this version's changes a write.

        Raises InvalidQuery, InvalidParams, InvalidRequest (`condition_misplaced` for no commit id), ConstraintViolation,
        ReadSetConflict, PreconditionFailed, BranchNotFound, StorageFailure (nothing was published), OutcomeUnknown (it says
        how to find out).
        """
        target = self._context.writable(branch)
        text = source_text(source)
        values = merged_params(params, kw_params)
        check_text(query_name, "query_name")
        condition = checked_condition(if_commit)
        beside = around(text)
        self._context.settings_of(settings).admitting(beside.settings, text)
        statement = beside.statement
        if isinstance(statement, ShowStatement):
            raise InvalidRequest("`show` is a read: send it to query.", code="wrong_verb", effects="none")
        if statement is not None:
            refuse_company(statement, params=values, target=branch, condition=condition, name=query_name)
            return self._branch_statement(statement, message, idempotency_key)
        operation = MutateOperation(self._core, text, values, query_name=query_name, door=door)
        arguments = {} if idempotency_key is None else {**operation.arguments(), "branch": target, "if": condition}
        key = idempotency(idempotency_key, actor=self.actor, operation="mutate", arguments=arguments)
        request = WriteRequest(target, operation, self.actor, checked_message(message), condition, key, idempotency_key)
        return self._mutated(operation, request, write(self._core, request))

    def _branch_statement(
        self, statement: BranchStatement, message: str | None, idempotency_key: str | None
    ) -> WriteResult:
        name = "" if statement.name is None else statement.name.text
        other = MAIN if statement.other is None else statement.other.text
        commit: Commit | None = None
        replayed = False
        match statement.verb:
            case "create":
                made = self.branches.create(name, from_=other, idempotency_key=idempotency_key)
                outcome, replayed = {"kind": "created", "branch": name, "from": other}, made.replayed
            case "delete":
                self.branches.delete(name)
                outcome = {"kind": "deleted", "branch": name}
            case "merge":
                merged = self.branches.merge(name, other, message=message, idempotency_key=idempotency_key)
                outcome = {"kind": "merged", "branch": other, "merge": merged.outcome}
                commit, replayed = merged.commit, merged.replayed
            case "list":
                raise wrong_door(statement, "mutate")
        target = other if statement.verb == "merge" else name
        return WriteResult(target, f"branch {statement.verb}", 0, 0, (), self.actor, commit, outcome, replayed)

    def _mutated(self, operation: MutateOperation, request: WriteRequest, written: Written) -> WriteResult:
        commit = written.commit
        source = commit if written.replayed else written.plan
        nodes, edges = (0, 0) if source is None or source.affected is None else source.affected
        return WriteResult(
            branch=request.branch,
            query_name=operation.name,
            affected_nodes=nodes,
            affected_edges=edges,
            ids=() if source is None else source.ids,
            actor_id=self.actor,
            commit=None if commit is None else Commit.of(commit),
            replayed=written.replayed,
        )

    @definite_failures()
    def load(
        self,
        data: LoadInput,
        *,
        mode: Mode,
        type: str | None = None,
        branch: str | None = None,
        from_: str | None = None,
        progress: Progress = "auto",
        message: str | None = None,
        idempotency_key: str | None = None,
        accept_gzip: bool = True,
    ) -> LoadResult:
        """Load records as one commit, all or nothing.

        `data`: a path (`.jsonl`, gzip or not, or a pipe), bytes, an open file, an iterable of records or lines; an Arrow
        table or reader, a Polars or pandas frame (these need `type`). With `from_`, a branch that does not exist is forked
        and loaded as one version; without a record neither is done. Under an `idempotency_key` what can be read once only
        is held in memory, packed as it came. Raises InvalidRequest for data of no such form, InvalidData and
        ConstraintViolation with the line or row, KeyConflict, ReadSetConflict (also for a file that changed while it was
        read), LimitExceeded, BranchNotFound, StorageFailure (nothing was published), OutcomeUnknown.
        """
        if mode not in ("append", "merge", "overwrite"):
            raise InvalidRequest("`mode` is append, merge or overwrite; it is never guessed.", effects="none")
        target = self._context.writable(branch)
        check_text(from_, "from_")
        checked_progress(progress)
        source, digest = load_source(data, type), None
        if idempotency_key is not None:
            source, digest = digest_of(source, self._core.limits, accept_gzip=accept_gzip)
        operation = LoadOperation(self._core, source, mode, progress=progress, accept_gzip=accept_gzip)
        key = idempotency(
            idempotency_key,
            actor=self.actor,
            operation="load",
            arguments={"branch": target, "mode": mode, "from": from_, "data": digest},
        )
        request = WriteRequest(target, operation, self.actor, checked_message(message), None, key, idempotency_key)
        if from_ is None:
            written, created = write(self._core, request), False
        else:
            written, created = load_into_fork(self._core, request, operation, from_)
        return _loaded(operation, request, written, created, from_, self.actor)


def _loaded(
    operation: LoadOperation,
    request: WriteRequest,
    written: Written,
    created: bool,
    from_: str | None,
    actor: str | None,
) -> LoadResult:
    if written.replayed and written.commit is not None:
        loaded = [
            (name.split(":", 1), counts.inserted + counts.updated)
            for type_id, counts in written.commit.counts.items()
            if (name := written.commit.names.get(type_id)) is not None
        ]
        types = [(kind, name, count) for (kind, name), count in loaded]
    else:
        types = [(entity.kind, entity.name, count) for entity, count in operation.loaded]
    return LoadResult(
        branch=request.branch,
        base_branch=from_,
        branch_created=created,
        mode=operation.mode,
        nodes=tuple(LoadedType(n, c) for k, n, c in sorted(types) if k == "node"),
        edges=tuple(LoadedType(n, c) for k, n, c in sorted(types) if k == "edge"),
        actor_id=actor,
        commit=None if written.commit is None else Commit.of(written.commit),
        replayed=written.replayed,
    )


__all__ = ["Graph", "init_graph", "open_graph", "source_text"]
