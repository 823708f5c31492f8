"""A profile says what each step of a run did: rows, its own time, edge rows examined (languages.md 18)."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from omnigraph.errors import LimitExceeded
from omnigraph.lang.query.check import check
from omnigraph.lang.query.params import bind_params
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.query.explain.profile import profile
from omnigraph.query.expressions import Scope
from omnigraph.query.limits import QuerySettings
from omnigraph.query.measures import Measures
from omnigraph.query.run import run_read
from query.conftest import NOW
from support.memory_graphs import MemoryGraph

Step = tuple[str, dict[str, Any]]


def profiled(
    graph: MemoryGraph, text: str, *, seconds: Any = lambda: 0.0, traversal: Any = "auto", **params: Any
) -> list[dict[str, Any]]:
    query = check(f"query q({declared(params)}) {{ {text} }}", graph.catalog)[0]
    assert isinstance(query, ReadQuery)
    bound, settings, measures = bind_params(query, params, door="python"), QuerySettings(traversal), Measures(seconds)
    output = run_read(query, graph.snapshot(), bound, now=NOW, settings=settings, watch=measures)
    told = profile(
        query,
        graph.snapshot(),
        settings,
        Scope(bound, NOW),
        measures,
        rows=output.table.num_rows,
        state={"branch": "main"},
    )
    return list(told)


def declared(params: dict[str, Any]) -> str:
    return ", ".join(f"${name}: I64" for name in params)


def steps(rows: list[dict[str, Any]]) -> list[Step]:
    return [(row["node"], json.loads(row["detail"])) for row in rows if row["tree"] == "profile"]


def out(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(node, detail["rows_out"]) for node, detail in steps(rows)]


CALLS = 'match { $v: Vessel { status: "active" }  $v callsAt $p  $p.country = "NO" } return { $p.title, $v.title }'


def test_each_node_of_the_physical_tree_has_a_row_in_the_same_order(harbour_graph: MemoryGraph) -> None:
    rows = profiled(harbour_graph, f"{CALLS} order {{ $p.title }} limit 5")
    trees = [row["tree"] for row in rows]
    assert trees == sorted(trees, key=["logical", "physical", "plan", "profile"].index)
    shape = [(row.get("depth"), row["node"]) for row in rows if row["tree"] == "physical"]
    assert [(row["depth"], row["node"]) for row in rows if row["tree"] == "profile"] == shape
    assert [detail["id"] for _, detail in steps(rows)] == list(range(len(shape)))
    fields = {"id", "rows_out", "wall_us", "ran", "examined"}
    assert all(set(detail) - {"mode"} == fields and detail["ran"] for _, detail in steps(rows))


def test_rows_are_those_that_came_out_of_each_step(harbour_graph: MemoryGraph) -> None:
    # it begins in Norway, at Bergen: Alma and Brig call there, and Brig is laid up
    assert out(profiled(harbour_graph, f"{CALLS} order {{ $p.title }} limit 5")) == [
        ("Project", 1), ("Limit", 1), ("Sort", 1), ("Filter", 1), ("Expand", 2), ("Scan", 1),
    ]  # fmt: skip


def test_a_sort_with_a_limit_gives_out_no_more_than_the_limit(harbour_graph: MemoryGraph) -> None:
    rows = profiled(harbour_graph, "match { $a follows $b } return { $a.title } order { $a.title } limit 2")
    assert out(rows) == [("Project", 2), ("Limit", 2), ("Sort", 2), ("Expand", 4), ("Scan", 3)]


def test_groups_are_the_rows_of_an_aggregate(harbour_graph: MemoryGraph) -> None:
    rows = profiled(harbour_graph, "match { $v callsAt $p } return { $p.title, count($v) as n } order { n } limit 1")
    assert out(rows)[:4] == [("Project", 1), ("Limit", 1), ("Sort", 1), ("Aggregate", 2)]


def test_a_cross_product_tells_what_is_scanned_apart_from_what_is_made_of_it(harbour_graph: MemoryGraph) -> None:
    rows = profiled(harbour_graph, "match { $v: Vessel  $s: Sailor  $v.imo = $s.rank } return { $v.title }")
    assert out(rows) == [("Project", 2), ("Filter", 2), ("Join", 9), ("Scan", 3), ("Scan", 3)]


def test_a_block_is_asked_once_for_each_tuple_that_it_uses(harbour_graph: MemoryGraph) -> None:
    text = "match { $v: Vessel  count { $v callsAt $p } >= 1  not { $v tows $w } } return { $v.title }"
    found = out(profiled(harbour_graph, text))
    assert ("Fold", 3) in found
    assert ("Join", 2) in found
    assert found.count(("Argument", 3)) == 2


def test_what_no_assignment_came_to_did_not_run(harbour_graph: MemoryGraph) -> None:
    text = 'match { $v: Vessel { title: "none" }  exists { $v tows $w } } return { $v.title }'
    ran = [(node, detail["ran"]) for node, detail in steps(profiled(harbour_graph, text))]
    assert ran == [("Project", True), ("Join", True), ("Scan", True), ("Expand", False), ("Argument", False)]


@pytest.mark.parametrize(
    ("text", "traversal", "mode"),
    [
        ("match { $a follows $b } return { count($a) as n }", "auto", "indexed"),
        ("match { $a $e:follows $b } return { count($a) as n }", "auto", "counted"),
        ("match { $a follows $b } return { $b.title }", "matrix", "matrix"),
        ("match { $a follows{1,2} $b } return { $b.title }", "indexed", "indexed"),
        ("match { $a follows{1,2} $b } return { $b.title }", "matrix", "matrix"),
    ],
)
def test_a_hop_says_how_it_was_walked(harbour_graph: MemoryGraph, text: str, traversal: Any, mode: str) -> None:
    (found,) = [
        detail for node, detail in steps(profiled(harbour_graph, text, traversal=traversal)) if node == "Expand"
    ]
    assert found["mode"] == mode
    assert found["examined"] >= 5


NESTED = """match { $a follows{1,2} $b  exists { $b callsAt $p  not { $p: Port { code: "X" } } } }
  return { $a.title, count($b) as n } order { n }"""


def test_time_is_counted_once_and_where_it_was_spent(harbour_graph: MemoryGraph) -> None:
    ticks = itertools.count()
    query = check(f"query q() {{ {NESTED} }}", harbour_graph.catalog)[0]
    assert isinstance(query, ReadQuery)
    measures = Measures(lambda: float(next(ticks)))
    run_read(query, harbour_graph.snapshot(), {}, now=NOW, watch=measures)
    told = profile(
        query, harbour_graph.snapshot(), QuerySettings(), Scope({}, NOW), measures, rows=0, state={"branch": "main"}
    )
    shown = sum(detail["wall_us"] for _, detail in steps(list(told)))
    between = len([part for part in measures.of if part.of == 0 or part.part == "step"])  # where nothing runs
    assert shown == sum(each.seconds for each in measures.of.values()) * 1_000_000
    assert next(ticks) - 1 - between <= shown // 1_000_000 < next(ticks)


def test_the_edge_rows_of_all_steps_are_the_work_that_a_limit_is_about(harbour_graph: MemoryGraph) -> None:
    query = check(f"query q() {{ {NESTED} }}", harbour_graph.catalog)[0]
    assert isinstance(query, ReadQuery)
    work = sum(detail["examined"] for _, detail in steps(profiled(harbour_graph, NESTED)))
    assert work > 0
    run_read(query, harbour_graph.snapshot(), {}, now=NOW, settings=QuerySettings(traversal_work_limit=work))
    with pytest.raises(LimitExceeded):
        run_read(query, harbour_graph.snapshot(), {}, now=NOW, settings=QuerySettings(traversal_work_limit=work - 1))


def test_a_profile_changes_no_answer_and_no_plan(harbour_graph: MemoryGraph) -> None:
    query = check(f"query q() {{ {CALLS} }}", harbour_graph.catalog)[0]
    assert isinstance(query, ReadQuery)
    plain = run_read(query, harbour_graph.snapshot(), {}, now=NOW)
    watched = run_read(query, harbour_graph.snapshot(), {}, now=NOW, watch=Measures(lambda: 0.0))
    assert plain.table.equals(watched.table)
