"""What a process believes of branch heads: its memory if it owns the graph and nothing is uncertain, else storage."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from manifest.samples import follow, fork, head, published_chain, put
from omnigraph.ambient import SystemClock
from omnigraph.engine.core import GraphCore
from omnigraph.engine.graph import Graph
from omnigraph.engine.heads import FORMER_OWNER_SECONDS, SKEW_EVENT, Heads
from omnigraph.engine.opening import init_core, open_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import AlreadyExists, Conflict, OutcomeUnknown, StorageFailure
from omnigraph.manifest.builder import deletion
from omnigraph.manifest.chain import KnownHead, NoHead
from omnigraph.store.faults import FaultStore, LoseAfter, LoseBefore, Refuse, Rule
from omnigraph.store.memory import MemoryStore
from omnigraph.store.open import open_store
from omnigraph.tables.store import TableStore
from support.clocks import SteppingClock


@pytest.fixture
def store() -> FaultStore:
    """`main`, the live branch `here` and the deleted branch `gone`."""
    inner = MemoryStore()
    main = published_chain(inner, 3)[-1]
    for name in ("here", "gone"):
        put(inner, fork(name, main.manifest))
    put(inner, deletion(head(fork("gone", main.manifest)), nonce="end of gone"))
    return FaultStore(inner)


def asked(store: FaultStore, heads: Heads, branch: str) -> tuple[int, object]:
    """Requests that the state of a branch took, and the state."""
    before = len(store.requests)
    state = heads.state(branch)
    return len(store.requests) - before, state


def test_the_owner_that_has_listed_once_knows_which_names_are_free(store: FaultStore) -> None:
    clock = SteppingClock()
    clock.advance(50)
    heads = Heads(store, clock, owner=True)
    assert asked(store, heads, "free") == (1, NoHead("free", 50.0))
    assert [each.branch for each in heads.live()] == ["main", "here"]
    clock.advance(7)
    assert asked(store, heads, "free") == (0, NoHead("free", 50.0))
    assert asked(store, heads, "here")[0] == 0
    assert [each.branch for each in heads.live()] == ["main", "here"]


def test_a_name_that_once_was_a_branch_is_looked_up(store: FaultStore) -> None:
    heads = Heads(store, SteppingClock(), owner=True)
    heads.live()
    count, state = asked(store, heads, "gone")
    assert isinstance(state, KnownHead)
    assert (count > 0, state.live) == (True, False)


def test_who_does_not_own_the_graph_always_asks(store: FaultStore) -> None:
    heads = Heads(store, SteppingClock(), owner=False)
    for branch in ("free", "here", "here"):
        heads.live()
        assert asked(store, heads, branch)[0] > 0


def test_after_an_unknown_outcome_storage_is_asked(store: FaultStore) -> None:
    heads = Heads(store, SteppingClock(), owner=True)
    heads.live()
    heads.mark_uncertain("free", 0)
    assert asked(store, heads, "free")[0] > 0
    assert asked(store, heads, "other")[0] == 0


def test_a_version_that_was_seen_above_the_head_in_memory_makes_it_ask_again(store: FaultStore) -> None:
    heads = Heads(store, SteppingClock(), owner=True)
    known = heads.state("main")
    heads.shown("main", known.version)
    assert asked(store, heads, "main") == (0, known)
    put(store.inner, follow(known, 9))  # type: ignore[arg-type]
    heads.shown("main", known.version + 1)
    count, head = asked(store, heads, "main")
    assert (count > 0, head.version) == (True, known.version + 1)  # type: ignore[attr-defined]
    assert asked(store, heads, "main")[0] == 0


@pytest.mark.parametrize(("ahead", "told"), [(0, []), (2, [7_200]), (-2, [-7_200])])
def test_a_head_whose_two_times_lie_far_apart_is_reported_once(ahead: int, told: list[int]) -> None:
    inner = MemoryStore(now=lambda: dt.datetime.now(dt.UTC) + dt.timedelta(hours=ahead))
    graph = init_core("", "node N { k: String @key }", store=inner)
    reader = Heads(inner, SystemClock(), owner=False, graph=graph.graph_id)
    with capture_logs() as lines:
        reader.current("main")
        reader.current("main")
    assert [line["event"] for line in lines] == [SKEW_EVENT] * len(told)
    assert all(abs(line["seconds"] - seconds) < 60 for line, seconds in zip(lines, told, strict=True))


# --- a lock that was taken over: requests of its former owner may still land


def after_takeover(store: FaultStore) -> tuple[SteppingClock, Heads]:
    clock = SteppingClock()
    clock.advance(100)
    heads = Heads(store, clock, owner=True, taken_over_at=clock.boot_seconds())
    heads.live()
    return clock, heads


def test_for_twenty_minutes_after_a_takeover_every_branch_is_asked_for_once_a_second_at_most(store: FaultStore) -> None:
    clock, heads = after_takeover(store)
    clock.advance(FORMER_OWNER_SECONDS - 60)
    known = heads.state("main")
    assert asked(store, heads, "main") == (0, known)
    put(store.inner, follow(known, 9))  # type: ignore[arg-type]
    clock.advance(1)
    count, late = asked(store, heads, "main")
    assert (count > 0, late.version) == (True, known.version + 1)  # type: ignore[attr-defined]
    clock.advance(1)
    assert asked(store, heads, "free")[0] > 0, "a branch may be made late, too"


def test_a_look_after_the_twenty_minutes_ends_the_doubt_and_their_passing_does_not(store: FaultStore) -> None:
    clock, heads = after_takeover(store)
    clock.advance(FORMER_OWNER_SECONDS)
    assert asked(store, heads, "main")[0] > 0
    clock.advance(5)
    assert asked(store, heads, "main")[0] == 0
    assert asked(store, heads, "here")[0] > 0


def test_a_publication_of_its_own_ends_the_doubt_about_its_branch_alone(store: FaultStore) -> None:
    clock, heads = after_takeover(store)
    known = heads.state("main")
    built = follow(known, 9)  # type: ignore[arg-type]
    put(store.inner, built)
    heads.published(head(built, known_at=clock.boot_seconds()))
    clock.advance(5)
    assert asked(store, heads, "main")[0] == 0
    assert asked(store, heads, "here")[0] > 0


def test_the_list_is_read_from_storage_until_the_former_owner_can_add_nothing(store: FaultStore) -> None:
    clock, heads = after_takeover(store)
    put(store.inner, fork("late", heads.current("main").manifest))
    clock.advance(1)
    assert "late" in [each.branch for each in heads.live()]
    clock.advance(FORMER_OWNER_SECONDS)
    heads.live()
    clock.advance(5)
    before = len(store.requests)
    assert "late" in [each.branch for each in heads.live()]
    assert len(store.requests) == before


def test_a_graph_opened_after_a_takeover_asks_and_a_write_settles_its_branch(tmp_path: Path) -> None:
    graph_id = init_core(tmp_path / "g", "node N { k: String @key }").graph_id
    store = FaultStore(open_store(tmp_path / "g"))
    clock = SteppingClock()
    core = GraphCore(store, TableStore(store), graph_id, owner=True, taken_over_at=clock.boot_seconds(), clock=clock)
    graph = Graph(Context(core))

    def requests() -> int:
        before = len(store.requests)
        graph.query("query q() { match { $n: N } return { $n.k } }")
        clock.advance(2)
        return len(store.requests) - before

    requests()
    assert requests() > 0
    graph.mutate('query m() { insert N { k: "a" } }')
    assert requests() == 0


def test_an_owner_makes_branches_beside_one_that_is_damaged(tmp_path: Path) -> None:
    graph = Graph(Context(init_core(tmp_path / "g", "node N { k: String @key }", owner=True)))
    graph.branches.create("b")
    damaged = next((tmp_path / "g" / "__manifest" / "b").glob("*.json"))
    damaged.chmod(0o644)
    damaged.write_bytes(b"")
    again = Graph(Context(open_core(tmp_path / "g", owner=True)))
    again.branches.create("c")
    with pytest.raises(AlreadyExists):
        again.branches.create("C")
    assert again.on("c").mutate('query m() { insert N { k: "a" } }').affected_nodes == 1
    for act in (again.branches.list, lambda: again.branches.delete("c")):  # these must know of all of them
        with pytest.raises(StorageFailure) as caught:
            act()
        assert caught.value.cls == "corrupt"


def test_a_branch_whose_creation_ended_unknown_and_landed_is_in_the_list(tmp_path: Path) -> None:
    store = FaultStore(open_store(tmp_path / "g"))
    graph = Graph(Context(init_core(tmp_path / "g", "node N { k: String @key }", owner=True, store=store)))
    graph.branches.create("parent")
    graph.branches.list()
    store.add(Rule(LoseAfter(), verb="create", key="__manifest/child"))
    store.add(Rule(LoseBefore(), verb="create", key="__manifest/child", skip=1, times=9))
    store.add(Rule(Refuse(), verb="read", key="__manifest/child", times=9))
    with pytest.raises(OutcomeUnknown):
        graph.branches.create("child", from_="parent")
    store.heal()
    assert [each.name for each in graph.branches.list()] == ["main", "child", "parent"]
    with pytest.raises(Conflict, match="child"):
        graph.branches.delete("parent")
