"""`explain` shows what would be run, without running it (languages.md 18)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.lang.query.check import check
from omnigraph.lang.query.params import bind_given
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.query.explain.answer import explain
from omnigraph.query.explain.logical import logical_tree
from omnigraph.query.explain.nodes import tree_rows
from omnigraph.query.expressions import Scope
from omnigraph.query.limits import QuerySettings
from omnigraph.query.plan import plan_pattern
from omnigraph.query.run import SnapshotStatistics
from omnigraph.query.search import vectors
from query.conftest import NOW
from support.memory_graphs import MemoryGraph, catalog_of
from support.stored_graphs import StoredGraph

EXAMPLE = """query q() { match { $v: Vessel { status: "active" }  $v callsAt $p }
  return { $p.title } order { $p.title } limit 5 }"""


def explained(graph: MemoryGraph, text: str, *, settings: QuerySettings | None = None, **params: Any) -> pa.Table:
    query = read_of(graph, text)
    scope = Scope(bind_given(query, params, door="python"), NOW)
    state = {"branch": "main", "graph_commit_id": "main@1-0"}
    return explain(query, graph.snapshot(), settings or QuerySettings(), scope, state=state)


def read_of(graph: MemoryGraph, text: str) -> ReadQuery:
    query = check(f"explain {text}", graph.catalog)[0]
    assert isinstance(query, ReadQuery)
    return query


def nodes(table: pa.Table, tree: str) -> list[tuple[int, str, dict[str, Any]]]:
    return [(row["depth"], row["node"], json.loads(row["detail"])) for row in table.to_pylist() if row["tree"] == tree]


def kinds(table: pa.Table, tree: str) -> list[tuple[int, str]]:
    return [(depth, kind) for depth, kind, _ in nodes(table, tree)]


def plan_rows(table: pa.Table) -> dict[str, str]:
    rows = [row for row in table.to_pylist() if row["tree"] == "plan"]
    assert all(row["depth"] is None for row in rows)
    return {row["node"]: row["detail"] for row in rows}


def test_the_example_of_the_chapter(harbour_graph: MemoryGraph) -> None:
    table = explained(harbour_graph, EXAMPLE)
    assert table.column_names == ["tree", "depth", "node", "detail"]
    assert kinds(table, "physical") == [(0, "Project"), (1, "Limit"), (2, "Sort"), (3, "Expand"), (4, "Scan")]
    project, limit, sort, expand, scan = (detail for _, _, detail in nodes(table, "physical"))
    assert project == {"columns": ["p.title"]}
    assert limit == {"n": 5}
    assert sort == {"keys": ["$p.title asc"], "tiebreak": []}
    edges = {"kind": "named", "members": [{"edge_type": "CallsAt", "direction": "out"}]}
    assert (expand["src"], expand["dst"], expand["edges"], expand["hops"]) == ("$v", "$p", edges, [1, 1])
    assert expand["mode"] == "indexed"
    assert (scan["binding"], scan["type"], scan["access"]) == ("$v", "Vessel", "full")
    assert scan["filter"] == '$v.status = "active"'
    assert list(plan_rows(table)) == [
        "operation", "branch", "graph_commit_id", "explain_version", "logical_hash", "passes", "settings", "parameters",
        "statistics",
    ]  # fmt: skip
    assert json.loads(plan_rows(table)["statistics"]) == {"edge:CallsAt": 4, "node:Port": 2, "node:Vessel": 3}


def test_the_meaning_of_a_search_names_its_conjuncts_its_arms_and_its_rank(harbour_graph: MemoryGraph) -> None:
    rank = 'rrf(nearest($v.hull, $h), bm25($v.title, "alma"), $k)'
    text = f"""query q($h: Vector(2), $k: I64, $n: I64) {{
      match {{ $v: Vessel  search($v.title, "alma") = true }} return {{ $v.title }} order {{ {rank}, $v.imo }} limit $n }}"""
    tree = [
        (row.node, json.loads(row.detail)) for row in tree_rows("logical", logical_tree(read_of(harbour_graph, text)))
    ]
    assert tree == [
        ("Project", {"columns": ["v.title"]}),
        ("Limit", {"n": "$n"}),
        ("Sort", {"keys": [f"{rank} desc", "$v.imo asc"], "tiebreak": ["$v.@id asc"]}),
        ("RankFuse", {"arms": ["nearest($v.hull, $h)", 'bm25($v.title, "alma")'], "k": "$k", "limit": "$n"}),
        ("Filter", {"conjuncts": ['search($v.title, "alma")']}),
        ("Scan", {"binding": "$v", "type": "Vessel"}),
    ]
    standard = text.replace(", $k)", ")").replace("limit $n", "limit 5")
    (fused,) = (
        row for row in tree_rows("logical", logical_tree(read_of(harbour_graph, standard))) if row.node == "RankFuse"
    )
    assert json.loads(fused.detail) | {"arms": []} == {"arms": [], "k": 60, "limit": 5}


def test_trees_come_in_order_and_in_pre_order(harbour_graph: MemoryGraph) -> None:
    text = (
        "query q() { match { $v: Vessel  $p: Port  not { $v callsAt $p }  count { $w follows $v } > 1 } return { $v } }"
    )
    table = explained(harbour_graph, text)
    trees = [row["tree"] for row in table.to_pylist()]
    assert trees == sorted(trees, key=["logical", "physical", "plan"].index)
    for tree in ("logical", "physical"):
        depths = [depth for depth, _ in kinds(table, tree)]
        assert depths[0] == 0
        assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(depths))
        assert {"Fold", "Join", "Scan", "Expand", "Argument"} <= {kind for _, kind in kinds(table, tree)}


def test_nothing_is_scanned(harbour_graph: MemoryGraph) -> None:
    snapshot = harbour_graph.snapshot()
    explained(harbour_graph, EXAMPLE)
    tables = [snapshot.table(entity.id) for entity in snapshot.catalog.nodes.values()]
    assert all(not table.scans for table in tables if table is not None)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('query q(){match{$v:Vessel{status:"active"} $v callsAt $p}return{$p.title}order{$p.title}limit 5}', True),
        (EXAMPLE.replace("order { $p.title }", "order { ($p.title) asc }"), True),
        (EXAMPLE.replace("limit 5", "limit 6"), False),
        (EXAMPLE.replace('"active"', '"laid-up"'), False),
        (EXAMPLE.replace("$v callsAt $p", "$v $e:callsAt $p"), False),
    ],
)
def test_the_hash_is_of_the_meaning_as_it_is_written(harbour_graph: MemoryGraph, text: str, same: bool) -> None:
    known = plan_rows(explained(harbour_graph, EXAMPLE))["logical_hash"]
    assert (plan_rows(explained(harbour_graph, text))["logical_hash"] == known) is same


def test_the_physical_tree_has_the_steps_that_are_run(harbour_graph: MemoryGraph) -> None:
    text = """query q() { match { $p: Port { code: "BGO", country: "NO" }  $v callsAt $p  $w follows{1,2} $v
      $v.imo != $w.imo } return { $w.title } }"""
    query, snapshot = read_of(harbour_graph, text), harbour_graph.snapshot()
    steps = plan_pattern(query.pattern, SnapshotStatistics(snapshot, Scope({}, NOW))).steps
    wanted = {"Start": "Scan", "Expand": "Expand", "Close": "Expand", "Keep": "Filter", "Correlate": "Join"}
    found = [kind for _, kind in kinds(explained(harbour_graph, text), "physical") if kind != "Project"]
    assert found == [wanted[type(step).__name__] for step in reversed(steps)]
    scan = nodes(explained(harbour_graph, text), "physical")[-1][2]
    assert (scan["binding"], scan["access"]) == ("$p", "id_lookup")


def test_parameters_may_be_given_and_are_not_needed(harbour_graph: MemoryGraph) -> None:
    text = "query q($ids: [I64], $n: I64) { match { $v: Vessel  $v.imo in $ids } return { $v.title } limit $n }"
    table = explained(harbour_graph, text)
    assert json.loads(plan_rows(table)["parameters"]) == ["ids", "n"]
    assert nodes(table, "physical")[1][2] == {"n": "$n"}
    few = nodes(explained(harbour_graph, text, ids=[1]), "physical")[-1][2]["estimate"]
    assert few <= nodes(table, "physical")[-1][2]["estimate"]


@pytest.mark.parametrize(
    ("items", "order", "ties"),
    [
        ("$v.title", "$v.title", []),
        ("$v.title, $p.title", "$v.title", ["$p.@id asc", "$v.@id asc"]),
        ("$v.tonnage", "$v.tonnage", ["$p.@id asc", "$v.@id asc"]),  # -0.0 and 0.0 are equal and look different
        ("$p.title, count($v) as n", "n desc", ["$p.title asc"]),
    ],
)
def test_ties_are_broken_where_they_show(harbour_graph: MemoryGraph, items: str, order: str, ties: list[str]) -> None:
    text = f"query q() {{ match {{ $v: Vessel  $v callsAt $p }} return {{ {items} }} order {{ {order} }} }}"
    sort = next(detail for _, kind, detail in nodes(explained(harbour_graph, text), "physical") if kind == "Sort")
    assert sort["tiebreak"] == ties


def test_the_mode_is_what_the_setting_says(harbour_graph: MemoryGraph) -> None:
    text = "query q() { match { $a: Vessel  $a follows{1,3} $b } return { $b.title } }"
    for traversal in ("indexed", "matrix"):
        table = explained(harbour_graph, text, settings=QuerySettings(traversal=traversal))
        expand = next(detail for _, kind, detail in nodes(table, "physical") if kind == "Expand")
        assert expand["mode"] == traversal
        assert json.loads(plan_rows(table)["settings"]) == {"traversal": traversal}


def test_a_hop_to_tested_nodes_may_be_walked_from_them(harbour_graph: MemoryGraph) -> None:
    def alternatives(hop: str, **settings: Any) -> list[str]:
        text = f'query q() {{ match {{ $v: Vessel {{ imo: 1 }}  {hop}  $w.title = "Brig" }} return {{ $w.title }} }}'
        found = explained(harbour_graph, text, settings=QuerySettings(**settings))
        return next(detail for _, kind, detail in nodes(found, "physical") if kind == "Expand")["alternatives"]

    assert alternatives("$v follows $w") == ["matrix", "reversed"]
    assert alternatives("$v $e:follows $w") == ["reversed"]
    assert alternatives("$v follows{1,2} $w") == ["matrix"]
    assert alternatives("$v follows $w", traversal="indexed") == ["matrix"]


SHELF = """
node Book { title: String @key  about: String @index  place: Vector(2)? @index }
"""


@pytest.fixture
def shelf(tmp_path: Path) -> StoredGraph:
    graph = StoredGraph(catalog_of(SHELF), tmp_path)
    books = {f"b{n}": {"title": f"b{n}", "about": "ship", "place": [n, 0.0]} for n in range(60)}
    graph.put({"Book": books})
    return graph


def scan(graph: MemoryGraph, text: str, settings: QuerySettings | None = None, **params: Any) -> dict[str, Any]:
    [found] = [
        detail
        for _, kind, detail in nodes(explained(graph, text, settings=settings, **params), "physical")
        if kind == "Scan"
    ]
    return found


def test_a_text_is_found_by_the_index_that_is_really_asked(shelf: StoredGraph) -> None:
    text = 'query q() { match { $b: Book  search($b.about, "ship") } return { $b.title } }'
    fuzzy = text.replace("search", "fuzzy")
    shelf.index()
    few = QuerySettings(fts_scratch_rows=59)
    assert scan(shelf, text)["access"] == scan(shelf, fuzzy)["access"] == "scratch_index"
    assert (scan(shelf, text, few)["access"], scan(shelf, fuzzy, few)["access"]) == ("fulltext_index", "full")
    ranked = 'query q() { match { $b: Book } return { $b.title } order { bm25($b.about, "ship") } }'
    told = {"kind": "bm25", "property": "about", "query": '"ship"', "fetch": None, "nprobes": None}
    assert scan(shelf, ranked)["ranked"] == told | {"access": "scratch_index"}
    assert scan(shelf, ranked, few)["ranked"] == told | {"access": "fulltext_index"}


def test_vectors_are_ranked_by_an_index_if_one_is_built_and_it_pays(
    shelf: StoredGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "query q($n: I64) { match { $b: Book } return { $b.title } order { nearest($b.place, [1, 0]) } limit $n }"
    told = {"kind": "nearest", "property": "place", "query": "[1, 0]", "access": "full", "fetch": None, "nprobes": None}
    shelf.index()
    assert scan(shelf, text, n=3)["ranked"] == told  # so few rows are compared in no time
    monkeypatch.setattr(vectors, "EFFORT", vectors.Effort(numbers=0, surplus=2))
    assert (scan(shelf, text, n=3)["access"], scan(shelf, text)["access"]) == ("vector_index", "full")
    assert scan(shelf, text, n=3)["ranked"] == told | {"access": "vector_index", "fetch": 5, "nprobes": 20}
    assert scan(shelf, text, QuerySettings(exact_nearest=True), n=3)["ranked"] == told
    assert scan(shelf, text, n=50)["ranked"] == told  # as many as that: all are compared
    named = text.replace("$b: Book }", '$b: Book { title: "b1" } }')
    assert scan(shelf, named, n=3)["ranked"] == told
    assert json.loads(plan_rows(explained(shelf, text))["settings"]) == {
        "traversal": "auto",
        "exact_nearest": "off",
        "ann_nprobes": 20,
    }


@pytest.mark.parametrize(
    ("hop", "settings", "mode"),
    [("follows", {}, "indexed"), ("follows{1,2}", {}, "indexed"), ("follows{1,2}", {"traversal": "matrix"}, "matrix")],
)
def test_a_hop_between_two_that_are_there_says_how_it_is_walked(
    harbour_graph: MemoryGraph, hop: str, settings: Any, mode: str
) -> None:
    text = f"query q() {{ match {{ $v: Vessel {{ imo: 1 }}  $v callsAt $p  $w callsAt $p  $v {hop} $w }} return {{ $w }} }}"
    found = nodes(explained(harbour_graph, text, settings=QuerySettings(**settings)), "physical")
    (closing,) = [detail for _, kind, detail in found if kind == "Expand" and detail.get("closes")]
    assert closing["mode"] == mode
    assert {"src", "dst", "edges", "hops", "alternatives", "frontier_estimate", "versions"} <= closing.keys()
