"""Order and equality of rows, as numbers: what the constraints that look at several rows share.

Rows are ordered by `line_number` or `statement` where they have one, then by id.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.identity import LINE_NUMBER, STATEMENT
from omnigraph.tables.columns import ID

Numbers = npt.NDArray[np.int64]

NO_NUMBER: Final = int(np.iinfo(np.int64).max)
"""Stands for no line or statement: comes after all that are."""


def line_of(rows: pa.Table, row: int) -> int | None:
    """The line of a row, if rows came from records."""
    return rows.column(LINE_NUMBER)[row].as_py() if LINE_NUMBER in rows.column_names else None


def statement_of(rows: pa.Table, row: int) -> int | None:
    """The statement that wrote a row last, if rows came from statements."""
    return rows.column(STATEMENT)[row].as_py() if STATEMENT in rows.column_names else None


def numbers_of(rows: pa.Table) -> Numbers | None:
    """The lines or statements of rows; what has none comes last. None if rows came from neither."""
    for name in (LINE_NUMBER, STATEMENT):
        if name in rows.column_names:
            return pc.fill_null(rows.column(name), NO_NUMBER).to_numpy()
    return None


def place_of(rows: pa.Table, row: int, by: str = ID) -> tuple[int, str]:
    """What rows are compared by: the line or statement, then the id."""
    numbers = numbers_of(rows)
    return (0 if numbers is None else int(numbers[row])), rows.column(by)[row].as_py() or ""


def ranks(rows: pa.Table) -> Numbers:
    """A number for each row that orders rows by line or statement, then by id."""
    if LINE_NUMBER in rows.column_names:
        return rows.column(LINE_NUMBER).to_numpy()
    keys = [(name, "ascending") for name in (STATEMENT, ID) if name in rows.column_names]
    ranked = np.empty(len(rows), dtype=np.int64)
    ranked[pc.sort_indices(rows, sort_keys=keys).to_numpy()] = np.arange(len(rows))
    return ranked


def first_row(rows: pa.Table, bad: pa.Array | pa.ChunkedArray, by: str = ID) -> int | None:
    """The first row for which `bad` is true."""
    if not pc.any(bad, min_count=0).as_py():
        return None
    places = np.flatnonzero(truths(bad))
    numbers = numbers_of(rows)
    if numbers is not None:
        places = places[numbers[places] == numbers[places].min()]
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
