"""What writers ask of a pinned snapshot: matching rows, existence, incident edges, counts by source."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang.query.check import check
from omnigraph.lang.query.typed import Delete, Expr, MutationQuery, Update
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.query.rows import (
    find_edges,
    find_nodes,
    incident_edges,
    matching_rows,
    rows_where,
    source_counts,
)
from omnigraph.tables.columns import ID
from support import random_graphs as drawn
from support.memory_graphs import MemoryGraph
from support.oracle import Oracle

BERGEN, LISBOA = '["BGO","NO"]', '["LIS","PT"]'


def where_of(graph: MemoryGraph, statement: str) -> tuple[EntityType, Expr]:
    query = check(f"query q($s: String?) {{ {statement} }}", graph.catalog)[0]
    assert isinstance(query, MutationQuery)
    first = query.statements[0]
    assert isinstance(first, (Update, Delete))
    return graph.entity(first.type_name), first.where


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ('delete CallsAt where @src = "1" and berth = "B"', ["c2"]),
        ('delete CallsAt where berth = "A"', ["c1", "c4"]),
        ("delete CallsAt where @dst = $s", ["c3"]),
        ('delete CallsAt where @id = "c3" and berth is null', ["c3"]),
        ('delete CallsAt where @id = "c3" and berth = "A"', []),
        ('delete CallsAt where @src = "nobody"', []),
        ("delete Follows where true", ["f1", "f2", "f3", "f4", "f5"]),
        ('update Vessel set { status: "scrapped" } where status = "laid-up" and built is null', ["2"]),
        ("delete Vessel where imo = 1", ["1"]),
        ('delete Vessel where @id in ["1", "3", "nobody"] and tonnage > 600', ["3"]),
        ("delete Vessel where imo in [1, 2.0, 2.5] ", ["1", "2"]),
        ('delete Port where country = "PT" and "LIS" = code', [LISBOA]),
        ("delete Vessel where not (tonnage > 600)", ["1"]),
        ("delete Sailor where true", ["s1", "s2", "s3"]),
    ],
)
def test_rows_where_finds_the_rows_for_which_the_condition_is_true(
    harbour_graph: MemoryGraph, now: dt.datetime, statement: str, expected: list[str]
) -> None:
    entity, where = where_of(harbour_graph, statement)
    snapshot = harbour_graph.snapshot()
    rows = rows_where(snapshot, entity, where, {"s": LISBOA}, now=now, columns=[ID])
    assert rows.column_names == [ID, "_rowaddr"]
    assert sorted(rows[ID].to_pylist()) == expected
    table = snapshot.table(entity.id)
    assert table is not None
    assert table.take(rows["_rowaddr"].to_numpy(), [ID])[ID].to_pylist() == rows[ID].to_pylist()
    everything = table.scan(harbour_graph.tables.open(table.pin).schema.names).read_all()
    mask = matching_rows(entity, everything, where, {"s": LISBOA}, now=now)
    assert sorted(everything.filter(pa.array(mask))[ID].to_pylist()) == expected


def test_a_type_that_never_held_a_row_has_none(now: dt.datetime) -> None:
    graph = MemoryGraph(drawn.CATALOG)
    snapshot = graph.snapshot()
    entity, where = where_of(graph, "delete Aa where k = 1")
    rows = rows_where(snapshot, entity, where, {}, now=now, columns=[ID])
    assert (rows.num_rows, rows.column_names) == (0, [ID, "_rowaddr"])
    assert not find_nodes(snapshot, "Aa", pa.array(["1"])).present.any()
    assert not find_edges(snapshot, "Rr", pa.array(["1"])).present.any()
    assert incident_edges(snapshot, "Aa", pa.array(["1"])) == []
    assert source_counts(snapshot, "Rr", pa.array(["1"])).tolist() == [0]


def test_incident_edges_are_the_eight_of_alma_each_once(harbour_graph: MemoryGraph) -> None:
    found = incident_edges(harbour_graph.snapshot(), "Vessel", pa.array(["1", "nobody"]))
    edges = {each.edge.name: sorted(each.ids.to_pylist()) for each in found}
    assert edges == {
        "CallsAt": ["c1", "c2"],
        "Follows": ["f1", "f3", "f5"],
        "Tows": ['["1","2"]'],
        "ServesOn": ["o1", "o2"],
    }
    both = incident_edges(harbour_graph.snapshot(), "Vessel", pa.array(["3", "1"]))
    assert sorted(next(e for e in both if e.edge.name == "Follows").ids.to_pylist()) == ["f1", "f2", "f3", "f4", "f5"]


def test_counts_by_source_count_parallel_edges_apart(harbour_graph: MemoryGraph) -> None:
    sources = pa.array(["1", "2", "3", "nobody"])
    assert source_counts(harbour_graph.snapshot(), "Follows", sources).tolist() == [2, 1, 2, 0]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), graph=drawn.graphs(), name=st.sampled_from(["Aa", "Bb", "Cc", "Rr", "Tt", "Qq"]))
def test_any_condition_finds_what_the_naive_evaluator_finds(data: Any, graph: Any, name: str) -> None:
    scope = drawn.Scope()
    if name in drawn.CATALOG.nodes:
        scope.nodes[""] = name
        held: Any = graph.nodes[name]
        where = data.draw(drawn.conditions(scope) | drawn.lookups(scope, ""))
    else:
        scope.edges[""] = (name,)
        held = graph.edges[name]
        where = data.draw(drawn.conditions(scope))
    memory = MemoryGraph(drawn.CATALOG)
    memory.put(graph.nodes, graph.edges)
    rows = rows_where(memory.snapshot(), memory.entity(name), where, scope.params, now=drawn.NOW, columns=[ID])
    oracle = Oracle(graph, scope.params, drawn.NOW)
    kind = "node" if name in drawn.CATALOG.nodes else "edge"
    expected = [key for key in held if oracle.value(where, {"": (kind, name, key)}) is True]
    assert sorted(rows[ID].to_pylist()) == sorted(expected)
