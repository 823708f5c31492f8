"""What a publication changed in one table, row by row: the value that the write path hands to what is in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RowDelta:
    """`removed`: uint64 row addresses in the old version. `rows`: the new rows, with `__id` and for edges `__src` and
    `__dst`, and as many of the property columns as were written; `addresses`: their uint64 addresses in the new version,
    in order. An updated row is both removed and new. All other rows must keep their addresses.
    """

    removed: np.ndarray
    rows: pa.Table
    addresses: np.ndarray
