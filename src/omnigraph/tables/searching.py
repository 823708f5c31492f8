"""What the search indexes of one table version answer: rows by the words of a text, rows by the nearness of a vector.

Rows that an index does not cover are searched too, by the library and with the same analyzer, so which rows come never
depends on what is covered (tests/tables/test_searching.py). Knows nothing of what a query does with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import lance
import numpy as np
from lance.query import MatchQuery

from omnigraph.errors import StoragePhase
from omnigraph.tables.columns import ROW_ADDRESS
from omnigraph.tables.coverage import ColumnIndex, Kind, described, search_index_name
from omnigraph.tables.failures import Read, storage_failures

_PARTITIONS_ALL: Final = 1 << 20  # more than any index has
_REFINED: Final = 10  # times as many candidates of a quantised index are compared by their vectors


class SearchIndexes:
    """Of one version; `of` is who reads it. `left_out` are fragments whose rows are not part of the state."""

    def __init__(self, dataset: lance.LanceDataset, of: Read, left_out: Sequence[int] = ()) -> None:
        self._dataset = dataset
        self._of = of
        self._left_out = np.array(left_out, np.uint64)

    @cached_property
    def described(self) -> dict[str, ColumnIndex]:
        """All indexes by name. Raises what the library raises."""
        return described(self._dataset)

    def usable(self, column: str, kind: Kind) -> bool:
        """Whether there is an index of the column that means what this program means by it. That of vectors is not asked of
        a part of a version, of which nobody could say whether enough was found. Raises StorageFailure (phase read).
        """
        if kind == "vector" and len(self._left_out):
            return False
        with storage_failures(StoragePhase.READ, self._of):
            found = self.described.get(search_index_name(column, kind))
        return found is not None and found.expected

    def holding(self, column: str, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Addresses of all live rows with a term of the text, ascending, and how relevant each is: uint64 and float32.
        Raises StorageFailure (phase read).
        """
        addresses, scores = self._found("_score", full_text_query=MatchQuery(text, column))
        if len(self._left_out):
            kept = ~np.isin(addresses >> np.uint64(32), self._left_out)
            addresses, scores = addresses[kept], scores[kept]
        order = np.argsort(addresses)
        return addresses[order], scores[order]

    def nearest(self, column: str, vector: np.ndarray, count: int, probes: int) -> tuple[np.ndarray, np.ndarray]:
        """Addresses of so many live rows near to a vector, the nearest first, and their squared distances. `probes`: of how
        many partitions an index looks at; 0: at all. Raises StorageFailure (phase read).
        """
        asked = {
            "column": column,
            "q": vector,
            "k": count,
            "nprobes": probes or _PARTITIONS_ALL,
            "refine_factor": _REFINED,
        }
        return self._found("_distance", nearest=asked)

    def _found(self, value: str, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        with storage_failures(StoragePhase.READ, self._of):
            table = self._dataset.scanner(  # pyright: ignore[reportUnknownMemberType]
                columns=[value], with_row_address=True, disable_scoring_autoprojection=True, **options
            ).to_table()
        return table.column(ROW_ADDRESS).to_numpy(), table.column(value).to_numpy()
