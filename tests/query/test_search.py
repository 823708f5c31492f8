"""Search against the naive evaluator, and against what the chapter says in numbers (languages.md 12)."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import FullTextRebuildRequired, QueryTimeout
from omnigraph.lang.query import typed as q
from omnigraph.lang.types import BOOL, I64, STRING, Scalar, ValueType, scalar
from omnigraph.manifest.model import TablePin
from omnigraph.query.limits import QuerySettings, SearchLimits
from omnigraph.query.residency import MemoryBudget, Residency
from omnigraph.query.residency.dictionary import KeyDictionary
from omnigraph.query.residency.nodes import NodeRows, load_nodes
from omnigraph.query.rowcolumns import field_of
from omnigraph.query.run import run_read
from omnigraph.query.search import stored as stored_text
from omnigraph.query.search import vectors
from omnigraph.query.search.predicates import rows_holding, sought
from omnigraph.query.search.vectors import nearest_rows
from omnigraph.tables.columns import ID
from omnigraph.tables.searching import SearchIndexes
from support import random_graphs as drawn
from support.memory_graphs import MemoryGraph, MemoryTable, catalog_of, harbour
from support.oracle import Graph, Oracle, same_cell
from support.stored_graphs import StoredGraph

SHELF = catalog_of("""
node Book { title: String @key  about: String @index  place: Vector(2)? }
node Shelf { code: String @key }
edge Holds: Shelf -> Book
""")
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


VECTOR = pa.field("v", pa.list_(pa.float32(), 32))


def load_nodes_of(ids: pa.Table, vectors: np.ndarray) -> NodeRows:
    """Nodes with a vector each, in a table in memory."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 32)
    table = pa.table({ID: ids.column("n").cast(pa.string()), "v": column})
    pin = TablePin("nodes/t", 1)
    return load_nodes(KeyDictionary(), MemoryTable(pin, table, np.arange(table.num_rows, dtype=np.uint64)))


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
    pattern = drawn.lively(pattern, Oracle(graph, params, drawn.NOW), lambda: draw(st.integers(0, 9)))
    named = list(scope.nodes)
    if draw(st.booleans()):
        pattern = replace(pattern, filters=(*pattern.filters, draw(predicates(draw(st.sampled_from(named)), params))))
    if draw(st.integers(0, 3)) == 0:
        inner = q.Pattern((q.NodeVar("inner", "Cc"),), filters=(draw(predicates("inner", params)),))
        block = q.Block(inner, (), negated=draw(st.booleans()))
        if draw(st.booleans()):  # about a variable of the block around it
            block = q.Block(q.Pattern((), filters=(draw(predicates(name, params)),)), (name,), block.negated)
        pattern = replace(pattern, blocks=(block,))
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


# --- by indexes that were built with the tables


def scored(query: q.ReadQuery) -> q.ReadQuery:
    """The query with its relevance among what it returns."""
    rank = query.order[0].expr if query.order else None
    if not isinstance(rank, q.Bm25) or any(item.expr == rank for item in query.items):
        return query
    first = replace(query.order[0], item=len(query.items))
    items = (*query.items, q.ReturnItem("relevance", rank))
    return replace(query, items=items, order=(first, *query.order[1:]))


def check(query: q.ReadQuery, answer: list[dict[str, Any]], oracle: Oracle, *, exact: bool) -> None:
    """The rows are those of the naive evaluator. An order by relevance is judged by the scores, which are those of the
    formula only if the index counts what there is and nothing else (`exact`).
    """
    expected, limit = oracle.all_rows(query), oracle.limit(query)
    rank = query.order[0].expr if query.order else None
    assert len(answer) == (len(expected) if limit is None else min(limit, len(expected)))
    if isinstance(rank, q.Bm25):
        name = next(item.name for item in query.items if item.expr == rank)
        scores = [row[name] for row in answer]
        assert scores == sorted(scores, reverse=True)
        if exact:
            assert scores == pytest.approx([row[name] for row in expected[: len(answer)]], rel=1e-5)
        rows = [[repr(row | {name: None}) for row in each] for each in (answer, expected)]
        assert all(rows[0].count(each) <= rows[1].count(each) for each in rows[0])
    elif isinstance(rank, q.Fused) and any(isinstance(arm, q.Bm25) for arm in (rank.first, rank.second)):
        assert all(any(same_cell(a, b) for b in expected) for a in answer)
    elif query.order:
        assert all(same_cell(a, b) for a, b in zip(answer, expected, strict=False)), (answer, expected)
    else:
        assert all(any(same_cell(a, b) for b in expected) for a in answer)


