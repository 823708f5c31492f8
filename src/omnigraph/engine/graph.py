"""The graph handle: one open graph in this process, with a default branch.

    with omnigraph.open("atlas.omni") as graph:
        graph.query('query all() { match { $p: Paper } return { $p.title } }')

Forwards to one function for each operation and renders nothing. A handle may be shared between threads.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal, Self

from omnigraph.engine import branches as branch_ops
from omnigraph.engine import commits as commit_ops
from omnigraph.engine.core import GraphCore
from omnigraph.engine.export import ExportInfo, export_pieces, export_to
from omnigraph.engine.fork_load import load_into_fork
from omnigraph.engine.load.input import LoadInput, digest_of, load_source
from omnigraph.engine.load.operation import LoadOperation, Mode
from omnigraph.engine.merge import MergeOperation
from omnigraph.engine.mutate import MutateOperation
from omnigraph.engine.opening import init_core, open_core
from omnigraph.engine.progress import Progress, reporter
from omnigraph.engine.read import run_query
from omnigraph.engine.receipts import (
    Branch,
    BranchCreated,
    BranchDeleted,
    Commit,
    LoadedType,
    LoadResult,
    MergeResult,
    Outcome,
    SchemaResult,
    Summary,
    WriteResult,
    as_microseconds,
)
from omnigraph.engine.replay import idempotency
from omnigraph.engine.result import Result
from omnigraph.engine.schema_change import SchemaOperation, migration
from omnigraph.engine.selectors import Selector, parse_as_of, pinned
from omnigraph.engine.settings import query_settings
from omnigraph.engine.summary import GraphInfo, graph_info, summary
from omnigraph.engine.write import WriteRequest, Written, write
from omnigraph.errors import InvalidRequest, OmnigraphError
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.builder import MAIN

MESSAGE_BYTES_MAX = 1_024

Source = str | Path
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
    query_settings(settings)
    core = open_core(uri, writable=mode == "rw", storage_options=storage_options)
    return Graph(core, branch=branch, actor=actor, read_only=mode == "r", settings=settings)


def init_graph(
    uri: str | PathLike[str],
    *,
    schema: Source,
    actor: str | None = None,
    exist_ok: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Create a graph and open it. `schema` is text if a str, a file if a Path.

    Raises InvalidSchema before anything is written, AlreadyExists (`already_initialized`) unless `exist_ok`,
    StorageFailure. Repeating it after any failure is safe.
    """
    text = source_text(schema)
    core = init_core(uri, text, actor=actor, exist_ok=exist_ok, storage_options=storage_options)
    return Graph(core, actor=actor)


def source_text(source: Source) -> str:
    """The text of a schema or query: a str as it is, a Path read. Raises InvalidRequest for a str that names a file."""
    if isinstance(source, Path):
        try:
            return source.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidRequest(f"{source.name} is not UTF-8 text.") from None
        except OSError as error:
            raise InvalidRequest(f"{source.name} can't be read: {error.strerror}.") from None
    if "\n" not in source and "{" not in source and 0 < len(source) < 4_096 and Path(source).is_file():
        raise InvalidRequest("This text names a file: pass Path(…) to read it.")
    return source


