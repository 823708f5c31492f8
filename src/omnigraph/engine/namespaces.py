"""`graph.branches`, `graph.commits`, `graph.schema`, `graph.maintenance`: what can be done with each, forwarded to one function each."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Collection, Iterator
from typing import Any

from omnigraph.engine.arguments import (
    Source,
    check_text,
    checked_limit,
    checked_message,
    checked_time,
    source_text,
    text_bytes,
)
from omnigraph.engine.effects import definite_failures
from omnigraph.engine.maintenance.optimize import Report, optimize
from omnigraph.engine.maintenance.receipts import OptimizeResult
from omnigraph.engine.merge import MergeOperation
from omnigraph.engine.reading import commits as commit_ops
from omnigraph.engine.reading.context import Context
from omnigraph.engine.receipts import (
    Branch,
    BranchCreated,
    BranchDeleted,
    Commit,
    MergeResult,
    Outcome,
    SchemaResult,
)
from omnigraph.engine.schema_change import SchemaOperation, migration
from omnigraph.engine.writing import branches as branch_ops
from omnigraph.engine.writing.entry import WriteRequest, Written
from omnigraph.engine.writing.replay import idempotency
from omnigraph.engine.writing.write import write
from omnigraph.errors import BranchNotFound, InvalidRequest, OmnigraphError
from omnigraph.escaping import safe_text
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.builder import MAIN


class _Namespace:
    """Says what it offers when it is shown. Nothing is asked of storage for that."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __repr__(self) -> str:
        offered = [
            name if isinstance(each, property) else f"{name}({_arguments(each)})"
            for name, each in vars(type(self)).items()
            if not name.startswith("_")
        ]
        return f"<{type(self).__name__} of {safe_text(self._context.core.store.uri)}: {', '.join(offered)}>"


def _arguments(method: Any) -> str:
    """The arguments that a call can't do without."""
    needed = [each for each in inspect.signature(method).parameters.values() if each.default is each.empty]
    return ", ".join(each.name for each in needed[1:])


