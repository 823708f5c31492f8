"""Ids of whole columns at once: those that keys give (languages.md 4.6), and ULIDs for entities without a key.

    derived_ids(catalog.nodes["Port"], rows)   ->  ["BGO","NO"], ["LIS","PT"], …
    minted([rows], now_ms=…, randomness=…)     ->  the rows with a ULID wherever the id was null

Pure: the time and the randomness of ULIDs are arguments. Whether a given id fits its key is a constraint and judged in
`engine/constraints`; `lang/schema/identity` spells one id at a time by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ambient import ULID_ALPHABET, ULID_LENGTH, ULID_RANDOM_BYTES
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.query.encode.floats import positional_text
from omnigraph.query.encode.strings import escaped
from omnigraph.tables.columns import DST, ID, SRC

LINE_NUMBER: Final = "line_number"
"""Column of rows on their way in: the record's line, from 1."""

STATEMENT: Final = "statement"
"""Column of rows on their way in: the number, from 1, of the statement that wrote the row last."""

_HALF_BITS: Final = 40
_HALF_MASK: Final = (1 << _HALF_BITS) - 1
_PAIRS: Final = np.frombuffer("".join(a + b for a in ULID_ALPHABET for b in ULID_ALPHABET).encode(), dtype=np.uint16)
"""Ten bits as two characters."""


def key_columns(entity: EntityType) -> tuple[str, ...]:
    """The stored columns of a type's key, in the order of the id's components; empty without a key."""
    ends = {"@src": SRC, "@dst": DST}
    columns = {p.name: p.column for p in entity.properties}
    return tuple(ends[member] if member in ends else columns[member] for member in entity.key)


def derived_ids(entity: EntityType, rows: pa.Table | pa.RecordBatch) -> pa.ChunkedArray:
    """The ids that the key of a keyed type gives to rows in its stored columns. Null where a key member is null.

    `rows` needs the key's columns only. Raises ValueError for a type without a key.
    """
    columns = key_columns(entity)
    if not columns:
        raise ValueError(f"{entity.kind} type {entity.name} has no key")
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    batches = table.select(columns).to_batches()
    return pa.chunked_array([_batch_ids(batch) for batch in batches], type=pa.string())


def component_text(column: pa.Array) -> pa.Array:
    """One key component in its canonical spelling (4.6), by the type of its column; null for null."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        return positional_text(column)
    if pa.types.is_date32(kind):
        return pc.cast(pc.cast(column, pa.int32()), pa.string())
    if pa.types.is_timestamp(kind):
        return pc.cast(pc.cast(column, pa.int64()), pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.cast(column, pa.string())
    raise ValueError(f"a column of type {kind} can't be part of a key")


def missing_ids(rows: pa.Table) -> int:
    """How many rows have no id yet."""
    return int(rows.column(ID).null_count)


def minted(tables: Sequence[pa.Table], *, now_ms: int, randomness: bytes) -> tuple[pa.Table, ...]:
    """The tables with a new ULID wherever `__id` is null, `__id` non-null in their schemas.

    The ULIDs increase strictly by `line_number` over all tables together; rows without that column keep the order in
    which they come. `now_ms` is milliseconds since 1970, `randomness` ten bytes.
    """
    missing = [np.asarray(pc.is_null(table.column(ID)).combine_chunks(), dtype=bool) for table in tables]
    orders = [_order(table)[mask] for table, mask in zip(tables, missing, strict=True)]
    ranks = np.empty(sum(map(len, orders)), dtype=np.int64)
    ranks[np.argsort(np.concatenate(orders or [ranks]), kind="stable")] = np.arange(len(ranks))
    done: list[pa.Table] = []
    start = 0
    for table, mask, order in zip(tables, missing, orders, strict=True):
        ids = table.column(ID)
        if len(order):
            new = ulid_column(now_ms, randomness, ranks[start : start + len(order)])
            ids = pc.replace_with_mask(ids.combine_chunks(), pa.array(mask), new)
            start += len(order)
        field = table.schema.field(ID).with_nullable(False)
        done.append(table.set_column(table.schema.get_field_index(ID), field, ids))
    return tuple(done)


def ulid_column(now_ms: int, randomness: bytes, steps: np.ndarray) -> pa.Array:
    """ULIDs of one millisecond: the ten random bytes, their top bit cleared, plus each step.

    `steps` are integers from 0 below 2^40. The cleared bit leaves room, so that a larger step is always a larger ULID.
    """
    if not 0 <= now_ms < 1 << 48 or len(randomness) != ULID_RANDOM_BYTES:
        raise ValueError("a ULID takes 48 bits of milliseconds and ten random bytes")
    base = int.from_bytes(randomness) & ~(1 << 79)
    low = np.uint64(base & _HALF_MASK) + steps.astype(np.uint64)
    high = np.uint64(base >> _HALF_BITS) + (low >> np.uint64(_HALF_BITS))
    text = np.empty((len(steps), ULID_LENGTH // 2), dtype=_PAIRS.dtype)
    for pair in range(5):
        text[:, pair] = _PAIRS[now_ms >> 10 * (4 - pair) & 1023]
    for half, first in ((high, 5), (low & np.uint64(_HALF_MASK), 9)):
        for pair in range(4):
            text[:, first + pair] = _PAIRS[(half >> np.uint64(10 * (3 - pair))) & np.uint64(1023)]
    offsets = np.arange(0, (len(steps) + 1) * ULID_LENGTH, ULID_LENGTH, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(steps), [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def with_derived_ids(entity: EntityType, rows: pa.Table) -> pa.Table:
    """The rows with `__id` filled from the key where it was null; of types without a key, the rows as they are."""
    if not entity.key:
        return rows
    ids = rows.column(ID)
    if ids.null_count == len(ids):
        filled = derived_ids(entity, rows)
    elif ids.null_count:
        filled = pc.coalesce(ids, derived_ids(entity, rows))
    else:
        return rows
    place = rows.schema.get_field_index(ID)
    return rows.set_column(place, rows.schema.field(place), filled)


def _order(table: pa.Table) -> np.ndarray:
    if LINE_NUMBER not in table.column_names:
        return np.zeros(len(table), dtype=np.int64)
    return table.column(LINE_NUMBER).to_numpy()


def _batch_ids(batch: pa.RecordBatch) -> pa.Array:
    parts = [component_text(column) for column in batch.columns]
    if len(parts) == 1:
        return parts[0]
    pieces: list[pa.Array | str] = ['["', escaped(parts[0])]
    for part in parts[1:]:
        pieces += ['","', escaped(part)]
    return pc.binary_join_element_wise(*pieces, '"]', "")


__all__: Sequence[str] = [
    "LINE_NUMBER",
    "STATEMENT",
    "component_text",
    "derived_ids",
    "key_columns",
    "minted",
    "missing_ids",
    "ulid_column",
    "with_derived_ids",
]
