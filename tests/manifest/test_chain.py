"""Reading a chain: versions, the head by LIST and by probing, and the list of branches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.samples import draft, first_version, follow, fork, head, published_chain, put
from omnigraph.errors import FormatMismatch, StorageClass, StorageFailure
from omnigraph.manifest import keys
from omnigraph.manifest.builder import Built, deletion
from omnigraph.manifest.chain import (
    BranchList,
    KnownHead,
    NoHead,
    list_branches,
    microseconds,
    read_version,
    resolve_head,
)
from omnigraph.manifest.codec import to_bytes
from omnigraph.manifest.markers import mark_deleted
from omnigraph.store.base import ObjectInfo, Store
from omnigraph.store.faults import Delay, FaultStore, Meanwhile, Refuse, Rule
from omnigraph.store.local import LocalStore
from omnigraph.store.memory import MemoryStore
from omnigraph.store.uri import LocalRoot
from support.clocks import SteppingClock

HALF_A_DAY = 12 * 3600.0


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FaultStore:
    """An empty root that counts its requests."""
    inner: Store = MemoryStore() if request.param == "memory" else LocalStore(LocalRoot(str(tmp_path / "root")))
    return FaultStore(inner)


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


def asked(store: FaultStore) -> list[str]:
    return [each.verb for each in store.requests]


def forget(store: FaultStore) -> FaultStore:
    """The same root, with no request counted."""
    return FaultStore(store.inner)


# --- one version


def test_a_version_reads_back_with_digest_and_the_stores_time(store: FaultStore) -> None:
    (first,) = published_chain(store, 1)
    found = read_version(store, "main", 1)
    assert found is not None
    assert (found.manifest, found.sha256) == (first.manifest, first.sha256)
    assert found.stored_at == microseconds(store.head(keys.version_key("main", 1)).last_modified)
    assert read_version(store, "main", 2) is None


def test_the_stores_time_is_in_whole_microseconds() -> None:
    assert microseconds(dt.datetime(1970, 1, 1, 0, 0, 1, 7, tzinfo=dt.UTC)) == 1_000_007


def test_a_failed_read_says_what_was_read_and_why_it_failed() -> None:
    store = FaultStore(MemoryStore(), [Rule(Refuse(StorageClass.THROTTLED))])
    with pytest.raises(StorageFailure, match="version 3 of branch 'main'") as caught:
        read_version(store, "main", 3)
    assert caught.value.cls is StorageClass.THROTTLED
    assert caught.value.status == 503
    assert "__manifest" not in caught.value.message


# --- the head


def test_a_head_costs_one_list_and_one_read_whatever_the_length(store: FaultStore, clock: SteppingClock) -> None:
    heads = published_chain(store, 12)
    counted = forget(store)
    found = resolve_head(counted, "main", clock=clock)
    assert isinstance(found, KnownHead)
    assert (found.version, found.sha256, found.live, found.life) == (12, heads[-1].sha256, True, 1)
    assert asked(counted) == ["list_first", "read"]


def test_a_name_that_never_was_costs_one_list(store: FaultStore, clock: SteppingClock) -> None:
    clock.advance(7)
    assert resolve_head(store, "main", clock=clock) == NoHead("main", 7.0)
    assert asked(store) == ["list_first"]


def test_a_head_known_lately_is_probed_from_one_get_a_step(store: FaultStore, clock: SteppingClock) -> None:
    heads = [replace(each, seen_at=0.0) for each in published_chain(store, 5, known_at=0.0)]
    for behind in (1, 3):
        counted = forget(store)
        found = resolve_head(counted, "main", clock=clock, known=heads[4 - behind])
        assert found.version == 5
        assert asked(counted) == ["read"] * (behind + 1)


def test_a_head_that_was_seen_lately_costs_one_get_and_on_a_disk_a_look_at_it(
    store: FaultStore, clock: SteppingClock
) -> None:
    published_chain(store, 5)
    found = resolve_head(store, "main", clock=clock)
    for seconds in (0.0, 4.0, 1.0):
        clock.advance(seconds)
        counted = forget(store)
        assert isinstance(found, KnownHead)
        found = resolve_head(counted, "main", clock=clock, known=found)
        assert found.version == 5
        assert asked(counted) == ["read", *([] if store.local_path is None else ["head"])]


def test_a_head_that_was_not_seen_lately_is_looked_at_and_then_believed_again(
    store: FaultStore, clock: SteppingClock
) -> None:
    (found,) = published_chain(store, 1, known_at=0.0)
    for asked_before, seconds in ((["read", "read"], 0.0), (["read", "head"], 5.1)):
        clock.advance(seconds)
        counted = forget(store)
        found = resolve_head(counted, "main", clock=clock, known=found)
        assert isinstance(found, KnownHead)
        assert (found.version, found.known_at) == (1, clock.boot_seconds())
        if store.local_path is not None:  # a look into memory shows no ETag, so that store has to be read
            assert asked(counted) == asked_before
        again = resolve_head(forget(store), "main", clock=clock, known=found)
        assert isinstance(again, KnownHead)
        assert again.seen_at == found.seen_at == clock.boot_seconds()


def test_a_head_far_behind_is_not_probed_from_for_ever(store: FaultStore, clock: SteppingClock) -> None:
    heads = published_chain(store, 40, known_at=0.0)
    counted = forget(store)
    assert resolve_head(counted, "main", clock=clock, known=heads[0]).version == 40
    assert len(counted.requests) <= 12


def test_knowledge_of_twelve_hours_ago_is_not_believed(clock: SteppingClock) -> None:
    """Clean-up may have removed version 2 by then, and a probe would take version 1 for the head."""
    store = MemoryStore()
    heads = published_chain(store, 4, known_at=0.0)
    store.delete([keys.version_key("main", 2), keys.version_key("main", 3)])
    clock.advance(HALF_A_DAY)
    counted = FaultStore(store)
    assert resolve_head(counted, "main", clock=clock, known=heads[0]).version == 4
    assert asked(counted) == ["list_first", "read"]


def main_by_itself(store: Store, clock: SteppingClock) -> KnownHead:
    found = resolve_head(store, "main", clock=clock)
    assert isinstance(found, KnownHead)
    return found


def main_in_the_list(store: Store, clock: SteppingClock) -> KnownHead:
    (found,) = list_branches(store, clock=clock).heads
    return found


@pytest.mark.parametrize("ask", [main_by_itself, main_in_the_list])
def test_what_a_listing_showed_before_a_sleep_is_not_read_as_the_head(
    clock: SteppingClock, ask: Callable[[Store, SteppingClock], KnownHead]
) -> None:
    """The version was superseded and cleaned up meanwhile, and another sleeper's late request took its place."""
    inner = MemoryStore()
    two = published_chain(inner, 2)[-1]

    def sleep() -> None:
        clock.advance(25 * 3600.0)
        three = follow(two, 7)
        put(inner, three)
        put(inner, follow(head(three), 8))
        inner.delete([keys.version_key("main", 2)])
        inner.create(keys.version_key("main", 2), to_bytes(replace(two.manifest, nonce="a stray")))

    store = FaultStore(inner, [Rule(Meanwhile(before=sleep), verb="read", key="__manifest/main", times=1)])
    found = ask(store, clock)
    assert (found.version, found.known_at) == (4, clock.boot_seconds())