class Graph(AbstractContextManager["Graph"]):
    """One open graph. `on` and `at` give cheap views that share everything with it."""

    def __init__(
        self,
        core: GraphCore,
        *,
        branch: str = MAIN,
        actor: str | None = None,
        read_only: bool = False,
        settings: Mapping[str, Any] | None = None,
        pinned_at: Selector | None = None,
    ) -> None:
        self._core = core
        self.branch = branch
        self.actor = actor
        self.read_only = read_only
        self._settings = dict(settings or {})
        self._pinned_at = pinned_at
        self.branches = Branches(self)
        self.commits = Commits(self)
        self.schema = Schema(self)

    # the handle itself

    @property
    def uri(self) -> str:
        return self._core.store.uri

    @property
    def id(self) -> str:
        return self._core.graph_id

    @property
    def core(self) -> GraphCore:
        """For the server and for upkeep; not part of the public interface."""
        return self._core

    @property
    def head(self) -> Commit:
        """The head commit of this handle's branch, asked of storage. Raises BranchNotFound, StorageFailure."""
        return Commit.of(self._core.head(self.branch).manifest.head_commit)

    def on(self, branch: str) -> Graph:
        """The same graph with another default branch. Nothing is asked of storage."""
        return Graph(self._core, branch=branch, actor=self.actor, read_only=self.read_only, settings=self._settings)

    def at(self, snapshot: str | dt.datetime) -> Graph:
        """A read-only view of a commit, or of this branch at a time. Nothing is asked of storage yet."""
        if isinstance(snapshot, dt.datetime):
            selector = Selector(branch=self.branch, as_of=as_microseconds(snapshot))
        else:
            selector = Selector(snapshot=snapshot)
        return Graph(
            self._core,
            branch=self.branch,
            actor=self.actor,
            read_only=True,
            settings=self._settings,
            pinned_at=selector,
        )

    def info(self) -> GraphInfo:
        """Address, id, branches and types with counts."""
        return graph_info(self._core, self._selector())

    def summary(self, *, branch: str | None = None, snapshot: str | None = None) -> Summary:
        """Tables and counts of one state."""
        return summary(self._core, self._selector(branch, snapshot), self.branch)

    def close(self) -> None:
        """Forget what this graph keeps in memory. Views that share it can still be used; they read again."""
        self._core.forget()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<Graph {self.uri} on {self.branch}>"

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
        as_of: str | int | dt.datetime | None = None,
        settings: Mapping[str, Any] | None = None,
        door: Door = "python",
        **kw_params: Any,
    ) -> Result:
        """Run a read. Keywords that are no option here are parameters; one named like an option goes into `params`.

        Raises InvalidQuery, InvalidParams, InvalidRequest (`wrong_verb`), BranchNotFound, CommitNotFound,
        HistoryReclaimed, LimitExceeded, QueryTimeout, StorageFailure.
        """
        return run_query(
            self._core,
            source_text(source),
            {**(params or {}), **kw_params},
            query_name=query_name,
            selector=self._selector(branch, snapshot, as_of),
            default_branch=self.branch,
            settings=query_settings({**self._settings, **(settings or {})}),
            door=door,
        )

    def export(
        self,
        out: str | PathLike[str] | IO[bytes] | None = None,
        *,
        types: list[str] | None = None,
        branch: str | None = None,
        snapshot: str | None = None,
        progress: Progress = False,
    ) -> ExportInfo | Iterator[bytes]:
        """All entities as load records. To a path (written whole or not at all) or binary file; without `out`, an iterator
        of pieces of NDJSON.

        Raises InvalidRequest for an unknown type, the errors of the selector, StorageFailure.
        """
        state = pinned(self._core, self._selector(branch, snapshot), self.branch)
        report = reporter(progress, "export")
        if out is None:
            return export_pieces(state, types=types, progress=report)
        return export_to(state, out, types=types, progress=report)

    def export_stream(
        self, *, types: list[str] | None = None, branch: str | None = None, snapshot: str | None = None
    ) -> tuple[str, Iterator[bytes]]:
        """The commit whose state is exported, and its load records in pieces. Raises as `export`."""
        state = pinned(self._core, self._selector(branch, snapshot), self.branch)
        return state.commit_id, export_pieces(state, types=types)

    # writing

    def mutate(
        self,
        source: Source,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        query_name: str | None = None,
        branch: str | None = None,
        if_commit: str | Commit | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
        door: Door = "python",
        **kw_params: Any,
    ) -> WriteResult:
        """Run a mutation as one commit, or nothing.

        Raises InvalidQuery, InvalidParams, ConstraintViolation, ReadSetConflict, PreconditionFailed, BranchNotFound,
        StorageFailure (nothing was published), OutcomeUnknown (it says how to find out).
        """
        target = self._writable(branch)
        text = source_text(source)
        values = {**(params or {}), **kw_params}
        operation = MutateOperation(self._core, text, values, query_name=query_name, door=door)
        condition = None if if_commit is None else str(if_commit)
        key = idempotency(
            idempotency_key,
            actor=self.actor,
            operation="mutate",
            arguments={"branch": target, "query": text, "name": query_name, "params": values, "if": condition},
        )
        request = WriteRequest(target, operation, self.actor, checked_message(message), condition, key, idempotency_key)
        return self._mutated(operation, request, write(self._core, request))

    def _mutated(self, operation: MutateOperation, request: WriteRequest, written: Written) -> WriteResult:
        commit = written.commit
        source = commit if written.replayed else written.plan
        nodes, edges = (0, 0) if source is None or source.affected is None else source.affected
        return WriteResult(
            branch=request.branch,
            query_name=operation.chosen(self._core.snapshot(written.manifest)).name,
            affected_nodes=nodes,
            affected_edges=edges,
            ids=() if source is None else source.ids,
            actor_id=self.actor,
            commit=None if commit is None else Commit.of(commit),
            replayed=written.replayed,
        )

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

        `data`: a path (`.jsonl`, gzip or not), an open file, an iterable of records or lines; an Arrow table or reader, a
        Polars or pandas frame (these need `type`). With `from_`, a branch that does not exist is forked and loaded as one
        version. Raises InvalidData and ConstraintViolation with the line, KeyConflict, ReadSetConflict, LimitExceeded,
        BranchNotFound, StorageFailure (nothing was published), OutcomeUnknown.
        """
        if mode not in ("append", "merge", "overwrite"):
            raise InvalidRequest("`mode` is append, merge or overwrite; it is never guessed.", effects="none")
        target = self._writable(branch)
        source, digest = load_source(data, type), None
        if idempotency_key is not None:
            source, digest = digest_of(source)
        operation = LoadOperation(
            self._core, source, mode, progress=reporter(progress, "load"), accept_gzip=accept_gzip
        )
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

    # helpers

    def _writable(self, branch: str | None) -> str:
        if self.read_only:
            raise InvalidRequest("This handle is read-only.", effects="none")
        return branch or self.branch

    def _selector(
        self,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: str | int | dt.datetime | None = None,
    ) -> Selector:
        if branch is None and snapshot is None and as_of is None and self._pinned_at is not None:
            return self._pinned_at
        return Selector(branch, snapshot, None if as_of is None else parse_as_of(as_of))


def checked_message(message: str | None) -> str | None:
    """Raises InvalidRequest for a note above 1,024 bytes."""
    if message is not None and len(message.encode("utf-8", "surrogatepass")) > MESSAGE_BYTES_MAX:
        raise InvalidRequest(f"A message has at most {MESSAGE_BYTES_MAX:,} bytes.", effects="none")
    return message


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


class Branches:
    """`graph.branches`: the live branches and what can be done with them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def list(self) -> list[Branch]:
        """`main` first, then in byte order."""
        return branch_ops.branches(self._graph.core)

    def get(self, name: str) -> Branch:
        """One live branch. Raises BranchNotFound."""
        return branch_ops.branch(self._graph.core, name)

    def create(self, name: str, *, from_: str | None = None, idempotency_key: str | None = None) -> BranchCreated:
        """A new branch from a branch's head or a commit id; one conditional request.

        Raises InvalidRequest (bad name), BranchNotFound, CommitNotFound, AlreadyExists, OutcomeUnknown.
        """
        graph = self._graph
        graph._writable(None)  # pyright: ignore[reportPrivateUsage] - the namespace is part of the handle
        source = from_ or MAIN
        key = idempotency(
            idempotency_key, actor=graph.actor, operation="branch_create", arguments={"name": name, "from": source}
        )
        return branch_ops.create_branch(graph.core, name, from_=source, actor=graph.actor, idempotency=key)

    def delete(self, name: str, *, expected_life: int | None = None) -> BranchDeleted:
        """Raises InvalidRequest for main, BranchNotFound, Conflict (`branch_has_descendants`), OutcomeUnknown."""
        graph = self._graph
        graph._writable(None)  # pyright: ignore[reportPrivateUsage]
        return branch_ops.delete_branch(graph.core, name, actor=graph.actor, expected_life=expected_life)

    def merge(
        self,
        source: str,
        target: str | None = None,
        *,
        delete_branch: bool = False,
        dry_run: bool = False,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> MergeResult:
        """Fast-forward the target (this handle's branch) to the source.

        Raises BranchNotFound, NotAvailable if both changed, ReadSetConflict, OutcomeUnknown. A refused deletion of the
        source is told in the result; the merge stands.
        """
        graph = self._graph
        into = graph._writable(target)  # pyright: ignore[reportPrivateUsage]
        operation = MergeOperation(graph.core, graph.core.head(source), into)
        if dry_run:
            operation.plan(graph.core.head_snapshot(into))
            return MergeResult(source, into, operation.outcome, None, graph.actor, dry_run=True)
        key = idempotency(
            idempotency_key,
            actor=graph.actor,
            operation="branch_merge",
            arguments={"source": source, "target": into, "delete_branch": delete_branch},
        )
        request = WriteRequest(into, operation, graph.actor, checked_message(message), None, key, idempotency_key)
        written = write(graph.core, request)
        deleted, refused = self._deleted(source) if delete_branch else (None, None)
        return MergeResult(
            source=source,
            target=into,
            outcome="fast_forward" if written.replayed else operation.outcome,
            commit=None if written.commit is None else Commit.of(written.commit),
            actor_id=graph.actor,
            branch_deleted=deleted,
            branch_delete_error_details=refused,
            replayed=written.replayed,
        )

    def _deleted(self, source: str) -> tuple[bool, dict[str, Any] | None]:
        try:
            self.delete(source)
        except OmnigraphError as error:
            return False, error.to_dict()
        return True, None


class Commits:
    """`graph.commits`: the past of the graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def list(
        self,
        branch: str | None = None,
        *,
        limit: int | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
    ) -> Iterator[Commit]:
        """Newest first along the branch, merged-in commits included. Raises BranchNotFound, StorageFailure."""
        return commit_ops.list_commits(
            self._graph.core,
            branch or self._graph.branch,
            limit=limit,
            since=None if since is None else as_microseconds(since),
            until=None if until is None else as_microseconds(until),
        )

    def get(self, commit_id: str) -> Commit:
        """Raises CommitNotFound, InvalidRequest."""
        return commit_ops.get_commit(self._graph.core, commit_id)

    def outcome(self, commit_id: str) -> Outcome:
        """What became of an attempted commit: `published`, `superseded`, `undetermined`."""
        return commit_ops.commit_outcome(self._graph.core, commit_id)


class Schema:
    """`graph.schema`: the accepted schema, and changing it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def _state(self) -> Any:
        graph = self._graph
        return pinned(graph.core, graph._selector(), graph.branch)  # pyright: ignore[reportPrivateUsage]

    @property
    def source(self) -> str:
        """The text as it was accepted."""
        return self._graph.core.schemas.source(self.digest)

    @property
    def digest(self) -> str:
        return str(self._state().snapshot.manifest.schema)

    @property
    def types(self) -> Catalog:
        """The compiled catalog."""
        catalog: Catalog = self._state().snapshot.catalog
        return catalog

    def plan(self, new: Source) -> SchemaResult:
        """The steps from the accepted schema to this text, refused ones included; applies nothing. Raises InvalidSchema."""
        core = self._graph.core
        snapshot = self._state().snapshot
        plan = migration(core, snapshot, source_text(new))
        return SchemaResult(plan.supported, False, tuple(plan.to_list()), snapshot.manifest.schema)

    def apply(self, new: Source, *, allow_data_loss: bool = False, message: str | None = None) -> SchemaResult:
        """Apply a text as one commit; nothing is committed for the accepted text itself.

        Raises InvalidSchema, SchemaChangeRefused (with the steps), ReadSetConflict, OutcomeUnknown.
        """
        graph = self._graph
        branch = graph._writable(None)  # pyright: ignore[reportPrivateUsage]
        operation = SchemaOperation(graph.core, source_text(new), allow_data_loss)
        request = WriteRequest(branch, operation, graph.actor, checked_message(message))
        written = write(graph.core, request)
        plan = operation.migration
        assert plan is not None
        return SchemaResult(
            supported=True,
            applied=written.commit is not None,
            steps=tuple(plan.to_list()),
            schema_digest=written.manifest.schema,
            commit=None if written.commit is None else Commit.of(written.commit),
        )


__all__ = ["Branches", "Commits", "Graph", "Schema", "init_graph", "open_graph", "source_text"]
