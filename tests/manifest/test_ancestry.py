"""Merge bases against their definition, on random histories."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.samples import nonce
from omnigraph.manifest.ancestry import best, compared
from omnigraph.manifest.ids import CommitId


@dataclass(frozen=True)
class Node:
    generation: int
    created_at: int
    parents: tuple[CommitId, ...]


Dag = dict[CommitId, Node]


def commit(number: int) -> CommitId:
    return CommitId("b", number + 1, nonce(number))


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    """Histories with one root; every other commit has one or two parents among the earlier ones."""
    dag: Dag = {commit(0): Node(0, 0, ())}
    for number in range(1, draw(st.integers(2, 24))):
        reach = draw(st.integers(1, number))
        first = commit(draw(st.integers(number - reach, number - 1)))
        second = commit(draw(st.integers(0, number - 1)))
        parents = (first,) if draw(st.booleans()) or second == first else (first, second)
        generation = 1 + max(dag[parent].generation for parent in parents)
        dag[commit(number)] = Node(generation, draw(st.integers(0, 3)), parents)
    return dag


def ancestors(dag: Dag, start: CommitId) -> set[CommitId]:
    """With the commit itself."""
    found: set[CommitId] = set()
    todo = [start]
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += dag[here].parents
    return found


def by_definition(dag: Dag, a: CommitId, b: CommitId) -> list[CommitId]:
    common = ancestors(dag, a) & ancestors(dag, b)
    proper = {c: ancestors(dag, c) - {c} for c in common}
    best_ones = [c for c in common if not any(c in proper[other] for other in common)]
    return sorted(best_ones, key=lambda c: (dag[c].generation, dag[c].created_at, str(c)), reverse=True)


@settings(max_examples=200, deadline=None)
@given(dags(), st.data())
def test_the_best_common_ancestors_are_those_of_the_definition(dag: Dag, data: st.DataObject) -> None:
    a, b = (data.draw(st.sampled_from(sorted(dag, key=str))) for _ in range(2))
    assert list(best(a, b, dag.__getitem__)) == by_definition(dag, a, b)


@settings(max_examples=100, deadline=None)
@given(dags(), st.data())
def test_what_each_side_has_alone_is_the_difference_of_their_ancestors(dag: Dag, data: st.DataObject) -> None:
    a, b = (data.draw(st.sampled_from(sorted(dag, key=str))) for _ in range(2))
    found = compared(a, b, dag.__getitem__)
    assert found.left_only == ancestors(dag, a) - ancestors(dag, b)
    assert found.right_only == ancestors(dag, b) - ancestors(dag, a)


def test_records_below_the_base_are_not_looked_up() -> None:
    dag = {commit(n): Node(n, 0, (commit(n - 1),) if n else ()) for n in range(50)}
    dag[commit(60)] = Node(41, 0, (commit(40),))
    asked: list[CommitId] = []

    def record(wanted: CommitId) -> Node:
        asked.append(wanted)
        return dag[wanted]

    assert best(commit(60), commit(49), record) == (commit(40),)
    assert min(dag[c].generation for c in asked) == 40
    asked.clear()
    assert best(commit(30), commit(30), record) == (commit(30),)
    assert set(asked) == {commit(30)}


def test_a_straight_line_is_decided_by_its_lower_end() -> None:
    dag = {commit(n): Node(n, 0, (commit(n - 1),) if n else ()) for n in range(50)}
    assert best(commit(40), commit(10), dag.__getitem__) == (commit(10),)
    assert compared(commit(10), commit(40), dag.__getitem__).left_only == frozenset()


def test_a_criss_cross_has_two_bases_newest_first() -> None:
    root, x1, y1 = commit(0), commit(1), commit(2)
    x2, y2 = commit(3), commit(4)
    dag = {
        root: Node(0, 0, ()),
        x1: Node(1, 5, (root,)),
        y1: Node(1, 9, (root,)),
        x2: Node(2, 10, (x1, y1)),
        y2: Node(2, 11, (y1, x1)),
    }
    assert best(x2, y2, dag.__getitem__) == (y1, x1)