def test_a_probe_during_which_the_machine_slept_is_not_believed() -> None:
    store = MemoryStore()
    heads = published_chain(store, 4, known_at=0.0)
    store.delete([keys.version_key("main", 2), keys.version_key("main", 3)])
    clock = SteppingClock()
    slow = FaultStore(store, [Rule(Delay(HALF_A_DAY), verb="read")], clock=clock)
    assert resolve_head(slow, "main", clock=clock, known=heads[0]).version == 4
    assert asked(slow) == ["read", "list_first", "read"]


def test_knowledge_of_another_branch_is_not_used(store: FaultStore, clock: SteppingClock) -> None:
    heads = published_chain(store, 1, known_at=0.0)
    assert isinstance(resolve_head(store, "other", clock=clock, known=heads[0]), NoHead)


def test_a_head_is_known_from_before_the_request_that_showed_it() -> None:
    store = MemoryStore()
    heads = published_chain(store, 2, known_at=0.0)
    clock = SteppingClock()
    slow = FaultStore(store, [Rule(Delay(50.0), times=9)], clock=clock)
    clock.advance(5)
    listed = resolve_head(slow, "main", clock=clock)
    assert listed.known_at == 5.0
    probed = resolve_head(slow, "main", clock=clock, known=heads[0])
    assert (probed.version, probed.known_at) == (2, 155.0)  # the time before the GET that found nothing above


def test_a_deleted_head_is_a_head(store: FaultStore, clock: SteppingClock) -> None:
    main = published_chain(store, 1)[0]
    branch = fork("r", main.manifest)
    gone = deletion(head(branch), nonce="d")
    put(store, branch)
    put(store, gone)
    found = resolve_head(store, "r", clock=clock)
    assert isinstance(found, KnownHead)
    assert (found.live, found.version, found.life) == (False, 2, 1)


