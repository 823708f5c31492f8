"""The cases of languages.md 22 that run, by their numbers, and the examples of chapters 8 to 11, by their sections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.query.output import QueryOutput
from support.memory_graphs import MemoryGraph

Ask = Callable[..., QueryOutput]
Row = dict[str, Any]


def titles(*names: str, column: str = "v.title") -> list[Row]:
    return [{column: name} for name in names]


def by_text(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def without_nulls(rows: list[Row]) -> list[Row]:
    """Rows as JSON shows them."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


UNORDERED: list[tuple[str, str, list[Row]]] = [
    ("case 1", "match { $a follows{1,3} $a } return { $a.title }", titles("Corvo", column="a.title")),
    (
        "case 2",
        "match { $a: Vessel { imo: 3 }  $a follows{2,2} $b } return { $b.title }",
        titles("Brig", column="b.title"),
    ),
    ("case 3, pairs", "match { $a follows $b } return { count($a) }", [{"count(a)": 4}]),
    ("case 3, edges", "match { $a $e:follows $b } return { count($a) }", [{"count(a)": 5}]),
    ("case 4", "match { $a $e:<follows> $b } return { count($e.@id) as n }", [{"n": 9}]),
    (
        "case 5",
        'match { $p: Port { code: "BGO" }  $_ callsAt $p  $_ callsAt $p } return { $p.title }',
        titles("Bergen", "Bergen", "Bergen", "Bergen", column="p.title"),
    ),
    (
        "case 6",
        'match { $v: Vessel  not { $v callsAt $p  $p.title = "Bergen" } } return { $v.title }',
        titles("Corvo"),
    ),
    (
        "case 9",
        "match { $v: Vessel  not ($v.tonnage > 600) or $v.tonnage is null } return { $v.title }",
        titles("Alma", "Brig"),
    ),
    ("case 13", 'match { $v: Vessel  not "ferry" in $v.tags } return { $v.title }', titles("Corvo")),
    (
        "case 17",
        "match { $v: Vessel } return { $v.title, $v.tonnage > 600 as big }",
        [{"v.title": "Alma", "big": False}, {"v.title": "Brig"}, {"v.title": "Corvo", "big": True}],
    ),
    (
        "case 18",
        "match { $v: Vessel { imo: 2 }  $v callsAt $p } return { $v.title, $p.title }",
        [{"v.title": "Brig", "p.title": "Bergen"}],
    ),
    ("case 22, no key", "match { $v: Vessel { imo: 99 } } return { sum($v.tonnage) as t }", [{}]),
    ("case 22, a key", "match { $v: Vessel { imo: 99 } } return { sum($v.tonnage) as t, $v.status }", []),
    ("8.1 cross product", "match { $v: Vessel  $p: Port } return { count($v) as n }", [{"n": 6}]),
    ("8.2 two declarations", "match { $v: Vessel  $v: Vessel { imo: 2 } } return { $v.title }", titles("Brig")),
    ("8.3 list property", 'match { $v: Vessel { tags: "night" } } return { $v.title }', titles("Alma")),
    (
        "8.4 wildcard",
        "match { $a: Vessel  $b: Vessel  $a * $b } return { count($a) as n }",
        [{"n": 4}],
    ),
    (
        "8.4 wildcard edges",
        "match { $a: Vessel  $b: Vessel  $a $e:* $b } return { $e.@type as t, count($e.@id) as n }",
        [{"t": "Follows", "n": 5}, {"t": "Tows", "n": 1}],
    ),
    (
        "8.4 alternation",
        "match { $a (follows | tows) $b } return { $a.imo as a, $b.imo as b }",
        [{"a": 1, "b": 2}, {"a": 2, "b": 3}, {"a": 3, "b": 1}, {"a": 3, "b": 3}],
    ),
    (
        "8.4 anonymous ends",
        "match { $v: Vessel { imo: 1 }  $v follows $_  $v callsAt $_ } return { $v.title }",
        titles("Alma"),
    ),
    (
        "8.4 multiplying",
        "match { $v: Vessel  $v $c:callsAt $p } return { $v.title }",
        titles("Alma", "Alma", "Brig", "Corvo"),
    ),
    (
        "8.4 testing",
        "match { $v: Vessel  exists { $v callsAt $p } } return { $v.title }",
        titles("Alma", "Brig", "Corvo"),
    ),
    (
        "8.5 stored direction",
        'match { $p: Port { code: "LIS" }  $v $c:callsAt $p } return { $c.@src as s, $c.@dst as d, $c.@type as t }',
        [{"s": "3", "d": '["LIS","PT"]', "t": "CallsAt"}],
    ),
    (
        "8.6 redeclared outer",
        'match { $v: Vessel  not { $v: Vessel { status: "active" } } } return { $v.title }',
        titles("Brig"),
    ),
    ("8.6 no edge", "match { $s: Sailor  not { $s servesOn $_ } } return { $s.name }", [{"s.name": "Pia"}]),
    ("9.3 null", "match { $v: Vessel  not ($v.tonnage > 600) } return { $v.title }", titles("Alma")),
    ("9.5 in", 'match { $v: Vessel  "ferry" in $v.tags } return { $v.title }', titles("Alma")),
    (
        "10.1 object",
        "match { $v: Vessel { imo: 1 } } return { $v }",
        [
            {
                "v": {
                    "@id": "1",
                    "imo": 1,
                    "tonnage": 500.0,
                    "draught": None,
                    "built": None,
                    "status": "active",
                    "tags": ["ferry", "night"],
                    "title": "Alma",
                    "note": None,
                }
            }
        ],
    ),
    (
        "10.2 over nothing",
        "match { $v: Vessel { imo: 99 } } return { count($v), max($v.built) as newest }",
        [{"count(v)": 0}],
    ),
]

