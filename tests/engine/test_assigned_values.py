"""What becomes of parameters that turn out null or out of range where they are written (languages.md 9.6, 13.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import ConstraintViolation

SCHEMA = """
node Port { country: String  number: U32  title: String?  @key(country, number) }
node Buoy {
  code: String @key
  w: Vector(2)?  i: [I32]?  u: [U64]?  f: [F32]?  d: [F64]?  b: [Bool]?  t: [DateTime]?  e: enum(red, green)?
}
node Note { text: String  at: Vector(2) }
edge Marks: Buoy -> Port
edge Tows: Buoy -> Buoy { number: I64  @key(@src, @dst, number) }
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.mutate('query m() { insert Port { country: "NO", number: 1 } insert Buoy { code: "x" } }')
    return graph


def run(graph: Graph, body: str, declared: str, **params: Any) -> Any:
    return graph.mutate(f"query m({declared}) {{ {body} }}", params)


def refused(graph: Graph, body: str, declared: str, **params: Any) -> ConstraintViolation:
    head = graph.head
    with pytest.raises(ConstraintViolation) as caught:
        run(graph, body, declared, **params)
    assert graph.head == head
    return caught.value


def stored(graph: Graph, name: str) -> Any:
    return graph.query(f'query q() {{ match {{ $b: Buoy {{ code: "x" }} }} return {{ $b.{name} as v }} }}').scalar()


@pytest.mark.parametrize(
    ("body", "declared", "code", "property_name"),
    [
        ("insert Port { country: $s, number: 1 }", "$s: String?", "W008", "country"),
        ('insert Port { country: "NO", number: $n }', "$n: U32?", "W008", "number"),
        ("insert Buoy { code: $s }", "$s: String?", "W008", "code"),
        ("insert Buoy { code: $s } insert Buoy { code: $s }", "$s: String?", "W008", "code"),
        ('insert Buoy { code: $s } update Buoy set { e: "red" } where true', "$s: String?", "W008", "code"),
        ('insert Buoy { code: $s } insert Tows { from: $s, to: "x", number: 1 }', "$s: String?", "W008", "code"),
        (r'insert Marks { from: $s, to: "[\"NO\",\"1\"]" }', "$s: String?", "W006", "@src"),
        ('insert Marks { from: "x", to: $s }', "$s: String?", "W006", "@dst"),
        ("insert Marks { from: $s, to: $s }", "$s: String?", "W006", "@src"),
        ('insert Tows { from: $s, to: "x", number: 1 }', "$s: String?", "W006", "@src"),
        ('insert Tows { from: "x", to: "x", number: $n }', "$n: I64?", "W008", "number"),
    ],
)
@pytest.mark.parametrize("rows", [1, 600])
def test_a_null_key_or_end_is_refused_as_such(
    graph: Graph, body: str, declared: str, code: str, property_name: str, rows: int
) -> None:
    if rows > 1:  # beyond a handful, ids are looked up another way
        keys = [f"b{n:04}" for n in range(rows)]
        buoys = [{"type": "Buoy", "data": {"code": key}} for key in keys]
        tows = [{"edge": "Tows", "from": key, "to": "x", "data": {"number": 1}} for key in keys]
        graph.load([*buoys, *tows], mode="append", progress=False)
    more = ' insert Buoy { code: "y" }' * 5
    for text in (body, body + more):
        error = refused(graph, text, declared)
        assert (error.details["code"], error.details["property"]) == (code, property_name)


