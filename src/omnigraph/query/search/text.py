"""Full text over one property of the nodes of a version, by an index in memory: which rows hold words, and how relevant
they are. What is searched over more rows than that is made for: `stored`.

Rows are numbers of the version's row space, as everywhere in this room. What is computed is exact for the rows that the
version has, whenever they came (languages.md 12.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.search.postings import Postings, close_words, postings
from omnigraph.tables.analysis import TERMS, WORDS

Part = Literal["base", "tail"]
_K1 = 1.2
_B = 0.75
_DENSE_SHARE = 8  # more than one row in so many: sums by row number beat a sort


def term_index(nodes: NodeRows, field: pa.Field) -> TextIndex:
    """The terms of a resident text column, indexed in memory. Raises StorageFailure if the column has to be read and can't
    be.
    """
    return _index(nodes, field, "terms", TERMS)


def word_index(nodes: NodeRows, field: pa.Field) -> TextIndex:
    """The same of its words."""
    return _index(nodes, field, "words", WORDS)


def _index(nodes: NodeRows, field: pa.Field, kind: str, analyzer: Mapping[str, Any]) -> TextIndex:
    base, tail = nodes.columns.derived(field, kind, lambda texts: postings(texts, analyzer))
    return TextIndex(nodes, base, tail)


@dataclass(frozen=True, slots=True)
class TextIndex:
    """The rows of a version: those of the base, and those behind it. Rows that the version no longer has may be in both."""

    nodes: NodeRows
    base: Postings
    tail: Postings

    @property
    def parts(self) -> dict[Part, tuple[int, Postings]]:
        """Each with the number of its first row."""
        return {"base": (0, self.base), "tail": (len(self.nodes.columns.space.base), self.tail)}

    def holding(self, tokens: Sequence[str], parts: Sequence[Part]) -> np.ndarray:
        """Rows of these parts that hold at least one of the tokens, ascending; dead ones among them."""
        return self._rows(parts, lambda part: part.holding(tokens))

    def near(
        self, words: Sequence[str], edits: int, parts: Sequence[Part], check_time: Callable[[], None]
    ) -> np.ndarray:
        """Rows of these parts with a word within so many edits of one of these, ascending; dead ones among them."""
        return self._rows(parts, lambda part: part.holding(close_words(words, list(part.numbers), edits, check_time)))

    def _rows(self, parts: Sequence[Part], find: Callable[[Postings], np.ndarray]) -> np.ndarray:
        asked = [self.parts[name] for name in parts]
        return np.concatenate([find(part) + np.int64(first) for first, part in asked])

    def relevance(self, terms: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """BM25 of every live row that holds a term, ascending rows and F32 scores: k₁ 1.2, b 0.75, repeated terms as often
        as they stand, statistics over all live rows that hold any term at all.
        """
        dead = self._dead()
        lengths = [part.lengths[dead[name]] for name, (_, part) in self.parts.items()]
        filled = self.base.filled + self.tail.filled - sum(int(np.count_nonzero(each)) for each in lengths)
        total = self.base.total + self.tail.total - sum(int(each.sum()) for each in lengths)
        rows: list[np.ndarray] = []
        weights: list[np.ndarray] = []
        for term, times in Counter(terms).items():
            found = [(first, part, *_live_of(part, term, dead[name])) for name, (first, part) in self.parts.items()]
            holders = sum(len(at) for _, _, at, _ in found)
            idf = np.log1p((filled - holders + 0.5) / (holders + 0.5))
            for first, part, at, counts in found:
                norm = _K1 * (1 - _B + _B * part.lengths[at] * (filled / max(total, 1)))
                rows.append(at + np.int64(first))
                weights.append(times * idf * counts * (_K1 + 1) / (counts + norm))
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return _summed(np.concatenate(rows), np.concatenate(weights), len(self.nodes.columns.space))

    def _dead(self) -> dict[Part, np.ndarray]:
        """Rows of the base and of the tail that the version no longer has, counted from the first of each."""
        nodes, size = self.nodes, len(self.nodes.columns.space.base)
        if nodes.overlay_size == 0:
            none = np.empty(0, np.int64)
            return {"base": none, "tail": none}
        inside = nodes.changed[nodes.changed < len(nodes.base.row_of_vertex)]
        replaced = nodes.base.row_of_vertex[inside].astype(np.int64)
        replaced = replaced[replaced >= 0]
        tail = np.arange(size, len(nodes.columns.space))
        return {"base": replaced[~nodes.current(replaced)], "tail": tail[~nodes.current(tail)] - size}


def _live_of(part: Postings, term: str, dead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a part that hold the term and are not dead, and how often each does."""
    rows, counts = part.of(term)
    if len(dead) == 0:
        return rows, counts
    live = ~np.isin(rows, dead)
    return rows[live], counts[live]


def _summed(rows: np.ndarray, weights: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    if len(rows) * _DENSE_SHARE > size:
        sums = np.bincount(rows, weights, minlength=size)
        distinct = np.flatnonzero(np.bincount(rows, minlength=size))
        return distinct, sums[distinct].astype(np.float32)
    distinct, place = np.unique(rows, return_inverse=True)
    return distinct, np.bincount(place, weights, minlength=len(distinct)).astype(np.float32)
