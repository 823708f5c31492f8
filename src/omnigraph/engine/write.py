"""The write path, numbered as in storage.md 3. What if we stop here?

1. Base      the branch's head, and whether this request was answered before (its key).          Nothing happened.
2. Plan      parse, check, evaluate, validate against the base.                                    Nothing happened.
3. Stage     data files, deletion files, one detached table version a type.                        Inert files remain.
4. Fence     may this process still write?                                                         Inert files remain.
5. Publish   one conditional create of the next manifest version.                                  Visible, or not at all.
6. Adopt     head, adjacency, columns in memory.                                                   A warning at most.
7. Answer    the receipt.

The one loop over conflicts is here: another version met at step 5 is judged against the write's footprint. The loop over
doubt is in `manifest/publish`. Every failure before step 5 is definite and leaves nothing to undo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from omnigraph.ambient import random_hex
from omnigraph.engine.core import GraphCore
from omnigraph.engine.judge import OtherLife, PrepareAgain, Rebase, verdict
from omnigraph.engine.plan import WritePlan
from omnigraph.engine.publication import publish_version
from omnigraph.engine.replay import find_replay
from omnigraph.engine.staging import StagedPlan, carry_on, commit_plan, stage_plan
from omnigraph.errors import BranchNotFound, PreconditionFailed, ReadSetConflict
from omnigraph.manifest.builder import CommitDraft, base_label, next_version
from omnigraph.manifest.chain import KnownHead, NoHead
from omnigraph.manifest.model import Commit, Idempotency, Manifest
from omnigraph.manifest.publish import Published
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.stage import PinMoved

_PAUSE_SECONDS = (0.005, 0.05)
_PAUSE_SECONDS_MAX = 1.0
_REBASES_MAX = 64


class Operation(Protocol):
    """One kind of write. `repeats`: how often it may be prepared again when another writer changed its inputs."""

    @property
    def repeats(self) -> int: ...

    def plan(self, snapshot: Snapshot) -> WritePlan | None:
        """What it wants, given this base; None if that is nothing. Raises the typed errors of bad input."""
        ...


@dataclass(frozen=True, slots=True)
class WriteRequest:
    branch: str
    operation: Operation
    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    idempotency: Idempotency | None = None
    idempotency_key: str | None = None  # the caller's own words, for the answer of an unknown outcome


@dataclass(frozen=True, slots=True)
class Written:
    """`commit` None: nothing was to be done. `plan` None: the answer is that of an earlier request with this key."""

    commit: Commit | None
    manifest: Manifest
    plan: WritePlan | None
    replayed: bool = False


def write(core: GraphCore, request: WriteRequest) -> Written:
    """Run one write to its end. Raises every typed error of the write path; what is known is in its `effects`."""
    with core.writing(request.branch):
        return _Writing(core, request).run()


class _Writing:
    def __init__(self, core: GraphCore, request: WriteRequest) -> None:
        self._core = core
        self._request = request
        self._attempt = 0

    def run(self) -> Written:
        core, request = self._core, self._request
        first: KnownHead | None = None
        seen: Commit | None = None
        while True:
            captured_at = core.clock.boot_seconds()  # before the base is asked for: a sleep in between must count
            head = core.head(request.branch)
            if first is not None and head.life != first.life:
                raise self._other_life(first)
            replayed = find_replay(core, head, request.idempotency, base=seen)
            if replayed is not None:
                return Written(replayed, head.manifest, None, replayed=True)
            self._check_condition(head)
            plan = request.operation.plan(core.snapshot(head.manifest))
            if plan is None:
                return Written(None, head.manifest, None)
            written = self._publish(head, plan, captured_at)
            if written is not None:
                return written
            first, seen = first or head, head.manifest.head_commit

    def _publish(self, head: KnownHead, plan: WritePlan, captured_at: float) -> Written | None:
        """Stage and publish; None if the plan must be made again on the head as it is now."""
        core, request = self._core, self._request
        staged = stage_plan(core, head, plan)
        for _ in range(_REBASES_MAX):
            nonce = random_hex(32)
            try:
                entries, committed = commit_plan(core, head, staged, label=base_label(head))
            except PinMoved:
                return self._again(head, head, PrepareAgain("pin"))
            built = next_version(
                head,
                [commit_draft(request, plan, staged)],
                now_us=core.clock.now_us(),
                nonce=nonce,
                types=entries,
                schema=plan.schema,
                absorbed=plan.absorbed,
            )
            result = publish_version(
                core, built, head, staged_at=captured_at, kind="commit", key=request.idempotency_key
            )
            if isinstance(result, Published):
                carry_on(core, head.manifest, result.manifest, staged, committed)
                return Written(result.manifest.commits[-1], result.manifest, plan)
            moved = result.actual
            replayed = find_replay(core, moved, request.idempotency, base=head.manifest.head_commit)
            if replayed is not None:
                return Written(replayed, moved.manifest, None, replayed=True)
            self._check_condition(moved)
            judged = verdict(plan.footprint, head.manifest, moved.manifest)
            if not isinstance(judged, Rebase):
                return self._again(head, moved, judged)
            head = moved
        return self._again(head, head, PrepareAgain("branch_head"))

    def _again(self, head: KnownHead, moved: KnownHead, judged: PrepareAgain | OtherLife) -> None:
        """Pause before another attempt. Raises ReadSetConflict, BranchNotFound if there may be none."""
        branch = self._request.branch
        if isinstance(judged, OtherLife):
            raise self._other_life(head)
        if self._attempt >= self._request.operation.repeats:
            raise ReadSetConflict(
                f"Branch '{branch}' moved on while this write was being prepared.",
                member=judged.member,
                expected=judged.expected or str(head.manifest.head_commit.id),
                actual=judged.actual or str(moved.manifest.head_commit.id),
            )
        low, high = _PAUSE_SECONDS
        jitter = low + (high - low) * int(random_hex(8), 16) / 2**32
        self._core.clock.sleep(min(jitter * 2.0 ** min(self._attempt, 8), _PAUSE_SECONDS_MAX))
        self._attempt += 1

    def _other_life(self, base: KnownHead) -> BranchNotFound | ReadSetConflict:
        """The branch that was written to is gone; whether a namesake lives decides the words."""
        branch = self._request.branch
        now = self._core.heads.resolve(branch)
        if isinstance(now, NoHead) or not now.live:
            return BranchNotFound(f"The branch '{branch}' was deleted while this write was being prepared.")
        return ReadSetConflict(
            f"The branch '{branch}' was deleted and made anew while this write was being prepared.",
            member="branch_life",
            expected=f"{branch}#{base.life}",
            actual=f"{branch}#{now.life}",
        )

    def _check_condition(self, head: KnownHead) -> None:
        expected = self._request.if_commit
        actual = str(head.manifest.head_commit.id)
        if expected is not None and expected != actual:
            raise PreconditionFailed(
                f"The head of branch '{head.branch}' is not the commit that was named.",
                expected=expected,
                actual=actual,
            )


def commit_draft(request: WriteRequest, plan: WritePlan, staged: StagedPlan) -> CommitDraft:
    """What the log will say of this write."""
    changes = plan.changes
    return CommitDraft(
        nonce=random_hex(16),
        kind=plan.kind,
        actor=request.actor,
        message=request.message,
        counts={change.entity.id: change.counts for change in changes} | dict(plan.counts),
        names={change.entity.id: f"{change.entity.kind}:{change.entity.name}" for change in changes} | dict(plan.names),
        touched=staged.touched | dict(plan.touched),
        origin=plan.origin,
        idempotency=request.idempotency,
        affected=plan.affected,
        ids=plan.ids if request.idempotency is not None else (),  # kept for a replay, and for nothing else
        merged=plan.merged,
    )
