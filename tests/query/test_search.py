"""Search against the naive evaluator, and against what the chapter says in numbers (languages.md 12)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang.query import typed as q
from omnigraph.lang.types import BOOL, I64, STRING, Scalar, ValueType, scalar
from omnigraph.query.run import run_read
from support import random_graphs as drawn
from support.memory_graphs import MemoryGraph
from support.oracle import Graph, Oracle, same_cell

TEXTS = (
    "the ship sails",
    "Sailing, sailing! The SHIPS of the sea",
    "sea",
    "the of and",
    "",
    "Stra\u00dfe \u00dcber na\u00efve",
    "ship ship ship harbour",
    "a-b x\u00b2y \u0939\u093f\u0928\u094d\u0926\u0940",
    "shpi sae",
    "\u65e5\u672c\u8a9e ship",
)
QUERIES = ("ship sail sea", "ships ship", "sail", *TEXTS, "harbor ship", "seas nothing", "strasse", "zzz", "sae")
MAYBE = scalar(Scalar.BOOL, nullable=True)
F32 = scalar(Scalar.F32)
POINTS = st.sampled_from([-2.0, -0.5, 0.0, 1.0, 1.5, 3.0])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """With texts that hold words and vectors whose distances are exact."""
    found: dict[str, dict[str, dict[str, Any]]] = {"Aa": {}, "Bb": {}, "Cc": {}}
    for k in draw(st.lists(st.integers(0, 9), min_size=3, max_size=7, unique=True)):
        vector = draw(st.none() | st.lists(POINTS, min_size=2, max_size=2))
        found["Aa"][str(k)] = {"k": k, **({} if vector is None else {"h": vector})}
    for key in draw(st.lists(st.sampled_from("pqrstu"), min_size=2, max_size=5, unique=True)):
        found["Cc"][key] = {}
    for rows in found.values():
        for row in rows.values():
            text = draw(st.sampled_from((*TEXTS, None)))
            if text is not None:
                row["s"] = text
    return Graph(drawn.CATALOG, found, draw(drawn.edges(found, most=7)))


def text_of(var: str) -> q.PropertyRef:
    return q.PropertyRef(var, "s", scalar(Scalar.STRING, nullable=True))


@st.composite
def constants(draw: st.DrawFn, params: dict[str, Any], value: Any, of: ValueType) -> q.Expr:
    if draw(st.booleans()):
        return q.Constant(value, of)
    name = f"s{len(params)}"
    params[name] = value
    return q.Param(name, of)


@st.composite
def predicates(draw: st.DrawFn, var: str, params: dict[str, Any]) -> q.Expr:
    query = draw(constants(params, draw(st.sampled_from(QUERIES)), STRING))
    if draw(st.booleans()):
        return q.TextSearch(draw(st.sampled_from(["search", "match_text"])), text_of(var), query, BOOL)
    edits = draw(st.none() | st.integers(0, 2))
    return q.TextSearch(
        "fuzzy", text_of(var), query, BOOL, None if edits is None else draw(constants(params, edits, I64))
    )


@st.composite
def ranks(draw: st.DrawFn, var: str, type_name: str, params: dict[str, Any], *, arm: bool = False) -> q.Rank:
    kinds = ["bm25", *(["nearest"] if type_name == "Aa" else []), *([] if arm else ["rrf"])]
    match draw(st.sampled_from(kinds)):
        case "bm25":
            return q.Bm25(text_of(var), draw(constants(params, draw(st.sampled_from(QUERIES)), STRING)), F32)
        case "nearest":
            vector = q.PropertyRef(var, "h", ValueType("vector", Scalar.F32, nullable=True, dimension=2))
            point = (draw(POINTS), draw(POINTS))
            of = ValueType("vector", Scalar.F32, dimension=2)
            return q.Nearest(vector, draw(constants(params, point, of)), F32)
        case _:
            arms = [draw(ranks(var, type_name, params, arm=True)) for _ in range(2)]
            k = draw(constants(params, draw(st.sampled_from([1, 2, 60])), I64))
            assert not isinstance(arms[0], q.Fused)
            assert not isinstance(arms[1], q.Fused)
            return q.Fused(arms[0], arms[1], k, scalar(Scalar.F64))


@st.composite
def searches(draw: st.DrawFn, graph: Graph) -> tuple[q.ReadQuery, dict[str, Any]]:
    params: dict[str, Any] = {}
    name, type_name = "found", draw(st.sampled_from(["Aa", "Aa", "Cc"]))
    scope = drawn.Scope({name: type_name}, params=params)
    pattern = q.Pattern((q.NodeVar(name, type_name),))
    if draw(st.integers(0, 2)) == 0:
        scope.nodes["other"] = type_name
        hop = draw(drawn.hops(scope, scope.nodes))
        pattern = replace(pattern, nodes=(*pattern.nodes, q.NodeVar("other", type_name)), hops=(hop,) if hop else ())
    named = list(scope.nodes)
    if draw(st.booleans()):
        pattern = replace(pattern, filters=(*pattern.filters, draw(predicates(draw(st.sampled_from(named)), params))))
    if draw(st.integers(0, 3)) == 0:
        inner = q.Pattern((q.NodeVar("inner", "Cc"),), filters=(draw(predicates("inner", params)),))
        block = q.Block(inner, (), negated=draw(st.booleans()))
        if draw(st.booleans()):  # about a variable of the block around it
            block = q.Block(q.Pattern((), filters=(draw(predicates(name, params)),)), (name,), block.negated)
        pattern = replace(pattern, blocks=(block,))
    pattern = drawn.lively(pattern, Oracle(graph, params, drawn.NOW), lambda: draw(st.integers(0, 9)))
    items: list[q.Expr] = [q.SystemRef(each, "id", STRING) for each in named]
    order: list[q.OrderKey] = []
    limit: int | None = draw(st.sampled_from([None, 5, 3, 1, 0]))
    if draw(st.integers(0, 4)):
        rank = draw(ranks(name, type_name, params))
        near = isinstance(rank, q.Nearest)
        order.append(q.OrderKey(rank, not near))
        if not isinstance(rank, q.Fused) and draw(st.booleans()):
            items.append(rank)
            order = [q.OrderKey(rank, not near, len(items) - 1)]
        if not isinstance(rank, q.Bm25):
            limit = draw(st.sampled_from([5, 3, 1, 2, 0]))
    if draw(st.booleans()):
        order.append(q.OrderKey(draw(st.sampled_from(items[: len(named)])), draw(st.booleans())))
    names = tuple(q.ReturnItem(f"c{at}", each) for at, each in enumerate(items))
    return q.ReadQuery("drawn", (), pattern, names, False, tuple(order), limit), params


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), before=graphs(), graph=graphs())
def test_every_search_gives_the_answer_of_the_naive_evaluator_whenever_its_rows_came(
    data: st.DataObject, before: Graph, graph: Graph
) -> None:
    query, params = data.draw(searches(graph))
    memory = MemoryGraph(drawn.CATALOG)
    if data.draw(st.booleans()):
        memory.put(before.nodes, before.edges)
        run_read(query, memory.snapshot(), params, now=drawn.NOW)  # what is made in memory now serves the next version
    both = {**before.nodes, **before.edges}
    memory.put(graph.nodes, graph.edges, remove={name: list(rows) for name, rows in both.items()})
    for _ in range(2):
        answer = run_read(query, memory.snapshot(), params, now=drawn.NOW).table.to_pylist()
        oracle = Oracle(graph, params, drawn.NOW)
        expected = oracle.all_rows(query)
        limit = oracle.limit(query)
        if query.order:
            expected = expected[:limit]
            assert len(answer) == len(expected)
            assert all(same_cell(a, b) for a, b in zip(answer, expected, strict=True)), (answer, expected)
        else:
            assert len(answer) == (len(expected) if limit is None else min(limit, len(expected)))
            assert all(any(same_cell(a, b) for b in expected) for a in answer)