def test_a_null_end_breaks_no_cardinality(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node N { k: String @key } edge E: N -> N @card(0..1)")
    graph.mutate('query m() { insert N { k: "a" } insert E { from: "a", to: "a" } }')
    twice = 'insert E { from: $s, to: "a" } insert E { from: $s, to: "a" }'
    assert refused(graph, twice, "$s: String?").details["code"] == "W006"


@pytest.mark.parametrize("given", [{}, {"f": None}])
def test_a_vector_with_an_element_that_is_null_is_refused(graph: Graph, given: dict[str, Any]) -> None:
    for body in ('update Buoy set { w: [$f, 1.0] } where code = "x"', 'insert Note { text: "n", at: [1, $f] }'):
        assert refused(graph, body, "$f: F64?", **given).details["code"] == "W009"


def test_such_an_element_is_judged_on_what_the_mutation_leaves(graph: Graph) -> None:
    null = 'update Buoy set { w: [$f, 1.0] } where code = "x"'
    error = refused(graph, null, "$f: F64?")
    assert (error.details["code"], error.details["entity_id"]) == ("W009", "x")
    assert error.message == 'Buoy.w of "x": an element is null'
    error = refused(graph, 'insert Buoy { code: "a", e: $e } ' + null, "$f: F64?, $e: String", e="blue")
    assert error.details["code"] == "W002", "what can't be stored at all is refused where it is written"
    run(graph, null + ' update Buoy set { w: [2.0, 1.0] } where code = "x"', "$f: F64?")
    assert stored(graph, "w") == [2.0, 1.0]
    assert run(graph, 'update Buoy set { w: [$f, 1.0] } where code = "nowhere"', "$f: F64?").commit is None


@pytest.mark.parametrize("of", [pa.list_(pa.float64()), pa.list_(pa.float32(), 2), pa.large_list(pa.int64())])
def test_a_frame_with_a_null_in_a_vector_is_refused_at_its_row(graph: Graph, of: pa.DataType) -> None:
    rows: list[Any] = [[0, 1], None, [1, None], [None, None]]
    frame = pa.table({"code": ["a", "b", "c", "d"], "w": pa.array(rows, of)})
    with pytest.raises(ConstraintViolation) as caught:
        graph.load(frame, mode="append", type="Buoy")
    assert (caught.value.details["code"], caught.value.line_number) == ("W009", 3)
    graph.load(frame.slice(0, 2), mode="append", type="Buoy")


@pytest.mark.parametrize(
    ("name", "of", "value", "shown"),
    [
        ("i", "I64", 2**40, "1099511627776 is out of the range of I32"),
        ("i", "U64", 2**64 - 1, "18446744073709551615 is out of the range of I32"),
        ("u", "I32", -1, "-1 is out of the range of U64"),
        ("f", "F64", 1e300, "1.0e300 is out of the range of F32"),
        ("f", "F64", -3.5e38, "-3.5e38 is out of the range of F32"),
        ("w", "F64", 1e39, "1.0e39 is out of the range of F32"),
        ("e", "String", "blue", '"blue" is none of green, red'),
    ],
)
def test_a_parameter_that_its_place_cant_hold_is_refused(
    graph: Graph, name: str, of: str, value: Any, shown: str
) -> None:
    place = "$p" if name == "e" else "[$p, 3]"
    error = refused(graph, f"update Buoy set {{ {name}: {place} }} where true", f"$p: {of}", p=value)
    assert error.details["code"] == ("W002" if name == "e" else "W009")
    assert error.message == f"Buoy.{name}: {shown}"


@pytest.mark.parametrize(
    ("name", "declared", "literal", "value", "expected"),
    [
        ("i", "$p: I64", "[$p, 3]", -(2**31), [-(2**31), 3]),
        ("u", "$p: I64", "[$p, 18446744073709551615]", 7, [7, 2**64 - 1]),
        ("d", "$p: I64", "[$p, 0.5]", 2**53 + 1, [float(2**53), 0.5]),
        ("d", "$p: U64", "[$p, -1]", 2**64 - 1, [float(2**64), -1.0]),
        ("f", "$p: I64", "[$p, 0.5]", 2**53 + 1, [float(2**53), 0.5]),
        ("w", "$p: I64", "[$p, 0.5]", 2**53 + 1, [float(2**53), 0.5]),
        ("b", "$p: I64", "[$p > 3, true]", 3, [False, True]),
        ("i", "$p: I64?", "[$p, 3]", None, [None, 3]),
    ],
)
def test_a_list_takes_the_nearest_of_what_it_can_hold(
    graph: Graph, name: str, declared: str, literal: str, value: Any, expected: Any
) -> None:
    run(graph, f"update Buoy set {{ {name}: {literal} }} where true", declared, p=value)
    assert stored(graph, name) == expected


@pytest.mark.parametrize(
    ("literal", "declared", "value", "expected"),
    [
        ("[$p, 1.5]", "$p: I64", 2**53 + 1, [float(2**53), 1.5]),
        ("[$p, -5]", "$p: U64", 2**64 - 1, [float(2**64), -5.0]),
        ("[9007199254740993, 1.5, $p]", "$p: F32", 0.5, [float(2**53), 1.5, 0.5]),
        ("[9007199254740993, 1.5]", "$p: F32", 0.5, [float(2**53), 1.5]),
        ("[-1, 18446744073709551615]", "$p: F32", 0.5, [-1.0, float(2**64)]),
    ],
)
def test_a_returned_list_of_integers_and_decimals_is_one_of_floats(
    graph: Graph, literal: str, declared: str, value: Any, expected: Any
) -> None:
    text = f'query q({declared}) {{ match {{ $b: Buoy {{ code: "x" }} }} return {{ {literal} as v, $p as p }} }}'
    assert [row["v"] for row in graph.query(text, {"p": value})] == [expected]


@pytest.mark.parametrize(
    ("of", "value", "shown"),
    [
        ("String", 'say "hi"\n', r'"say \"hi\"\n"'),
        ("Bool", True, "true"),
        ("U64", 2**64 - 1, "18446744073709551615"),
        ("F32", 0.1, "0.1"),
        ("F64", 1e22, "1.0e22"),
        ("Date", "2020-01-31", '"2020-01-31"'),
        ("DateTime", "2020-01-31T05:06:07.080Z", '"2020-01-31T05:06:07.080"'),
        ("enum(laid-up, true)", "laid-up", '"laid-up"'),
    ],
)
def test_a_message_shows_a_value_as_records_spell_it(tmp_path: Path, of: str, value: Any, shown: str) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=f"node N {{ k: String @key  u: {of} @unique }}")
    record = {"type": "N", "data": {"k": "a", "u": value}}
    graph.load([record], mode="append")
    with pytest.raises(ConstraintViolation) as caught:
        graph.load([{**record, "data": {"k": "b", "u": value}}], mode="append")
    assert caught.value.message == f'line 1: N.u: @unique(u): {shown} belongs to node "a"'


def test_a_message_shows_the_bounds_of_a_range_as_the_schema_spells_them(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node N { k: String @key  x: F32  @range(x, 0.1..0.7) }")
    with pytest.raises(ConstraintViolation) as caught:
        graph.load([{"type": "N", "data": {"k": "b", "x": 0.8}}], mode="append")
    assert caught.value.message == "line 1: N.x: 0.8 lies outside @range(x, 0.1..0.7)"


def test_what_an_insert_cant_hold_is_told_with_the_id_of_the_node(graph: Graph) -> None:
    error = refused(graph, 'insert Buoy { e: $e, code: "a" }', "$e: String", e="blue")
    assert (error.details["code"], error.details["entity_id"]) == ("W002", "a")
    assert error.message == 'Buoy.e of "a": "blue" is none of green, red'
    assert refused(graph, 'insert Buoy { code: "b", i: [$i] }', "$i: I64", i=2**40).details["entity_id"] == "b"
    assert refused(graph, "update Buoy set { e: $e } where true", "$e: String", e="blue").details["entity_id"] is None
