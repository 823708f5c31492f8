"""Keys that are used again: every answer is right or honestly open, and an open one closes the key for this process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.errors import StorageClass
from omnigraph.store.base import Created, Store
from omnigraph.store.faults import (
    Damage,
    FailCondition,
    Fault,
    FaultStore,
    LandLate,
    LoseAfter,
    LoseBefore,
    Meanwhile,
    Refuse,
    Rule,
    Throttle,
)
from omnigraph.store.local import LocalStore
from omnigraph.store.memory import MemoryStore
from omnigraph.store.reused import (
    CONNECTS_AGAIN_MAX,
    Answer,
    Fenced,
    Kind,
    NotStored,
    Poisoned,
    PoisonedKeys,
    ReusedKeys,
    Stored,
    Taken,
    Undecided,
    key_outcome_unknown,
)
from omnigraph.store.uri import LocalRoot
from support.clocks import SteppingClock

KEY, OTHER = "__cluster/state.json", "__cluster/deployments/a.json"
BEFORE, MINE, THEIRS = b'{"n": 0}', b'{"n": "mine"}', b'{"n": "theirs"}'
FOR_EVER = 1_000


class Root:
    """A store under a script, and the one writer of its reused keys."""

    def __init__(self, *, swap: bool, inner: Store | None = None) -> None:
        self.inner = inner or MemoryStore()
        self.store = FaultStore(self.inner)
        self.clock = SteppingClock()
        self.poisoned = PoisonedKeys(lambda kind, cls: self.told.append((kind, cls)))
        self.told: list[tuple[Kind, StorageClass]] = []
        self.open = True
        self.keys = ReusedKeys(
            self.store,
            self.poisoned,
            clock=self.clock,
            may_write=lambda: self.open,
        )
        self.swap = swap
        created = self.inner.create(KEY, BEFORE) if swap else None
        self.etag = created.etag if isinstance(created, Created) else None

    def script(self, fault: Fault | None, *, verb: Any = None, times: int = 1) -> None:
        if fault is not None:
            self.store.add(Rule(fault, verb=verb or ("replace" if self.swap else "create"), times=times))

    def write(self, key: str = KEY, data: bytes = MINE, *, kind: Kind = "ledger") -> Answer:
        if self.etag is None or key != KEY:
            return self.keys.create(key, data, kind=kind)
        return self.keys.replace(key, data, etag=self.etag, kind=kind)

    def rival(self) -> None:
        if self.etag is None:
            self.inner.create(KEY, THEIRS)
        else:
            self.inner.replace(KEY, THEIRS, etag=self.etag)

    def holds(self) -> bytes | None:
        found = [info.key for info in self.inner.list("__cluster")]
        return self.inner.read(KEY).data if KEY in found else None


@pytest.fixture(params=[False, True], ids=["create", "replace"])
def root(request: pytest.FixtureRequest) -> Root:
    return Root(swap=request.param)


def test_one_write_is_one_request_and_its_etag_is_good_for_the_next(root: Root) -> None:
    first = root.write()
    assert isinstance(first, Stored)
    assert len(root.store.requests) == 1
    root.etag = first.etag
    assert isinstance(root.write(data=THEIRS), Stored)
    assert root.holds() == THEIRS
    assert root.clock.slept == []


SENDS: dict[str, tuple[Fault, int] | None] = {
    "answered": None,
    "refused": (Refuse(), 1),
    "not reached once": (Refuse(StorageClass.CONNECTION, sent=False), 1),
    "never reached": (Refuse(StorageClass.CONNECTION, sent=False), FOR_EVER),
    "lost before": (LoseBefore(), 1),
    "lost after": (LoseAfter(), 1),
    "throttled": (Throttle(), 1),
    "409 without an object": (FailCondition(), 1),
    "lands after one look": (LandLate(after=1), 1),
    "lands after the last look": (LandLate(after=FOR_EVER), 1),
}
LOOKS: dict[str, tuple[Fault, int] | None] = {
    "seen": None,
    "unreadable once": (Refuse(StorageClass.SERVER_ERROR), 1),
    "never readable": (Refuse(StorageClass.SERVER_ERROR), FOR_EVER),
    **{f"{kind} for ever": (Damage(kind), FOR_EVER) for kind in ("flipped", "half", "empty")},
}


@pytest.mark.parametrize("rival", ["nobody", "before", "after"])
@pytest.mark.parametrize(("send", "look"), list(itertools.product(SENDS, LOOKS)))
def test_every_answer_stays_true_whatever_lands_later(root: Root, send: str, look: str, rival: str) -> None:
    for scripted, verb in ((SENDS[send], None), (LOOKS[look], "read")):
        if scripted is not None:
            root.script(scripted[0], verb=verb, times=scripted[1])
    if rival == "before":
        root.rival()
    answer = root.write()
    if rival == "after":
        root.store.heal()
        root.rival()
    at_once = root.holds()
    root.store.release()
    match answer:
        case Stored():
            assert at_once == MINE or rival == "after"
        case Taken(found):
            assert found.data != MINE
            assert root.holds() != MINE
        case NotStored():
            assert root.holds() != MINE
        case Undecided():
            assert KEY in root.poisoned
        case Fenced() | Poisoned():
            pytest.fail("nothing closed the fence or the key")
    assert len(root.poisoned) == len(root.told) == isinstance(answer, Undecided)


def test_a_lost_answer_is_settled_by_a_look(root: Root) -> None:
    root.script(LoseAfter())
    assert isinstance(root.write(), Stored)
    root2 = Root(swap=root.swap)
    root2.script(Meanwhile(before=root2.rival))
    assert isinstance(root2.write(), Taken)
    assert len(root.poisoned) == len(root2.poisoned) == 0


def test_who_is_not_reached_is_asked_again_three_times(root: Root) -> None:
    root.script(Refuse(StorageClass.CONNECTION, sent=False), times=FOR_EVER)
    assert root.write() == NotStored(StorageClass.CONNECTION, sent=False)
    assert len(root.store.requests) == 1 + CONNECTS_AGAIN_MAX
    assert root.clock.slept == [1.0] * CONNECTS_AGAIN_MAX


def test_any_other_refusal_is_sent_once(root: Root) -> None:
    root.script(Refuse(StorageClass.DENIED), times=FOR_EVER)
    assert root.write() == NotStored(StorageClass.DENIED)
    assert len(root.store.requests) == 1


def test_a_doubt_that_ten_seconds_do_not_settle_closes_the_key_and_no_other(root: Root) -> None:
    root.script(LoseBefore(StorageClass.TIMEOUT))
    assert root.write() == Undecided(StorageClass.TIMEOUT)
    assert sum(root.clock.slept) == 10.0
    assert root.told == [("ledger", StorageClass.TIMEOUT)]
    asked = len(root.store.requests)
    for _ in range(3):
        assert root.write() == Poisoned()
    root.store.release()
    assert root.write(data=THEIRS) == Poisoned(), "whatever later reads show"
    assert len(root.store.requests) == asked, "nothing was sent"
    assert root.store.count("create" if not root.swap else "replace", key=KEY) == 1, "one attempt"
    assert isinstance(root.write(OTHER), Stored)
    assert root.store.read(OTHER).data == MINE
    assert len(root.told) == 1


def test_a_process_without_the_right_to_write_sends_nothing(root: Root) -> None:
    root.open = False
    assert root.write() == Fenced()
    assert root.store.requests == ()
    root.open = True

    def lose_the_right() -> None:
        root.open = False

    root.script(Refuse(StorageClass.CONNECTION, sent=False))
    root.clock.sleep = lambda seconds: lose_the_right()
    assert root.write() == Fenced()
    assert len(root.store.requests) == 1


def test_whoever_is_interrupted_leaves_the_key_closed(root: Root) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    root.script(Meanwhile(after=interrupt))
    with pytest.raises(KeyboardInterrupt):
        root.write()
    assert root.write() == Poisoned()


def test_a_second_write_waits_for_the_first_and_is_refused_if_that_is_undecided(root: Root) -> None:
    second: list[Answer] = []
    beside = threading.Thread(target=lambda: second.append(root.write()), daemon=True)

    def meanwhile(sleep: Callable[[float], None] = root.clock.sleep) -> Callable[[float], None]:
        def begin(seconds: float) -> None:
            if not beside.is_alive() and not second:
                beside.start()
            sleep(seconds)

        return begin

    root.clock.sleep = meanwhile()  # type: ignore[method-assign]
    root.script(LoseBefore())
    assert isinstance(root.write(), Undecided)
    beside.join(60)
    assert second == [Poisoned()]


def test_on_a_disk_too(tmp_path: Any) -> None:
    root = Root(swap=True, inner=LocalStore(LocalRoot(str(tmp_path))))
    root.script(LoseAfter(StorageClass.LOCAL_IO))
    assert isinstance(root.write(), Stored)
    assert root.holds() == MINE


def test_the_refusal_says_that_nothing_was_sent_and_who_must_act() -> None:
    error = key_outcome_unknown("ledger")
    assert (error.code, error.status, error.retry, error.effects) == ("key_outcome_unknown", 503, "recover", "none")


@pytest.mark.parametrize("sent", [False, True])
def test_a_fault_of_ours_poisons_a_key_only_once_a_request_is_under_way(root: Root, sent: bool) -> None:
    def broken(*given: Any, **fields: Any) -> Any:
        raise RuntimeError

    root.keys = ReusedKeys(root.store, root.poisoned, clock=root.clock, may_write=(lambda: True) if sent else broken)
    if sent:
        root.store.create = root.store.replace = broken
    with pytest.raises(RuntimeError):
        root.write()
    assert (KEY in root.poisoned) is sent
    assert len(root.told) == int(sent)