ORDERED: list[tuple[str, str, list[Row]]] = [
    (
        "case 19",
        "match { $v: Vessel } return { $v.title } order { $v.tonnage desc } limit 2",
        titles("Corvo", "Alma"),
    ),
    (
        "case 20",
        "match { $s: Sailor } return { $s.rank as r, count($s) as n } order { n desc }",
        [{"r": 3, "n": 2}, {"n": 1}],
    ),
    ("case 23", "match { $v: Vessel } return { $v.title } order { $v.title } limit 0", []),
    (
        "10.2",
        """match { $p: Port  $v: Vessel  $v $c:callsAt $p }
           return { $p.title, count($c.@id) as calls, count($c.berth) as berthed, sum($v.tonnage) as tons }
           order { calls desc }""",
        [
            {"p.title": "Bergen", "calls": 3, "berthed": 3, "tons": 1000.0},
            {"p.title": "Lisboa", "calls": 1, "berthed": 0, "tons": 1200.5},
        ],
    ),
    (
        "11.2 nulls first",
        "match { $v: Vessel } return { $v.title } order { $v.tonnage }",
        titles("Brig", "Alma", "Corvo"),
    ),
    (
        "11.2 ids break ties",
        "match { $s: Sailor } return { $s.name } order { $s.rank desc }",
        [{"s.name": "Ines"}, {"s.name": "Pia"}, {"s.name": "Otto"}],
    ),
    (
        "11.2 lists",
        "match { $v: Vessel } return { $v.title } order { $v.tags }",
        titles("Brig", "Corvo", "Alma"),
    ),
]


@pytest.mark.parametrize(("text", "expected"), [pytest.param(t, e, id=i) for i, t, e in UNORDERED])
def test_unordered_answers_hold_the_rows_of_the_chapter(
    ask: Ask, harbour_graph: MemoryGraph, text: str, expected: list[Row]
) -> None:
    assert by_text(without_nulls(ask(harbour_graph, text).table.to_pylist())) == by_text(expected)


@pytest.mark.parametrize(("text", "expected"), [pytest.param(t, e, id=i) for i, t, e in ORDERED])
def test_ordered_answers_are_the_lists_of_the_chapter(
    ask: Ask, harbour_graph: MemoryGraph, text: str, expected: list[Row]
) -> None:
    assert without_nulls(ask(harbour_graph, text).table.to_pylist()) == expected


