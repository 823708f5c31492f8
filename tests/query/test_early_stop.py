"""A limit without an order stops the work when enough rows are there, and gives rows of the whole answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from omnigraph.errors import LimitExceeded
from omnigraph.query.bindings import Bindings, joined_together
from omnigraph.query.limits import QuerySettings
from omnigraph.query.output import QueryOutput
from support.memory_graphs import MemoryGraph, harbour_catalog

Ask = Callable[..., QueryOutput]
VESSELS = 2_000
RING = 3  # each follows the next three


@pytest.fixture(scope="module")
def ring() -> MemoryGraph:
    graph = MemoryGraph(harbour_catalog())
    vessels = {str(n): {"imo": n, "title": f"v{n}", "status": "active"} for n in range(VESSELS)}
    edges = {
        f"{n}-{step}": (str(n), str((n + step) % VESSELS), {}) for n in range(VESSELS) for step in range(1, RING + 1)
    }
    graph.put({"Vessel": vessels}, {"Follows": edges})
    return graph


HOPS = "match { $a follows $b  $b follows $c } return { $a.imo as a, $b.imo as b, $c.imo as c }"


@pytest.mark.parametrize("traversal", ["indexed", "matrix", "auto"])
def test_few_rows_are_few_edges(ask: Ask, ring: MemoryGraph, traversal: Any) -> None:
    settings = QuerySettings(traversal=traversal, traversal_work_limit=RING * VESSELS // 2)
    rows = ask(ring, f"{HOPS} limit 7", settings).table.to_pylist()
    assert len(rows) == 7
    assert all(0 < (row["b"] - row["a"]) % VESSELS <= RING >= (row["c"] - row["b"]) % VESSELS > 0 for row in rows)
    for whole in (HOPS, f"{HOPS} order {{ a }} limit 7"):
        with pytest.raises(LimitExceeded):
            ask(ring, whole, settings)


def test_a_cross_product_is_made_no_further_than_is_asked_for(ask: Ask, ring: MemoryGraph) -> None:
    settings = QuerySettings(traversal_work_limit=3 * VESSELS)
    text = "match { $a: Vessel  $b: Vessel } return { $a.imo as a, $b.imo as b } limit 12"
    assert len(ask(ring, text, settings).table) == 12


@pytest.mark.parametrize("limit", [0, 1, 63, 64, 65, 1_000, 9 * VESSELS - 1, 9 * VESSELS, 9 * VESSELS + 1])
def test_the_rows_are_different_rows_of_the_whole_answer(ask: Ask, ring: MemoryGraph, limit: int) -> None:
    rows = [tuple(row.values()) for row in ask(ring, f"{HOPS} limit {limit}").table.to_pylist()]
    whole = {tuple(row.values()) for row in ask(ring, HOPS).table.to_pylist()}
    assert len(rows) == len(set(rows)) == min(limit, 9 * VESSELS)
    assert whole.issuperset(rows)


def test_filters_that_few_rows_pass_are_asked_of_all(ask: Ask, ring: MemoryGraph) -> None:
    last = f"$c.imo = {VESSELS - 1}"
    text = HOPS.replace("$b follows $c }", f"$b follows $c  {last} or $a.imo < 0 }}")
    assert len(ask(ring, f"{text} limit 1000").table) == 9
    blocks = HOPS.replace("$b follows $c }", f"$b follows $c  exists {{ $c follows $d  $d.imo = {VESSELS - 1} }} }}")
    rows = ask(ring, f"{blocks} limit 1000").table.to_pylist()
    assert len(rows) == 27
    assert {row["c"] for row in rows} == {VESSELS - 4, VESSELS - 3, VESSELS - 2}


def test_pieces_are_all_assignments_in_order() -> None:
    bindings = Bindings(10, {"a": np.arange(10, dtype=np.int32)})
    cut = list(bindings.pieces(1, 3))
    assert [each.length for each in cut] == [1, 3, 6]
    assert joined_together(cut).nodes["a"].tolist() == list(range(10))
    assert [each.length for each in bindings.take(np.empty(0, np.int64)).pieces(4, 2)] == [0]