@st.composite
def plain_searches(draw: st.DrawFn) -> list[q.ReadQuery]:
    """One of each kind, asked of all nodes of a type."""
    found: list[q.ReadQuery] = []
    texts, point = st.sampled_from(QUERIES), (draw(POINTS), draw(POINTS))
    for name in ("Aa", "Cc"):
        text = text_of("n")
        rank = q.Bm25(text, q.Constant(draw(texts), STRING), F32)
        items = (q.ReturnItem("id", q.SystemRef("n", "id", STRING)), q.ReturnItem("score", rank))
        everything = q.Pattern((q.NodeVar("n", name),))
        found.append(q.ReadQuery("ranked", (), everything, items, False, (q.OrderKey(rank, True, 1),), None))
        edits = q.Constant(draw(st.integers(0, 2)), I64)
        for held in (
            q.TextSearch("search", text, q.Constant(draw(texts), STRING), BOOL),
            q.TextSearch("fuzzy", text, q.Constant(draw(texts), STRING), BOOL, edits),
        ):
            found.append(q.ReadQuery("held", (), replace(everything, filters=(held,)), items[:1], False, (), None))
    vector = q.PropertyRef("n", "h", ValueType("vector", Scalar.F32, nullable=True, dimension=2))
    near = q.Nearest(vector, q.Constant(point, ValueType("vector", Scalar.F32, dimension=2)), F32)
    items = (q.ReturnItem("id", q.SystemRef("n", "id", STRING)), q.ReturnItem("apart", near))
    everything = q.Pattern((q.NodeVar("n", "Aa"),))
    for limit in (1, 3):
        found.append(q.ReadQuery("near", (), everything, items, False, (q.OrderKey(near, False, 1),), limit))
    return found


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), before=graphs(), graph=graphs(), plain=plain_searches())
def test_every_search_gives_the_answer_of_the_naive_evaluator_whatever_its_indexes_cover(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    data: st.DataObject,
    before: Graph,
    graph: Graph,
    plain: list[q.ReadQuery],
) -> None:
    """Built before rows were written, updated and deleted; built again over what came since; built anew as a whole."""
    monkeypatch.setattr(vectors, "EFFORT", vectors.Effort(numbers=0, rows_left=1, surplus=0))
    monkeypatch.setattr(stored_text, "_BATCH_ROWS", 2)
    query, params = data.draw(searches(graph))
    queries = (scored(query), *plain)
    stored = StoredGraph(drawn.CATALOG, tmp_path_factory.mktemp("stored"))
    stored.put(before.nodes, before.edges)
    kept = {name: dict(list(rows.items())[:2]) for name, rows in graph.nodes.items()}
    stored.put(kept)  # some rows of the graph are there already, covered by what is built now
    stored.index()
    held = {name: set(before.nodes[name]) | set(kept[name]) for name in kept}
    gone = {name: sorted(held[name] - set(kept[name])) for name in held} | {e: list(r) for e, r in before.edges.items()}
    rest = {
        name: {key: row for key, row in rows.items() if key not in kept[name]} for name, rows in graph.nodes.items()
    }
    stored.put(rest, graph.edges, remove=gone)
    oracle = Oracle(graph, params, drawn.NOW)
    by_index = QuerySettings(fts_scratch_rows=0, ann_nprobes=0)
    for state in data.draw(st.permutations(["as it is", "further", "whole"])):
        if state != "as it is":
            stored.index(full=state == "whole")
        for snapshot in (stored.snapshot(), stored.snapshot(memory_free())):
            for each in queries:
                answer = run_read(each, snapshot, params, now=drawn.NOW, settings=by_index).table.to_pylist()
                check(each, answer, oracle, exact=state == "whole")
        answer = run_read(queries[0], stored.snapshot(), params, now=drawn.NOW).table.to_pylist()
        check(queries[0], answer, oracle, exact=True)


