"""Every limit of a read has a name and a typed error, and is met before the work is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import LimitExceeded, QueryTimeout
from omnigraph.lang.query.check import check
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.query.limits import QuerySettings
from omnigraph.query.measures import Measures
from omnigraph.query.output import QueryOutput
from omnigraph.query.relational.duck import DuckTail
from omnigraph.query.relational.kernels import KernelTail
from omnigraph.query.relational.tail import SortKey
from omnigraph.query.run import run_read
from query.conftest import NOW
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


@pytest.mark.parametrize("hop", ["$b follows $c", "$b follows{1,2} $c", "$b follows{2,3} $c", "$b $e:follows $c"])
def test_what_is_only_counted_is_as_much_work_as_what_is_looked_at(harbour_graph: MemoryGraph, hop: str) -> None:
    def work(counted: str) -> int:
        text = f"query q() {{ match {{ $a follows $b  {hop} }} return {{ count({counted}) as n }} }}"
        query = check(text, harbour_graph.catalog)[0]
        assert isinstance(query, ReadQuery)
        measures = Measures(lambda: 0.0)
        run_read(query, harbour_graph.snapshot(), {}, now=NOW, watch=measures)
        return sum(each.examined for each in measures.of.values())

    assert work("$c") == work("$c.title") > 5


@pytest.mark.parametrize(
    "body",
    [
        "match { $a follows $b } return { $a.title }",
        "match { $a $e:follows $b } return { $a.title }",
        "match { $a follows{1,2} $b } return { $b.title }",
        "match { $a follows{1,2} $b } return { $a.title, count($b) as n }",
        "match { $a follows $b } return { $a.title, count($b) as n }",
        "match { $a: Vessel  $b: Vessel } return { $a.title }",
    ],
)
@pytest.mark.parametrize("traversal", ["indexed", "matrix", "auto"])
def test_a_step_that_would_make_too_much_at_once_is_refused_before_it_does(
    ask: Ask, harbour_graph: MemoryGraph, body: str, traversal: Any
) -> None:
    with pytest.raises(LimitExceeded, match="OMNIGRAPH_QUERY_MEMORY_BYTES") as failure:
        ask(harbour_graph, body, QuerySettings(traversal=traversal, memory_bytes=60))
    assert failure.value.details["resource"] == "query_memory"
    assert failure.value.actual > failure.value.limit == 60
    assert len(ask(harbour_graph, body, QuerySettings(traversal=traversal, memory_bytes=600)).table) > 2


class NoMemory(KernelTail):
    def order(self, rows: int, keys: Sequence[SortKey], limit: int | None) -> np.ndarray:
        raise MemoryError


def test_a_query_for_which_there_is_no_memory_says_so(harbour_graph: MemoryGraph) -> None:
    query = check("query q() { match { $v: Vessel } return { $v.title } order { $v.title } }", harbour_graph.catalog)[0]
    assert isinstance(query, ReadQuery)
    with pytest.raises(LimitExceeded, match="no memory left") as failure:
        run_read(query, harbour_graph.snapshot(), {}, now=NOW, tail=NoMemory())
    assert failure.value.details["resource"] == "query_memory"


def test_what_fits_neither_in_memory_nor_beside_it_is_no_error_of_the_library() -> None:
    tail = DuckTail(memory_limit="2MB", threads=1)
    try:
        keys = [pa.array(np.arange(400_000)), pa.array([str(n) * 9 for n in range(400_000)])]
        with pytest.raises(MemoryError):
            tail.groups(keys)
    finally:
        tail.close()


def test_too_many_rows_are_refused_before_they_are_put_in_order(harbour_graph: MemoryGraph) -> None:
    query = check("query q() { match { $v: Vessel } return { $v.title } order { $v.title } }", harbour_graph.catalog)[0]
    assert isinstance(query, ReadQuery)
    settings = QuerySettings(max_result_rows=2)
    with pytest.raises(LimitExceeded) as failure:
        run_read(query, harbour_graph.snapshot(), {}, now=NOW, settings=settings, tail=NoMemory())
    assert failure.value.details["resource"] == "max_result_rows"
