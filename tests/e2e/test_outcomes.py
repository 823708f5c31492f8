"""What became of an attempted commit, asked at every door while its request may still land (storage.md 4).

`published` and `superseded` are final: whatever lands later, and whoever asks, no answer after one of them is another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import open_core
from omnigraph.errors import OutcomeUnknown
from omnigraph.store.faults import FaultStore, LandLate, LoseBefore
from omnigraph.store.open import open_store
from server.asgi import done
from server.conftest import Served
from support.command_line import run_program
from support.doors import CODES, GRAPH, INSERT, SCHEMA
from support.faulty import Faulty

NEVER = 1_000_000


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = omnigraph.init(tmp_path / GRAPH, schema=SCHEMA)
    graph.branches.create("b")
    graph.on("b").mutate(INSERT, c="0")
    return tmp_path


def asked_of_python(root: Path, commit_id: str) -> dict[str, Any]:
    return omnigraph.open(root / GRAPH).commits.outcome(commit_id).to_dict()


def asked_of_the_command_line(root: Path, commit_id: str) -> dict[str, Any]:
    ran = run_program("commit", "outcome", commit_id, "--store", root / GRAPH, "--json")
    assert ran.code == 0
    return ran.json


def asked_over_http(root: Path, commit_id: str) -> dict[str, Any]:
    served = Served(root)
    try:
        return done(served.get(f"/graphs/atlas/commits/{commit_id}/outcome"))
    finally:
        served.close()


DOORS = (asked_of_python, asked_of_the_command_line, asked_over_http)


class Attempt:
    """A write on branch b whose requests are under way: nobody was answered, all may land."""

    def __init__(self, root: Path, *, owner: bool = True) -> None:
        self.root = root
        self.faulty = Faulty(str(root / GRAPH), owner=owner)
        self.base = omnigraph.open(root / GRAPH).on("b").head.graph_commit_id
        self.faulty.publish_with(LandLate(after=NEVER), times=5)
        with pytest.raises(OutcomeUnknown) as caught:
            self.faulty.graph.on("b").mutate(INSERT, c="mine", idempotency_key="k")
        self.error = caught.value
        assert self.error.graph_commit_id is not None
        self.commit_id = self.error.graph_commit_id

    def land(self) -> None:
        self.faulty.store.release()

    def rival(self) -> None:
        self.other.on("b").mutate(INSERT, c="theirs")

    def delete(self) -> None:
        self.other.branches.delete("b")

    def recreate(self) -> None:
        self.other.branches.create("b")

    @property
    def other(self) -> Graph:
        return omnigraph.open(self.root / GRAPH)

    def in_log(self) -> int:
        """How often the commit stands in the branch's chain, whatever life it is in."""
        folder = self.root / GRAPH / "__manifest" / "b"
        return sum(f'"{self.commit_id}"' in path.read_text() for path in folder.glob("*.json"))


def test_the_error_says_where_to_look_and_looks(root: Path) -> None:
    attempt = Attempt(root)
    error = attempt.error
    assert (error.branch, error.base_commit_id, error.effects) == ("b", attempt.base, "unknown")
    assert error.resolve().to_dict() == asked_of_python(root, attempt.commit_id)
    waited = len(attempt.faulty.clock.slept)
    assert error.resolve(wait=3).outcome == "undetermined"
    assert sum(attempt.faulty.clock.slept[waited:]) == pytest.approx(3)
    sleep = attempt.faulty.clock.sleep

    def land_meanwhile(seconds: float) -> None:
        attempt.land()
        sleep(seconds)

    attempt.faulty.clock.sleep = land_meanwhile
    assert error.resolve(wait=60).outcome == "published"


def test_an_outcome_is_told_alike_at_every_door(root: Path) -> None:
    attempt = Attempt(root)
    for ask in DOORS:
        assert ask(root, attempt.commit_id) == {
            "outcome": "undetermined",
            "graph_commit_id": attempt.commit_id,
            "branch": "b",
            "commit": None,
            "superseding_commit_id": None,
            "reason": "version_absent",
            "head_commit_id": attempt.base,
        }
    attempt.land()
    [published] = {repr(ask(root, attempt.commit_id)) for ask in DOORS}
    told = asked_of_python(root, attempt.commit_id)
    assert repr(told) == published
    assert (told["outcome"], told["head_commit_id"]) == ("published", attempt.commit_id)
    assert told["commit"]["graph_commit_id"] == attempt.commit_id
    assert told["commit"]["parent_commit_id"] == attempt.base


def test_a_superseded_commit_names_the_one_that_has_its_version(root: Path) -> None:
    attempt = Attempt(root)
    attempt.rival()
    head = attempt.other.on("b").head.graph_commit_id
    for ask in DOORS:
        told = ask(root, attempt.commit_id)
        assert (told["outcome"], told["superseding_commit_id"], told["head_commit_id"]) == ("superseded", head, head)


EVENTS: dict[str, Callable[[Attempt], None]] = {
    "it lands": Attempt.land,
    "another writes": Attempt.rival,
    "the branch is deleted": Attempt.delete,
    "the branch is made anew": Attempt.recreate,
}


