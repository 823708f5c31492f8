"""The same id twice: within one load, or in the load and the branch (languages.md 15.2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.engine.constraints.order import all_differ, codes_of, earlier_equal, first_row, line_of, ranks
from omnigraph.engine.constraints.violation import quoted
from omnigraph.errors import KeyConflict
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.tables.columns import ID


def repeated_id(entity: EntityType, rows: pa.Table) -> KeyConflict | None:
    """The first record of an append or overwrite load whose id an earlier record has; the error names both lines."""
    ids = rows.column(ID)
    if all_differ(ids):
        return None
    order = ranks(rows)
    earlier = earlier_equal(codes_of([ids]), order)
    repeats = np.flatnonzero(earlier >= 0)
    row = int(repeats[np.argmin(order[repeats])])
    entity_id = ids[row].as_py()
    line, former = line_of(rows, row), line_of(rows, int(earlier[row]))
    where = "" if line is None else f": on lines {former} and {line}"
    return KeyConflict(
        f"{entity.kind} {entity.name} {quoted(entity_id)} comes twice{where}",
        entity_kind=entity.kind,
        type_name=entity.name,
        entity_id=entity_id,
        line_number=line,
    )


def existing_id(entity: EntityType, rows: pa.Table, exists: pa.Array | pa.ChunkedArray) -> KeyConflict | None:
    """The first record of an append load whose id the branch already has; `exists` says so of each row."""
    row = first_row(rows, exists)
    if row is None:
        return None
    entity_id = rows.column(ID)[row].as_py()
    line = line_of(rows, row)
    where = "" if line is None else f"line {line}: "
    return KeyConflict(
        f"{where}{entity.kind} {entity.name} {quoted(entity_id)} already exists",
        entity_kind=entity.kind,
        type_name=entity.name,
        entity_id=entity_id,
        line_number=line,
    )


def last_of_each_id(rows: pa.Table) -> pa.Table:
    """The rows of a merge load with one row an id: the last in record order. Rows that stay keep their places.

    A row without an id stays: its key holds a null, and that is for the rule on keys to say.
    """
    ids = rows.column(ID)
    if not ids.null_count and all_differ(ids):
        return rows
    known = np.flatnonzero(ids.is_valid().to_numpy())
    codes = codes_of([ids.drop_null()])
    sequence = np.argsort(ranks(rows)[known], kind="stable")
    last = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    last[codes[sequence]] = sequence  # of several values for one place numpy keeps the last
    keep = np.ones(len(rows), dtype=bool)
    keep[known] = False
    keep[known[last]] = True
    return rows.filter(pa.array(keep))
