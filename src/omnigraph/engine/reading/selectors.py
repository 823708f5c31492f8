"""Which state a read means (history.md 3): a branch's head, a commit, or a branch at a time."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from dataclasses import dataclass, replace

from omnigraph.engine.arguments import check_text
from omnigraph.engine.core import GraphCore
from omnigraph.engine.reading.interior import state_at
from omnigraph.engine.receipts import as_microseconds
from omnigraph.errors import CommitNotFound, HistoryReclaimed, InvalidRequest, SnapshotNotFound, StorageFailure
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.commits import (
    CommitLookup,
    CommitPublished,
    CommitReclaimed,
    CommitSuperseded,
    CommitUndetermined,
    look_up,
)
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import check_branch_name
from omnigraph.manifest.model import Commit, Manifest
from omnigraph.query.snapshot import Snapshot

Moment = str | int | dt.datetime
"""A time as callers give it; see `parse_as_of`."""


@dataclass(frozen=True, slots=True)
class Selector:
    """`snapshot` (a commit id) excludes the others; `as_of` (microseconds) goes with `branch`."""

    branch: str | None = None
    snapshot: str | None = None
    as_of: int | None = None

    @classmethod
    def asked(cls, branch: str | None = None, snapshot: str | None = None, as_of: Moment | None = None) -> Selector:
        """From what a caller gave. Raises InvalidRequest for what can't be a name, a commit id or a time."""
        for name, value in (("branch", branch), ("snapshot", snapshot)):
            check_text(value, name)
        return cls(branch, snapshot, None if as_of is None else parse_as_of(as_of))


@dataclass(frozen=True, slots=True)
class Pinned:
    """A state resolved once: the snapshot, and the commit whose state it is."""

    snapshot: Snapshot
    commit_id: str


def pinned(core: GraphCore, selector: Selector, default_branch: str) -> Pinned:
    """Resolve a selector. Raises InvalidRequest, BranchNotFound, CommitNotFound, SnapshotNotFound, HistoryReclaimed."""
    manifest = manifest_of(core, selector, default_branch)
    named = selector.snapshot or str(manifest.head_commit.id)
    return Pinned(core.snapshot(manifest), named)


def manifest_of(core: GraphCore, selector: Selector, default_branch: str) -> Manifest:
    """The manifest of the state that a selector means; its log ends in the commit of that state. Raises as `pinned`."""
    if selector.snapshot is not None:
        if selector.branch is not None or selector.as_of is not None:
            raise InvalidRequest("`snapshot` can't be combined with `branch` or `as_of`.")
        return commit_manifest(core, selector.snapshot)
    branch = default_branch if selector.branch is None else selector.branch
    if selector.as_of is not None:
        return commit_manifest(core, str(commit_at(core, branch, selector.as_of).id))
    return core.head(branch).manifest


def parse_commit_id(text: str) -> CommitId:
    """Raises InvalidRequest for what is no commit id."""
    try:
        parsed = CommitId.parse(text)
    except (ValueError, TypeError):
        raise InvalidRequest(
            "A commit id looks like main@42-7f3c9a0011223344: branch, version, 16 hexadecimal digits."
        ) from None
    check_branch_name(parsed.branch)
    return parsed


def fate_of(core: GraphCore, commit_id: CommitId) -> CommitLookup:
    """What became of a commit. Whatever it shows of the branch's head is remembered."""

    def look() -> CommitLookup:
        return look_up(core.store, core.history, commit_id, head_of=core.heads.state, graph=core.graph_id)

    looked = look()
    if looked.above_head:
        core.heads.shown(commit_id.branch, commit_id.version)
        looked = look()
    match looked:
        case CommitLookup(head=KnownHead() as head):
            return replace(looked, head=core.heads.adopt(head))
        case CommitLookup(fate=CommitPublished() | CommitSuperseded()):
            core.heads.shown(commit_id.branch, commit_id.version)
        case _:
            pass
    return looked


def commit_manifest(core: GraphCore, text: str) -> Manifest:
    """The manifest whose state a commit id names.

    Raises SnapshotNotFound for a mere name (a commit id has an `@`, and this version has no named snapshots),
    InvalidRequest, CommitNotFound, HistoryReclaimed, StorageFailure.
    """
    if "@" not in text:
        raise SnapshotNotFound(f"There is no snapshot named '{text}'.")
    commit_id = parse_commit_id(text)
    fate = fate_of(core, commit_id).fate
    match fate:
        case CommitPublished():
            return state_at(core, fate.stored.manifest, commit_id)
        case CommitReclaimed():
            raise HistoryReclaimed(f"The data of commit {text} was removed by clean-up.")
        case CommitUndetermined(reason="unreadable", failure=failure) if isinstance(failure, StorageFailure):
            raise failure
        case CommitSuperseded() | CommitUndetermined():
            raise CommitNotFound(f"There is no commit {text}.")


def commit_at(core: GraphCore, branch: str, moment: int) -> Commit:
    """The last commit of the branch's first-parent chain that is not younger than `moment` (microseconds).

    Raises InvalidRequest for a time in the future, CommitNotFound for one before the first commit.
    """
    if moment > core.clock.now_us():
        raise InvalidRequest("`as_of` lies in the future: the answer could still change.")
    lineage = core.head(branch).manifest.lineage
    wanted = lineage.window[-1].id
    for record in core.history.walk(lineage):
        if record.id != wanted:
            continue
        if record.created_at <= moment:
            return record
        if not record.parents:
            break
        wanted = record.parents[0]
    raise CommitNotFound(f"Branch '{branch}' had no commit at that time.")


_OFFSET = re.compile(r"(Z|[+-]\d\d:\d\d)$")


def parse_as_of(value: Moment) -> int:
    """Microseconds from a time: an integer as it is, RFC 3339 text with an offset, or a datetime (naive means UTC).

    Raises InvalidRequest for anything else.
    """
    match value:
        case dt.datetime():
            return as_microseconds(value)
        case bool():
            pass
        case int():
            return value
        case str() if _OFFSET.search(value):
            with suppress(ValueError):
                return as_microseconds(dt.datetime.fromisoformat(value))
        case _:
            pass
    raise InvalidRequest(f"`as_of` takes {TIMES}.")


TIMES = "microseconds since 1970 or a time with an offset, such as 2026-11-30T12:00:00Z"