def orders() -> list[tuple[str, ...]]:
    """Every order of the events in which each of them is possible: a deleted branch takes no write and no deletion."""
    possible: list[tuple[str, ...]] = []
    for order in itertools.permutations(EVENTS):
        deleted, made = order.index("the branch is deleted"), order.index("the branch is made anew")
        if deleted < made and not deleted < order.index("another writes") < made:
            possible.append(order)
    return possible


@pytest.mark.parametrize("order", orders(), ids=", ".join)
@pytest.mark.parametrize("owner", [True, False], ids=["owner", "guest"])
def test_no_answer_contradicts_a_final_one_whatever_lands_and_when(
    root: Path, order: tuple[str, ...], owner: bool
) -> None:
    attempt = Attempt(root, owner=owner)
    ways: list[Callable[[], str]] = [
        lambda: attempt.faulty.graph.commits.outcome(attempt.commit_id).outcome,
        lambda: attempt.error.resolve().outcome,
        lambda: asked_of_python(root, attempt.commit_id)["outcome"],
    ]
    final: set[str] = set()
    for event in (None, *order):
        if event is not None:
            EVENTS[event](attempt)
        answers = {way() for way in ways}
        assert len(answers) == 1, f"after {event}: {answers}"
        if final:
            assert answers == final, f"after {event} the answer was {answers}, before it {final}"
        final = answers - {"undetermined"}
    assert final == ({"published"} if order[0] == "it lands" else {"superseded"})
    attempt.land()
    if final == {"superseded"}:
        assert attempt.in_log() == 0
    else:
        assert attempt.in_log() >= 1
        assert attempt.other.commits.get(attempt.commit_id).graph_commit_id == attempt.commit_id


def test_nothing_is_superseded_while_no_version_follows_its_base(root: Path) -> None:
    """Asking writes nothing, so that no number of questions settles what only a write can settle."""
    attempt = Attempt(root)
    versions = len(list((root / GRAPH / "__manifest" / "b").iterdir()))
    for _ in range(3):
        for ask in DOORS:
            assert ask(root, attempt.commit_id)["outcome"] == "undetermined"
    assert len(list((root / GRAPH / "__manifest" / "b").iterdir())) == versions


# --- what a look-up shows the owner


def test_a_version_that_a_look_up_shows_makes_the_owner_resolve_its_head(root: Path) -> None:
    """A request of the former owner lands: the owner's memory is behind, and nothing but the look-up tells it."""
    stores: list[FaultStore] = []

    def opening(uri: str, **given: Any) -> Any:
        stores.append(FaultStore(open_store(uri)))
        return open_core(uri, store=stores[0], **given)

    served = Served(root, opening=opening)
    assert served.codes(branch="b") == ["0"]
    late = omnigraph.open(root / GRAPH).on("b").mutate(INSERT, c="late").commit
    assert late is not None
    before = len(stores[0].requests)
    assert served.codes(branch="b") == ["0"], "the owner believes its memory"
    assert len(stores[0].requests) == before
    told = done(served.get(f"/graphs/atlas/commits/{late.graph_commit_id}/outcome"))
    assert (told["outcome"], told["head_commit_id"]) == ("published", late.graph_commit_id)
    assert served.codes(branch="b") == ["0", "late"]
    before = len(stores[0].requests)
    assert served.codes(branch="b") == ["0", "late"]
    assert len(stores[0].requests) == before, "and believes it again"
    served.close()


@pytest.mark.parametrize("shown", ["get", "read"])
def test_so_does_any_other_look_at_the_commit(root: Path, shown: str) -> None:
    owner = Faulty(str(root / GRAPH))
    graph = owner.graph.on("b")
    assert graph.query(CODES).scalars() == ["0"]
    late = omnigraph.open(root / GRAPH).on("b").mutate(INSERT, c="late").commit
    assert late is not None
    if shown == "get":
        assert graph.commits.get(late.graph_commit_id) == late
    else:
        assert graph.query(CODES, snapshot=late.graph_commit_id).scalars() == ["0", "late"]
    assert graph.query(CODES).scalars() == ["0", "late"]


def test_a_look_up_whose_head_can_not_be_read_still_tells_what_it_knows(root: Path) -> None:
    owner = Faulty(str(root / GRAPH))
    owner.graph.on("b").query(CODES)
    late = omnigraph.open(root / GRAPH).on("b").mutate(INSERT, c="late").commit
    assert late is not None
    from omnigraph.store.faults import Refuse, Rule

    owner.store.add(Rule(Refuse(), verb="read", key="__manifest/", skip=1, times=9))
    told = owner.graph.commits.outcome(late.graph_commit_id)
    assert (told.outcome, told.head_commit_id) == ("published", None)


def test_an_unknown_branch_creation_is_told_by_the_list_after_the_next_write(root: Path) -> None:
    owner = Faulty(str(root / GRAPH))
    owner.publish_with(LoseBefore(), times=5)
    with pytest.raises(OutcomeUnknown) as caught:
        owner.graph.branches.create("new")
    assert (caught.value.details["kind"], caught.value.graph_commit_id) == ("branch_create", None)
    assert "new" not in [branch.name for branch in owner.graph.branches.list()]
    assert not owner.graph.branches.create("new").replayed
    assert "new" in [branch.name for branch in owner.graph.branches.list()]
