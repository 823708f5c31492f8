"""Asking a graph in memory a query text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from omnigraph.lang.query.check import check
from omnigraph.lang.query.params import bind_params
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.query.limits import QuerySettings
from omnigraph.query.output import QueryOutput
from omnigraph.query.run import run_read
from support.memory_graphs import MemoryGraph, harbour

NOW = dt.datetime(2024, 2, 29, 12, 30, 0, 250_000, tzinfo=dt.UTC)
TRAVERSALS = ("auto", "indexed", "matrix")

Ask = Callable[..., QueryOutput]


@pytest.fixture
def ask() -> Ask:
    """`ask(graph, text, settings=…, **parameters)`: the answer, the same by every traversal."""

    def ask(graph: MemoryGraph, text: str, settings: QuerySettings | None = None, **params: Any) -> QueryOutput:
        query = check(text if text.lstrip().startswith("query") else f"query q() {{ {text} }}", graph.catalog)[0]
        assert isinstance(query, ReadQuery)
        bound: Mapping[str, Any] = bind_params(query, params, door="python")
        if settings is not None:
            return run_read(query, graph.snapshot(), bound, now=NOW, settings=settings)
        outputs = [
            run_read(query, graph.snapshot(), bound, now=NOW, settings=QuerySettings(traversal=traversal))
            for traversal in TRAVERSALS
        ]
        rows = [each.table.to_pylist() for each in outputs]
        assert all(sorted(map(repr, each)) == sorted(map(repr, rows[0])) for each in rows)
        return outputs[0]

    return ask


@pytest.fixture
def harbour_graph() -> MemoryGraph:
    return harbour()


@pytest.fixture
def now() -> dt.datetime:
    return NOW
