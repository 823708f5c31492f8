"""Tables in slices small enough to encode at once, and their text as bytes.

A slice has at most 8,192 rows and about 8 MiB (interfaces.md 6.2); one row alone may be larger.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from omnigraph.query.encode.strings import column_bytes

ROWS_MAX = 8_192
BYTES_MAX = 8 << 20


def slices(table: pa.Table, *, rows_max: int = ROWS_MAX, bytes_max: int = BYTES_MAX) -> Iterator[pa.RecordBatch]:
    """The table as record batches in order; none for a table without rows."""
    for start in range(0, len(table), rows_max):
        yield from _halved(table.slice(start, rows_max), bytes_max)


def _halved(part: pa.Table, bytes_max: int) -> Iterator[pa.RecordBatch]:
    if len(part) > 1 and part.nbytes > bytes_max:
        half = len(part) // 2
        yield from _halved(part.slice(0, half), bytes_max)
        yield from _halved(part.slice(half), bytes_max)
    else:
        yield _one_batch(part)


def _one_batch(part: pa.Table) -> pa.RecordBatch:
    """Columns in one piece each; a table without columns keeps its number of rows."""
    if not part.num_columns:
        return part.to_batches()[0]
    columns = [_one_array(column) for column in part.columns]
    return pa.RecordBatch.from_arrays(columns, schema=part.schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def joined_bytes(text: pa.Array) -> memoryview:
    """The strings of a column end to end."""
    return column_bytes(text).data


def bounded(data: memoryview, bytes_max: int) -> Iterator[bytes]:
    """The bytes in pieces of at most `bytes_max`."""
    for start in range(0, len(data), bytes_max):
        yield bytes(data[start : start + bytes_max])
