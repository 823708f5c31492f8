"""Full text over more rows than an index in memory is made for: by the index that was built with the table.

Which rows are found never depends on what that index covers; their scores do a little, since it counts rows that are gone
until it is built anew (languages.md 12.3). `fuzzy` asks no index, here as anywhere: the column goes by in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.errors import FullTextRebuildRequired
from omnigraph.query.limits import SearchLimits
from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.search.postings import close_words, postings
from omnigraph.query.sources import TableSource
from omnigraph.tables.analysis import WORDS

_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows of a version, ascending, and how relevant each is."""

    rows: np.ndarray  # int64
    scores: np.ndarray  # float32

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.scores.nbytes


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text column of a version whose index was built. What was asked last is remembered with the version's columns."""

    nodes: NodeRows
    source: TableSource
    field: pa.Field
    limits: SearchLimits

    def holding(self, text: str) -> Hits:
        """The live rows that hold a term of the text. Raises StorageFailure."""
        return self._once(("terms", text), lambda: self.source.search_indexes.holding(self.field.name, text))

    def near(self, words: Sequence[str], edits: int) -> np.ndarray:
        """The live rows with a word within so many edits of one of these, ascending. Raises QueryTimeout, StorageFailure."""

        def read() -> tuple[np.ndarray, np.ndarray]:
            found = [np.empty(0, np.uint64)]
            for batch in self.source.scan([self.field], with_row_address=True, batch_size=_BATCH_ROWS):
                self.limits.check_time()
                part = postings(batch.column(0), WORDS)
                at = part.holding(close_words(words, list(part.numbers), edits, self.limits.check_time))
                found.append(batch.column(1).to_numpy()[at])
            addresses = np.concatenate(found)
            return addresses, np.zeros(len(addresses), np.float32)

        return self._once(("words", *words, edits), read).rows

    def _once(self, what: tuple[object, ...], find: Callable[[], tuple[np.ndarray, np.ndarray]]) -> Hits:
        def hits() -> Hits:
            addresses, scores = find()
            rows = self.nodes.columns.space.find(addresses)
            order = np.argsort(rows)
            return Hits(rows[order], scores[order])

        return self.nodes.columns.remembered((self.field.name, *what), hits)


def stored_text(nodes: NodeRows, field: pa.Field, limits: SearchLimits) -> StoredText:
    """The text column of a version of more rows than an index in memory is made for, to be searched by its own.

    Raises FullTextRebuildRequired if none is built, or only one that was made otherwise; StorageFailure.
    """
    source = nodes.columns.source
    if source is None or not source.search_indexes.usable(field.name, "text"):
        raise FullTextRebuildRequired(
            f"No full-text index of this property is built, and one over {len(nodes):,} rows is not made for a query:"
            f" fts_scratch_rows allows {limits.scratch_rows:,}. Build it: omnigraph optimize, in Python"
            " graph.maintenance.optimize()."
        )
    return StoredText(nodes, source, field, limits)
