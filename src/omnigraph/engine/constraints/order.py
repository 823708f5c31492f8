"""Order and equality of rows, as numbers: what the constraints that look at several rows share.

Rows are ordered by `line_number` where they have one, else by id.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.identity import LINE_NUMBER
from omnigraph.tables.columns import ID

Numbers = npt.NDArray[np.int64]


def line_of(rows: pa.Table, row: int) -> int | None:
    """The line of a row, if rows came from records."""
    return rows.column(LINE_NUMBER)[row].as_py() if LINE_NUMBER in rows.column_names else None


def place_of(rows: pa.Table, row: int, by: str = ID) -> tuple[int, str]:
    """What rows are compared by: the line, else the id."""
    line = line_of(rows, row)
    return (0, rows.column(by)[row].as_py() or "") if line is None else (line, "")


def ranks(rows: pa.Table) -> Numbers:
    """A number for each row that orders rows: the line, else the rank of the id."""
    if LINE_NUMBER in rows.column_names:
        return rows.column(LINE_NUMBER).to_numpy()
    ranked = np.empty(len(rows), dtype=np.int64)
    ranked[pc.sort_indices(rows, sort_keys=[(ID, "ascending")]).to_numpy()] = np.arange(len(rows))
    return ranked


def first_row(rows: pa.Table, bad: pa.Array | pa.ChunkedArray, by: str = ID) -> int | None:
    """The first row for which `bad` is true."""
    if not pc.any(bad, min_count=0).as_py():
        return None
    places = np.flatnonzero(truths(bad))
    if LINE_NUMBER in rows.column_names:
        return int(places[np.argmin(rows.column(LINE_NUMBER).to_numpy()[places])])
    ids = pc.fill_null(rows.column(by).take(pa.array(places)), "")
    return int(places[pc.index(ids, pc.min(ids)).as_py()])


def truths(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """A Boolean column as numpy, null as false."""
    filled = pc.fill_null(column, False)
    return filled.to_numpy() if isinstance(filled, pa.ChunkedArray) else filled.to_numpy(zero_copy_only=False)


def codes_of(columns: list[pa.ChunkedArray]) -> Numbers:
    """A number for each row, equal for equal tuples and below the number of rows. The columns hold no null.

    −0.0 counts as 0.0.
    """
    codes = _column_codes(columns[0])
    for column in columns[1:]:
        more = _column_codes(column)
        pairs = codes * (int(more.max(initial=0)) + 1) + more
        codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return codes


def earlier_equal(codes: Numbers, order: Numbers) -> Numbers:
    """For each row the first row, by `order`, with an equal code; −1 if it is that row itself."""
    sequence = np.argsort(order, kind="stable")
    holders = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    holders[codes[sequence[::-1]]] = sequence[::-1]  # of several values for one place numpy keeps the last
    earlier = holders[codes]
    earlier[earlier == np.arange(len(codes))] = -1
    return earlier


def has_repeats(codes: Numbers) -> bool:
    """Whether two rows are equal."""
    return len(codes) > 0 and int(codes.max()) + 1 < len(codes)


def all_differ(column: pa.ChunkedArray) -> bool:
    """Whether no value comes twice. Cheap where values increase, as those of sorted files and new ULIDs do."""
    if len(column) < 2:
        return True
    rising = pc.less(column.slice(0, len(column) - 1), column.slice(1))
    if pc.all(rising, min_count=0).as_py():
        return True
    return pc.count_distinct(column).as_py() == len(column)


def _column_codes(column: pa.ChunkedArray) -> Numbers:
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # makes -0.0 0.0
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # too many bytes for one array
        chunks = whole.dictionary_encode().unify_dictionaries().chunks
        return np.concatenate([chunk.indices.to_numpy() for chunk in chunks]).astype(np.int64)
    return whole.dictionary_encode().indices.to_numpy().astype(np.int64)
