"""The scripted store: each fault does what its name says, to the request it names, and every request is recorded."""

from __future__ import annotations

import pytest

from omnigraph.errors import StorageClass
from omnigraph.store.base import Changed, Created, Exists, Refused, Replaced, StoreError, Unknown
from omnigraph.store.faults import (
    Damage,
    Delay,
    FailCondition,
    FaultStore,
    LandLate,
    LoseAfter,
    LoseBefore,
    Meanwhile,
    Refuse,
    Rule,
    Throttle,
)
from omnigraph.store.memory import MemoryStore
from support.clocks import SteppingClock

THROTTLED, TIMEOUT, CONNECTION = StorageClass.THROTTLED, StorageClass.TIMEOUT, StorageClass.CONNECTION


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


def held(store: MemoryStore) -> dict[str, bytes]:
    return {info.key: store.read(info.key).data for info in store.list("")}


def failure(request: object) -> StorageClass:
    with pytest.raises(StoreError) as caught:
        request()  # type: ignore[operator]
    return caught.value.cls


def test_without_rules_it_is_the_inner_store_and_a_record(inner: MemoryStore):
    store = FaultStore(inner)
    created = store.create("a/b", b"1")
    assert isinstance(created, Created)
    store.replace("a/b", b"2", etag=created.etag or "")
    store.put_fresh("a/c", b"3")
    store.read("a/b")
    store.head("a/b")
    list(store.list("a"))
    store.list_first("a")
    store.list_folders("")
    failure(lambda: store.read("none"))
    store.delete(["a/b", "a/c"])
    assert [(each.ordinal, each.verb, each.key) for each in store.requests] == [
        (1, "create", "a/b"),
        (2, "replace", "a/b"),
        (3, "put_fresh", "a/c"),
        (4, "read", "a/b"),
        (5, "head", "a/b"),
        (6, "list", "a"),
        (7, "list_first", "a"),
        (8, "list_folders", ""),
        (9, "read", "none"),
        (10, "delete", "a/b"),
    ]
    outcomes = [each.outcome for each in store.requests]
    assert outcomes[0] == created
    assert isinstance(outcomes[1], Replaced)
    assert outcomes[2] is None
    assert outcomes[8] is StorageClass.NOT_FOUND
    assert store.count("read") == 2
    assert store.count(key="a/c") == 1


@pytest.mark.parametrize(
    ("fault", "outcome", "stands"),
    [
        (Refuse(), Refused(StorageClass.DENIED), False),
        (Refuse(CONNECTION, sent=False), Refused(CONNECTION, sent=False), False),
        (LoseBefore(), Unknown(TIMEOUT), False),
        (LoseAfter(), Unknown(CONNECTION), True),
        (LandLate(), Unknown(TIMEOUT), False),
        (Throttle(), Unknown(THROTTLED), False),
    ],
)
def test_a_conditional_write_meets_its_fault(inner: MemoryStore, fault: object, outcome: object, stands: bool):
    store = FaultStore(inner, [Rule(fault, verb="create")])  # type: ignore[arg-type]
    assert store.create("a", b"1") == outcome
    assert held(inner) == ({"a": b"1"} if stands else {})
    assert store.requests[0].fault == fault
    assert store.requests[0].outcome == outcome
    present = inner.create("b", b"old")
    assert isinstance(present, Created)
    store.add(Rule(fault, verb="replace"))  # type: ignore[arg-type]
    assert store.replace("b", b"new", etag=present.etag or "") == outcome
    assert inner.read("b").data == (b"new" if stands else b"old")


@pytest.mark.parametrize(
    ("fault", "cls", "acts"),
    [
        (Refuse(), StorageClass.DENIED, False),
        (LoseBefore(), TIMEOUT, False),
        (LoseAfter(), CONNECTION, True),
        (Throttle(), THROTTLED, False),
    ],
)
def test_other_requests_meet_their_fault_as_an_error(inner: MemoryStore, fault: object, cls: StorageClass, acts: bool):
    store = FaultStore(inner, [Rule(fault, times=9)])  # type: ignore[arg-type]
    assert failure(lambda: store.put_fresh("a", b"1")) is cls
    assert held(inner) == ({"a": b"1"} if acts else {})
    for request in (
        lambda: store.read("a"),
        lambda: store.head("a"),
        lambda: store.list(""),
        lambda: store.list_first(""),
        lambda: store.list_folders(""),
        lambda: store.delete(["a"]),
    ):
        assert failure(request) is cls
    assert held(inner) == {}
    assert {each.outcome for each in store.requests} == {cls}


