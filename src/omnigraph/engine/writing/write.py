"""The write path, numbered as in storage.md 3. What if we stop here?

1. Base      the branch's head, and whether this request was answered before (its key).          Nothing happened.
2. Plan      parse, check, evaluate, validate against the base.                                    Nothing happened.
3. Stage     data files, deletion files, one detached table version a type.                        Inert files remain.
4. Fence     may this process still write?                                                         Inert files remain.
5. Publish   one conditional create of the next manifest version.                                  Visible, or not at all.
6. Adopt     head, adjacency, columns in memory.                                                   A warning at most.
7. Answer    the receipt.

Steps 1 to 3 run side by side for the writers of a branch; whoever is ready goes through 4 to 6 with those that wait
(`engine/writing/groups`, where the loop over conflicts is). The loop over preparing again is here, the one over doubt in
`manifest/publish`. Every failure before step 5 is definite and leaves nothing to undo.
"""

from __future__ import annotations

from typing import assert_never

from omnigraph.engine.core import GraphCore
from omnigraph.engine.lanes import Ticket
from omnigraph.engine.plan import WritePlan
from omnigraph.engine.writing.entry import Again, Entry, Failed, WriteRequest, Written
from omnigraph.engine.writing.groups import check_condition, publish_together
from omnigraph.engine.writing.judge import OtherLife
from omnigraph.engine.writing.pauses import pause_before_again
from omnigraph.engine.writing.replay import find_ended_replay, find_replay
from omnigraph.engine.writing.staging import stage_plan
from omnigraph.errors import (
    BranchNotFound,
    GraphReplaced,
    OmnigraphError,
    ReadSetConflict,
    StorageFailure,
    StoragePhase,
)
from omnigraph.manifest.chain import KnownHead, NoHead
from omnigraph.manifest.model import Commit

_ATTEMPTS_BESIDE_OTHERS = 4
"""So often a write is prepared again while others publish; then they wait for it."""
_REPEATS_OF_LAYOUT = 32
"""So often any write is prepared again because upkeep moved rows that it changes."""


def write(core: GraphCore, request: WriteRequest) -> Written:
    """Run one write to its end. Raises every typed error of the write path; what is known is in its `effects`."""
    with core.writing(request.branch, alone=request.if_commit is not None) as ticket:
        writing = _Writing(core, request, ticket)
        try:
            return writing.run()
        except BranchNotFound:
            unused = request.key_is_new and not writing.staged  # nobody can have used it, not even this write
            ended = None if unused else find_ended_replay(core, request.branch, request.idempotency)
            if ended is None:
                raise
            return Written(ended.commit, ended.manifest, None, replayed=True)
        except StorageFailure as failure:
            if failure.phase in (StoragePhase.READ, StoragePhase.STAGE):
                _refuse_replaced(core, request.branch)
            raise


def _refuse_replaced(core: GraphCore, branch: str) -> None:
    """Raises GraphReplaced if that is why files are missing: a base is looked at no sooner than it must be (`Heads.base`)."""
    try:
        core.standing(branch)
    except GraphReplaced:
        raise
    except OmnigraphError:
        return  # it says nothing of the failure that is told


class _Writing:
    def __init__(self, core: GraphCore, request: WriteRequest, ticket: Ticket) -> None:
        self._core = core
        self._request = request
        self._ticket = ticket
        self._attempt = 0
        self.staged = False

    def run(self) -> Written:
        core, request = self._core, self._request
        first: KnownHead | None = None
        seen: Commit | None = None
        while True:
            captured_at = core.clock.boot_seconds()  # before the base is asked for: a sleep in between must count
            head = core.base(request.branch)
            if first is not None and head.life != first.life:
                raise self._other_life(first)
            unused = first is None and request.key_is_new  # storage.md 4: what was just made up is not looked up
            replayed = (
                None if unused else find_replay(core, head, request.idempotency, key=request.idempotency_key, base=seen)
            )
            if replayed is not None:
                core.standing(request.branch)  # no answer is given from the log of a graph that is gone
                return Written(replayed, head.manifest, None, replayed=True)
            check_condition(request.if_commit, head)
            plan = request.operation.plan(core.snapshot(head.manifest))
            if plan is None:
                core.standing(request.branch)
                return Written(None, head.manifest, None)
            written = self._publish(head, plan, captured_at) if self._has_turn(head) else None
            if written is not None:
                return written
            first, seen = first or head, head.manifest.head_commit

    def _has_turn(self, head: KnownHead) -> bool:
        """Wait for the lane, if the write can't share it; False if the head has moved meanwhile."""
        if self._ticket.alone or (self._request.operation.shares and self._attempt < _ATTEMPTS_BESIDE_OTHERS):
            return True
        self._ticket.take_alone()
        return self._core.heads.newest(head).version == head.version

    def _publish(self, head: KnownHead, plan: WritePlan, captured_at: float) -> Written | None:
        """Stage and publish; None if the plan must be made again on the head as it is now."""
        core = self._core
        self.staged = True
        oldest = captured_at if plan.staged_at is None else min(captured_at, plan.staged_at)
        entry = Entry(core, self._request, head, plan, stage_plan(core, head, plan), oldest)
        self._ticket.publish(entry, publish_together)
        match entry.result:
            case Written():
                return entry.result
            case Failed():
                raise entry.result.error
            case Again():
                return self._again(head, entry.result)
            case None:
                raise AssertionError("an entry left its lane unsettled")
            case _:
                assert_never(entry.result)

    def _again(self, head: KnownHead, again: Again) -> None:
        """Pause before another attempt. Raises ReadSetConflict, BranchNotFound if there may be none."""
        judged = again.verdict
        if isinstance(judged, OtherLife):
            raise self._other_life(head)
        repeats = self._request.operation.repeats
        if self._attempt >= (max(repeats, _REPEATS_OF_LAYOUT) if judged.layout else repeats):
            raise ReadSetConflict(
                f"Branch '{self._request.branch}' moved on while this write was being prepared.",
                member=judged.member,
                expected=judged.expected or str(head.manifest.head_commit.id),
                actual=judged.actual or str(again.head.manifest.head_commit.id),
            )
        pause_before_again(self._core.clock, self._attempt)
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