def test_markers_do_not_hide_the_head(store: FaultStore, clock: SteppingClock) -> None:
    main = published_chain(store, 1)[0]
    branch = fork("r", main.manifest)
    gone = deletion(head(branch), nonce="d")
    again = fork("r", main.manifest, target=head(gone))
    for built in (branch, gone):
        put(store, built)
    assert mark_deleted(store, gone.manifest) is None
    counted = forget(store)
    assert resolve_head(counted, "r", clock=clock).version == 2
    assert len(counted.requests) <= 3
    put(store, again)
    found = resolve_head(store, "r", clock=clock)
    assert isinstance(found, KnownHead)
    assert (found.version, found.life, found.live) == (3, 3, True)


def test_a_listed_version_that_is_gone_when_it_is_read_is_listed_again(clock: SteppingClock) -> None:
    inner = MemoryStore()
    published_chain(inner, 2)

    def move_on() -> None:
        put(inner, follow(head(follow(head(first_version(1_000)), 1, now_us=2_000)), 5))
        inner.delete([keys.version_key("main", 2)])

    store = FaultStore(inner, [Rule(Meanwhile(before=move_on), verb="read")])
    assert resolve_head(store, "main", clock=clock).version == 3


def test_a_listing_that_contradicts_every_read_ends(clock: SteppingClock) -> None:
    inner = MemoryStore()
    published_chain(inner, 2)
    store = FaultStore(inner, [Rule(Refuse(StorageClass.NOT_FOUND), verb="read", times=99)])
    with pytest.raises(StorageFailure, match="newest version of branch 'main'"):
        resolve_head(store, "main", clock=clock)
    assert len(store.requests) <= 6