PLACES = catalog_of("node Place { k: I64 @key  at: Vector(4)? }")


def near_by_index(graph: StoredGraph, rows: np.ndarray, query: np.ndarray, wanted: int, probes: int = 0) -> list[int]:
    """The wanted number of those rows, the nearest first; checks that the distances are true."""
    found, distances = nearest_rows(graph.snapshot().nodes("Place"), PLACE, rows, query, wanted, probes)
    true = np.square(places(graph)[found] - query).sum(1)
    assert distances == pytest.approx(true, rel=1e-5)
    return found[np.lexsort((found, distances))][:wanted].tolist()


PLACE = pa.field("at", pa.list_(pa.float32(), 4))


def places(graph: StoredGraph) -> np.ndarray:
    nodes = graph.snapshot().nodes("Place")
    column = nodes.columns.peek(PLACE, np.arange(len(nodes)))
    return np.array([[np.nan] * 4 if each is None else each for each in column.to_pylist()], np.float32)


def test_an_index_of_vectors_fills_the_limit_and_keeps_out_what_was_not_asked_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EFFORT", vectors.Effort(numbers=1_000))
    draw = np.random.default_rng(3)
    at = draw.normal(size=(2_000, 4)).round(1)
    at[1_900:] = at[0]  # a hundred that tie
    graph = StoredGraph(PLACES, tmp_path)
    graph.put({"Place": {str(n): {"k": n, **({} if n % 9 == 4 else {"at": row})} for n, row in enumerate(at.tolist())}})
    graph.index()
    asked: list[int] = []
    nearest = graph.snapshot().nodes("Place").columns.source.search_indexes.nearest  # type: ignore[union-attr]
    monkeypatch.setattr(SearchIndexes, "nearest", lambda _, *given: asked.append(given[2]) or nearest(*given))
    everything, some = np.arange(2_000), np.arange(0, 2_000, 3)
    for rows in (everything, some):
        for query in (np.zeros(4, np.float32), at[0].astype(np.float32)):
            apart = np.square(places(graph)[rows] - query).sum(1)
            best = rows[np.lexsort((rows, apart))]
            for probes in (0, 1):
                found = near_by_index(graph, rows, query, 10, probes)
                assert len(found) == 10
                assert set(found) <= set(rows.tolist())
                assert probes or found == best[:10].tolist()
    assert asked
    assert max(asked) * vectors.EFFORT.rows_left <= 2_000
    assert "at" not in graph.snapshot().nodes("Place").columns


def test_few_rows_of_an_indexed_column_are_looked_up_and_the_column_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EFFORT", vectors.Effort(numbers=1_000))
    graph = StoredGraph(PLACES, tmp_path)
    graph.put({"Place": {str(n): {"k": n, **({} if n == 7 else {"at": [n, 0, 0, 0]})} for n in range(400)}})
    graph.index()
    query = np.array([7.2, 0, 0, 0], np.float32)
    assert near_by_index(graph, np.arange(5, 12), query, 3) == [8, 6, 9]
    assert near_by_index(graph, np.arange(400), query, 3) == [8, 6, 9]
    assert "at" not in graph.snapshot().nodes("Place").columns


