"""Trials that other engines failed (trials.md, QR), as far as they need no search and no upkeep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.errors import InvalidQuery
from omnigraph.query.limits import QuerySettings
from omnigraph.query.output import QueryOutput
from support.memory_graphs import MemoryGraph, catalog_of

Ask = Callable[..., QueryOutput]


def column(output: QueryOutput, name: str) -> list[Any]:
    return output.table.column(name).to_pylist()


# --- QR-01


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('$h.flagState = "NO"', ["a", "b"]),
        ("$h.grossTons >= 2 and $h.grossTons < 5", ["c", "d", "e"]),
        ('starts_with($h.hullNo, "f")', ["f"]),
        ("$h.order = 1", ["b"]),
        ('$h.select = "s2"', ["c"]),
        ("$h.limit = true", ["a", "c", "e"]),
        ("$h.in = 3", ["d"]),
    ],
)
def test_qr_01_mixed_case_and_keyword_like_names_answer_like_any_other(
    ask: Ask, condition: str, expected: list[str]
) -> None:
    graph = MemoryGraph(
        catalog_of(
            "node Hull { hullNo: String @key  grossTons: I64? @index  flagState: String?"
            "  order: I64?  select: String?  limit: Bool?  in: I64? }"
        )
    )
    hulls = {
        key: {
            "hullNo": key,
            "grossTons": i,
            "flagState": "NO" if i < 2 else None,
            "order": i,
            "select": f"s{i}",
            "limit": i % 2 == 0,
            "in": i,
        }
        for i, key in enumerate("abcdef")
    }
    graph.put({"Hull": hulls})
    found = ask(graph, f"match {{ $h: Hull  {condition} }} return {{ $h.hullNo as h }} order {{ h }}")
    assert column(found, "h") == expected
    most = ask(graph, "match { $h: Hull } return { $h.flagState as f, max($h.grossTons) as m } order { m }")
    assert most.table.to_pylist() == [{"f": "NO", "m": 1}, {"f": None, "m": 5}]


# --- QR-04


@pytest.fixture(params=[0, 5_000], ids=["alone", "among many"])
def ports(request: pytest.FixtureRequest) -> MemoryGraph:
    graph = MemoryGraph(catalog_of("node Port { code: String @key }  edge Ferry: Port -> Port"))
    others = {f"x{i:05d}": {"code": f"x{i:05d}"} for i in range(request.param)}
    ferries = {f"o{i}": (f"x{i:05d}", f"x{(i * 7 + 1) % request.param:05d}", {}) for i in range(request.param)}
    nodes = {code: {"code": code} for code in ("U", "S", "T")}
    graph.put(
        {"Port": {**nodes, **others}},
        {"Ferry": {"f1": ("U", "S", {}), "f2": ("S", "S", {}), "f3": ("S", "T", {}), **ferries}},
    )
    return graph


@pytest.mark.parametrize(
    ("hop", "pairs"),
    [
        ("$a ferry $b", ["SS", "ST", "US"]),
        ("$a <ferry> $b", ["SS", "ST", "SU", "TS", "US"]),
        ("$a $e:ferry $b", ["SS", "ST", "US"]),
        ("$a ferry{2,2} $b", ["UT"]),
        ("$a ferry{1,3} $b", ["SS", "ST", "US", "UT"]),
    ],
)
def test_qr_04_a_self_loop_is_one_hop_and_no_second_one(
    ask: Ask, ports: MemoryGraph, hop: str, pairs: list[str]
) -> None:
    here = '$a.code in ["U", "S", "T"]'
    found = ask(ports, f"match {{ {hop}  {here} }} return {{ $a.code as a, $b.code as b }}")
    assert sorted(row["a"] + row["b"] for row in found.table.to_pylist()) == pairs
    whole = ask(ports, f"match {{ {hop} }} return {{ $a.code as a, $b.code as b }}")
    assert sorted(r["a"] + r["b"] for r in whole.table.to_pylist() if r["a"] in "UST") == pairs


def test_qr_04_a_node_that_is_its_own_neighbour(ask: Ask, ports: MemoryGraph) -> None:
    found = ask(ports, "match { $p ferry $p } return { $p.code as p }")
    assert [code for code in column(found, "p") if code in "UST"] == ["S"]


# --- QR-06


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ('starts_with($p.name, "Al")', "QRST"),
        ('contains($p.name, "i")', "PRST"),
        ("$p ferry{3,3} $x", "QRST"),
        ("$p ferry{2,3} $x", "RST"),
        ("$p $f:ferry $x  $f.fare > 2", "PRST"),
    ],
)
def test_qr_06_negation_counts_hops_and_keeps_nulls(ask: Ask, block: str, expected: str) -> None:
    graph = MemoryGraph(
        catalog_of("node Port { code: String @key name: String? } edge Ferry: Port -> Port { fare: I32? }")
    )
    names = {"P": "Alder", "Q": "Birch", "R": None, "S": "", "T": "alder"}
    graph.put(
        {"Port": {code: {"code": code, "name": name} for code, name in names.items()}},
        {"Ferry": {"1": ("P", "Q", {"fare": 1}), "2": ("Q", "R", {"fare": 3}), "3": ("R", "S", {})}},
    )
    block = block if "ferry" in block else f"$p: Port  {block}"
    found = ask(graph, f"match {{ $p: Port  not {{ {block} }} }} return {{ $p.code as c }} order {{ c }}")
    assert "".join(column(found, "c")) == expected


# --- QR-07


@pytest.fixture
def depths() -> MemoryGraph:
    graph = MemoryGraph(catalog_of("node Port { code: String @key  depth: I64 }"))
    graph.put({"Port": {code: {"code": code, "depth": depth} for code, depth in (("c", 5), ("a", 5), ("b", 9))}})
    return graph


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("match { $p: Port } return { $p.code as v, $p.depth as v }", "T25"),
        ("match { $p: Port } return { $p.depth, $p.depth }", "T25"),
        ("match { $p: Port } return { $p.depth, count($p) as n } order { max($p.code) }", "T42"),
    ],
)
def test_qr_07_clashing_names_and_unbound_keys_are_refused(ask: Ask, depths: MemoryGraph, text: str, code: str) -> None:
    with pytest.raises(InvalidQuery) as refused:
        ask(depths, text)
    assert refused.value.diagnostic.code == code


def test_qr_07_order_by_a_returned_count_and_by_an_alias(ask: Ask, depths: MemoryGraph) -> None:
    counted = ask(depths, "match { $p: Port } return { $p.depth as d, count($p) as n } order { count($p) desc }")
    assert counted.table.to_pylist() == [{"d": 5, "n": 2}, {"d": 9, "n": 1}]
    alias = ask(depths, "match { $p: Port } return { $p.depth as code } order { code desc, $p.code } limit 2")
    assert column(alias, "code") == [9, 5]


def test_qr_07_ties_are_broken_by_ids_every_time(ask: Ask, depths: MemoryGraph) -> None:
    for _ in range(20):
        assert column(ask(depths, "match { $p: Port } return { $p.code as c } order { $p.depth } limit 1"), "c") == [
            "a"
        ]


# --- QR-11


def test_qr_11_a_group_whose_aggregate_is_null_stays_and_sorts_as_null(ask: Ask) -> None:
    graph = MemoryGraph(catalog_of("node Sounding { g: String  depthCm: I64?  day: Date?  ok: Bool? }"))
    rows = [("g1", None), ("g1", None), ("g2", 3), ("g2", None), ("g3", 7)]
    graph.put({"Sounding": {str(i): {"g": g, "depthCm": d, "ok": d == 7} for i, (g, d) in enumerate(rows)}})
    text = "match { $s: Sounding } return { $s.g as g, max($s.depthCm) as m, count($s.depthCm) as n, count($s) as all }"
    up = ask(graph, f"{text} order {{ m }} limit 2").table.to_pylist()
    down = ask(graph, f"{text} order {{ m desc }} limit 2").table.to_pylist()
    assert up == [{"g": "g1", "m": None, "n": 0, "all": 2}, {"g": "g2", "m": 3, "n": 1, "all": 2}]
    assert [row["g"] for row in down] == ["g3", "g2"]
    extremes = "min($s.day) as d, max($s.ok) as t, min($s.ok) as f, avg($s.depthCm) as a"
    some = ask(graph, f"match {{ $s: Sounding }} return {{ {extremes} }}")
    none = ask(graph, f'match {{ $s: Sounding  $s.g = "?" }} return {{ {extremes} }}')
    assert some.table.to_pylist() == [{"d": None, "t": True, "f": False, "a": 5.0}]
    assert none.table.to_pylist() == [{"d": None, "t": None, "f": None, "a": None}]
    assert none.table.schema == some.table.schema


# --- QR-12

ODD = (
    "O'Neil", 'say "hi"', "back\\slash", "100%", "a_b", "aXb", "x' OR 'a'='a", "`tick`", "{b}", "$p", "two\nlines",
    "\0", "-- x", "/* */", "é", "x" * 65_536,
)  # fmt: skip


def test_qr_12_no_character_of_a_value_means_anything(ask: Ask) -> None:
    graph = MemoryGraph(catalog_of("node Port { code: String @key  name: String  note: String? }"))
    graph.put({"Port": {code: {"code": code, "name": code} for code in ODD}})
    for code in ODD:
        quoted = code.replace("\\", "\\\\").replace('"', '\\"')
        for condition in ("$p.code = $c", "$p.name = $c", "$p.name in [$c]", "$p.@id = $c"):
            text = f"query q($c: String) {{ match {{ $p: Port  {condition} }} return {{ $p.code as c }} }}"
            assert column(ask(graph, text, QuerySettings(), c=code), "c") == [code]
        literal = f'match {{ $p: Port {{ name: "{quoted}" }} }} return {{ $p.code as c }}'
        assert column(ask(graph, literal, QuerySettings()), "c") == [code]
    part = 'match { $p: Port  contains($p.name, "%") } return { $p.code as c }'
    assert column(ask(graph, part), "c") == ["100%"]
    start = 'match { $p: Port  starts_with($p.name, "a_") } return { $p.code as c }'
    assert column(ask(graph, start), "c") == ["a_b"]
