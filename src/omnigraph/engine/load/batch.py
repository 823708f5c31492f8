"""What a load brought, as columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.engine.identity import LINE_NUMBER, minted
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.tables.columns import ID, table_schema


@dataclass(frozen=True, slots=True)
class TypeRows:
    """The records of one type, in record order.

    `rows` has the columns of `table_schema(entity)` and `line_number` (int64, from 1). `__id` is null where a ULID is
    still to be minted; keys have given theirs.
    """

    entity: EntityType
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class LoadBatch:
    """All records of a load: the types that occurred, nodes before edges, each in catalog order.

    `records` counts lines that were not blank, `bytes` the (expanded) bytes read.
    """

    types: tuple[TypeRows, ...]
    records: int
    bytes: int

    def with_ids(self, *, now_ms: int, randomness: bytes) -> LoadBatch:
        """The batch with a ULID for every entity that had no id, increasing in record order over all types.

        `randomness` is ten bytes. Prepared again, a write passes the same ones and gets the same ids.
        """
        tables = minted([each.rows for each in self.types], now_ms=now_ms, randomness=randomness)
        types = (TypeRows(each.entity, rows) for each, rows in zip(self.types, tables, strict=True))
        return replace(self, types=tuple(types))


def rows_schema(entity: EntityType) -> pa.Schema:
    """The schema of `TypeRows.rows`: `table_schema` with a nullable `__id`, then `line_number`."""
    stored = table_schema(entity)
    with_open_id = stored.set(stored.get_field_index(ID), pa.field(ID, pa.string()))
    return with_open_id.append(pa.field(LINE_NUMBER, pa.int64(), nullable=False))