class Branches(_Namespace):
    """`graph.branches`: the live branches and what can be done with them."""

    def list(self) -> list[Branch]:
        """`main` first, then in byte order."""
        return branch_ops.branches(self._context.core)

    def get(self, name: str) -> Branch:
        """One live branch. Raises InvalidRequest for what can't be a name, BranchNotFound."""
        text_bytes(name, "A branch's name")
        return branch_ops.branch(self._context.core, name)

    @definite_failures()
    def create(self, name: str, *, from_: str | None = None, idempotency_key: str | None = None) -> BranchCreated:
        """A new branch from a branch's head or a commit id; one conditional request.

        Raises InvalidRequest (bad name), BranchNotFound, CommitNotFound, AlreadyExists, OutcomeUnknown.
        """
        context = self._context
        context.writable()
        text_bytes(name, "A branch's name")
        check_text(from_, "from_")
        source = MAIN if from_ is None else from_
        key = idempotency(
            idempotency_key, actor=context.actor, operation="branch_create", arguments={"name": name, "from": source}
        )
        return branch_ops.create_branch(
            context.core,
            name,
            from_=source,
            actor=context.actor,
            idempotency=key,
            idempotency_key=idempotency_key,
        )

    @definite_failures()
    def delete(self, name: str, *, expected_life: int | None = None) -> BranchDeleted:
        """Raises InvalidRequest for main, BranchNotFound, Conflict (`branch_has_descendants`), OutcomeUnknown."""
        context = self._context
        context.writable()
        text_bytes(name, "A branch's name")
        return branch_ops.delete_branch(context.core, name, actor=context.actor, expected_life=expected_life)

    @definite_failures()
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

        Raises BranchNotFound, NotAvailable if both changed, ReadSetConflict, OutcomeUnknown. With `delete_branch` the
        source is deleted if its head still is what was merged. A refused deletion is told in the result; the merge stands.
        """
        context = self._context
        into = context.writable(target)
        text_bytes(source, "A branch's name")
        operation = MergeOperation(context.core, source, into)
        if dry_run:
            operation.plan(context.core.head_snapshot(into))
            return MergeResult(source, into, operation.outcome, None, context.actor, dry_run=True)
        key = idempotency(
            idempotency_key,
            actor=context.actor,
            operation="branch_merge",
            arguments={"source": source, "target": into, "delete_branch": delete_branch},
        )
        request = WriteRequest(into, operation, context.actor, checked_message(message), None, key, idempotency_key)
        written = write(context.core, request)
        life, taken = _taken_in(operation, written)
        deleted, refused = self._deleted(source, life, taken) if delete_branch else (None, None)
        return MergeResult(
            source=source,
            target=into,
            outcome="fast_forward" if written.replayed else operation.outcome,
            commit=None if written.commit is None else Commit.of(written.commit),
            actor_id=context.actor,
            branch_deleted=deleted,
            branch_delete_error=refused,
            replayed=written.replayed,
        )

    def _deleted(self, source: str, life: int, commit: str) -> tuple[bool, OmnigraphError | None]:
        """Whether what was merged is deleted, and why not. Nothing else goes: not what came after it, not a namesake."""
        try:
            with definite_failures():
                self._delete_once(source, life, commit)
        except OmnigraphError as error:
            return False, error
        return True, None

    def _delete_once(self, source: str, life: int, commit: str) -> None:
        core, actor = self._context.core, self._context.actor
        try:
            branch_ops.delete_branch(core, source, actor=actor, expected_life=life, expected_commit=commit)
        except BranchNotFound:
            # this very request may have deleted it before, and its answer was lost
            if not branch_ops.deleted_at(core, source, life, commit):
                raise


def _taken_in(operation: MergeOperation, written: Written) -> tuple[int, str]:
    """Life and head commit of the source that was merged, by this call or by the one whose receipt is given again."""
    origin = None if written.commit is None else written.commit.origin
    if origin is not None and origin.source_life is not None and origin.source_commit is not None:
        return origin.source_life, origin.source_commit
    taken = operation.taken
    return taken.life, str(taken.manifest.head_commit.id)


class Commits(_Namespace):
    """`graph.commits`: the past of the graph."""

    def list(
        self,
        branch: str | None = None,
        *,
        limit: int | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
    ) -> Iterator[Commit]:
        """Newest first along the branch, merged-in commits included; `limit` is at least 1. A view of the past (`at`)
        lists what was there then, unless a branch is named.

        Raises InvalidRequest, BranchNotFound, StorageFailure; of a view CommitNotFound, HistoryReclaimed.
        """
        checked_limit(limit)
        return commit_ops.list_commits(
            self._context.core,
            self._context.selector(branch),
            self._context.branch,
            limit=limit,
            since=checked_time(since, "since"),
            until=checked_time(until, "until"),
        )

    def get(self, commit_id: str) -> Commit:
        """Raises CommitNotFound, InvalidRequest."""
        return commit_ops.get_commit(self._context.core, commit_id)

    def outcome(self, commit_id: str, *, wait: float | dt.timedelta | None = None) -> Outcome:
        """What became of an attempted commit: `published`, `superseded`, or `undetermined`, which it stays for `wait`
        seconds at most before it is told. It asks and writes nothing. Raises InvalidRequest.
        """
        return commit_ops.await_outcome(self._context.core, commit_id, wait)


class Schema(_Namespace):
    """`graph.schema`: the accepted schema, and changing it."""

    @property
    def source(self) -> str:
        """The text as it was accepted."""
        return self._context.core.schemas.source(self.digest)

    @property
    def digest(self) -> str:
        return self._context.state().snapshot.manifest.schema

    @property
    def types(self) -> Catalog:
        """The compiled catalog."""
        return self._context.state().snapshot.catalog

    def plan(self, new: Source) -> SchemaResult:
        """The steps from the accepted schema to this text, refused ones included; applies nothing. Raises InvalidSchema."""
        core = self._context.core
        snapshot = self._context.state().snapshot
        plan = migration(core, snapshot, source_text(new))
        return SchemaResult(plan.supported, False, tuple(plan.to_list()), snapshot.manifest.schema)

    @definite_failures()
    def apply(self, new: Source, *, allow_data_loss: bool = False, message: str | None = None) -> SchemaResult:
        """Apply a text as one commit; nothing is committed for the accepted text itself.

        Raises InvalidSchema, SchemaChangeRefused (with the steps), ReadSetConflict, OutcomeUnknown.
        """
        context = self._context
        branch = context.writable()
        operation = SchemaOperation(context.core, source_text(new), allow_data_loss)
        request = WriteRequest(branch, operation, context.actor, checked_message(message))
        written = write(context.core, request)
        plan = operation.migration
        assert plan is not None
        return SchemaResult(
            supported=True,
            applied=written.commit is not None,
            steps=tuple(plan.to_list()),
            schema_digest=written.manifest.schema,
            commit=None if written.commit is None else Commit.of(written.commit),
        )


class Maintenance(_Namespace):
    """`graph.maintenance`: upkeep of how a graph is stored. What it holds stays as it is."""

    @definite_failures()
    def optimize(
        self,
        branch: str | None = None,
        types: Collection[str] | None = None,
        full: bool = False,
        *,
        progress: Report | None = None,
    ) -> OptimizeResult:
        """Build the search indexes that the schema declares over what they do not cover, and publish them as one commit, or
        nothing. `full`: one segment an index, over everything. `progress` is called with how many types are done, and of
        how many.

        Raises BranchNotFound, InvalidRequest for an unknown type, StorageFailure (nothing was published), OutcomeUnknown.
        A type whose indexes can't be built, or that others change meanwhile, is told in the result; the others are published.
        """
        context = self._context
        target = context.writable(branch)
        if progress is not None and not callable(progress):
            raise InvalidRequest("`progress` is a function of two numbers.")
        return optimize(context.core, target, types=types, full=bool(full), actor=context.actor, report=progress)