@pytest.mark.parametrize("damage", [b"", b"\0" * 300, None])
def test_a_damaged_head_is_an_error_and_the_commit_below_still_reads(
    store: FaultStore, clock: SteppingClock, damage: bytes | None
) -> None:
    published_chain(store, 4)
    good = follow(published_below(4), 4)
    broken = good.data[: len(good.data) // 2] if damage is None else damage
    store.put_fresh(keys.version_key("main", 5), broken)
    with pytest.raises(StorageFailure, match="Version 5 of branch 'main' is damaged"):
        resolve_head(store, "main", clock=clock)
    fourth = read_version(store, "main", 4)
    assert fourth is not None
    assert fourth.manifest.version == 4


def published_below(length: int) -> KnownHead:
    return published_chain(MemoryStore(), length)[-1]


# --- the branches


def branches(listed: BranchList) -> list[str]:
    return [found.branch for found in listed.heads]


def test_live_branches_are_listed_main_first_then_in_byte_order(store: FaultStore, clock: SteppingClock) -> None:
    main = published_chain(store, 3)[-1]
    names = ["zz", "a", "Zoo", "é", "a-b", "a/b", "a.b", "review/tides", ".tmp-x", "x" * 150 + "Ä" * 25]
    for name in names:
        put(store, fork(name, main.manifest))
    listed = list_branches(store, clock=clock)
    assert branches(listed) == ["main", *sorted(names, key=str.encode)]
    assert listed.damaged == ()
    assert [found.version for found in listed.heads] == [3] + [1] * len(names)


def test_a_marked_deletion_costs_no_read_and_an_unmarked_one_costs_one(store: FaultStore, clock: SteppingClock) -> None:
    main = published_chain(store, 1)[0]
    for name in ("marked", "unmarked", "reborn"):
        branch = fork(name, main.manifest)
        gone = deletion(head(branch), nonce="d")
        put(store, branch)
        put(store, gone)
        if name != "unmarked":
            mark_deleted(store, gone.manifest)
        if name == "reborn":
            put(store, fork(name, main.manifest, target=head(gone)))
    counted = forget(store)
    assert branches(list_branches(counted, clock=clock)) == ["main", "reborn"]
    read = sorted(each.key for each in counted.requests if each.verb == "read")
    assert read == sorted([keys.version_key("main", 1), keys.version_key("reborn", 3), keys.version_key("unmarked", 2)])


def test_a_marker_of_an_earlier_life_is_removed_by_the_next_deletion(store: FaultStore) -> None:
    main = published_chain(store, 1)[0]
    first = fork("r", main.manifest)
    gone = deletion(head(first), nonce="d")
    second = fork("r", main.manifest, target=head(gone))
    gone_again = deletion(head(second), nonce="e")
    for built in (first, gone, second, gone_again):
        put(store, built)
    assert mark_deleted(store, gone.manifest) is None
    assert mark_deleted(store, gone_again.manifest) is None
    names = [info.key.rpartition("/")[2] for info in store.list("__manifest/r")]
    assert names[0] == ".deleted-4"
    assert not names[1].startswith(".")


def test_a_marker_that_can_not_be_written_is_no_failure_of_the_deletion() -> None:
    main = head(first_version())
    gone = deletion(head(fork("r", main.manifest)), nonce="d")
    store = FaultStore(MemoryStore(), [Rule(Refuse(StorageClass.DENIED))])
    assert mark_deleted(store, gone.manifest) is StorageClass.DENIED
    with pytest.raises(ValueError, match="deletion"):
        mark_deleted(store, main.manifest)


def test_older_versions_of_long_chains_are_jumped_over(clock: SteppingClock) -> None:
    """Every page after the first would hold 1,000 older versions of one chain."""
    inner = MemoryStore()
    main = published_chain(inner, 1)[0]
    put(inner, fork("a", main.manifest))
    put(inner, fork("z", main.manifest))
    for version in range(2, 7_000):  # what lies below a head is never read, so its content does not matter
        inner.put_fresh(keys.version_key("long", version), b"")
    put_at(inner, "long", 7_000)
    pages = CountedPages(inner)
    listed = list_branches(pages, clock=clock)
    assert branches(listed) == ["main", "a", "long", "z"]
    assert pages.keys_yielded <= 1_010
    assert pages.listings == 2


def put_at(store: Store, branch: str, version: int) -> None:
    built = fork(branch, first_version().manifest)
    manifest = replace(built.manifest, version=version)
    put(store, Built(manifest, to_bytes(manifest)))


class CountedPages(MemoryStore):
    """A store that counts how many keys its listings gave."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__()
        self._objects = inner._objects
        self.keys_yielded = 0
        self.listings = 0

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        self.listings += 1
        for info in super().list(prefix, start_after=start_after):
            self.keys_yielded += 1
            yield info


def test_one_damaged_branch_does_not_hide_the_others(store: FaultStore, clock: SteppingClock) -> None:
    main = published_chain(store, 1)[0]
    put(store, fork("good", main.manifest))
    store.put_fresh(keys.version_key("bad", 1), b"{")
    store.put_fresh(keys.version_key("Ä" * 60, 1), b"{}")  # a cut folder: only the object has the whole name
    newer = b'{"format":9,"min_reader":9,"branch":"newer"}'
    store.put_fresh(keys.version_key("newer", 1), newer)
    listed = list_branches(store, clock=clock)
    assert branches(listed) == ["main", "good"]
    assert sorted(type(error).__name__ for error in listed.damaged) == ["FormatMismatch"] + ["StorageFailure"] * 2
    said = " ".join(error.message for error in listed.damaged)
    assert "branch 'bad'" in said
    assert "ÄÄÄ" in said
    assert "__manifest" not in said
    assert any(isinstance(error, FormatMismatch) for error in listed.damaged)


def test_a_listing_that_fails_is_an_error(clock: SteppingClock) -> None:
    store = FaultStore(MemoryStore(), [Rule(Refuse(StorageClass.TIMEOUT))])
    with pytest.raises(StorageFailure, match="list of branches") as caught:
        list_branches(store, clock=clock)
    assert caught.value.cls is StorageClass.TIMEOUT


def test_things_that_are_no_versions_are_not_branches(store: FaultStore, clock: SteppingClock) -> None:
    published_chain(store, 1)
    store.put_fresh("__manifest/foreign/notes.txt", b"x")
    store.put_fresh("__manifest/loose.json", b"x")
    assert branches(list_branches(store, clock=clock)) == ["main"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["main", "r", "s"]), st.sampled_from(["write", "toggle"]), st.booleans()), max_size=14
    )
)
def test_head_and_list_agree_with_a_plain_model(steps: list[tuple[str, str, bool]]) -> None:
    store, clock = MemoryStore(), SteppingClock()
    model: dict[str, KnownHead] = {"main": published_chain(store, 1, known_at=0.0)[0]}
    seen = dict(model)
    for number, (name, what, mark) in enumerate(steps):
        before = model.get(name)
        if before is None or not before.live:
            built = fork(name, model["main"].manifest, target=before, name=f"n{number}")
        elif what == "toggle" and name != "main":
            built = deletion(before, nonce=f"n{number}")
        else:
            built = follow(before, drafts=[draft(number)])
        put(store, built)
        model[name] = head(built, 0.0)
        if built.manifest.state == "deleted" and mark:
            mark_deleted(store, built.manifest)
        for branch, expected in model.items():
            for knowledge in (None, seen.get(branch)):
                found = resolve_head(store, branch, clock=clock, known=knowledge)
                assert isinstance(found, KnownHead)
                assert (found.manifest, found.sha256) == (expected.manifest, expected.sha256)
        if mark:
            seen = dict(model)
    live = sorted(name for name, known in model.items() if known.live and name != "main")
    assert branches(list_branches(store, clock=clock)) == ["main", *live]
