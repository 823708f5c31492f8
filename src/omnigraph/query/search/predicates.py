"""`search`, `match_text` and `fuzzy` as masks over rows (languages.md 12.1, 12.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.search.text import term_index, word_index
from omnigraph.tables.analysis import TERMS, WORDS, tokens

SCRATCH_ROWS = 200_000
"""Of so many rows at most a text index is made for a query, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What a text has to hold: one of these terms; or, with `edits`, a word within so many of one of these words."""

    tokens: tuple[str, ...]
    edits: int | None = None


def sought(query: str, edits: int | None = None) -> Sought:
    """What a query text asks for. Without any term or word nothing holds it."""
    return Sought(tuple(dict.fromkeys(tokens(query, TERMS if edits is None else WORDS))), edits)


def rows_holding(nodes: NodeRows, field: pa.Field, what: Sought, scratch_rows: int) -> np.ndarray:
    """Ascending row numbers, those of rows that the version no longer has among them.

    Raises FullTextRebuildRequired where the index would be of more rows than `scratch_rows`; StorageFailure.
    """
    if not what.tokens:
        return np.empty(0, np.int64)
    if what.edits is None:
        return term_index(nodes, field, scratch_rows).holding(what.tokens)
    return word_index(nodes, field, scratch_rows).near(what.tokens, what.edits)
