"""Every limit of a read has a name and a typed error, and is met before the work is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.errors import LimitExceeded, QueryTimeout
from omnigraph.lang.query.check import check
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.query.limits import QuerySettings
from omnigraph.query.output import QueryOutput
from omnigraph.query.run import run_read
from support.memory_graphs import MemoryGraph

Ask = Callable[..., QueryOutput]


@pytest.mark.parametrize("traversal", ["indexed", "matrix", "auto"])
@pytest.mark.parametrize("tail", ["", " order { $a.title } limit 1", " limit 1"])
def test_examining_more_edge_rows_than_allowed_fails_the_whole_query(
    ask: Ask, harbour_graph: MemoryGraph, traversal: Any, tail: str
) -> None:
    settings = QuerySettings(traversal=traversal, traversal_work_limit=1)
    for hop in ("$a follows $b", "$a follows{1,2} $b", "$a $e:follows $b", "$a callsAt $b", "$a follows $a"):
        with pytest.raises(LimitExceeded) as failure:
            ask(harbour_graph, f"match {{ {hop} }} return {{ $a.title }}{tail}", settings)
        assert failure.value.details["resource"] == "traversal_work"
        assert failure.value.limit == 1
        assert failure.value.actual > 1
        assert failure.value.code == "resource_limit"


def test_a_cross_product_is_work_too(ask: Ask, harbour_graph: MemoryGraph) -> None:
    text = "match { $v: Vessel  $p: Port } return { count($v) as n }"
    with pytest.raises(LimitExceeded) as failure:
        ask(harbour_graph, text, QuerySettings(traversal_work_limit=5))
    assert failure.value.actual == 6
    assert ask(harbour_graph, text, QuerySettings(traversal_work_limit=6)).table["n"][0].as_py() == 6


@pytest.mark.parametrize("traversal", ["indexed", "matrix", "auto"])
@pytest.mark.parametrize("bound", [2**31, 2**63, 2**64 - 1])
def test_the_largest_integers_bound_hops_and_limits(
    ask: Ask, harbour_graph: MemoryGraph, traversal: Any, bound: int
) -> None:
    settings = QuerySettings(traversal=traversal)
    reached = ask(harbour_graph, f"match {{ $a follows{{1,{bound}}} $b }} return {{ count($a) as n }}", settings)
    assert reached.table["n"][0].as_py() == 7
    none = ask(harbour_graph, f"match {{ $a follows{{{bound},{bound}}} $b }} return {{ $a.title }}", settings)
    assert none.table.num_rows == 0
    for tail in ("", "order { $v.title }"):
        text = f"match {{ $v: Vessel }} return {{ $v.title }} {tail} limit {bound}"
        assert ask(harbour_graph, text, settings).table.num_rows == 3


def test_a_query_without_hops_does_no_traversal_work(ask: Ask, harbour_graph: MemoryGraph) -> None:
    settings = QuerySettings(traversal_work_limit=1)
    assert ask(harbour_graph, "match { $v: Vessel } return { $v.title }", settings).table.num_rows == 3


def test_an_answer_with_too_many_rows_is_refused_and_never_cut(ask: Ask, harbour_graph: MemoryGraph) -> None:
    settings = QuerySettings(max_result_rows=2)
    for text in (
        "match { $v: Vessel } return { $v.title }",
        "match { $v: Vessel } return { $v.title } order { $v.title }",
        "match { $v: Vessel } return { $v.title, count($v) as n }",
    ):
        with pytest.raises(LimitExceeded) as failure:
            ask(harbour_graph, text, settings)
        assert (failure.value.resource, failure.value.limit, failure.value.actual) == ("max_result_rows", 2, 3)
        assert ask(harbour_graph, f"{text} limit 2", settings).table.num_rows == 2


class Clockwork:
    """A clock that moves by a step each time it is read."""

    def __init__(self, step: float) -> None:
        self.seconds = 0.0
        self.step = step

    def now_us(self) -> int:
        raise AssertionError("no wall clock is wanted")

    def boot_seconds(self) -> float:
        self.seconds += self.step
        return self.seconds

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps")


def test_a_query_that_runs_too_long_stops_between_its_steps(harbour_graph: MemoryGraph, now: Any) -> None:
    query = check("query q() { match { $a follows{1,3} $b } return { $a.title } }", harbour_graph.catalog)[0]
    assert isinstance(query, ReadQuery)
    settings = QuerySettings(query_timeout_ms=100)
    run_read(query, harbour_graph.snapshot(), {}, now=now, settings=settings, clock=Clockwork(0.001))
    with pytest.raises(QueryTimeout) as failure:
        run_read(query, harbour_graph.snapshot(), {}, now=now, settings=settings, clock=Clockwork(0.06))
    assert failure.value.resource == "query_timeout_ms"
    assert failure.value.limit == 100
    assert failure.value.code == "query_timeout"
