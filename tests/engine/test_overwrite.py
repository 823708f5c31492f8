"""An overwrite load is judged by what stands after it: nodes and edges of the base that stay, and none that go (15.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import ConstraintViolation

SCHEMA = """
node N { k: String @key  u: F64? @unique  v: F32?  w: F32?  @unique(v, w) }
edge E: N -> N @card(1..2)
edge F: N -> N @card(0..1)
"""


def node(key: str, **values: Any) -> dict[str, Any]:
    return {"type": "N", "data": {"k": key, **values}}


def edge(kind: str, source: str, target: str) -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "id": f"{source}-{target}"}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """Nodes a, b, c; edges a-b and b-c of both types."""
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    edges = [edge(kind, *ends) for kind in "EF" for ends in ("ab", "bc")]
    graph.load([node("a", u=0.0, v=0.0, w=-0.0), node("b"), node("c"), *edges], mode="append", progress=False)
    return graph


def overwrite(graph: Graph, *records: dict[str, Any]) -> None:
    graph.load(records, mode="overwrite", progress=False)


def refused(graph: Graph, *records: dict[str, Any]) -> tuple[Any, ...]:
    """Code, entity, and line; nothing was published."""
    head = graph.head
    with pytest.raises(ConstraintViolation) as caught:
        overwrite(graph, *records)
    assert graph.head == head
    details = caught.value.details
    return details["code"], details["entity_id"], details.get("line_number")


def edges_of(graph: Graph, kind: str) -> list[str]:
    text = f"query q() {{ match {{ $a: N  $a {kind.lower()} $b }} return {{ $a.k as a, $b.k as b }} order {{ a, b }} }}"
    return [row["a"] + row["b"] for row in graph.query(text)]


ALL = ("ab", "bc")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # sources that exist in the base alone; their former edges don't count
        (["ac", "bc"], None),
        (["ab", "ac", "ba", "bc"], None),
        (["ab", "ac", "aa", "bc"], ("W007", "a", 1)),
        (["bc", "ab", "aa", "ac"], ("W007", "a", 2)),
        # a source that lost its last edge, and stands
        (["ab"], ("W007", "b", None)),
        (["ab", "cb"], ("W007", "b", None)),
        (["ca"], ("W007", "a", None)),
        # of both the one that a record is to blame for
        (["ab", "ac", "aa"], ("W007", "a", 1)),
        # an end that is nowhere
        (["ab", "bc", "xa"], ("W006", "x-a", 3)),
    ],
)
def test_edges_are_counted_for_the_nodes_of_the_base(
    graph: Graph, given: list[str], expected: tuple[Any, ...] | None
) -> None:
    records = [edge("E", *ends) for ends in given]
    if expected is not None:
        assert refused(graph, *records) == expected
    else:
        overwrite(graph, *records)
        assert edges_of(graph, "E") == sorted(given)
    assert edges_of(graph, "F") == list(ALL), "the other type was not touched"


def test_a_node_that_goes_with_the_same_load_is_not_judged(graph: Graph) -> None:
    kept = [edge("F", "a", "c"), edge("E", "a", "c")]
    overwrite(graph, node("a"), node("c"), *kept)
    assert (edges_of(graph, "E"), edges_of(graph, "F")) == (["ac"], ["ac"])


def test_a_node_that_comes_again_is_judged_by_what_it_has_then(graph: Graph) -> None:
    nodes = [node(key) for key in "abc"]
    assert refused(graph, *nodes, edge("E", "a", "b")) == ("W007", "b", None)
    assert refused(
        graph, *nodes, *(edge("E", *ends) for ends in ("ab", "bc")), *(edge("F", "a", end) for end in "bc")
    ) == (
        "W007",
        "a",
        6,
    )
    overwrite(graph, *nodes)
    assert edges_of(graph, "E") == list(ALL), "edges of a type without a record stay"


def test_a_node_that_goes_without_its_edges_leaves_them_hanging(graph: Graph) -> None:
    assert refused(graph, node("a"), node("b")) == ("W006", "b-c", None)
    assert refused(graph, node("a"), node("b"), edge("E", "a", "b"), edge("E", "b", "a"))[:2] == ("W006", "b-c")
    assert refused(graph, node("a"), node("b"), edge("E", "a", "b"), edge("E", "b", "c"), edge("F", "a", "b")) == (
        "W006",
        "b-c",
        4,
    )


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (-0.0, 0.0)])
def test_both_zeros_are_one_value_and_those_of_rows_that_go_are_free(graph: Graph, one: float, other: float) -> None:
    edges = [edge(kind, *ends) for kind in "EF" for ends in ("ab", "bc")]
    rest = [node("c"), *edges]
    assert refused(graph, node("a", u=one), node("b", u=other), *rest) == ("W005", "b", 2)
    assert refused(graph, node("a", v=one, w=one), node("b", v=other, w=other), *rest) == ("W005", "b", 2)
    overwrite(graph, node("b", u=other, v=one, w=other), node("a", v=one), *rest)
    with pytest.raises(ConstraintViolation, match=r"@unique\(u\): -?0\.0 belongs to node \"b\""):
        graph.mutate('query m($u: F64) { update N set { u: $u } where k = "c" }', u=one)
    with pytest.raises(ConstraintViolation, match=r"@unique\(v, w\)"):
        graph.mutate('query m($v: F32) { insert N { k: "d", v: $v, w: $v } }', v=other)


def test_a_source_that_its_own_mutation_deletes_is_not_judged(graph: Graph) -> None:
    graph.mutate('query m() { delete N where k = "a" }')
    assert edges_of(graph, "E") == ["bc"]
    with pytest.raises(ConstraintViolation) as caught:
        graph.mutate('query m() { delete N where k = "c" }')
    assert (caught.value.details["code"], caught.value.details["entity_id"]) == ("W007", "b")
    graph.mutate('query m() { delete N where k = "c"  delete N where k = "b" }')
    assert edges_of(graph, "E") == []
