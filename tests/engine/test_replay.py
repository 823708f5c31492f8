"""A write that is repeated under its key after the world moved on: its first receipt, or a refusal that is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.lanes import Lanes
from omnigraph.engine.opening import open_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import AlreadyExists, BranchNotFound, IdempotencyKeyReused
from omnigraph.store.faults import FaultStore, Meanwhile, Rule
from omnigraph.store.open import open_store
from support.clocks import SteppingClock

SCHEMA = "node Port { code: String @key  name: String? }"
RENAMED = 'node Harbour @rename_from("Port") { code: String @key  title: String? @rename_from("name") }'
WIDER = "node Port { code: String @key  name: String?  depth: F64? }"
INSERT = 'query add($c: String) { insert Port { code: $c, name: "x" } }'
RECORD = {"type": "Port", "data": {"code": "L", "name": "x"}}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", schema=SCHEMA)


def add(graph: Graph, code: str, **more: Any) -> Any:
    return graph.mutate(INSERT, c=code, **more)


def versions(graph: Graph) -> list[str]:
    """Every version of every branch: what a repeat must not add to."""
    return sorted(str(path) for path in Path(graph.uri, "__manifest").rglob("*.json"))


def repeated(graph: Graph, write: Callable[[], Any], move_on: Callable[[], object]) -> tuple[Any, Any]:
    """The first receipt, and the one of a repeat after the world moved on, which wrote nothing."""
    first = write()
    move_on()
    before = versions(graph)
    again = write()
    assert versions(graph) == before
    assert (first.replayed, again.replayed) == (False, True)
    return first, again


def renamed(graph: Graph) -> None:
    graph.schema.apply(RENAMED)


def test_a_mutation_is_known_again_after_the_schema_forgot_its_words(graph: Graph) -> None:
    first, again = repeated(graph, lambda: add(graph, "A", idempotency_key="k"), lambda: renamed(graph))
    assert (again.commit, again.query_name, again.affected_nodes) == (first.commit, "add", 1)
    several = f"{INSERT} query other() {{ delete Port }}"
    with pytest.raises(omnigraph.errors.InvalidQuery):
        graph.mutate(several, c="B", query_name="add", idempotency_key="new")


def test_one_query_of_several_is_known_again_by_its_name(graph: Graph) -> None:
    several = f'query other() {{ insert Port {{ code: "O" }} }} {INSERT}'
    first, again = repeated(
        graph,
        lambda: graph.mutate(several, c="A", query_name="add", idempotency_key="k"),
        lambda: renamed(graph),
    )
    assert again.commit == first.commit
    assert again.query_name == "add"


def test_a_mutation_whose_own_commit_landed_late_and_was_followed_by_a_schema_is_acknowledged(tmp_path: Path) -> None:
    """What is prepared again meets the request's own first attempt, and the head that shows it has another schema."""
    root = tmp_path / "g"
    other = omnigraph.init(root, schema=SCHEMA)
    store = FaultStore(open_store(root))
    core = open_core(root, store=store, clock=SteppingClock(now_us=2_000_000_000_000_000))
    core.lanes = Lanes()
    firsts: list[Any] = []

    def meanwhile() -> None:
        add(other, "X")
        firsts.append(add(other, "A", idempotency_key="k"))
        renamed(other)

    store.add(Rule(Meanwhile(before=meanwhile), verb="create", key="__manifest/"))
    again = add(Graph(Context(core)), "A", idempotency_key="k")
    assert again.replayed
    assert (again.commit, again.query_name) == (firsts[0].commit, "add")


def test_a_load_is_known_again_after_the_schema_forgot_its_words(graph: Graph) -> None:
    first, again = repeated(
        graph, lambda: graph.load([RECORD], mode="append", idempotency_key="k"), lambda: renamed(graph)
    )
    assert (again.commit, again.nodes) == (first.commit, first.nodes)


def test_a_load_that_made_its_branch_gives_its_whole_receipt_again(graph: Graph) -> None:
    graph.branches.create("parent")

    def write() -> Any:
        return graph.load([RECORD], mode="append", branch="b", from_="parent", idempotency_key="k")

    def move_on() -> None:
        add(graph.on("b"), "B")
        graph.on("b").schema.apply(WIDER)

    first, again = repeated(graph, write, move_on)
    assert (again.commit, again.branch_created, again.base_branch) == (first.commit, True, "parent")
    add(graph.on("b"), "C")
    ordinary = graph.load([RECORD | {"data": {"code": "M"}}], mode="append", branch="b", from_="parent")
    assert not ordinary.branch_created