def test_what_an_index_found_is_remembered_until_a_few_others_were_asked_for(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = StoredGraph(SHELF, tmp_path)
    books = {f"b{n}": {"title": f"b{n}", "about": f"ship {n}"} for n in range(20)}
    graph.put({"Book": books})
    graph.index()
    asked: list[str] = []
    holding = SearchIndexes.holding
    monkeypatch.setattr(SearchIndexes, "holding", lambda of, *given: asked.append(given[1]) or holding(of, *given))

    def found(query: str) -> list[str]:
        text = "query q($q: String) { match { $b: Book  search($b.about, $q) } return { $b.title } order { bm25($b.about, $q) } }"
        return titles(ask, graph, text, q=query, settings=QuerySettings(fts_scratch_rows=0))

    assert found("7") == found("7") == ["b7"]
    graph.put({"Book": {"late": {"title": "late", "about": "ships 7"}}})
    assert sorted(found("7")) == ["b7", "late"]  # base and tail, filter and rank: one question for each version
    assert asked == ["7", "7"]
    for n in range(8):
        found(str(n + 10))
    asked.clear()
    found("17")
    found("7")
    assert asked == ["7"]


def memory_free() -> Residency:
    return Residency(MemoryBudget(1 << 28))


# --- what the chapter says in numbers


@pytest.fixture
def shelf() -> MemoryGraph:
    graph = MemoryGraph(SHELF)
    books = {
        "x": {"title": "x", "about": "ship ship ship sea", "place": [0.0, 0.0]},
        "y": {"title": "y", "about": "ship ship sea land", "place": [0.0, 1.0]},
        "z": {"title": "z", "about": "sea land sky moon", "place": [0.0, 2.0]},
        "w": {"title": "w", "about": "the of and", "place": None},
    }
    graph.put({"Book": books, "Shelf": {"s": {"code": "s"}}}, {"Holds": {"h": ("s", "z", {})}})
    return graph


def titles(ask: Any, graph: MemoryGraph, text: str, **params: Any) -> list[str]:
    return [row["b.title"] for row in ask(graph, text, **params).table.to_pylist()]


def test_the_vessels_nearest_to_a_point_and_none_without_a_vector(ask: Any) -> None:
    found = ask(
        harbour(),
        "match { $v: Vessel } return { $v.title, nearest($v.hull, [0, 1]) as d } order { nearest($v.hull, [0, 1]) } limit 5",
    )
    assert found.table.to_pylist() == [{"v.title": "Alma", "d": 1.0}, {"v.title": "Brig", "d": 18.0}]
    assert found.types == ("String", "F32")


def test_relevance_is_that_of_the_formula(ask: Any, shelf: MemoryGraph) -> None:
    text = 'match { $b: Book } return { $b.title, bm25($b.about, "ships") as s } order { bm25($b.about, "ships") }'
    rows = ask(shelf, text).table.to_pylist()
    # n 3 (w holds stop words alone), of which 2 hold the term; every text has 4 terms, so |d|/avg is 1
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    expected = {"x": idf * 3 * 2.2 / (3 + 1.2), "y": idf * 2 * 2.2 / (2 + 1.2)}
    assert [row["b.title"] for row in rows] == ["x", "y"]
    assert {row["b.title"]: row["s"] for row in rows} == pytest.approx(expected, rel=1e-6)


def test_a_score_may_stand_in_an_expression_and_in_a_later_key(ask: Any, shelf: MemoryGraph) -> None:
    text = """match { $b: Book } return { $b.title, bm25($b.about, "ship") > 0.7 as good }
      order { bm25($b.about, "ship"), good } limit 5"""
    assert ask(shelf, text).table.to_pylist() == [{"b.title": "x", "good": True}, {"b.title": "y", "good": False}]


def test_filters_come_first_ranks_afterwards_the_limit_last(ask: Any, shelf: MemoryGraph) -> None:
    near = "order { nearest($b.place, [0, 0]) } limit 1"
    assert titles(ask, shelf, f"match {{ $b: Book }} return {{ $b.title }} {near}") == ["x"]
    assert titles(ask, shelf, f"match {{ $s: Shelf  $s holds $b }} return {{ $b.title }} {near}") == ["z"]
    # statistics are those of the type, whatever the block leaves: the score is not that of one text alone
    text = 'match { $s: Shelf  $s holds $b } return { bm25($b.about, "sea") as s } order { bm25($b.about, "sea") }'
    assert ask(shelf, text).table.to_pylist() == [{"s": pytest.approx(math.log(1 + 0.5 / 3.5) * 2.2 / 2.2, rel=1e-6)}]


def test_reciprocal_ranks_add_up(ask: Any, shelf: MemoryGraph) -> None:
    # x is 1st of the near and 1st of the relevant, y 2nd and 2nd, z 3rd of the near alone
    fused = 'match { $b: Book } return { $b.title } order { rrf(nearest($b.place, [0, 0]), bm25($b.about, "ship")) }'
    assert titles(ask, shelf, f"{fused} limit 5") == ["x", "y", "z"]
    # the arm of `nearest` names no more than the limit: z is in neither arm
    assert titles(ask, shelf, f"{fused} limit 2") == ["x", "y"]


def test_predicates_stem_and_words_do_not(ask: Any, shelf: MemoryGraph) -> None:
    assert sorted(titles(ask, shelf, 'match { $b: Book  search($b.about, "shipping") } return { $b.title }')) == [
        "x",
        "y",
    ]
    assert titles(ask, shelf, 'match { $b: Book  fuzzy($b.about, "shipping") } return { $b.title }') == []
    assert titles(ask, shelf, 'match { $b: Book  fuzzy($b.about, "moons", 1) } return { $b.title }') == ["z"]
    assert titles(ask, shelf, 'match { $b: Book  fuzzy($b.about, "moons", 0) } return { $b.title }') == []
    assert titles(ask, shelf, 'match { $b: Book  search($b.about, "the of") } return { $b.title }') == []
    negated = "match { $b: Book  not { $b: Book  search($b.about, $q) } } return { $b.title }"
    assert sorted(titles(ask, shelf, f"query q($q: String?) {{ {negated} }}", q="ship")) == ["w", "z"]
    assert sorted(titles(ask, shelf, f"query q($q: String?) {{ {negated} }}", q=None)) == ["w", "x", "y", "z"]


def test_a_text_index_over_too_many_rows_is_refused_and_says_what_allows_it(ask: Any, shelf: MemoryGraph) -> None:
    text = 'match { $b: Book  search($b.about, "ship") } return { $b.title }'
    with pytest.raises(FullTextRebuildRequired, match="fts_scratch_rows") as caught:
        ask(shelf, text, settings=QuerySettings(fts_scratch_rows=3))
    assert caught.value.code == "full_text_rebuild_required"
    assert "omnigraph optimize" in caught.value.message
    assert ask(shelf, text, settings=QuerySettings(fts_scratch_rows=4)).table.num_rows == 2


@pytest.mark.parametrize("rows", [5_000, 60_000])
def test_the_nearest_of_many_are_those_of_a_plain_computation(ask: Any, rows: int) -> None:
    draw = np.random.default_rng(7)
    vectors = draw.integers(-3, 4, (rows, 32)).astype(np.float32)  # many ties, all exact
    table = pa.table({"n": pa.array(range(rows), pa.int64())})
    nodes = load_nodes_of(table, vectors)
    query = draw.integers(-3, 4, 32).astype(np.float32)
    exact = ((vectors - query) ** 2).sum(axis=1)
    for wanted in (1, 10, 700):
        found, distances = nearest_rows(nodes, VECTOR, np.arange(rows), query, wanted)
        assert np.array_equal(distances, exact[found])
        assert set(np.flatnonzero(exact <= np.sort(exact)[wanted - 1])) <= set(found.tolist())
        assert len(found) < rows or rows * 32 <= 1 << 20


def test_distances_that_overflow_are_computed_all_the_same() -> None:
    vectors = np.full((40_000, 32), 3e38, np.float32)
    vectors[17] = 0
    nodes = load_nodes_of(pa.table({"n": pa.array(range(40_000), pa.int64())}), vectors)
    found, distances = nearest_rows(nodes, VECTOR, np.arange(40_000), np.zeros(32, np.float32), 1)
    assert found[np.argmin(distances)] == 17


def test_the_time_of_a_query_is_asked_while_a_column_of_texts_goes_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_text, "_BATCH_ROWS", 2)
    graph = StoredGraph(catalog_of("node Memo { k: I64 @key  about: String? @index }"), tmp_path)
    graph.put({"Memo": {str(n): {"k": n, "about": f"harbour {n}"} for n in range(10)}})
    graph.index()
    entity, looks = graph.catalog.nodes["Memo"], list[int]()

    def late() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise QueryTimeout("late", resource="query_timeout_ms", limit=1, actual=2)

    nodes, field = graph.snapshot().nodes("Memo"), field_of(entity, "about")
    with pytest.raises(QueryTimeout):
        rows_holding(nodes, field, sought("harbor", 1), SearchLimits(0, late))
    assert len(rows_holding(nodes, field, sought("harbor", 1), SearchLimits(0, late))) == 10
    assert len(looks) == 3 + 5 * 2, "for each batch, and for each word that is looked for in it"