@pytest.mark.parametrize(
    ("hop", "pairs"),
    [
        ("$a follows $b", "12 23 31 33"),
        ("$a follows{1,2} $b", "12 13 21 23 31 32 33"),
        ("$a follows{2,2} $b", "13 21 32"),
        ("$a follows{3,9} $b", ""),
        ("$a <follows> $b", "12 21 23 32 31 13 33"),
        ("$a (follows | tows) $b", "12 23 31 33"),
    ],
)
def test_a_hop_joins_the_pairs_of_the_table_in_8_4(ask: Ask, harbour_graph: MemoryGraph, hop: str, pairs: str) -> None:
    rows = ask(harbour_graph, f"match {{ {hop} }} return {{ $a.@id as a, $b.@id as b }}").table.to_pylist()
    assert sorted(row["a"] + row["b"] for row in rows) == sorted(pairs.split())


@pytest.mark.parametrize(("bounds", "expected"), [("", ["3"]), ("{2,3}", [])])
def test_a_node_is_at_distance_one_from_itself_over_a_loop_and_at_no_other(
    ask: Ask, harbour_graph: MemoryGraph, bounds: str, expected: list[str]
) -> None:
    rows = ask(harbour_graph, f"match {{ $a follows{bounds} $a }} return {{ $a.@id as a }}").table.to_pylist()
    assert [row["a"] for row in rows] == expected


def test_case_10_a_null_parameter_compares_with_nothing(ask: Ask, harbour_graph: MemoryGraph) -> None:
    text = "query q($t: F64?) { match { $v: Vessel  $v.tonnage = $t } return { $v.title } }"
    assert ask(harbour_graph, text).table.num_rows == 0
    assert ask(harbour_graph, text, t=None).table.num_rows == 0
    assert ask(harbour_graph, text, t=500.0).table.to_pylist() == titles("Alma")


def test_case_14_infix_contains_before_a_property_is_a_string_test(ask: Ask, harbour_graph: MemoryGraph) -> None:
    text = "query q($q: String) { match { $v: Vessel  $q contains $v.title } return { $v.title } }"
    assert ask(harbour_graph, text, q="the Corvo sails").table.to_pylist() == titles("Corvo")


def test_case_15_a_32_bit_float_equals_a_parameter_of_its_width_and_no_decimal_of_the_text(ask: Ask) -> None:
    from support.memory_graphs import harbour

    graph = harbour()
    graph.put({"Vessel": {"9": {"imo": 9, "title": "Dory", "status": "active", "draught": 0.1}}})
    assert ask(graph, "match { $v: Vessel { draught: 0.1 } } return { $v.title }").table.num_rows == 0
    text = "query q($d: F32) { match { $v: Vessel { draught: $d } } return { $v.title } }"
    assert ask(graph, text, d=0.1).table.to_pylist() == titles("Dory")
    less = ask(graph, "match { $v: Vessel  $v.draught < 0.1000001 } return { $v.title }")
    assert less.table.to_pylist() == titles("Dory")


def test_an_answer_without_rows_has_the_types_of_one_with_rows(ask: Ask, harbour_graph: MemoryGraph) -> None:
    columns = (
        "$v, $v.tags, $v.hull, $v.built, $v.tonnage > 1 as big, $v.@id, $v.status, now() as at, 1 as one,"
        ' "x" as text, $c.arrived, $c.@type'
    )
    text = f"match {{ $v: Vessel $v $c:callsAt $p {{}} }} return {{ {columns} }} order {{ $v.imo }}"
    some = ask(harbour_graph, text.replace("{}", ""))
    none = ask(harbour_graph, text.replace("{}", "$v.imo = 99"))
    assert some.table.num_rows == 4
    assert none.table.num_rows == 0
    assert none.table.schema == some.table.schema
    assert none.types == some.types == (
        "Vessel", "[String]?", "Vector(2)?", "Date?", "Bool?", "String", "enum(active, laid-up, scrapped)", "DateTime",
        "I64", "String", "DateTime?", "String",
    )  # fmt: skip


