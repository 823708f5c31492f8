"""Which engine does a piece of relational work. The answer is the same either way; DuckDB is imported when it is chosen."""

from __future__ import annotations

from omnigraph.query.relational.kernels import KERNEL_TAIL
from omnigraph.query.relational.tail import Tail

DUCKDB_ROWS = 1_000_000
"""Rows from which work with several keys goes to DuckDB."""


def choose_tail(rows: int, keys: int, limit: int | None = None) -> Tail:
    """The engine for this much work."""
    if rows >= DUCKDB_ROWS and keys > 1 and (limit is None or limit * 64 > rows):
        from omnigraph.query.relational.duck import duck_tail

        return duck_tail()
    return KERNEL_TAIL
