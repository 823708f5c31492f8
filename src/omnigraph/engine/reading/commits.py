"""Reading history: the list of commits, one commit, what became of an attempted one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import suppress

from omnigraph.engine.arguments import checked_seconds
from omnigraph.engine.core import GraphCore
from omnigraph.engine.reading.selectors import Selector, fate_of, manifest_of, parse_commit_id
from omnigraph.engine.receipts import Commit, Outcome
from omnigraph.errors import CommitNotFound, FormatMismatch, StorageFailure
from omnigraph.manifest.chain import NoHead
from omnigraph.manifest.commits import CommitPublished, CommitReclaimed, CommitSuperseded, CommitUndetermined

_FIRST_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.2, 5.0


def list_commits(
    core: GraphCore,
    selector: Selector,
    default_branch: str,
    *,
    limit: int | None = None,
    since: int | None = None,
    until: int | None = None,
) -> Iterator[Commit]:
    """The log of a state, newest first, merged-in commits included; times in microseconds, both ends inclusive.

    Raises the errors of the selector before the first commit, StorageFailure if an older part of the log can't be read.
    """
    lineage = manifest_of(core, selector, default_branch).lineage

    def walk() -> Iterator[Commit]:
        for place, record in enumerate(core.history.walk(lineage, since=since, until=until)):
            if limit is not None and place >= limit:
                return
            yield Commit.of(record)

    return walk()


def get_commit(core: GraphCore, commit_id: str) -> Commit:
    """The receipt of a commit, also of one whose data was reclaimed. Raises CommitNotFound, InvalidRequest."""
    fate = fate_of(core, parse_commit_id(commit_id)).fate
    match fate:
        case CommitPublished(commit=record) | CommitReclaimed(commit=record):
            return Commit.of(record)
        case CommitUndetermined(reason="unreadable", failure=failure) if isinstance(failure, StorageFailure):
            raise failure
        case CommitSuperseded() | CommitUndetermined():
            raise CommitNotFound(f"There is no commit {commit_id}.")


def await_outcome(core: GraphCore, commit_id: str, wait: float | dt.timedelta | None = None) -> Outcome:
    """The outcome once it is final, or what is known when the wait, in seconds, is over. Raises InvalidRequest."""
    until = core.clock.boot_seconds() + checked_seconds(wait, "wait")
    pause = _FIRST_PAUSE_SECONDS
    while True:
        found = commit_outcome(core, commit_id)
        remaining = until - core.clock.boot_seconds()
        if found.outcome != "undetermined" or remaining <= 0:
            return found
        core.clock.sleep(min(pause, remaining))
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)


def commit_outcome(core: GraphCore, commit_id: str) -> Outcome:
    """`published`, `superseded` (both final) or `undetermined`. Never says not found. Raises InvalidRequest."""
    parsed = parse_commit_id(commit_id)
    looked = fate_of(core, parsed)
    head = looked.head
    if head is None and not isinstance(looked.fate, CommitUndetermined):
        with suppress(StorageFailure, FormatMismatch):  # what became of the commit is known without it
            head = core.heads.state(parsed.branch)
    head_commit = None if head is None or isinstance(head, NoHead) else str(head.manifest.head_commit.id)
    match looked.fate:
        case CommitPublished(commit=record) | CommitReclaimed(commit=record):
            return Outcome("published", commit_id, parsed.branch, Commit.of(record), head_commit_id=head_commit)
        case CommitSuperseded(by=by):
            holder = None if by is None else str(by)
            return Outcome(
                "superseded", commit_id, parsed.branch, superseding_commit_id=holder, head_commit_id=head_commit
            )
        case CommitUndetermined(reason=reason):
            return Outcome("undetermined", commit_id, parsed.branch, reason=reason, head_commit_id=head_commit)
