"""`search`, `match_text` and `fuzzy` as masks over rows (languages.md 12.1, 12.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.search.text import Part, term_index, word_index
from omnigraph.tables.analysis import TERMS, WORDS, tokens


@dataclass(frozen=True, slots=True)
class Sought:
    """What a text has to hold: one of these terms; or, with `edits`, a word within so many of one of these words."""

    tokens: tuple[str, ...]
    edits: int | None = None


def sought(query: str, edits: int | None = None) -> Sought:
    """What a query text asks for. Without any term or word nothing holds it."""
    return Sought(tuple(dict.fromkeys(tokens(query, TERMS if edits is None else WORDS))), edits)


def rows_holding(
    nodes: NodeRows, field: pa.Field, what: Sought, scratch_rows: int, parts: Sequence[Part] = ("base", "tail")
) -> np.ndarray:
    """Ascending row numbers in these parts of the row space, those of rows that the version no longer has among them.

    Raises FullTextRebuildRequired where the index would be of more rows than `scratch_rows`; StorageFailure.
    """
    if not what.tokens:
        return np.empty(0, np.int64)
    if what.edits is None:
        return term_index(nodes, field, scratch_rows).holding(what.tokens, parts)
    return word_index(nodes, field, scratch_rows).near(what.tokens, what.edits, parts)
