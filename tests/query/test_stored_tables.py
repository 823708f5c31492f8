"""The same answers from real tables: addresses, adoption of committed rows, versions compared by their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.query.output import QueryOutput
from omnigraph.query.rows import find_nodes, incident_edges
from omnigraph.tables.columns import ID
from support.memory_graphs import HARBOUR_EDGES, HARBOUR_NODES, harbour, harbour_catalog
from support.stored_graphs import StoredGraph

Ask = Callable[..., QueryOutput]


QUESTIONS = (
    "match { $v: Vessel } return { $v, $v.hull }",
    "match { $a follows{1,2} $b } return { $a.title, $b.title, $b.tonnage }",
    "match { $v $c:callsAt $p } return { $v.title, $c.@id, $c.berth, $p.title }",
    "match { $s: Sailor  not { $s servesOn $_ } } return { $s }",
)


def rows(output: QueryOutput) -> list[str]:
    return sorted(map(repr, output.table.to_pylist()))


def test_stored_tables_answer_like_tables_in_memory_through_writes_of_this_and_other_processes(
    ask: Ask, tmp_path: Path
) -> None:
    stored, memory = StoredGraph(harbour_catalog(), tmp_path / "root"), harbour()
    stored.put(HARBOUR_NODES, HARBOUR_EDGES)
    changes: list[dict[str, Any]] = [
        {"nodes": {"Vessel": {"9": {"imo": 9, "title": "Dory", "status": "active", "tags": ["new"]}}}},
        {"nodes": {"Vessel": {"2": {"imo": 2, "title": "Brigg", "status": "active", "hull": [1.0, 1.0]}}}},
        {"edges": {"Follows": {"f9": ("9", "2", {"lag": 1}), "f8": ("2", "9", {})}}},
        {"remove": {"Vessel": ["3"], "Follows": ["f2", "f3", "f4"], "CallsAt": ["c3"]}},
        {"edges": {"ServesOn": {"o3": ("s3", "9", {})}}},
    ]
    for number, change in enumerate(({}, *changes)):
        ours = number % 2 == 0
        stored.put(**change, adopt=ours)
        memory.put(**change)
        for question in QUESTIONS:
            assert rows(ask(stored, question)) == rows(ask(memory, question)), question
    counters = stored.residency.counters
    assert counters.rebuilds == 6  # each table once: Vessel, Port, Sailor, and three edge types
    assert counters.comparisons > 0
    assert counters.adoptions > 0


def test_addresses_found_for_writers_are_those_of_the_stored_rows(tmp_path: Path) -> None:
    stored = StoredGraph(harbour_catalog(), tmp_path / "root")
    stored.put(HARBOUR_NODES, HARBOUR_EDGES)
    stored.put({"Vessel": {"1": {"imo": 1, "title": "Alma II", "status": "active"}}})
    snapshot = stored.snapshot()
    table = snapshot.table(stored.catalog.nodes["Vessel"].id)
    assert table is not None
    found = find_nodes(snapshot, "Vessel", pa.array(["3", "1", "nobody"]))
    assert found.present.tolist() == [True, True, False]
    assert table.take(found.addresses[:2], [ID])[ID].to_pylist() == ["3", "1"]
    for hanging in incident_edges(snapshot, "Vessel", pa.array(["1"])):
        edges = snapshot.table(hanging.edge.id)
        assert edges is not None
        assert edges.take(hanging.addresses, [ID])[ID].to_pylist() == hanging.ids.to_pylist()