def test_a_condition_can_fail_although_nothing_stands_there(inner: MemoryStore):
    present = inner.create("b", b"old")
    assert isinstance(present, Created)
    store = FaultStore(inner, [Rule(FailCondition(), times=2)])
    assert store.create("a", b"1") == Exists()
    assert store.replace("b", b"new", etag=present.etag or "") == Changed()
    assert held(inner) == {"b": b"old"}
    assert isinstance(store.create("a", b"1"), Created)


def test_a_late_write_lands_after_the_stated_number_of_later_requests(inner: MemoryStore):
    store = FaultStore(inner, [Rule(LandLate(after=2), ordinal=1)])
    store.create("late", b"1")
    failure(lambda: store.read("late"))
    assert held(inner) == {}
    failure(lambda: store.read("late"))
    assert held(inner) == {"late": b"1"}
    assert store.read("late").data == b"1"
    assert len(store.requests) == 4


def test_a_late_write_loses_against_one_that_came_in_between(inner: MemoryStore):
    store = FaultStore(inner, [Rule(LandLate(), ordinal=1)])
    assert store.create("a", b"late") == Unknown(TIMEOUT)
    assert isinstance(store.create("a", b"in between"), Created)
    assert held(inner) == {"a": b"in between"}


def test_late_writes_land_when_released_in_the_order_of_sending(inner: MemoryStore):
    store = FaultStore(inner, [Rule(LandLate(after=99), times=2)])
    store.create("a", b"first")
    store.create("a", b"second")
    assert store.release() == 2
    assert held(inner) == {"a": b"first"}
    assert store.release() == 0


@pytest.mark.parametrize(("kind", "data"), [("flipped", b"\xfe\xfd"), ("half", b"\x01"), ("empty", b"")])
def test_a_damaged_read_answers_other_bytes_and_leaves_the_stored_ones(inner: MemoryStore, kind: str, data: bytes):
    inner.create("a", b"\x01\x02")
    store = FaultStore(inner, [Rule(Damage(kind), verb="read")])  # type: ignore[arg-type]
    assert store.read("a").data == data
    assert store.read("a").data == b"\x01\x02"


def test_a_delay_passes_on_the_clock_of_the_store(inner: MemoryStore):
    clock = SteppingClock()
    store = FaultStore(inner, [Rule(Delay(700))], clock=clock)
    assert isinstance(store.create("a", b"1"), Created)
    assert clock.boot_seconds() == 700


def test_a_rival_can_act_just_before_and_just_after_the_store(inner: MemoryStore):
    store = FaultStore(
        inner,
        [
            Rule(Meanwhile(before=lambda: inner.create("a", b"rival")), key="a"),
            Rule(Meanwhile(after=lambda: inner.delete(["b"])), key="b"),
        ],
    )
    assert store.create("a", b"mine") == Exists()
    assert isinstance(store.create("b", b"mine"), Created)
    assert held(inner) == {"a": b"rival"}


def test_a_rule_names_its_requests_by_ordinal_verb_key_and_count(inner: MemoryStore):
    store = FaultStore(
        inner,
        [
            Rule(Throttle(), ordinal=2),
            Rule(LoseBefore(), verb="create", key="main/", skip=1, times=2),
            Rule(Refuse(), key=lambda key: key.endswith("!")),
        ],
    )
    outcomes = [store.create(key, b"") for key in ("main/1", "x", "other/1", "main/2", "main/3", "main/4", "y!", "z!")]
    assert [type(outcome) for outcome in outcomes] == [
        Created, Unknown, Created, Unknown, Unknown, Created, Refused, Created,
    ]  # fmt: skip


def test_healing_ends_all_faults(inner: MemoryStore):
    store = FaultStore(inner, [Rule(Throttle(), times=10**9)])
    store.create("a", b"1")
    store.heal()
    assert isinstance(store.create("a", b"1"), Created)


def test_the_same_script_on_the_same_requests_gives_the_same_record():
    def run() -> object:
        store = FaultStore(MemoryStore(), [Rule(LandLate(), ordinal=2), Rule(LoseAfter(), ordinal=4)])
        for key in ("a", "b", "b", "c", "c"):
            store.create(key, key.encode())
        return store.requests, held(store.inner)  # type: ignore[arg-type]

    assert run() == run()
