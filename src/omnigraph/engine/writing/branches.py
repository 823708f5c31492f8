"""Branches: create and delete are one conditional request each; nothing of any table is written or copied."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.ambient import random_hex, ulid_time_us
from omnigraph.engine.core import GraphCore
from omnigraph.engine.logs import log_event
from omnigraph.engine.reading.interior import of_its_own
from omnigraph.engine.reading.selectors import commit_manifest
from omnigraph.engine.receipts import Branch, BranchCreated, BranchDeleted, as_datetime
from omnigraph.engine.writing.pauses import pause_before_again
from omnigraph.engine.writing.publication import publish_version
from omnigraph.engine.writing.replay import key_reused
from omnigraph.errors import (
    AlreadyExists,
    BranchNotFound,
    Conflict,
    InvalidRequest,
    LimitExceeded,
    PreconditionFailed,
    ReadSetConflict,
    StoragePhase,
)
from omnigraph.manifest.builder import MAIN, base_label, deletion, forked
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.keys import check_branch_name, lookalike
from omnigraph.manifest.logs import related
from omnigraph.manifest.markers import mark_deleted
from omnigraph.manifest.model import CreatedFrom, Idempotency, Manifest
from omnigraph.manifest.publish import Published

_LOGGER = "omnigraph.branches"
LIVE_BRANCHES_MAX = 100_000
"""history.md 1.1."""

_REPEATS = 32
_DESCENDANTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Source:
    """What a branch begins from."""

    manifest: Manifest
    created_from: CreatedFrom


def fork_source(core: GraphCore, from_: str, idempotency: Idempotency | None = None) -> Source:
    """Resolve a branch name or commit id once, from what storage holds now: the first version of a new branch follows
    none that could be looked at. Raises BranchNotFound, CommitNotFound, HistoryReclaimed, GraphReplaced.
    """
    if "@" in from_:
        manifest, created_from = commit_manifest(core, from_), CreatedFrom(None, None, idempotency)
    else:
        head = core.standing(from_)
        manifest, created_from = head.manifest, CreatedFrom(from_, head.life, idempotency)
    begun = max(core.clock.now_us(), manifest.head_commit.created_at)  # no branch is older than what it begins from
    return Source(manifest, replace(created_from, created_at=begun))


def create_branch(
    core: GraphCore,
    name: str,
    *,
    from_: str = MAIN,
    actor: str | None = None,
    idempotency: Idempotency | None = None,
    idempotency_key: str | None = None,
) -> BranchCreated:
    """A new branch from a branch's head or a commit. `idempotency_key`: the caller's own words, for an unknown outcome.

    Raises InvalidRequest (bad name), BranchNotFound, CommitNotFound, AlreadyExists, OutcomeUnknown.
    """
    check_branch_name(name)
    with core.writing(name):
        captured_at = core.clock.boot_seconds()
        target = core.heads.state(name)
        if isinstance(target, KnownHead) and target.live:
            return _taken(core, target, idempotency, idempotency_key, from_, actor)
        if isinstance(target, KnownHead) and idempotency is not None and idempotency == _creation_key(target):
            return _created(core, target.manifest, from_, actor, replayed=True)  # the life that it made is over
        source = fork_source(core, from_, idempotency)
        refuse_branch(core, name)
        state = of_its_own(core, source.manifest, label=base_label(target))
        built = forked(target, state, nonce=random_hex(32), created_from=source.created_from)
        result = publish_version(core, built, target, staged_at=captured_at, kind="branch_create", key=idempotency_key)
        if isinstance(result, Published):
            return _created(core, result.manifest, from_, actor)
        if result.actual.live:
            return _taken(core, result.actual, idempotency, idempotency_key, from_, actor)
        raise ReadSetConflict(f"Branch '{name}' was created and deleted meanwhile.", member="branch_life")


def _taken(
    core: GraphCore, head: KnownHead, given: Idempotency | None, key: str | None, from_: str, actor: str | None
) -> BranchCreated:
    """The first receipt, if the live branch was created under the same key by the same request."""
    used = _creation_key(head)
    if given is not None and used is not None:
        if used == given:
            return _created(core, head.manifest, from_, actor, replayed=True)
        if used.key == given.key:
            raise key_reused(key, None, head.manifest.created_from)
    raise AlreadyExists(f"There is a branch '{head.branch}' already.")


def _creation_key(head: KnownHead) -> Idempotency | None:
    """The digests of the key under which the present or last life of a branch was created."""
    created = head.manifest.created_from
    return None if created is None else created.idempotency


def _created(
    core: GraphCore, manifest: Manifest, from_: str, actor: str | None, *, replayed: bool = False
) -> BranchCreated:
    forked_from = manifest.forked_from
    return BranchCreated(
        uri=core.store.uri,
        name=manifest.branch,
        from_=from_,
        base_commit_id=None if forked_from is None else str(forked_from),
        actor_id=actor,
        life=manifest.life,
        replayed=replayed,
    )


def refuse_branch(core: GraphCore, name: str) -> None:
    """One branch too many, or a name that equals a live one but for case or composition, which would be confused by
    people and by file systems. Raises LimitExceeded, AlreadyExists, StorageFailure.
    """
    others = core.branch_names()
    if len(others) >= LIVE_BRANCHES_MAX and (live := len(core.heads.live())) >= LIVE_BRANCHES_MAX:
        raise LimitExceeded(
            f"A graph may have {LIVE_BRANCHES_MAX} live branches. Delete some that are not needed any more.",
            resource="live_branches",
            limit=LIVE_BRANCHES_MAX,
            actual=live + 1,
            effects="none",
        )
    for other in others:
        if other != name and lookalike(other) == lookalike(name):
            state = core.heads.state(other)
            if isinstance(state, KnownHead) and state.live:
                raise AlreadyExists(f"'{name}' can't be told from the live branch '{other}'.")


def delete_branch(
    core: GraphCore,
    name: str,
    *,
    actor: str | None = None,
    expected_life: int | None = None,
    expected_commit: str | None = None,
) -> BranchDeleted:
    """Delete a live branch. Its commit ids keep resolving; `branch create NAME --from <last commit>` is the undo.

    With `expected_commit` only while that is the head. Raises InvalidRequest for `main`, BranchNotFound, Conflict
    (`branch_has_descendants`), PreconditionFailed, OutcomeUnknown.
    """
    if name == MAIN:
        raise InvalidRequest("The branch main can't be deleted.")
    check_branch_name(name)
    with core.writing(name):
        captured_at = core.clock.boot_seconds()
        head = core.standing(name)
        life = head.life if expected_life is None else expected_life
        for attempt in range(_REPEATS + 1):
            if attempt:
                pause_before_again(core.clock, attempt - 1)
            if head.life != life or not head.live:
                raise BranchNotFound(f"There is no branch '{name}' of that life.")
            _check_head(head, expected_commit)
            _refuse_descendants(core, head)
            unmerged = _unmerged(core, head)
            built = deletion(head, nonce=random_hex(32))
            result = publish_version(core, built, head, staged_at=captured_at, kind="branch_delete")
            if isinstance(result, Published):
                failed = mark_deleted(core.store, result.manifest)
                if failed is not None:
                    fields = {"class": str(failed), "phase": StoragePhase.PUBLISH.value}
                    log_event(
                        _LOGGER, "warning", "deleted-branch marker not written", graph=core.name, branch=name, **fields
                    )
                return BranchDeleted(
                    uri=core.store.uri,
                    name=name,
                    actor_id=actor,
                    unmerged_commits=unmerged,
                    last_commit_id=str(head.manifest.head_commit.id),
                )
            head = result.actual
    raise ReadSetConflict(f"Branch '{name}' kept moving while it was being deleted.", member="branch_head")


def _check_head(head: KnownHead, expected: str | None) -> None:
    actual = str(head.manifest.head_commit.id)
    if expected is not None and expected != actual:
        raise PreconditionFailed(
            f"Branch '{head.branch}' has moved on; it was not deleted.", expected=expected, actual=actual
        )


def deleted_at(core: GraphCore, name: str, life: int, commit: str) -> bool:
    """Whether that life of the branch is over and this was its last commit. Raises StorageFailure."""
    state = core.heads.state(name)
    return (
        isinstance(state, KnownHead)
        and not state.live
        and state.life == life
        and str(state.manifest.head_commit.id) == commit
    )


def _refuse_descendants(core: GraphCore, head: KnownHead) -> None:
    children = [
        other.branch
        for other in core.heads.live()
        if (made := other.manifest.created_from) is not None and (made.branch, made.life) == (head.branch, head.life)
    ]
    if children:
        shown = children[:_DESCENDANTS_SHOWN]
        raise Conflict(
            f"Branches were created from '{head.branch}': {', '.join(shown)}. Delete them first.",
            code="branch_has_descendants",
            retry="fix",
            detail_key="descendants",
            details=shown,
        )


def _unmerged(core: GraphCore, head: KnownHead) -> int:
    main = core.head(MAIN)
    return len(related(core.history, head.manifest.lineage, main.manifest.lineage).left_only)


def branches(core: GraphCore) -> list[Branch]:
    """Live branches, `main` first, then in byte order. Raises StorageFailure, also for a branch that is damaged."""
    return [_described(head) for head in core.heads.live()]


def branch(core: GraphCore, name: str) -> Branch:
    """One live branch. Raises BranchNotFound."""
    return _described(core.head(name))


def _described(head: KnownHead) -> Branch:
    manifest = head.manifest
    made = manifest.created_from
    return Branch(
        name=manifest.branch,
        head_commit_id=str(manifest.head_commit.id),
        graph_manifest_version=manifest.version,
        life=manifest.life,
        created_from=None if made is None else made.branch,
        created_at=None if (began := _began(manifest)) is None else as_datetime(began),
    )


def _began(manifest: Manifest) -> int | None:
    """When the present life of a branch began, microseconds: as it was noted then, and of `main` when its graph did."""
    if manifest.created_from is not None:
        return manifest.created_from.created_at
    return ulid_time_us(manifest.graph) if manifest.branch == MAIN else None