def test_an_aggregate_over_nothing_has_the_types_of_one_over_rows(ask: Ask, harbour_graph: MemoryGraph) -> None:
    columns = (
        "count($v) as n, sum($v.imo) as s, avg($v.imo) as a, min($v.built) as d, max($v.title) as t, max($v.imo) as m"
    )
    some = ask(harbour_graph, f"match {{ $v: Vessel }} return {{ {columns} }}")
    none = ask(harbour_graph, f"match {{ $v: Vessel {{ imo: 99 }} }} return {{ {columns} }}")
    assert none.table.schema == some.table.schema
    assert none.types == some.types == ("I64", "F64?", "F64?", "Date?", "String?", "U32?")
    assert without_nulls(none.table.to_pylist()) == [{"n": 0}]
    assert some.table.to_pylist() == [{"n": 3, "s": 6.0, "a": 2.0, "d": None, "t": "Corvo", "m": 3}]


def test_now_is_the_moment_that_the_caller_gives(ask: Ask, harbour_graph: MemoryGraph) -> None:
    rows = ask(harbour_graph, "match { $v: Vessel { imo: 1 } } return { now() }").table.to_pylist()
    assert rows[0]["now()"].isoformat() == "2024-02-29T12:30:00.250000+00:00"


def test_limit_takes_an_integer_parameter(ask: Ask, harbour_graph: MemoryGraph) -> None:
    text = "query q($n: I64) { match { $v: Vessel } return { $v.title } order { $v.title desc } limit $n }"
    assert ask(harbour_graph, text, n=2).table.to_pylist() == titles("Corvo", "Brig")
    assert ask(harbour_graph, text, n=0).table.num_rows == 0


def test_a_wildcard_that_selects_nothing_holds_for_nothing(ask: Ask, harbour_graph: MemoryGraph) -> None:
    ends = "$p: Port  $s: Sailor"
    assert ask(harbour_graph, f"match {{ {ends}  $p * $s }} return {{ $p.title }}").table.num_rows == 0
    bound = ask(harbour_graph, f"match {{ {ends}  $p $e:* $s }} return {{ $e.@id, $e.@type as t, $p.title }}")
    assert bound.table.num_rows == 0
    assert bound.types == ("String", "String", "String")
    without = ask(harbour_graph, "match { $p: Port  not { $p * $s  $s: Sailor } } return { count($p) as n }")
    assert without.table.to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("block", "least", "expected"),
    [
        ("count { $v callsAt $p } >= $least", 2, ["Bergen"]),
        ("count { $v $c:callsAt $p } >= $least", 3, ["Bergen"]),
        ("count($c.berth) { $v $c:callsAt $p } = $least", 0, ["Lisboa"]),
        ("max($v.tonnage) { $v callsAt $p } > $least", 600, ["Lisboa"]),
        ("avg($v.tonnage) { $v $c:callsAt $p } = $least", 500, ["Bergen"]),
        ("sum($v.imo) { $v callsAt $p } = $least", 3, ["Bergen", "Lisboa"]),
        ("count { $v callsAt $p } >= $least", None, []),
    ],
)
def test_a_correlated_fold_keeps_what_its_value_says(
    ask: Ask,
    harbour_graph: MemoryGraph,
    block: str,
    least: int | None,
    expected: list[str],
) -> None:
    text = f"query q($least: I64?) {{ match {{ $p: Port  {block} }} return {{ $p.title }} order {{ $p.title }} }}"
    assert ask(harbour_graph, text, least=least).table.to_pylist() == titles(*expected, column="p.title")


def test_a_sum_over_nulls_alone_compares_with_nothing(ask: Ask, harbour_graph: MemoryGraph) -> None:
    for comparison in ("> 0", "= 0", "!= 0"):
        text = f"match {{ $v: Vessel  sum($c.lag) {{ $v $c:follows $w }} {comparison} }} return {{ $v.title }}"
        assert ask(harbour_graph, text).table.num_rows == 0
