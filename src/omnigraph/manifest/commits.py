"""What became of a commit, by its id (history.md 2.4): for `commit show` and for the outcome call.

The id names the one object that can hold the commit, so that one GET answers, except where clean-up has been at work:
an object whose store time lies more than 12 hours after the time in it may be a stray (a sleeper's late request for a
version that was used and removed) and proves nothing. Then the head's log decides, which keeps a record of every commit
for ever. Knows nothing of what a commit did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import FormatMismatch, StorageFailure
from omnigraph.manifest.chain import HeadState, NoHead, StoredVersion, read_version
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.lineage import LogReader
from omnigraph.manifest.model import Commit, Manifest
from omnigraph.store.base import Store

LATE_MICROSECONDS = 12 * 3_600_000_000
"""An object stored longer than this after the time in it may be a stray."""

SKEW_MICROSECONDS = 3_600_000_000
"""A head whose two times lie further apart than this is reported as `clock_skew`."""


@dataclass(frozen=True, slots=True)
class CommitPublished:
    """The commit is in the chain, and its version holds its state."""

    commit: Commit
    stored: StoredVersion


@dataclass(frozen=True, slots=True)
class CommitReclaimed:
    """The commit was published; its version is gone, its record is not. Receipts yes, data no (410)."""

    commit: Commit


@dataclass(frozen=True, slots=True)
class CommitSuperseded:
    """Another publication has the version: the commit never was published and never will be."""

    by: CommitId | None  # the last commit of that version, if it is known and has one


@dataclass(frozen=True, slots=True)
class CommitUndetermined:
    """`version_absent`: nothing holds that version yet, so a request may still land. `history_reclaimed`: the version
    is older than the branch's present life and gone. `unreadable`: storage did not say.
    """

    reason: Literal["version_absent", "history_reclaimed", "unreadable"]
    failure: StorageFailure | FormatMismatch | None = None  # of `unreadable`


CommitFate = CommitPublished | CommitReclaimed | CommitSuperseded | CommitUndetermined


@dataclass(frozen=True, slots=True)
class CommitLookup:
    """The fate, and the head if it had to be resolved: one above the head in memory makes its owner look again.

    `above_head`: an object lies under the version, and the head is lower. No stray does that, so the head is out of date.
    """

    fate: CommitFate
    head: HeadState | None = None
    above_head: bool = False


@dataclass(frozen=True, slots=True)
class VersionReclaimed:
    """The version was in the chain and is gone; if an object lies under its key, it is a stray."""


@dataclass(frozen=True, slots=True)
class VersionAbsent:
    """The chain has not come so far."""


def look_up(
    store: Store,
    history: LogReader,
    commit_id: CommitId,
    *,
    head_of: Callable[[str], HeadState],
    graph: str | None = None,
) -> CommitLookup:
    """What became of a commit.

    `head_of` gives the head of a branch: from memory in the process that owns it and is certain, else by
    `chain.resolve_head`. One GET; at worst also the head, the segments of its log and a second GET. Failed reads are
    `unreadable`, never raised; GraphReplaced is, if a graph is named and the version belongs to another.
    """
    try:
        return _looked_up(store, history, commit_id, head_of, graph)
    except (StorageFailure, FormatMismatch) as failure:
        return CommitLookup(CommitUndetermined("unreadable", failure))


def read_past_version(
    store: Store, history: LogReader, branch: str, version: int, *, head_of: Callable[[str], HeadState]
) -> StoredVersion | VersionReclaimed | VersionAbsent:
    """A version for reading its state, after the check for strays that every read below the head makes.

    Raises StorageFailure and FormatMismatch.
    """
    stored = read_version(store, branch, version)
    if stored is not None and not _late(stored):
        return stored
    head = head_of(branch)
    if isinstance(head, NoHead) or head.version < version:
        return VersionAbsent()
    if stored is None:
        stored = read_version(store, branch, version)  # it may have come between the two requests
    return stored if stored is not None and _counts(store, history, stored, head) else VersionReclaimed()


def clock_skew(stored_at_us: int, manifest: Manifest) -> int | None:
    """Microseconds between the store's time of a head and the time in it, if they are over an hour apart.

    None if they agree, and for a version without commits, which holds no time.
    """
    if not manifest.commits:
        return None
    apart = stored_at_us - manifest.commits[-1].created_at
    return apart if abs(apart) > SKEW_MICROSECONDS else None


def _looked_up(
    store: Store, history: LogReader, commit_id: CommitId, head_of: Callable[[str], HeadState], graph: str | None
) -> CommitLookup:
    branch, version = commit_id.branch, commit_id.version
    stored = read_version(store, branch, version, graph=graph)
    if stored is not None and not _late(stored):
        return CommitLookup(_fate_in(stored, commit_id))
    head = head_of(branch)
    if isinstance(head, NoHead) or head.version < version:
        return CommitLookup(CommitUndetermined("version_absent"), head, above_head=stored is not None)
    if stored is not None and _counts(store, history, stored, head):
        return CommitLookup(_fate_in(stored, commit_id), head)
    record = history.find(head.manifest.lineage, commit_id)
    if record is not None:
        # gone; or it came after the first GET and before the head was asked for
        again = read_version(store, branch, version, graph=graph) if stored is None else None
        if again is not None and _counts(store, history, again, head):
            return CommitLookup(_fate_in(again, commit_id), head)
        return CommitLookup(CommitReclaimed(record), head)
    if version < head.life:
        return CommitLookup(CommitUndetermined("history_reclaimed"), head)
    holder = head.manifest.commits[-1].id if head.version == version and head.manifest.commits else None
    return CommitLookup(CommitSuperseded(holder), head)


def _fate_in(stored: StoredVersion, commit_id: CommitId) -> CommitFate:
    commits = stored.manifest.commits
    for commit in commits:
        if commit.id == commit_id:
            return CommitPublished(commit, stored)
    return CommitSuperseded(commits[-1].id if commits else None)


def _late(stored: StoredVersion) -> bool:
    """Whether the object may be a stray. One without commits holds no time, so it is never sure by itself."""
    if not stored.manifest.commits:
        return True
    return stored.stored_at - stored.manifest.commits[-1].created_at > LATE_MICROSECONDS


def _counts(store: Store, history: LogReader, stored: StoredVersion, head: HeadState) -> bool:
    """Whether an object that may be a stray is the version of the chain that ends in `head`."""
    manifest = stored.manifest
    if isinstance(head, NoHead):
        return False
    if head.version == manifest.version:
        return head.sha256 == stored.sha256
    if not _late(stored):
        return True
    if manifest.commits:
        return history.contains(head.manifest.lineage, manifest.commits[-1].id, like=manifest.commits[-1])
    following = read_version(store, manifest.branch, manifest.version + 1)
    return following is not None and following.manifest.base == stored.as_base
