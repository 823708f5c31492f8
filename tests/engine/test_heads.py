"""What a process believes of branch heads: its memory if it owns the graph and nothing is uncertain, else storage."""

from __future__ import annotations

import datetime as dt

import pytest
from structlog.testing import capture_logs

from manifest.samples import follow, fork, head, published_chain, put
from omnigraph.ambient import SystemClock
from omnigraph.engine.heads import SKEW_EVENT, Heads
from omnigraph.engine.opening import init_core
from omnigraph.manifest.builder import deletion
from omnigraph.manifest.chain import KnownHead, NoHead
from omnigraph.store.faults import FaultStore
from omnigraph.store.memory import MemoryStore
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
