"""A chain that is not the one that was known: removed, made anew at the same place, put back from an older copy.

Nothing above a known version says nothing of that version; a writer that believed it would publish above a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from manifest.samples import GRAPH, draft, first_version, follow, fork, head, published_chain, put
from omnigraph.errors import FormatMismatch, GraphReplaced, StorageClass, StorageFailure
from omnigraph.manifest import keys
from omnigraph.manifest.builder import Built, genesis
from omnigraph.manifest.chain import KnownHead, list_branches, read_version, resolve_head, seen_again
from omnigraph.manifest.codec import from_bytes, to_bytes
from omnigraph.manifest.commits import CommitPublished, look_up
from omnigraph.manifest.driver import drive
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.lineage import LogReader
from omnigraph.manifest.publish import (
    Conflict,
    FenceOpen,
    Look,
    NotPublished,
    OutcomeUnknown,
    Publication,
    Published,
    Result,
    publish,
)
from omnigraph.store.base import ObjectInfo, Store
from omnigraph.store.faults import Damage, FaultStore, LandLate, LoseAfter, LoseBefore, Meanwhile, Refuse, Rule
from omnigraph.store.local import LocalStore
from omnigraph.store.memory import MemoryStore
from omnigraph.store.uri import LocalRoot
from support.clocks import SteppingClock

OTHER = "01J0000000000000000000OTHR"
HOUR = 3600.0


class Listing(MemoryStore):
    """Shows ETags without the content, as S3 does."""

    def head(self, key: str) -> ObjectInfo:
        return self.read(key).info


@pytest.fixture(params=["memory", "etags", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FaultStore:
    inner: Store
    match request.param:
        case "memory":
            inner = MemoryStore()
        case "etags":
            inner = Listing()
        case _:
            inner = LocalStore(LocalRoot(str(tmp_path / "root")))
    return FaultStore(inner)


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


def remove(store: Store) -> None:
    store.delete([info.key for info in list(store.list(""))])


def other_chain(store: Store, length: int, *, graph: str = OTHER) -> None:
    """`main` of another graph, or (the same graph id) of another history of this one."""
    built = genesis(
        graph=graph, schema="5c" * 32, draft=draft(900, kind="genesis"), now_us=5_000, nonce=f"{graph} {length}"
    )
    put(store, built)
    for number in range(1, length):
        built = follow(head(built), 900 + number, now_us=5_000 + number)
        put(store, built)


def known_head(store: Store, clock: SteppingClock, length: int = 3) -> KnownHead:
    """Of a chain that is in storage, as a process knows it that resolved it a while ago."""
    published_chain(store, length)
    found = resolve_head(store, "main", clock=clock, graph=GRAPH)
    assert isinstance(found, KnownHead)
    clock.advance(10)
    return found


def older_copy(store: Store) -> None:
    published_chain(store, 2)


REPLACED: dict[str, Callable[[Store], None]] = {
    "removed": lambda store: None,
    "made anew, shorter": lambda store: other_chain(store, 2),
    "made anew, of the same length": lambda store: other_chain(store, 3),
    "made anew, one longer": lambda store: other_chain(store, 4),
    "made anew, much longer": lambda store: other_chain(store, 14),
    "put back from an older copy": lambda store: older_copy(store),
    "put back and written to again": lambda store: other_chain(store, 3, graph=GRAPH),
    "put back and written to further": lambda store: other_chain(store, 4, graph=GRAPH),
}


@pytest.mark.parametrize("hours", [0.0, 13.0], ids=["known lately", "known long ago"])
@pytest.mark.parametrize("replaced", REPLACED.values(), ids=REPLACED)
def test_another_chain_is_never_taken_for_the_one_that_was_known(
    store: FaultStore, clock: SteppingClock, replaced: Callable[[Store], None], hours: float
) -> None:
    known = known_head(store, clock)
    remove(store)
    replaced(store)
    clock.advance(hours * HOUR)
    with pytest.raises(GraphReplaced) as caught:
        resolve_head(store, "main", clock=clock, graph=GRAPH, known=known)
    error = caught.value
    assert (error.code, error.status, error.retry, error.effects) == ("graph_replaced", 409, "recover", "none")
    assert "Open the graph again" in error.message


def test_what_was_put_back_byte_by_byte_is_the_same_chain(store: FaultStore, clock: SteppingClock) -> None:
    known = known_head(store, clock)
    kept = {info.key: store.read(info.key).data for info in list(store.list(""))}
    remove(store)
    for key, data in kept.items():
        store.put_fresh(key, data)
    found = resolve_head(store, "main", clock=clock, graph=GRAPH, known=known)
    assert (found.version, found.known_at) == (3, 10.0)


def test_a_listing_that_lags_behind_is_an_error_of_the_store_and_no_other_graph(clock: SteppingClock) -> None:
    class Lagging(MemoryStore):
        def list_first(self, prefix: str) -> ObjectInfo | None:
            return self.read(keys.version_key("main", 1)).info

    store = Lagging()
    known = known_head(store, clock, 1)
    put(store, follow(known, 1))
    ahead = read_version(store, "main", 2)
    assert ahead is not None
    second = KnownHead(ahead.manifest, ahead.sha256, 0.0)
    clock.advance(13 * HOUR)
    with pytest.raises(StorageFailure) as caught:
        resolve_head(store, "main", clock=clock, known=second)
    assert caught.value.cls is StorageClass.NOT_FOUND


@pytest.mark.parametrize("kind", ["flipped", "half", "empty"])
def test_an_object_that_is_damaged_on_its_way_is_no_other_graph(clock: SteppingClock, kind: Any) -> None:
    inner = MemoryStore()
    known = known_head(inner, clock)
    store = FaultStore(inner, [Rule(Damage(kind), verb="read", key=keys.version_key("main", 3))])
    with pytest.raises(StorageFailure) as caught:
        resolve_head(store, "main", clock=clock, known=known)
    assert caught.value.cls is StorageClass.CORRUPT
    assert resolve_head(store, "main", clock=clock, known=known).version == 3


def test_a_look_that_fails_proves_nothing(clock: SteppingClock) -> None:
    inner = MemoryStore()
    known = known_head(inner, clock)
    for verb in ("head", "read"):
        store = FaultStore(inner, [Rule(Refuse(StorageClass.TIMEOUT), verb=verb)])
        with pytest.raises(StorageFailure) as caught:
            resolve_head(store, "main", clock=clock, known=known)
        assert caught.value.cls is StorageClass.TIMEOUT


# --- versions, lists and commits of another graph


def test_a_version_of_another_graph_is_refused_where_the_graph_is_named(store: FaultStore) -> None:
    other_chain(store, 1)
    found = read_version(store, "main", 1)
    assert found is not None
    assert found.manifest.graph == OTHER
    assert read_version(store, "main", 1, graph=OTHER) == found
    with pytest.raises(GraphReplaced, match="Branch 'main'"):
        read_version(store, "main", 1, graph=GRAPH)


def test_damage_and_age_are_told_before_the_graph_is_compared() -> None:
    data = first_version().data
    assert from_bytes(data, branch="main", version=1, graph=GRAPH).graph == GRAPH
    with pytest.raises(StorageFailure):
        from_bytes(data[:-9], branch="main", version=1, graph=OTHER)
    with pytest.raises(FormatMismatch):
        from_bytes(data.replace(b'"min_reader":1', b'"min_reader":9'), branch="main", version=1, graph=OTHER)


def test_the_list_of_branches_is_refused_if_one_belongs_to_another_graph(
    store: FaultStore, clock: SteppingClock
) -> None:
    main = first_version()
    put(store, main)
    for name in ("a", "b"):
        manifest = replace(fork(name, main.manifest).manifest, graph=GRAPH if name == "a" else OTHER)
        put(store, Built(manifest, to_bytes(manifest)))
    assert len(list_branches(store, clock=clock).heads) == 3
    with pytest.raises(GraphReplaced):
        list_branches(store, clock=clock, graph=GRAPH)


def test_a_commit_of_another_graph_is_not_said_to_be_superseded(store: FaultStore, clock: SteppingClock) -> None:
    other_chain(store, 2)
    lost = CommitId("main", 2, "0" * 16)
    head_of = lambda name: resolve_head(store, name, clock=clock)  # noqa: E731
    with pytest.raises(GraphReplaced):
        look_up(store, LogReader(store), lost, head_of=head_of, graph=GRAPH)
    theirs = CommitId("main", 2, f"{901:016x}")
    found = look_up(store, LogReader(store), theirs, head_of=head_of, graph=OTHER)
    assert isinstance(found.fate, CommitPublished)


# --- publication


def published(store: Store, clock: SteppingClock, base: KnownHead, *, look: Look = "after a while") -> Result:
    built = follow(base, 50)
    publication = Publication(built.manifest, built.data, base, clock.boot_seconds(), look)
    return drive(
        publish(publication),
        store=store,
        history=LogReader(store),
        clock=clock,
        fence=FenceOpen,
        log=lambda line: None,
    )


@pytest.mark.parametrize("look", ["after a while", "always"])
@pytest.mark.parametrize("name", REPLACED)
def test_nothing_is_published_on_a_base_that_does_not_stand(
    store: FaultStore, clock: SteppingClock, name: str, look: Look
) -> None:
    known = known_head(store, clock)
    remove(store)
    REPLACED[name](store)
    before = [info.key for info in store.list("")]
    assert published(store, clock, known, look=look) == NotPublished("base_gone")
    assert [info.key for info in store.list("")] == before


def test_a_base_that_this_write_saw_a_moment_ago_is_followed_at_once(store: FaultStore, clock: SteppingClock) -> None:
    known = replace(known_head(store, clock), seen_at=clock.boot_seconds() + 0.001)
    counted = FaultStore(store.inner)
    assert isinstance(published(counted, clock, known), Published)
    assert [each.verb for each in counted.requests] == ["create"]


@pytest.mark.parametrize(("look", "looks"), [("never", 0), ("after a while", 1), ("always", 1)])
def test_a_base_that_was_seen_before_the_write_began_is_looked_at(clock: SteppingClock, look: Look, looks: int) -> None:
    store = Listing()
    known = known_head(store, clock)
    known = replace(known, seen_at=clock.boot_seconds() - 0.001)
    counted = FaultStore(store)
    assert isinstance(published(counted, clock, known, look=look), Published)
    assert [each.verb for each in counted.requests] == ["head"] * looks + ["create"]


def test_what_was_published_may_be_followed_by_those_who_came_before_that(clock: SteppingClock) -> None:
    """Writers of one lane began before the publication that they follow: it is seen since."""
    store = Listing()
    began = clock.boot_seconds()
    known = known_head(store, clock)
    first = published(store, clock, known)
    assert isinstance(first, Published)
    built = follow(first.head, 60)
    counted = FaultStore(store)
    result = drive(
        publish(Publication(built.manifest, built.data, first.head, began)),
        store=counted,
        history=LogReader(counted),
        clock=clock,
        fence=FenceOpen,
        log=lambda line: None,
    )
    assert isinstance(result, Published)
    assert [each.verb for each in counted.requests] == ["create"]


def test_a_graph_that_is_made_anew_while_rows_are_written_is_left_alone(clock: SteppingClock) -> None:
    store = Listing()
    known = replace(known_head(store, clock), seen_at=clock.boot_seconds() + 0.001)
    built = follow(known, 50)
    publication = Publication(built.manifest, built.data, known, clock.boot_seconds())
    clock.advance(60)  # a load that takes a minute
    remove(store)
    other_chain(store, 2)
    result = drive(
        publish(publication),
        store=store,
        history=LogReader(store),
        clock=clock,
        fence=FenceOpen,
        log=lambda line: None,
    )
    assert result == NotPublished("base_gone")


def test_a_base_that_can_not_be_looked_at_is_not_followed(clock: SteppingClock) -> None:
    inner = Listing()
    known = known_head(inner, clock)
    store = FaultStore(inner, [Rule(Refuse(StorageClass.TIMEOUT), verb="head")])
    assert published(store, clock, known) == NotPublished("not_sent", StorageClass.TIMEOUT)
    assert store.count("create") == 0


def test_after_an_unanswered_send_a_look_that_fails_settles_nothing(clock: SteppingClock) -> None:
    inner = Listing()
    known = known_head(inner, clock)
    store = FaultStore(
        inner,
        [
            Rule(Meanwhile(after=lambda: clock.advance(6)), verb="head"),
            Rule(LoseBefore(), verb="create"),
            Rule(Refuse(StorageClass.TIMEOUT), verb="head"),
        ],
        clock=clock,
    )
    assert isinstance(published(store, clock, known), Published)
    assert [each.verb for each in store.requests] == ["head", "create", "head", "head", "create"]


@pytest.mark.parametrize("length", [0, 2, 4])
def test_a_graph_that_goes_with_a_request_under_way_leaves_the_outcome_unknown(
    clock: SteppingClock, length: int
) -> None:
    inner = Listing()
    known = known_head(inner, clock)

    def replaced() -> None:
        remove(inner)
        if length:
            other_chain(inner, length)
        clock.advance(6)

    built = follow(known, 50)
    for lost in (LoseAfter(), LandLate(after=100)):
        store = FaultStore(inner, [Rule(lost, verb="create")])
        paused = PausedClock(clock, replaced)
        result = drive(
            publish(Publication(built.manifest, built.data, known, clock.boot_seconds())),
            store=store,
            history=LogReader(store),
            clock=paused,
            fence=FenceOpen,
            log=lambda line: None,
        )
        assert isinstance(result, OutcomeUnknown)
        assert result.reason == "base_gone"
        remove(inner)
        published_chain(inner, 3)


class PausedClock:
    """Something happens in the first pause."""

    def __init__(self, clock: SteppingClock, act: Callable[[], None]) -> None:
        self._clock = clock
        self._act: Callable[[], None] | None = act

    def now_us(self) -> int:
        return self._clock.now_us()

    def boot_seconds(self) -> float:
        return self._clock.boot_seconds()

    def sleep(self, seconds: float) -> None:
        act, self._act = self._act, None
        if act is not None:
            act()
        self._clock.sleep(seconds)


def test_another_graphs_version_in_the_way_is_no_conflict_to_build_upon(clock: SteppingClock) -> None:
    inner = Listing()
    known = replace(known_head(inner, clock), seen_at=clock.boot_seconds() + 0.001)
    remove(inner)
    other_chain(inner, 4)
    assert published(inner, clock, known) == NotPublished("base_gone")
    remove(inner)
    published_chain(inner, 4)
    assert isinstance(published(inner, clock, known), Conflict)


def test_a_head_that_is_looked_at_again_is_the_same_head(store: FaultStore, clock: SteppingClock) -> None:
    known = known_head(store, clock)
    seen = seen_again(store, known, clock=clock)
    assert seen is not None
    assert (seen.manifest, seen.known_at, seen.seen_at) == (known.manifest, known.known_at, clock.boot_seconds())
    remove(store)
    assert seen_again(store, known, clock=clock) is None