@pytest.mark.parametrize(
    "write",
    [
        lambda graph: add(graph.on("b"), "A", idempotency_key="k"),
        lambda graph: graph.load([RECORD], mode="append", branch="b", idempotency_key="k"),
        lambda graph: graph.branches.merge("c", "b", idempotency_key="k"),
    ],
    ids=["mutate", "load", "merge"],
)
def test_a_write_to_a_branch_that_was_deleted_since_is_not_said_not_to_have_happened(
    graph: Graph, write: Callable[[Graph], Any]
) -> None:
    graph.branches.create("b")
    graph.branches.create("c", from_="b")
    add(graph.on("c"), "C")

    def move_on() -> None:
        graph.branches.delete("c")
        graph.branches.delete("b")

    first, again = repeated(graph, lambda: write(graph), move_on)
    assert again.commit == first.commit
    assert graph.commits.outcome(first.commit.graph_commit_id).outcome == "published"
    with pytest.raises(BranchNotFound) as caught:
        add(graph.on("b"), "Z", idempotency_key="another")
    assert caught.value.effects == "none"
    with pytest.raises(BranchNotFound):
        add(graph.on("b"), "Z", idempotency_key="k")


def test_a_branch_that_was_made_and_deleted_is_not_made_again_by_a_late_repeat(graph: Graph) -> None:
    def load() -> Any:
        return graph.load([RECORD], mode="append", branch="b", from_="main", idempotency_key="k")

    first, again = repeated(graph, load, lambda: graph.branches.delete("b"))
    assert (again.commit, again.branch_created) == (first.commit, True)
    created, same = repeated(
        graph, lambda: graph.branches.create("n", idempotency_key="k"), lambda: graph.branches.delete("n")
    )
    assert (same.life, same.base_commit_id) == (created.life, created.base_commit_id)
    assert [branch.name for branch in graph.branches.list()] == ["main"]
    assert graph.branches.create("n", idempotency_key="new").life == 3


def test_a_key_is_good_for_one_life_of_its_branch(graph: Graph) -> None:
    graph.branches.create("b")
    first = add(graph.on("b"), "A", idempotency_key="k")
    graph.branches.delete("b")
    graph.branches.create("b")
    second = add(graph.on("b"), "A", idempotency_key="k")
    assert not second.replayed
    assert second.commit != first.commit


def test_a_branch_is_known_again_after_its_source_went_and_is_refused_to_others(graph: Graph) -> None:
    graph.branches.create("parent")
    made = graph.branches.create("b", from_="parent", idempotency_key="k")
    add(graph.on("b"), "B")
    add(graph.on("parent"), "P")
    again = graph.branches.create("b", from_="parent", idempotency_key="k")
    assert again.replayed
    assert again.base_commit_id == made.base_commit_id
    with pytest.raises(IdempotencyKeyReused):
        graph.branches.create("b", idempotency_key="k")
    graph.branches.delete("b")
    graph.branches.create("b")
    with pytest.raises(AlreadyExists) as caught:
        graph.branches.create("b", from_="parent", idempotency_key="k")
    assert caught.value.effects == "none"


def test_a_merge_is_known_again_after_its_source_went_with_it(graph: Graph) -> None:
    graph.branches.create("b")
    add(graph.on("b"), "B")
    first, again = repeated(
        graph, lambda: graph.branches.merge("b", delete_branch=True, idempotency_key="k"), lambda: add(graph, "M")
    )
    assert (again.commit, again.outcome, again.branch_deleted) == (first.commit, "fast_forward", True)


def test_a_merge_by_statement_is_known_again_after_its_source_was_deleted(graph: Graph) -> None:
    graph.branches.create("b")
    add(graph.on("b"), "B")
    first, again = repeated(
        graph,
        lambda: graph.mutate("branch merge b into main", idempotency_key="k"),
        lambda: graph.branches.delete("b"),
    )
    assert again.commit == first.commit


def test_a_merge_is_known_again_after_its_source_moved_on(graph: Graph) -> None:
    graph.branches.create("b")
    add(graph.on("b"), "B")
    first, again = repeated(
        graph, lambda: graph.branches.merge("b", idempotency_key="k"), lambda: add(graph.on("b"), "later")
    )
    assert again.commit == first.commit


def test_a_merge_of_a_branch_that_is_not_there_is_refused_with_no_effects(graph: Graph) -> None:
    with pytest.raises(BranchNotFound) as caught:
        graph.branches.merge("nowhere", idempotency_key="k")
    assert caught.value.effects == "none"


def test_a_schema_that_is_applied_again_is_the_accepted_one(graph: Graph) -> None:
    assert graph.schema.apply(WIDER).applied
    add(graph, "A")
    before = versions(graph)
    again = graph.schema.apply(WIDER)
    assert (again.supported, again.applied, again.commit) == (True, False, None)
    assert versions(graph) == before


def test_a_deletion_that_is_repeated_finds_nothing_and_never_a_namesake(graph: Graph) -> None:
    life = graph.branches.create("b").life
    graph.branches.delete("b", expected_life=life)
    with pytest.raises(BranchNotFound) as caught:
        graph.branches.delete("b", expected_life=life)
    assert caught.value.effects == "none"
    graph.branches.create("b")
    with pytest.raises(BranchNotFound):
        graph.branches.delete("b", expected_life=life)
    assert graph.branches.get("b").life == 3
