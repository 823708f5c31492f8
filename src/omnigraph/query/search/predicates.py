"""`search`, `match_text` and `fuzzy` as masks over rows (languages.md 12.1, 12.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query.limits import SearchLimits
from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.search.stored import stored_text
from omnigraph.query.search.text import Part, term_index, word_index
from omnigraph.tables.analysis import TERMS, WORDS, tokens


@dataclass(frozen=True, slots=True)
class Sought:
    """What a text has to hold: one of the terms of `text`; or, with `edits`, a word within so many of one of its words.
    `tokens` are those terms or words, each once.
    """

    text: str
    tokens: tuple[str, ...]
    edits: int | None = None


def sought(query: str, edits: int | None = None) -> Sought:
    """What a query text asks for. Without any term or word nothing holds it."""
    return Sought(query, tuple(dict.fromkeys(tokens(query, TERMS if edits is None else WORDS))), edits)


def rows_holding(
    nodes: NodeRows, field: pa.Field, what: Sought, limits: SearchLimits, parts: Sequence[Part] = ("base", "tail")
) -> np.ndarray:
    """Ascending row numbers in these parts of the row space; rows that the version no longer has may be among them.

    Over more rows than an index in memory is made for the index that was built with the table is asked. Raises FullTextRebuildRequired
    where there is none; QueryTimeout, StorageFailure.
    """
    if not what.tokens:
        return np.empty(0, np.int64)
    if len(nodes) > limits.scratch_rows:
        stored = stored_text(nodes, field, limits)
        rows = stored.holding(what.text).rows if what.edits is None else stored.near(what.tokens, what.edits)
        cut = np.searchsorted(rows, len(nodes.columns.space.base))
        return np.concatenate([rows[:cut] if name == "base" else rows[cut:] for name in parts])
    if what.edits is None:
        return term_index(nodes, field).holding(what.tokens, parts)
    return word_index(nodes, field).near(what.tokens, what.edits, parts, limits.check_time)
