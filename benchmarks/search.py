"""Text, vector and hybrid search beside LanceDB: same answers first, then times in turns.

Texts are definitions of WordNet, as many as are wanted, some of them more than once; vectors are drawn in clusters. LanceDB
has its full-text index with the settings that this project searches with, which it builds beforehand; here the index is
made in memory at the first query. Both search all vectors, so that both have a recall of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

import omnigraph
from benchmarks.report import Row, Section, Verdict, judged
from benchmarks.timing import Times, in_turns, ratio, shown
from benchmarks.traversal import AnswersDiffer
from examples.wordnet.records import read
from omnigraph.tables.analysis import TERMS

RATIO_MAX = 1.2
LIMIT = 10
_SEED = 20261130
_QUERIES = 8
_WORDS = (
    "hunting dog", "member of a genus of trees", "musical instrument played with a bow", "the act of moving water",
    "a person who makes shoes", "disease of the heart", "small ship with sails", "color of blood",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SearchSize:
    texts: int
    dimensions: int


FULL = SearchSize(200_000, 128)
SMALL = SearchSize(5_000, 32)


@dataclass(frozen=True, slots=True)
class Searched:
    """One kind of search, in seconds of a round of queries."""

    name: str
    ours: Times
    theirs: Times


def measure_search(data: Path, scratch: Path, *, size: SearchSize, rounds: int) -> tuple[Searched, ...]:
    """Raises AnswersDiffer."""
    rows = _rows(data, size)
    draw = np.random.default_rng(_SEED + 1)
    points = _clustered(draw, _QUERIES, size.dimensions)
    ours, theirs = _Ours(rows, size, scratch / "search-graph"), _LanceDB(rows, scratch / "search-lancedb")
    kinds: dict[str, Callable[[Any, int], pa.Table]] = {
        "text, relevance": lambda engine, at: engine.text(_WORDS[at]),
        "vector, all of them compared": lambda engine, at: engine.vector(points[at]),
        "both, fused": lambda engine, at: engine.both(_WORDS[at], points[at]),
    }
    found: list[Searched] = []
    for name, ask in kinds.items():
        for at in range(_QUERIES):
            _compare(name, ask(ours, at), ask(theirs, at))
        contestants = {
            "ours": lambda ask=ask: [ask(ours, at) for at in range(_QUERIES)],
            "theirs": lambda ask=ask: [ask(theirs, at) for at in range(_QUERIES)],
        }
        times = in_turns(contestants, rounds=rounds)
        found.append(Searched(name, times["ours"], times["theirs"]))
    return tuple(found)


def _rows(data: Path, size: SearchSize) -> pa.Table:
    records = cast("Iterable[Any]", read(data))
    definitions = [each["data"]["definition"] for each in records if each.get("type") == "Synset"]
    texts = (definitions * (size.texts // max(len(definitions), 1) + 1))[: size.texts]
    vectors = _clustered(np.random.default_rng(_SEED), size.texts, size.dimensions)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), size.dimensions)
    return pa.table({"n": pa.array(range(size.texts), pa.int64()), "text": texts, "place": column})


def _clustered(draw: np.random.Generator, count: int, dimensions: int) -> np.ndarray:
    """Points around a hundred others, which are the same at every call."""
    middles = np.random.default_rng(_SEED).standard_normal((100, dimensions), np.float32)
    apart = draw.standard_normal((count, dimensions), np.float32) / 3
    return middles[draw.integers(0, len(middles), count)] + apart


def _compare(name: str, ours: pa.Table, theirs: pa.Table) -> None:
    """The best have the same scores, whichever of equals are among them, but for the possessive `s`, which LanceDB does not
    count as a term (8 % of a short text's score was seen). Fused ranks depend on how many each arm names,
    which the engines don't ask alike: there only the number of rows.
    """
    if ours.num_rows != theirs.num_rows:
        raise AnswersDiffer(f"{name}: {ours.num_rows} rows and {theirs.num_rows}")
    if "score" in ours.column_names:
        scores = [np.sort(np.asarray(each.column("score"))) for each in (ours, theirs)]
        if not np.allclose(*scores, rtol=0.1):
            raise AnswersDiffer(f"{name}: scores {scores[0]} and {scores[1]}")


class _Ours:
    def __init__(self, rows: pa.Table, size: SearchSize, root: Path) -> None:
        vector = f"Vector({size.dimensions})"
        self._graph = omnigraph.init(root, schema=f"node Text {{ n: I64 @key  text: String @index  place: {vector} }}")
        self._graph.load(rows, type="Text", mode="overwrite", progress=False)
        match = "match { $t: Text } return { $t.n as n"
        relevance, distance = "bm25($t.text, $words)", "nearest($t.place, $like)"
        tail = f"limit {LIMIT} }}"
        self._text = f"query q($words: String) {{ {match}, {relevance} as score }} order {{ {relevance} }} {tail}"
        self._vector = f"query q($like: {vector}) {{ {match}, {distance} as score }} order {{ {distance} }} {tail}"
        fused = f"order {{ rrf({distance}, {relevance}) }} {tail}"
        self._both = f"query q($words: String, $like: {vector}) {{ {match} }} {fused}"

    def text(self, words: str) -> pa.Table:
        return self._graph.query(self._text, {"words": words}).table

    def vector(self, like: np.ndarray) -> pa.Table:
        return self._graph.query(self._vector, {"like": like}).table

    def both(self, words: str, like: np.ndarray) -> pa.Table:
        return self._graph.query(self._both, {"words": words, "like": like}).table


class _LanceDB:
    def __init__(self, rows: pa.Table, root: Path) -> None:
        import lancedb
        from lancedb.index import FTS

        self._table: Any = lancedb.connect(root).create_table("texts", rows)
        self._table.create_index("text", config=FTS(with_position=False, **TERMS))

    def text(self, words: str) -> pa.Table:
        found = self._table.search(words, query_type="fts").select(["n", "_score"]).limit(LIMIT).to_arrow()
        return found.rename_columns({"_score": "score"})

    def vector(self, like: np.ndarray) -> pa.Table:
        found = self._table.search(like).select(["n", "_distance"]).limit(LIMIT).to_arrow()
        return found.rename_columns({"_distance": "score"})

    def both(self, words: str, like: np.ndarray) -> pa.Table:
        asked = self._table.search(query_type="hybrid").vector(like).text(words)
        return asked.select(["n"]).limit(LIMIT).to_arrow().drop_columns(["_relevance_score"])


def search_section(found: tuple[Searched, ...], *, size: SearchSize) -> Section:
    """Targets are about the full size."""

    def row(each: Searched) -> Row:
        times = ratio(each.ours, each.theirs)
        cells = (
            each.name, shown(each.ours.median / _QUERIES), shown(each.theirs.median / _QUERIES), f"{times:.2f}",
            f"at most {RATIO_MAX}",
        )  # fmt: skip
        return Row(cells, judged(times <= RATIO_MAX) if size == FULL else Verdict.NONE)

    about = (
        f"The best {LIMIT} of {size.texts:,} texts with vectors of {size.dimensions} numbers, a query on average, warm, in"
        f" {len(found[0].ours.seconds)} rounds of {_QUERIES}. LanceDB searches the texts by its index and the vectors one"
        " by one, as we do: both have a recall of 1. The best scores of both are compared first."
    )
    header = ("search", "here", "LanceDB", "ratio", "target")
    return Section("Search beside LanceDB", about, header, tuple(map(row, found)))
