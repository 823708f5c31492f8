"""Scores of nodes and the order they give: `nearest`, `bm25`, and both fused by `rrf` (languages.md 12.1, 12.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from omnigraph.lang.query.typed import Bm25, Fused, Nearest, PropertyRef, Rank
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.query.codes import distinct
from omnigraph.query.expressions import Scope, constant_value
from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.rowcolumns import field_of
from omnigraph.query.search.stored import stored_text
from omnigraph.query.search.text import term_index
from omnigraph.query.search.vectors import nearest_rows
from omnigraph.tables.analysis import TERMS, tokens


@dataclass(frozen=True, slots=True)
class Scores:
    """`vertices`, each once, and their scores: F32, or F64 of `rrf`."""

    vertices: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks nodes of one type. `limit`: rows that are wanted at most; what can't be among them may be left out."""

    entity: NodeType
    nodes: NodeRows
    scope: Scope
    limit: int | None

    def by_vertex(self, rank: Rank, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For these live vertices, which may repeat: by vertex number whether it has a score, and which."""
        asked = np.zeros(len(self.nodes.dictionary), bool)
        asked[vertices] = True
        found = self.scores(rank, asked)
        has, values = np.zeros(len(asked), bool), np.zeros(len(asked), found.values.dtype)
        has[found.vertices] = True
        values[found.vertices] = found.values
        return has, values

    def scores(self, rank: Rank, asked: np.ndarray) -> Scores:
        """Of the live vertices that are asked for (by vertex number), those that have a score.

        Raises FullTextRebuildRequired, StorageFailure, EmbeddingFailed.
        """
        match rank:
            case Nearest():
                return self._nearest(rank, asked)
            case Bm25():
                return self._bm25(rank, asked)
            case Fused():
                return self._fused(rank, asked)

    def _nearest(self, rank: Nearest, asked: np.ndarray) -> Scores:
        rows = self.nodes.rows_of(np.flatnonzero(asked).astype(np.int32))
        field = field_of(self.entity, rank.vector.name)
        rows, distances = nearest_rows(self.nodes, field, rows, self._vector(rank), self.limit, self.scope.probes)
        return Scores(self.nodes.vertices_of(rows), distances)

    def _vector(self, rank: Nearest) -> np.ndarray:
        given = constant_value(rank.query, self.scope)
        if isinstance(given, str):
            return self.scope.embedded(given, self.entity, rank.vector.name)
        return np.array(given, np.float32)

    def _bm25(self, rank: Bm25, asked: np.ndarray) -> Scores:
        rows, scores = self._relevance(
            field_of(self.entity, rank.text.name), cast(str, constant_value(rank.query, self.scope))
        )
        found = self.nodes.vertices_of(rows)
        wanted = asked[found]
        return Scores(found[wanted], scores[wanted])

    def _relevance(self, field: pa.Field, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Rows that hold a term of the text, and their scores."""
        if len(self.nodes) <= self.scope.search.scratch_rows:
            return term_index(self.nodes, field).relevance(tokens(text, TERMS))
        found = stored_text(self.nodes, field, self.scope.search).holding(text)
        return found.rows, found.scores

    def _fused(self, rank: Fused, asked: np.ndarray) -> Scores:
        k = int(cast(int, constant_value(rank.k, self.scope)))
        arms = [self._ranked(arm, asked) for arm in (rank.first, rank.second)]
        found = distinct(np.concatenate(arms))
        fused = np.zeros(len(found), np.float64)
        for arm in arms:
            fused[np.searchsorted(found, arm)] += 1.0 / (k + np.arange(1, len(arm) + 1, dtype=np.float64))
        return Scores(found, fused)

    def _ranked(self, arm: Nearest | Bm25, asked: np.ndarray) -> np.ndarray:
        """Vertices in the order of an arm, the best first: by score, then by id; `nearest` names no more than the limit."""
        scores = self.scores(arm, asked)
        ids = self.nodes.dictionary.ranks()[scores.vertices]
        order = np.lexsort((ids, scores.values if isinstance(arm, Nearest) else -scores.values))
        return scores.vertices[order[: self.limit] if isinstance(arm, Nearest) else order]


def ranked_property(rank: Rank) -> PropertyRef:
    """A property of the variable that is ranked."""
    match rank:
        case Nearest():
            return rank.vector
        case Bm25():
            return rank.text
        case Fused():
            return ranked_property(rank.first)
