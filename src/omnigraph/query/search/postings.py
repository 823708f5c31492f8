"""Which texts hold a token, and how often: an inverted index in memory, of some rows of one column.

Made when a query first asks for it and kept with the column. It answers for exactly these rows; which of them are still
current is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.query.codes import distinct
from omnigraph.query.search.pieces import occurrences

_TOKEN_BYTES = 120  # of a string and its place in a dictionary


@dataclass(frozen=True, slots=True)
class Postings:
    """By token: its number, the rows that hold it in ascending order, and how often each does. `lengths`: tokens by row."""

    numbers: Mapping[str, int]
    offsets: np.ndarray  # int64
    rows: np.ndarray  # int32
    counts: np.ndarray  # int32
    lengths: np.ndarray  # int32
    filled: int  # rows that hold a token
    total: int  # tokens of all rows

    @property
    def nbytes(self) -> int:
        arrays = (self.offsets, self.rows, self.counts, self.lengths)
        return sum(each.nbytes for each in arrays) + _TOKEN_BYTES * len(self.numbers)

    def of(self, token: str) -> tuple[np.ndarray, np.ndarray]:
        """Rows that hold the token, and how often."""
        number = self.numbers.get(token)
        if number is None:
            return self.rows[:0], self.counts[:0]
        cut = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
        return self.rows[cut], self.counts[cut]

    def holding(self, tokens: Iterable[str]) -> np.ndarray:
        """Rows that hold at least one of the tokens, ascending."""
        found = [self.of(token)[0] for token in dict.fromkeys(tokens)]
        if len(found) == 1:
            return found[0]
        return distinct(np.concatenate(found)) if found else self.rows[:0]


def postings(texts: pa.Array, analyzer: Mapping[str, Any]) -> Postings:
    """The index of these texts, row by row."""
    found = occurrences(texts, analyzer)
    size = max(len(texts), 1)
    keys, counts = np.unique(found.token * size + found.text, return_counts=True)
    token, row = np.divmod(keys, size)
    lengths = np.bincount(found.text, minlength=len(texts)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(token, minlength=len(found.vocabulary)))]).astype(np.int64)
    return Postings(
        {name: number for number, name in enumerate(found.vocabulary)},
        offsets,
        row.astype(np.int32),
        counts.astype(np.int32),
        lengths,
        int(np.count_nonzero(lengths)),
        int(lengths.sum()),
    )


def close_words(words: Sequence[str], vocabulary: list[str], edits: int, check_time: Callable[[], None]) -> list[str]:
    """The words of a vocabulary within so many edits of one of these: Levenshtein, code point by code point. `check_time` is
    asked for each of them.
    """
    if edits == 0:
        return list(words)
    from rapidfuzz.distance import Levenshtein  # not before somebody asks for it
    from rapidfuzz.process import cdist

    near = np.zeros(len(vocabulary), bool)
    for word in words:
        check_time()
        row = cdist([word], vocabulary, scorer=Levenshtein.distance, score_cutoff=edits, dtype=np.uint8)
        near |= row[0] <= edits
    return [vocabulary[at] for at in np.flatnonzero(near)]
