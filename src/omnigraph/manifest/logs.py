"""Questions to whole logs: how two branches are related, what a merge takes in, whether a key was used.

Reads segments through a LogReader, as far back as the answer needs and no further. Every function may raise
StorageFailure (phase `read`) or FormatMismatch from a segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.manifest.ancestry import Ancestry, compared
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.lineage import LogReader
from omnigraph.manifest.model import Commit, Lineage, Manifest

AUTHORED_MAX = 1_024
"""A key is looked up among so many of the newest commits authored in the branch's present life."""

RECORDS_BACK_MAX = 4_096
"""And never further back in the log than this."""


@dataclass(frozen=True, slots=True)
class KeyUsed:
    """The key was used: by this commit, or (None) by the creation of the branch itself."""

    commit: Commit | None
    request: str  # digest of the request that used it: another request under the same key is refused


def related(history: LogReader, left: Lineage, right: Lineage) -> Ancestry:
    """How the head commits of two logs are related."""
    return compared(left.window[-1].id, right.window[-1].id, history.records_of(left, right))


def taken_in(history: LogReader, source: Lineage, ancestry: Ancestry) -> tuple[Commit, ...]:
    """The records that a merge appends before itself: what the target's log lacks of the source's, in source order.

    `ancestry` compares the source (left) with the target (right).
    """
    missing = set(ancestry.left_only)
    newest_first: list[Commit] = []
    for record in history.walk(source):
        if not missing:
            break
        if record.id in missing:
            missing.remove(record.id)
            newest_first.append(record)
    return tuple(reversed(newest_first))


def first_parents(history: LogReader, lineage: Lineage) -> Iterator[Commit]:
    """The head commit, its first parent, that one's first parent, and so on to genesis: what the branch's states were,
    through the fork point into the history before it.
    """
    expected: CommitId | None = lineage.window[-1].id
    for record in history.walk(lineage):  # parents stand before children, so one way back meets them all
        if record.id == expected:
            yield record
            expected = record.parents[0] if record.parents else None


def as_of(history: LogReader, lineage: Lineage, time_us: int) -> Commit | None:
    """The last commit of the first-parent chain that was made at or before this time; None before genesis."""
    return next((commit for commit in first_parents(history, lineage) if commit.created_at <= time_us), None)


def find_key(
    history: LogReader, head: Manifest, key: str, *, after: CommitId | None = None, authored_max: int = AUTHORED_MAX
) -> KeyUsed | None:
    """The use of an idempotency key (its digest) in the branch's present life.

    What forks and merges brought in does not count. With `after`, only the records that follow that commit in the log:
    the look-up between an old base and a new one, before a write is rebased or prepared again. The creation of the
    branch counts as long as its key is asked for in the life it began.
    """
    for record in _authored_back(history, head, after, authored_max):
        if record.idempotency is not None and record.idempotency.key == key:
            return KeyUsed(record, record.idempotency.request)
    created = head.created_from
    if created is not None and created.idempotency is not None and created.idempotency.key == key:
        return KeyUsed(None, created.idempotency.request)
    return None


def _authored_back(history: LogReader, head: Manifest, after: CommitId | None, authored_max: int) -> Iterator[Commit]:
    """The newest records that were authored in the present life, newest first, within both bounds."""
    authored = 0
    for place, record in enumerate(history.walk(head.lineage)):
        if record.id == after or place >= RECORDS_BACK_MAX or authored >= authored_max:
            return
        if record.id.branch == head.branch and record.id.version >= head.life:
            authored += 1
            yield record
