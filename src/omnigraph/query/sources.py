"""What the query room asks of a stored table: columns of a pinned version, all or some rows of it.

`tables.TableVersion` and `tables.TableStore` satisfy these protocols, so do Arrow tables in tests. Nothing here knows
how rows are stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.manifest.model import TablePin


class SearchIndexes(Protocol):
    """What was built to search a table's rows by, rows that it does not cover included. Every call may raise StorageFailure."""

    def usable(self, column: str, kind: Literal["text", "vector"]) -> bool:
        """Whether there is such an index of the column, made with the settings in use."""
        ...

    def holding(self, column: str, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Addresses of all live rows with a term of the text, and the relevance of each."""
        ...

    def nearest(self, column: str, vector: np.ndarray, count: int, probes: int) -> tuple[np.ndarray, np.ndarray]:
        """Addresses of so many live rows near to a vector, the nearest first, and their squared distances."""
        ...


class TableSource(Protocol):
    """One table at one version. Immutable and thread-safe."""

    @property
    def pin(self) -> TablePin: ...

    @property
    def doubtful(self) -> bool:
        """Damage was met in the table, and what was read before may be wrong. Who opens the version again gets it afresh."""
        ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rows(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    @property
    def search_indexes(self) -> SearchIndexes: ...

    def scan(
        self,
        columns: Iterable[str | pa.Field],
        *,
        filter: Any = None,
        with_row_address: bool = False,
        batch_size: int | None = None,
    ) -> pa.RecordBatchReader:
        """All live rows, the same order at every call. A field that is not stored reads as nulls of its type.

        Raises StorageFailure if a file can't be read.
        """
        ...

    def take(self, addresses: np.ndarray, columns: Iterable[str | pa.Field]) -> pa.Table:
        """The rows at these addresses, in the order asked. All must be live. Raises StorageFailure."""
        ...


class TableOpener(Protocol):
    """Opens tables of one graph root."""

    def open(self, pin: TablePin) -> TableSource: ...
