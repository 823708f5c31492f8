"""What is kept in memory never shows in an answer, and a publication hands its rows on instead of having all read again."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang.query.check import check
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.query.limits import QuerySettings
from omnigraph.query.output import QueryOutput
from omnigraph.query.residency import MemoryBudget, Residency
from omnigraph.query.residency import residency as residency_module
from omnigraph.query.rows import find_edges, find_nodes, incident_edges, source_counts
from omnigraph.query.run import run_read
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.changes import RowDifference
from omnigraph.tables.columns import table_schema
from support import random_graphs as drawn
from support.memory_graphs import (
    HARBOUR_EDGES,
    HARBOUR_NODES,
    MemoryGraph,
    MemoryTable,
    harbour,
    harbour_catalog,
    memory_difference,
    memory_residency,
)

Ask = Callable[..., QueryOutput]

QUESTIONS = [
    "match { $a: Aa } return { $a, $a.h }",
    'match { $a: Aa  $a.s >= "a" or $a.n > 0 } return { $a.k, $a.w }',
    "match { $a rr{1,3} $b } return { $a.k, $b.k, $b.s }",
    "match { $a <rr>{2,3} $b } return { $a.k, $b.k }",
    "match { $a $e:<rr> $b } return { $a.k, $b.k, $e.@id, $e.n, $e.@src }",
    "match { $a $e:tt $b } return { $a.k, $b.@id, $b.s, $e.@id, $e.s }",
    "match { $b: Bb  $b uu $a  $a rr $a } return { $a.k, $b.@id }",
    "match { $b: Bb  not { $b uu $_ } } return { $b }",
    "match { $a: Aa  $b: Aa  $a (rr | qq) $b  $b rr $a } return { $a.k, $b.k }",
    "match { $a: Cc  $a vv{1,4} $b } return { $a.@id, count($b) as n }",
    "match { $a: Aa { k: 1 } } return { $a.f, $a.g, $a.u }",
]

CHECKED = [
    query
    for text in QUESTIONS
    for query in check(f"query q() {{ {text} }}", drawn.CATALOG)
    if isinstance(query, ReadQuery)
]


def answers(snapshot: Snapshot) -> list[list[str]]:
    """The rows of all questions, one traversal after the other."""
    found: list[list[str]] = []
    for number, query in enumerate(CHECKED):
        chosen = QuerySettings(traversal="matrix" if number % 2 else "indexed")
        output = run_read(query, snapshot, {}, now=drawn.NOW, settings=chosen)
        found.append(sorted(map(repr, output.table.to_pylist())))
    return found


def lookups(snapshot: Snapshot) -> list[Any]:
    """What writers ask: ids, incident edges and edges by source."""
    found: list[Any] = []
    for name, entity in snapshot.catalog.nodes.items():
        table = snapshot.table(entity.id)
        ids = pa.array(
            [] if table is None else sorted(table.scan(["__id"]).read_all()["__id"].to_pylist()), pa.string()
        )
        asked = pa.concat_arrays([ids, pa.array(["nowhere"], pa.string())])
        nodes = find_nodes(snapshot, name, asked)
        assert nodes.present.tolist() == [True] * len(ids) + [False]
        if table is not None and len(ids):
            assert table.take(nodes.addresses[:-1], ["__id"])["__id"].to_pylist() == ids.to_pylist()
        for hanging in incident_edges(snapshot, name, ids[::2]):
            edges = zip(*(each.to_pylist() for each in (hanging.ids, hanging.src, hanging.dst)), strict=True)
            found.append((name, hanging.edge.name, sorted(edges)))
            held = snapshot.table(hanging.edge.id)
            assert held is not None
            assert held.take(hanging.addresses, ["__id"])["__id"].to_pylist() == hanging.ids.to_pylist()
            assert find_edges(snapshot, hanging.edge.name, hanging.ids).addresses.tolist() == hanging.addresses.tolist()
    for name, edge in snapshot.catalog.edges.items():
        sources = pa.array(["-1", "0", "1", "2", "10", "c1", "c2", "nowhere"], pa.string())
        found.append((edge.name, source_counts(snapshot, name, sources).tolist()))
        assert not find_edges(snapshot, name, pa.array(["nowhere"])).present.any()
    return found


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Any, Any, Any, bool]]:
    """Publications: upserts, removals, and whether this process made them."""
    history: list[tuple[Any, Any, Any, bool]] = []
    alive: dict[str, dict[str, Any]] = {"Aa": {}, "Bb": {}, "Cc": {}}
    edges: dict[str, dict[str, Any]] = {name: {} for name in drawn.CATALOG.edges}
    for _ in range(draw(st.integers(2, 5))):
        came = draw(drawn.nodes(most=2))
        alive = {name: {**alive[name], **came[name]} for name in alive}
        joined = draw(drawn.edges(alive, most=3))
        gone = {
            name: draw(st.lists(st.sampled_from(sorted(edges[name])), unique=True, max_size=2))
            for name in edges
            if edges[name] and draw(st.booleans())
        }
        gone = {name: [key for key in keys if key not in joined[name]] for name, keys in gone.items()}
        edges = {n: {k: v for k, v in {**edges[n], **joined[n]}.items() if k not in gone.get(n, ())} for n in edges}
        history.append((came, joined, gone, draw(st.integers(0, 3)) > 0))
        if alive["Aa"] and draw(st.booleans()):  # a node goes, its edges with it
            key = draw(st.sampled_from(sorted(alive["Aa"])))
            hanging = {
                name: [e for e, (src, dst, _) in edges[name].items() if key in _ends_of("Aa", name, src, dst)]
                for name in edges
            }
            alive["Aa"] = {k: v for k, v in alive["Aa"].items() if k != key}
            edges = {n: {k: v for k, v in edges[n].items() if k not in hanging[n]} for n in edges}
            history.append(({}, {}, {"Aa": [key], **hanging}, True))
    return history


def _ends_of(node_type: str, edge: str, src: str, dst: str) -> set[str]:
    entity = drawn.CATALOG.edges[edge]
    return {i for i, end in ((src, entity.source), (dst, entity.target)) if end == node_type}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(history=histories(), fold=st.booleans())
def test_after_any_history_what_is_in_memory_answers_like_what_is_read_anew(history: Any, fold: bool) -> None:
    least, residency_module._FOLD_LEAST = residency_module._FOLD_LEAST, 3 if fold else 1024
    try:
        graph = MemoryGraph(drawn.CATALOG)
        earlier: list[tuple[Snapshot, list[list[str]]]] = []
        for nodes, edges, removed, ours in history:
            graph.put(nodes, edges, remove=removed, adopt=ours)
            snapshot = graph.snapshot()
            expected = answers(graph.snapshot(memory_residency()))
            assert answers(snapshot) == expected
            assert lookups(snapshot) == lookups(graph.snapshot(memory_residency()))
            earlier.append((snapshot, expected))
        graph.residency.settle()
        for snapshot, expected in earlier:
            again = Snapshot(snapshot.manifest, snapshot.catalog, snapshot.tables, graph.residency)
            assert answers(again) == expected
    finally:
        residency_module._FOLD_LEAST = least


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"nodes": {"Vessel": {"9": {"imo": 9, "title": "Dory", "status": "active"}}}}, id="insert"),
        pytest.param({"nodes": {"Vessel": {"2": {"imo": 2, "title": "Brigg", "status": "active"}}}}, id="update"),
        pytest.param({"edges": {"Follows": {"f9": ("1", "3", {"lag": 4})}}}, id="insert edge"),
        pytest.param({"edges": {"Follows": {"f9": ("1", "2", {})}}}, id="parallel edge"),
        pytest.param({"remove": {"Follows": ["f1"]}}, id="delete one of two parallel edges"),
        pytest.param({"remove": {"Vessel": ["3"], "Follows": ["f2", "f3", "f4"], "CallsAt": ["c3"]}}, id="cascade"),
    ],
)
def test_a_write_of_few_rows_reads_no_table_again(ask: Ask, change: dict[str, Any]) -> None:
    graph = harbour()
    questions = [
        "match { $a follows{1,2} $b } return { $a.title, $b.title }",
        "match { $v: Vessel } return { $v.title, $v.tonnage }",
        "match { $a $e:<follows> $b } return { $a.imo, $b.imo, $e.lag, $e.@id }",
        "match { $v callsAt $p } return { $v.title, $p.title }",
    ]
    for question in questions:
        ask(graph, question)
    rebuilt = graph.residency.counters.rebuilds
    graph.put(**change)
    scans = [table.scans for table in graph.tables.versions.values()]
    before = [list(each) for each in scans]
    for question in questions:
        cold = MemoryGraph(graph.catalog, residency=memory_residency())
        cold.manifest, cold.tables = graph.manifest, graph.tables
        warm = ask(graph, question).table.to_pylist()
        seen = [list(each) for each in scans]
        assert sorted(map(repr, warm)) == sorted(map(repr, ask(cold, question).table.to_pylist()))
        for each, kept in zip(scans, seen, strict=True):
            each[:] = kept  # the cold reads are not ours
    assert graph.residency.counters.rebuilds == rebuilt
    assert [list(each) for each in scans] == before
    assert graph.residency.counters.adoptions == len(change.get("nodes", {}) | change.get("edges", {})) + len(
        change.get("remove", {})
    )


def test_deleting_one_of_two_parallel_edges_leaves_the_pair(ask: Ask, harbour_graph: MemoryGraph) -> None:
    text = "match { $a: Vessel { imo: 1 }  $a follows $b } return { $b.imo }"
    assert ask(harbour_graph, text).table.num_rows == 1
    harbour_graph.put(remove={"Follows": ["f1"]})
    assert ask(harbour_graph, text).table.num_rows == 1
    harbour_graph.put(remove={"Follows": ["f5"]})
    assert ask(harbour_graph, text).table.num_rows == 0


def test_a_version_from_elsewhere_is_compared_and_not_read_whole(ask: Ask, harbour_graph: MemoryGraph) -> None:
    text = "match { $a follows $b } return { $a.title, $b.title }"
    ask(harbour_graph, text)
    rebuilt = harbour_graph.residency.counters.rebuilds
    harbour_graph.put(edges={"Follows": {"f9": ("2", "1", {})}}, adopt=False)
    assert ask(harbour_graph, text).table.num_rows == 5
    counters = harbour_graph.residency.counters
    assert (counters.rebuilds, counters.comparisons, counters.adoptions) == (rebuilt, 1, 0)


def test_versions_that_number_their_fragments_apart_are_read_anew(ask: Ask) -> None:
    def compare(*args: Any) -> RowDifference:
        return replace(memory_difference(*args), renumbered=((0, 5),))

    graph = MemoryGraph(harbour_catalog(), residency=Residency(MemoryBudget(1 << 20), compare=compare))
    graph.put(HARBOUR_NODES, HARBOUR_EDGES)
    ask(graph, "match { $a follows $b } return { $a.title }")
    rebuilt = graph.residency.counters.rebuilds
    graph.put(edges={"Follows": {"f9": ("2", "1", {})}}, adopt=False)
    assert ask(graph, "match { $a follows $b } return { $a.title }").table.num_rows == 5
    assert graph.residency.counters.rebuilds == rebuilt + 1


def test_a_delta_that_speaks_of_other_rows_is_not_believed(ask: Ask, harbour_graph: MemoryGraph) -> None:
    text = "match { $a follows $b } return { $a.title }"
    ask(harbour_graph, text)
    entity = harbour_graph.catalog.edges["Follows"]
    old = harbour_graph.manifest
    harbour_graph.put(remove={"Follows": ["f4"]}, adopt=False)
    wrong = residency_module.RowDelta(
        np.array([999], np.uint64), table_schema(entity).empty_table(), np.empty(0, np.uint64)
    )
    harbour_graph.residency.adopt(harbour_graph.tables, old, harbour_graph.manifest, {entity.id: wrong})
    assert harbour_graph.residency.counters.adoptions == 0
    assert ask(harbour_graph, text).table.num_rows == 3


@pytest.mark.parametrize("adopt", [True, False])
def test_nothing_read_of_a_table_in_which_damage_was_met_is_carried_on_or_used_again(
    ask: Ask, harbour_graph: MemoryGraph, adopt: bool
) -> None:
    text = "match { $v: Vessel } return { $v.title }"
    ask(harbour_graph, text)
    table = harbour_graph.snapshot().table(harbour_graph.entity("Vessel").id)
    assert isinstance(table, MemoryTable)
    scans, counters = len(table.scans), harbour_graph.residency.counters
    table.doubtful = True
    rebuilt = counters.rebuilds
    assert ask(harbour_graph, text).table.num_rows == 3
    assert (len(table.scans) > scans, counters.rebuilds > rebuilt) == (True, True)
    rebuilt = counters.rebuilds
    harbour_graph.put({"Vessel": {"4": {"imo": 4, "title": "Dora"}}}, adopt=adopt)
    assert ask(harbour_graph, text).table.num_rows == 4
    assert (counters.rebuilds, counters.comparisons, counters.adoptions) == (rebuilt + 1, 0, 0)


def test_only_columns_that_are_asked_for_become_resident(ask: Ask, harbour_graph: MemoryGraph) -> None:
    ask(harbour_graph, "match { $v: Vessel } return { $v.title }")
    vessels = harbour_graph.snapshot().nodes("Vessel").columns
    names = {p.name: p.column for p in harbour_graph.catalog.nodes["Vessel"].properties}
    assert names["title"] in vessels
    assert not any(column in vessels for name, column in names.items() if name != "title")


def test_below_a_tiny_limit_answers_stay_right_and_the_oldest_entries_go(ask: Ask) -> None:
    graph = harbour(memory_residency(limit=300))
    for _ in range(2):
        assert ask(graph, "match { $a follows{1,2} $b } return { $a.title, $b.title }").table.num_rows == 7
        assert ask(graph, "match { $v callsAt $p } return { $v.title, $p.title }").table.num_rows == 3
    budget = graph.residency.budget
    assert budget.evictions > 0
    largest = max(sum(dict(kept.entry.parts()).values()) for kept in budget._kept.values())
    assert budget.bytes <= max(300, largest)


def test_branches_share_the_dictionary_and_the_versions_that_they_have_in_common(ask: Ask) -> None:
    main = harbour()
    ask(main, "match { $a follows $b } return { $a.title, $b.title }")
    branch = MemoryGraph(main.catalog, residency=main.residency)
    branch.manifest, branch.tables, branch._versions, branch._fragments = (
        replace(main.manifest, branch="review"),
        main.tables,
        main._versions,
        main._fragments,
    )
    rebuilt = main.residency.counters.rebuilds
    main.put({"Vessel": {"8": {"imo": 8, "title": "Main", "status": "active"}}}, {"Follows": {"m": ("8", "1", {})}})
    branch.put({"Vessel": {"9": {"imo": 9, "title": "Side", "status": "active"}}}, {"Follows": {"s": ("9", "1", {})}})
    text = "match { $a: Vessel  $a follows{1,2} $b  $b.imo = 2 } return { $a.title } order { $a.title }"
    assert [r["a.title"] for r in ask(main, text).table.to_pylist()] == ["Alma", "Corvo", "Main"]
    assert [r["a.title"] for r in ask(branch, text).table.to_pylist()] == ["Alma", "Corvo", "Side"]
    assert main.residency.counters.rebuilds == rebuilt
    assert main.snapshot().dictionary(main.catalog.nodes["Vessel"]) is branch.snapshot().dictionary(
        main.catalog.nodes["Vessel"]
    )


def test_versions_behind_the_head_do_not_pile_up(ask: Ask, harbour_graph: MemoryGraph) -> None:
    for number in range(40):
        ask(harbour_graph, "match { $a follows $b } return { $a.title }")
        harbour_graph.put(edges={"Follows": {"again": ("1", "2", {"lag": number})}})
    follows = harbour_graph.catalog.edges["Follows"].id
    assert len(harbour_graph.residency.budget.held(("G", follows))) <= 10


def test_a_dictionary_that_was_dropped_meets_no_state_with_the_old_numbers(
    ask: Ask, harbour_graph: MemoryGraph
) -> None:
    text = "match { $a follows $b } return { $a.title, $b.title } order { $a.title, $b.title }"
    expected = ask(harbour_graph, text).table.to_pylist()
    residency = harbour_graph.residency
    residency.budget.drop(residency.budget.held("keys"))
    harbour_graph.put({"Vessel": {"0": {"imo": 0, "title": "Zed", "status": "active"}}})
    ask(harbour_graph, "match { $v: Vessel { imo: 0 } } return { $v.title }")  # numbers this vessel first
    assert ask(harbour_graph, text).table.to_pylist() == expected


def test_readers_of_many_threads_see_their_own_snapshot_while_versions_follow(ask: Ask) -> None:
    graph = harbour()
    stop = threading.Event()
    published: list[tuple[Snapshot, int]] = [(graph.snapshot(), 4)]
    query = check("query q() { match { $a follows{1,1} $b } return { count($a) as n } }", graph.catalog)[0]
    assert isinstance(query, ReadQuery)

    def read(worker: int) -> int:
        rounds = 0
        while not stop.is_set():
            snapshot, expected = published[-1 - worker % min(3, len(published))]
            traversal = "matrix" if worker % 2 else "indexed"
            output = run_read(query, snapshot, {}, now=drawn.NOW, settings=QuerySettings(traversal=traversal))
            assert output.table["n"][0].as_py() == expected
            rounds += 1
        return rounds

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read, worker) for worker in range(6)]
        for number in range(25):
            graph.put(
                {"Vessel": {str(100 + number): {"imo": 100 + number, "title": "T", "status": "active"}}},
                {"Follows": {f"n{number}": ("1", str(100 + number), {})}},
            )
            published.append((graph.snapshot(), 5 + number))
        stop.set()
        assert all(reader.result() > 0 for reader in readers)
    assert graph.residency.counters.rebuilds <= 4


def test_a_snapshot_that_is_merely_held_keeps_nothing_in_memory(ask: Ask, harbour_graph: MemoryGraph) -> None:
    held = harbour_graph.snapshot()
    query = check("query q() { match { $a follows $b } return { $a.title } }", held.catalog)[0]
    assert isinstance(query, ReadQuery)
    run_read(query, held, {}, now=drawn.NOW)
    find_nodes(held, "Vessel", pa.array(["1"]))
    entries = [kept.entry for kept in harbour_graph.residency.budget._kept.values()]
    states = [
        weakref.ref(getattr(entry, part))
        for entry in entries
        for part in ("columns", "dictionary")
        if hasattr(entry, part)
    ]
    del entries
    assert len(states) >= 4
    budget = harbour_graph.residency.budget
    budget.drop([key for group in budget.groups() for key in budget.held(group)])
    gc.collect()
    assert [each() for each in states] == [None] * len(states)
