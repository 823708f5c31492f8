"""The interface of the relational tail, and the choice between its engines.

Arrow kernels and NumPy answer small and single-key work in microseconds; a DuckDB statement costs one to two
milliseconds however small its input, and wins on several keys over many rows, where it may also spill to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SortKey:
    """`fetch` gives comparable values (`relational.keys`) of the rows asked, or of all rows for None.

    A key that only breaks ties is fetched for tied rows only.
    """

    fetch: Callable[[np.ndarray | None], pa.Array]
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Groups:
    """`of_row`: int64 group number of each row; `first`: a row of each group; `count`: how many there are."""

    of_row: np.ndarray
    first: np.ndarray
    count: int


class Tail(Protocol):
    def groups(self, keys: Sequence[pa.Array]) -> Groups:
        """Rows with equal comparable keys together, null equal to null. At least one key."""
        ...

    def order(self, rows: int, keys: Sequence[SortKey], limit: int | None) -> np.ndarray:
        """The row numbers in order, at most `limit`. Null sorts below every value."""
        ...
