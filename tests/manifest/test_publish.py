"""Publication, one rule of the storage chapter at a time: what is asked for, in which order, and what is said in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from manifest.samples import first_version, follow, head
from omnigraph.errors import StorageClass
from omnigraph.manifest.chain import KnownHead, NoHead, StoredVersion
from omnigraph.manifest.driver import drive
from omnigraph.manifest.keys import version_key
from omnigraph.manifest.lineage import LogReader
from omnigraph.manifest.publish import (
    REISSUE_EVENT,
    UNKNOWN_EVENT,
    Absent,
    CheckBase,
    CheckFence,
    Conflict,
    Create,
    FenceClosed,
    FenceOpen,
    Log,
    NotPublished,
    OutcomeUnknown,
    Pause,
    Publication,
    Published,
    ReadBack,
    ReadClock,
    ResolveHead,
    SearchLog,
    Stands,
    Unreadable,
    publish,
)
from omnigraph.store.base import Created, Exists, Refused, Unknown
from omnigraph.store.faults import Damage, FailCondition, FaultStore, LandLate, LoseAfter, LoseBefore, Refuse, Rule
from omnigraph.store.memory import MemoryStore
from support.clocks import SteppingClock

BASE = head(first_version(), known_at=0.0, seen_at=0.001)
MINE = follow(BASE, 1)
THEIRS = follow(BASE, 2)
AFTER_THEIRS = follow(head(THEIRS), 3)
TIMED_OUT = Unknown(StorageClass.TIMEOUT)


def stored(built: Any) -> StoredVersion:
    return StoredVersion(built.manifest, built.sha256, 5)


def known(built: Any, at: float, seen_at: float | None = None) -> KnownHead:
    return KnownHead(built.manifest, built.sha256, at, 5, seen_at=seen_at)


class Script:
    """Answers storage requests from a list; the clock, the fence and looks at the base by themselves. Keeps what was
    asked for.
    """

    look: Stands | Absent | Unreadable = Stands()

    def __init__(self, *answers: Any, base: KnownHead = BASE, staged_at: float = 0.0) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.time = 0.0
        self.fence: Callable[[int], FenceOpen | FenceClosed] = lambda count: FenceOpen()
        self._fences = 0
        self.result = self._run(publish(Publication(MINE.manifest, MINE.data, base, staged_at)))

    def _run(self, steps: Any) -> Any:
        answer: Any = None
        try:
            while True:
                request = steps.send(answer)
                self.asked.append(request)
                answer = self._answer(request)
        except StopIteration as done:
            assert not self.answers, f"not asked for: {self.answers}"
            return done.value

    def _answer(self, request: Any) -> Any:
        match request:
            case ReadClock():
                return self.time
            case CheckBase():
                return self.look
            case CheckFence():
                return FenceOpen()
            case Pause(seconds):
                self.time += seconds
                return None
            case Log():
                return None
            case _:
                answer = self.answers.pop(0)
                if isinstance(answer, tuple):  # seconds that the request took, and its answer
                    self.time += answer[0]
                    return answer[1]
                return answer

    def of(self, *kinds: type) -> list[Any]:
        return [request for request in self.asked if isinstance(request, kinds)]


def test_a_created_version_is_published_with_one_request() -> None:
    run = Script(Created())
    assert run.result == Published(MINE.manifest, MINE.sha256, KnownHead(MINE.manifest, MINE.sha256, 0.0, seen_at=0.0))
    assert [type(request) for request in run.asked] == [ReadClock, CheckFence, Create, ReadClock, CheckFence]
    assert run.of(Create) == [Create(version_key("main", 2), MINE.data)]


@pytest.mark.parametrize(("sent", "reason"), [(True, "refused"), (False, "not_sent")])
def test_a_first_refusal_is_definite_and_is_not_repeated(sent: bool, reason: str) -> None:
    assert Script(Refused(StorageClass.DENIED, sent)).result == NotPublished(reason, StorageClass.DENIED)  # type: ignore[arg-type]


def test_five_sends_of_the_identical_bytes_with_growing_pauses_then_one_look() -> None:
    run = Script(*[TIMED_OUT] * 5, Absent())
    assert run.result == OutcomeUnknown(BASE, MINE.manifest, "unanswered", StorageClass.TIMEOUT)
    assert run.of(Create) == [Create(version_key("main", 2), MINE.data)] * 5
    assert run.of(Pause) == [Pause(0.2), Pause(0.4), Pause(0.8), Pause(1.6)]
    assert run.of(ReadBack) == [ReadBack("main", 2)]
    assert len(run.of(CheckFence)) == 5


def test_operators_read_each_reissue_and_the_end_of_it() -> None:
    run = Script(TIMED_OUT, Exists(), Absent(), Unknown(StorageClass.THROTTLED), TIMED_OUT, TIMED_OUT, Absent())
    event = "manifest request outcome unknown; re-issuing the identical conditional request"
    assert event == REISSUE_EVENT
    assert run.of(Log) == [
        Log("warning", event, (("class", "timeout"), ("attempt", 1), ("pause_ms", 200))),
        Log("warning", event, (("class", "timeout"), ("attempt", 2), ("pause_ms", 400))),  # the last that had a class
        Log("warning", event, (("class", "throttled"), ("attempt", 3), ("pause_ms", 800))),
        Log("warning", event, (("class", "timeout"), ("attempt", 4), ("pause_ms", 1600))),
        Log("error", "manifest request outcome unknown after every re-issue", (("class", "timeout"), ("attempts", 5))),
    ]
    assert run.of(Log)[-1].event == UNKNOWN_EVENT


def test_a_version_with_my_nonce_is_my_earlier_request() -> None:
    run = Script(TIMED_OUT, Exists(), stored(MINE))
    assert run.result == Published(MINE.manifest, MINE.sha256, known(MINE, 0.0, seen_at=0.2))


def test_a_version_with_another_nonce_is_a_conflict_that_may_serve_as_base_with_the_old_time() -> None:
    assert Script((300.0, Exists()), stored(THEIRS)).result == Conflict(known(THEIRS, 0.0, seen_at=300.0))


@pytest.mark.parametrize("seen", [Absent(), Unreadable(StorageClass.SERVER_ERROR)])
def test_exists_without_a_version_to_read_means_unknown(seen: object) -> None:
    run = Script(Exists(), seen, Created())
    assert isinstance(run.result, Published)
    assert len(run.of(Log)) == 1


def test_a_refusal_after_an_unanswered_send_is_settled_by_a_look_or_not_at_all() -> None:
    denied = Refused(StorageClass.DENIED)
    assert isinstance(Script(TIMED_OUT, denied, stored(MINE)).result, Published)
    assert isinstance(Script(TIMED_OUT, denied, stored(THEIRS)).result, Conflict)
    never = Script(TIMED_OUT, *[denied, Absent()] * 4, Absent())
    assert isinstance(never.result, OutcomeUnknown)
    not_sent = Refused(StorageClass.CONNECTION, sent=False)
    assert isinstance(Script(TIMED_OUT, not_sent, Absent(), Created()).result, Published)


def test_the_last_look_finds_a_version_that_landed_meanwhile() -> None:
    assert isinstance(Script(*[TIMED_OUT] * 5, stored(MINE)).result, Published)
    assert isinstance(Script(*[TIMED_OUT] * 5, stored(THEIRS)).result, Conflict)
    unread = Script(*[TIMED_OUT] * 5, Unreadable(StorageClass.DENIED)).result
    assert isinstance(unread, OutcomeUnknown)


# --- freshness


def test_ten_minutes_are_fresh_and_a_second_more_is_not() -> None:
    assert Script((600.0, Created())).of(ResolveHead) == []
    assert Script((601.0, Created()), known(MINE, 601.0)).of(ResolveHead) == [ResolveHead("main")]


def test_a_late_answer_is_decided_by_the_head_and_its_log() -> None:
    late = (601.0, Created())
    mine_then_theirs = follow(head(MINE), 7)
    above = Script(late, known(mine_then_theirs, 601.0), True)
    assert above.of(SearchLog) == [SearchLog(mine_then_theirs.manifest.lineage, MINE.manifest.commits[0])]
    assert above.result == Published(MINE.manifest, MINE.sha256, known(mine_then_theirs, 601.0))
    assert Script(late, known(AFTER_THEIRS, 601.0), False).result == Conflict(known(AFTER_THEIRS, 601.0))


def test_a_late_answer_is_not_read_back_whichever_nonce_it_might_show() -> None:
    run = Script((601.0, Exists()), known(AFTER_THEIRS, 601.0), False)
    assert run.of(ReadBack) == []
    assert isinstance(run.result, Conflict)


def test_a_read_back_that_took_too_long_proves_nothing_though_the_nonce_is_mine() -> None:
    run = Script(Exists(), (601.0, stored(MINE)), known(AFTER_THEIRS, 601.0), False)
    assert run.result == Conflict(known(AFTER_THEIRS, 601.0))


@pytest.mark.parametrize(
    "answers",
    [
        [known(BASE, 601.0)],  # the head is still the base
        [Unreadable(StorageClass.TIMEOUT)],
        [known(AFTER_THEIRS, 601.0), Unreadable(StorageClass.TIMEOUT)],
        [NoHead("main", 601.0)],
    ],
)
def test_a_late_answer_that_nothing_settles_counts_as_unknown(answers: list[Any]) -> None:
    run = Script(
        (601.0, Created()),
        *answers,
        *[TIMED_OUT] * 4,
        *([Absent()] if answers[0] == known(BASE, 601.0) else [Unreadable(StorageClass.TIMEOUT)]),
    )
    assert isinstance(run.result, OutcomeUnknown)
    assert len(run.of(Create)) == 5


def test_a_base_that_a_list_shows_to_be_the_head_still_is_fresh_again() -> None:
    run = Script((601.0, Created()), known(BASE, 601.0), (300.0, Created()))
    assert isinstance(run.result, Published)
    assert len(run.of(ResolveHead)) == 1


def test_another_life_of_the_branch_decides_nothing() -> None:
    other = replace(AFTER_THEIRS.manifest, life=3)
    reborn = KnownHead(other, "ab", 601.0)
    assert Script((601.0, Created()), reborn, False).result == OutcomeUnknown(BASE, MINE.manifest, "other_life", None)


def test_the_owner_of_a_leased_lock_knows_its_base_as_long_as_the_fence_is_open() -> None:
    class Owner(Script):
        def _answer(self, request: Any) -> Any:
            if isinstance(request, CheckFence):
                return FenceOpen(vouched_at=self.time)
            return super()._answer(request)

    old = head(first_version(), known_at=-5_000.0)
    assert isinstance(Owner((599.0, Created()), base=old).result, Published)
    assert Owner((601.0, Created()), known(MINE, 601.0), base=old).of(ResolveHead)
    assert Script(Created(), known(MINE, 0.0), base=old).of(ResolveHead)


def test_a_version_that_does_not_follow_the_base_is_looked_at_from_the_head() -> None:
    foreign = StoredVersion(replace(THEIRS.manifest, base=replace(BASE.as_base, sha256="ab")), "cd", 5)
    run = Script(Exists(), foreign, known(AFTER_THEIRS, 0.0), False)
    assert run.result == Conflict(known(AFTER_THEIRS, 0.0))


# --- the fence


class Fenced(Script):
    """The fence is open for so many questions."""

    open_for = 0

    def _answer(self, request: Any) -> Any:
        if isinstance(request, CheckFence):
            asked = len(self.of(CheckFence))
            return FenceOpen() if asked <= self.open_for else FenceClosed()
        return super()._answer(request)


def fenced(open_for: int, *answers: Any) -> Any:
    kind = type("FencedFor", (Fenced,), {"open_for": open_for})
    return kind(*answers)


def test_nothing_is_sent_through_a_closed_fence() -> None:
    run = fenced(0)
    assert run.result == NotPublished("fence_closed")
    assert run.of(Create) == []


def test_a_fence_that_closes_after_an_unanswered_send_ends_in_unknown() -> None:
    run = fenced(1, TIMED_OUT)
    assert run.result == OutcomeUnknown(BASE, MINE.manifest, "fence_closed", StorageClass.TIMEOUT)
    assert len(run.of(Create)) == 1


@pytest.mark.parametrize(
    "answers", [[Created()], [Exists(), stored(MINE)], [Exists(), stored(THEIRS)]], ids=["created", "mine", "another's"]
)
def test_after_an_unanswered_send_the_fence_is_asked_once_more_before_the_answer(answers: list[Any]) -> None:
    assert isinstance(fenced(2, TIMED_OUT, *answers).result, OutcomeUnknown)
    assert not isinstance(fenced(3, TIMED_OUT, *answers).result, OutcomeUnknown)


@pytest.mark.parametrize("answers", [[Created()], [Exists(), stored(THEIRS)]])
def test_whatever_came_back_the_fence_is_asked_once_more_before_the_answer(answers: list[Any]) -> None:
    assert isinstance(fenced(1, *answers).result, OutcomeUnknown)
    assert not isinstance(fenced(2, *answers).result, OutcomeUnknown)


def test_a_refusal_stays_definite_behind_a_closed_fence() -> None:
    assert isinstance(fenced(1, Refused(StorageClass.DENIED)).result, NotPublished)


# --- the 12-hour rule

HALF_A_DAY = 12 * 3600.0


def test_what_was_staged_twelve_hours_ago_is_not_sent() -> None:
    run = Script(staged_at=-HALF_A_DAY - 1)
    assert run.result == NotPublished("too_old")
    assert run.of(Create, CheckFence) == []
    assert isinstance(Script(Created(), staged_at=-HALF_A_DAY).result, Published)


def test_after_an_unanswered_send_it_is_looked_for_once_and_never_sent_again() -> None:
    old = -HALF_A_DAY + 0.1
    for seen, expected in ((Absent(), OutcomeUnknown), (stored(MINE), Published), (stored(THEIRS), Conflict)):
        run = Script(TIMED_OUT, seen, staged_at=old)
        assert isinstance(run.result, expected)
        assert len(run.of(Create)) == 1
    assert run.of(Log)[-1].event == REISSUE_EVENT  # "after every re-issue" would not be true


def test_what_is_published_names_the_ids_that_a_caller_may_ask_about() -> None:
    publication = Publication(MINE.manifest, MINE.data, BASE, 0.0)
    assert publication.commit_ids == (MINE.manifest.commits[0].id,)


# --- the driver, over a store


def driven(
    *rules: Rule, before: Any = None, publication: Publication | None = None
) -> tuple[Any, FaultStore, list[Log]]:
    store = FaultStore(MemoryStore(), rules)
    clock = SteppingClock()
    store.inner.put_fresh(version_key("main", 1), first_version().data)
    if before is not None:
        store.inner.put_fresh(version_key("main", 2), before.data)
    lines: list[Log] = []
    wanted = publication or Publication(MINE.manifest, MINE.data, BASE, 0.0)
    result = drive(
        publish(wanted), store=store, history=LogReader(store), clock=clock, fence=FenceOpen, log=lines.append
    )
    return result, store, lines


def test_a_publication_is_one_request() -> None:
    result, store, lines = driven()
    assert isinstance(result, Published)
    assert [(each.verb, each.key) for each in store.requests] == [("create", version_key("main", 2))]
    assert lines == []


def test_a_lost_answer_is_settled_by_the_version_that_landed() -> None:
    result, store, lines = driven(Rule(LoseAfter(), verb="create"))
    assert isinstance(result, Published)
    assert [each.verb for each in store.requests] == ["create", "create", "read"]
    assert [line.event for line in lines] == [REISSUE_EVENT]


@pytest.mark.parametrize("times", [1, 3])
def test_409_is_not_exists_while_nothing_is_stored(times: int) -> None:
    result, store, _ = driven(Rule(FailCondition(), verb="create", times=times))
    assert isinstance(result, Published)
    assert store.count("create") == times + 1


def test_409_for_ever_ends_bounded_and_undecided() -> None:
    result, store, _ = driven(Rule(FailCondition(), verb="create", times=50))
    assert isinstance(result, OutcomeUnknown)
    assert store.count("create") == 5
    with pytest.raises(Exception, match="not_found"):
        store.inner.read(version_key("main", 2))


def test_another_version_in_the_way_is_a_conflict() -> None:
    result, store, _ = driven(before=THEIRS)
    assert isinstance(result, Conflict)
    assert result.actual.manifest == THEIRS.manifest
    assert [each.verb for each in store.requests] == ["create", "read"]


def test_a_damaged_version_in_the_way_can_not_be_judged() -> None:
    result, store, _ = driven(Rule(Damage("half"), verb="read", times=9), before=THEIRS)
    assert isinstance(result, OutcomeUnknown)
    assert store.count("read") == 6


def test_requests_that_never_arrive_end_unknown_and_the_next_write_shuts_them_out() -> None:
    result, store, _ = driven(Rule(LandLate(after=100), verb="create", times=5))
    assert isinstance(result, OutcomeUnknown)
    store.heal()
    assert store.create(version_key("main", 2), THEIRS.data) == Created(
        etag=store.read(version_key("main", 2)).info.etag
    )
    store.release()
    assert store.read(version_key("main", 2)).data == THEIRS.data


def test_a_refusal_by_the_store_is_definite() -> None:
    result, _, _ = driven(Rule(Refuse(StorageClass.DENIED), verb="create"))
    assert result == NotPublished("refused", StorageClass.DENIED)
    result, _, _ = driven(Rule(LoseBefore(), verb="create"), Rule(Refuse(), verb="create", times=9))
    assert isinstance(result, OutcomeUnknown)


def test_an_old_base_sends_the_driver_to_list_and_search() -> None:
    old = head(first_version(), known_at=-700.0, seen_at=0.001)
    result, store, _ = driven(publication=Publication(MINE.manifest, MINE.data, old, 0.0))
    assert isinstance(result, Published)
    assert [each.verb for each in store.requests] == ["create", "list_first", "read"]
