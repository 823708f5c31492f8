"""`@unique` against rows that are stored already, for every type that can be in a group (languages.md 4.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import ConstraintViolation

VALUES: dict[str, tuple[Any, Any, Any]] = {
    "String": ("O'Neil", "", "x\x00y"),
    "Bool": (True, False, None),
    "I32": (-(2**31), 2**31 - 1, 0),
    "I64": (-(2**63), 2**63 - 1, 0),
    "U32": (1, 2**32 - 1, 0),
    "U64": (1, 2**64 - 1, 2**63),
    "F32": (0.1, -3.4e38, 1e-45),
    "F64": (0.1, -1.7e308, 5e-324),
    "Date": ("2020-02-29", "0001-01-01", "9999-12-31"),
    "DateTime": ("2020-01-01T00:00:00.001", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999"),
    "enum(laid-up, active, true)": ("laid-up", "true", "active"),
}
OTHERS = "v: Vector(2)?  l: [U64]?  b: Blob?  w: U64?  d: DateTime?"
"""Properties that no group names: what a table holds besides must not matter."""


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")


def put(graph: Graph, key: float, mode: Any = "append", **values: Any) -> None:
    graph.load([{"type": "W", "data": {"k": key, **values}}], mode=mode, progress=False)


def refused(graph: Graph, key: int, **values: Any) -> ConstraintViolation:
    with pytest.raises(ConstraintViolation) as caught:
        put(graph, key, **values)
    assert caught.value.details["code"] == "W005"
    return caught.value


@pytest.mark.parametrize("of", VALUES)
def test_a_stored_value_is_taken_for_every_write_that_follows(tmp_path: Path, of: str) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=f"node W {{ k: I64 @key  u: {of}? @unique  {OTHERS} }}")
    first, second, third = VALUES[of]
    put(graph, 1, u=first, v=[0, 1], l=[1], w=7)
    put(graph, 2, u=second)
    put(graph, 3, u=third)
    for key, value in ((4, first), (5, second)):
        assert refused(graph, key, u=value).details["property"] == "u"
    put(graph, 4)
    put(graph, 5, u=None)
    put(graph, 2, "merge", u=second, w=8)  # its own value
    put(graph, 1, "merge")
    put(graph, 6, u=first)


@pytest.mark.parametrize("of", VALUES)
def test_a_group_is_one_tuple_wherever_the_type_stands_in_it(tmp_path: Path, of: str) -> None:
    schema = f"node W {{ k: I64 @key  u: {of}?  n: I64?  t: {of}?  @unique(u, n)  @unique(n, t)  {OTHERS} }}"
    graph = omnigraph.init(tmp_path / "g", schema=schema)
    first, second, _ = VALUES[of]
    put(graph, 1, u=first, n=1, t=first)
    put(graph, 2, u=first, n=2, t=first)
    put(graph, 3, u=second, n=1, t=second)
    assert refused(graph, 4, u=first, n=2, t=second).details["property"] == "u, n"
    assert refused(graph, 4, n=1, t=second).details["property"] == "n, t"
    for key in (4, 5):
        put(graph, key, u=first, t=second)
    for key in (6, 7):
        put(graph, key, n=2)


@pytest.mark.parametrize("of", VALUES)
def test_a_group_of_an_edge_holds_with_either_end(tmp_path: Path, of: str) -> None:
    schema = f"node N {{ k: String @key }} edge E: N -> N {{ p: {of}?  @unique(p, @dst)  @unique(@src, p) }}"
    graph = omnigraph.init(tmp_path / "g", schema=schema)
    first, second, _ = VALUES[of]

    def link(src: str, dst: str, value: Any) -> None:
        graph.load([{"edge": "E", "from": src, "to": dst, "data": {"p": value}}], mode="append", progress=False)

    graph.load([{"type": "N", "data": {"k": key}} for key in "abcd"], mode="append", progress=False)
    link("a", "b", first)
    link("a", "b", second)
    link("c", "d", first)
    for src, dst, property_name in (("d", "b", "p, @dst"), ("a", "c", "@src, p")):
        with pytest.raises(ConstraintViolation) as caught:
            link(src, dst, first)
        assert (caught.value.details["code"], caught.value.details["property"]) == ("W005", property_name)


@pytest.mark.parametrize("of", VALUES)
def test_a_mutation_meets_stored_values_too(tmp_path: Path, of: str) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=f"node W {{ k: I64 @key  u: {of}? @unique }}")
    parameter = "String" if of.startswith("enum") else of
    insert = f"query m($k: I64, $u: {parameter}) {{ insert W {{ k: $k, u: $u }} }}"
    first, second, _ = VALUES[of]
    graph.mutate(insert, {"k": 1, "u": first})
    graph.mutate(insert, {"k": 2, "u": second})
    with pytest.raises(ConstraintViolation):
        graph.mutate(insert, {"k": 3, "u": first})
    with pytest.raises(ConstraintViolation):
        graph.mutate(f"query m($u: {parameter}) {{ update W set {{ u: $u }} where k = 2 }}", {"u": first})


@pytest.mark.parametrize("of", ["F32", "F64"])
def test_the_two_zeros_are_one_value_across_writes(tmp_path: Path, of: str) -> None:
    schema = f"node W {{ k: I64 @key  u: {of}? @unique  p: {of}?  q: {of}?  @unique(p, q) }}"
    graph = omnigraph.init(tmp_path / "g", schema=schema)
    put(graph, 1, u=0.0, p=0.0, q=-0.0)
    assert refused(graph, 2, u=-0.0).details["property"] == "u"
    assert refused(graph, 2, p=-0.0, q=0.0).details["property"] == "p, q"
    other = omnigraph.init(tmp_path / "h", schema=schema)
    put(other, 1, u=-0.0)
    assert refused(other, 2, u=0.0).details["property"] == "u"


@pytest.mark.parametrize("of", ["F32", "F64"])
def test_the_two_zeros_are_one_key_across_writes(tmp_path: Path, of: str) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=f"node W {{ k: {of} @key  n: I64? }}")
    put(graph, 0.0, n=1)
    put(graph, -0.0, "merge", n=2)
    found = graph.query("query q() { match { $w: W } return { $w.@id as id, $w.n as n } }")
    assert list(found) == [{"id": "0", "n": 2}]


def test_many_new_rows_are_held_against_all_stored_ones(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node W { k: I64 @key  u: U64? @unique }")
    put(graph, 1, u=2**64 - 1)
    many = [{"type": "W", "data": {"k": 10 + n, "u": n}} for n in range(2_000)]
    graph.load(many, mode="append", progress=False)
    with pytest.raises(ConstraintViolation) as caught:
        graph.load(
            [{"type": "W", "data": {"k": 10_000 + n, "u": 2**64 - 1 - (n + 1) % 1_500}} for n in range(1_500)],
            mode="append",
            progress=False,
        )
    assert (caught.value.details["code"], caught.value.line_number) == ("W005", 1_500)
