"""Reading history: the list of commits, one commit, what became of an attempted one."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.engine.core import GraphCore
from omnigraph.engine.receipts import Commit, Outcome
from omnigraph.engine.selectors import parse_commit_id
from omnigraph.errors import CommitNotFound, StorageFailure
from omnigraph.manifest.chain import KnownHead, NoHead
from omnigraph.manifest.commits import (
    CommitPublished,
    CommitReclaimed,
    CommitSuperseded,
    CommitUndetermined,
    look_up,
)


def list_commits(
    core: GraphCore, branch: str, *, limit: int | None = None, since: int | None = None, until: int | None = None
) -> Iterator[Commit]:
    """The branch's log, newest first, merged-in commits included; times in microseconds, both ends inclusive.

    Raises BranchNotFound before the first commit, StorageFailure if an older part of the log can't be read.
    """
    lineage = core.head(branch).manifest.lineage

    def walk() -> Iterator[Commit]:
        for place, record in enumerate(core.history.walk(lineage, since=since, until=until)):
            if limit is not None and place >= limit:
                return
            yield Commit.of(record)

    return walk()


def get_commit(core: GraphCore, commit_id: str) -> Commit:
    """The receipt of a commit, also of one whose data was reclaimed. Raises CommitNotFound, InvalidRequest."""
    fate = look_up(core.store, core.history, parse_commit_id(commit_id), head_of=core.heads.state).fate
    match fate:
        case CommitPublished(commit=record) | CommitReclaimed(commit=record):
            return Commit.of(record)
        case CommitUndetermined(reason="unreadable", failure=failure) if isinstance(failure, StorageFailure):
            raise failure
        case CommitSuperseded() | CommitUndetermined():
            raise CommitNotFound(f"There is no commit {commit_id}.")


def commit_outcome(core: GraphCore, commit_id: str) -> Outcome:
    """`published`, `superseded` (both final) or `undetermined`. Never says not found. Raises InvalidRequest."""
    parsed = parse_commit_id(commit_id)
    looked = look_up(core.store, core.history, parsed, head_of=core.heads.state)
    head = looked.head
    if isinstance(head, KnownHead):
        head = core.heads.adopt(head)
    elif head is None and not isinstance(looked.fate, CommitUndetermined):
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
