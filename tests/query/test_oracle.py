"""Random graphs and random well-typed reads: every plan, traversal and engine gives what the naive evaluator gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang.query.typed import Expr, ReadQuery
from omnigraph.query.limits import QuerySettings
from omnigraph.query.relational.duck import DuckTail
from omnigraph.query.relational.kernels import KERNEL_TAIL
from omnigraph.query.run import run_read
from omnigraph.query.snapshot import Snapshot
from support import random_graphs as drawn
from support.memory_graphs import MemoryGraph
from support.oracle import Graph, Oracle, cell_text, same_cell


class AnyStatistics:
    """Numbers that have nothing to do with the tables: they force one plan or another."""

    def __init__(self, numbers: list[float]) -> None:
        self._numbers = numbers

    def _number(self, name: str) -> float:
        return self._numbers[sum(name.encode()) % len(self._numbers)]

    def node_rows(self, type_name: str) -> float:
        return self._number(type_name)

    def edge_rows(self, edge_type: str) -> float:
        return self._number(edge_type)

    def key_of(self, type_name: str) -> tuple[str, ...]:
        return drawn.CATALOG.nodes[type_name].key

    def list_length(self, expr: Expr) -> float:
        return self._number("list")


@pytest.fixture(scope="module")
def duck() -> Any:
    tail = DuckTail(threads=1)
    yield tail
    tail.close()


def check(query: ReadQuery, params: dict[str, Any], graph: Graph, snapshot: Snapshot, **choices: Any) -> None:
    """The engine's answer is the oracle's: as a list if ordered, else as a multiset; some rows of it if limited."""
    oracle = Oracle(graph, params, drawn.NOW)
    expected = oracle.all_rows(query)
    limit = oracle.limit(query)
    output = run_read(query, snapshot, params, now=drawn.NOW, **choices)
    answer = output.table.to_pylist()
    assert output.table.column_names == [item.name for item in query.items]
    assert len(answer) == (len(expected) if limit is None else min(limit, len(expected)))
    if query.order:
        expected = expected[: len(answer)]
    elif limit is None:
        answer.sort(key=cell_text)
        expected = sorted(expected, key=cell_text)
    else:
        left = list(expected)
        for row in answer:
            match = next((i for i, each in enumerate(left) if same_cell(row, each)), None)
            assert match is not None, (row, left)
            left.pop(match)
        return
    for row, right in zip(answer, expected, strict=True):
        assert same_cell(row, right), (row, right)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    data=st.data(),
    graph=drawn.graphs(),
    traversal=st.sampled_from(["auto", "indexed", "matrix"]),
    numbers=st.lists(st.sampled_from([0.0, 1.0, 3.0, 100.0, 1e6]), min_size=3, max_size=7),
    by_duck=st.booleans(),
)
def test_every_plan_traversal_and_engine_gives_the_answer_of_the_naive_evaluator(
    duck: DuckTail, data: st.DataObject, graph: Graph, traversal: Any, numbers: list[float], by_duck: bool
) -> None:
    query, params = data.draw(drawn.reads(graph))
    memory = MemoryGraph(drawn.CATALOG)
    memory.put(graph.nodes, graph.edges)
    check(query, params, graph, memory.snapshot())
    check(
        query,
        params,
        graph,
        memory.snapshot(),
        settings=QuerySettings(traversal=traversal),
        statistics=AnyStatistics(numbers),
        tail=duck if by_duck else KERNEL_TAIL,
        piece=1,
    )
    with (
        pytest.MonkeyPatch.context() as always
    ):  # every hop to tested nodes is walked from these, however little it saves
        always.setattr("omnigraph.query.match._FAR_LEAST", 0)
        always.setattr("omnigraph.query.match._FAR_SHARE", 0)
        check(query, params, graph, memory.snapshot())
