"""The working state of one type while a mutation runs: the base, and above it the rows that are new or changed.

A row in the overlay hides the base's row of the same id. Rows with an id made here can't be in the base and are never
looked up there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.constraints import last_of_each_id
from omnigraph.engine.identity import STATEMENT, with_derived_ids
from omnigraph.engine.lookups import find_ids, one_array
from omnigraph.engine.plan import TypeChange
from omnigraph.engine.validate import FinalType
from omnigraph.lang.query.typed import Expr
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.manifest.model import Counts
from omnigraph.query.expressions import Scope
from omnigraph.query.rows import matching_rows, rows_where
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.columns import ID, table_schema


@lru_cache(1024)
def _open_schema(entity: EntityType) -> pa.Schema:
    """The columns of a type, none of which need be there yet, and the statement that wrote the row."""
    stored = table_schema(entity)
    fields = [stored.field(place).with_nullable(True) for place in range(len(stored.names))]
    return pa.schema([*fields, pa.field(STATEMENT, pa.int64())])


class WorkingType:
    """Rows are appended as values of a statement and become columns when somebody looks."""

    def __init__(self, snapshot: Snapshot, entity: EntityType) -> None:
        self.snapshot = snapshot
        self.entity = entity
        self.schema = table_schema(entity)
        self._open_schema = _open_schema(entity)
        self._pending: list[dict[str, Any]] = []
        self._overlay = self._open_schema.empty_table()
        self._minted: set[str] = set()

    def insert(self, row: dict[str, Any], statement: int, *, minted: bool) -> None:
        """One more row, by column. A keyed row has no id yet. A later row with the same id wins."""
        if minted:
            self._minted.add(row[ID])
        self._pending.append({**row, STATEMENT: statement})

    def pending_ids(self) -> list[str | None]:
        """Ids of the rows inserted since the last look, in order; None where a key member is null."""
        return self._flush()

    def _flush(self) -> list[str | None]:
        if not self._pending:
            return []
        rows = with_derived_ids(self.entity, pa.Table.from_pylist(self._pending, schema=self._open_schema))
        self._pending = []
        self._overlay = last_of_each_id(pa.concat_tables([self._overlay, rows]))
        return rows.column(ID).to_pylist()

    def update(self, where: Expr, scope: Scope, values: dict[str, Any], statement: int) -> int:
        """Give these values (by column) to every row whose `where` is true; how many there were."""
        self._flush()
        overlay = self._overlay
        hits = pa.array(matching_rows(self.entity, overlay, where, scope.params, now=scope.now))
        kept = [name for name in self.schema.names if name not in values]  # what is replaced need not be read
        from_base = rows_where(self.snapshot, self.entity, where, scope.params, now=scope.now, columns=kept)
        if overlay.num_rows and from_base.num_rows:
            hidden = pc.is_in(from_base.column(ID), value_set=one_array(overlay.column(ID)))
            from_base = from_base.filter(pc.invert(hidden))
        matched = pa.concat_tables([overlay.filter(hits), self._completed(from_base)])
        for column, value in {**values, STATEMENT: statement}.items():
            place = self._open_schema.get_field_index(column)
            field = self._open_schema.field(place)
            repeated = pa.array([value], field.type).take(pa.array(np.zeros(matched.num_rows, np.int64)))
            matched = matched.set_column(place, field, repeated)
        self._overlay = pa.concat_tables([overlay.filter(pc.invert(hits)), matched])
        return matched.num_rows

    def _completed(self, rows: pa.Table) -> pa.Table:
        """Rows of the base in all columns; those that were not read are null."""
        given = set(rows.column_names)
        fields = [self._open_schema.field(place) for place in range(len(self._open_schema.names))]
        columns = [rows.column(f.name) if f.name in given else pa.nulls(rows.num_rows, f.type) for f in fields]
        return pa.Table.from_arrays(columns, schema=self._open_schema)

    @property
    def rows(self) -> pa.Table:
        """New and changed rows, with the statement that wrote each last."""
        self._flush()
        return self._overlay

    def change(self) -> tuple[TypeChange, FinalType] | None:
        """What is to be written, and what the type will be then; None if nothing is."""
        rows = self.rows
        if rows.num_rows == 0:
            return None
        old = rows.select([ID, STATEMENT])
        if self._minted:
            minted = pa.array(sorted(self._minted), pa.string())
            old = old.filter(pc.invert(pc.is_in(old.column(ID), value_set=minted)))
        found = find_ids(self.snapshot, self.entity, one_array(old.column(ID)))
        replaced = found.addresses[found.present]
        updated = len(replaced)
        change = TypeChange(
            entity=self.entity,
            rows=rows.drop_columns([STATEMENT]),
            remove=replaced,
            counts=Counts(inserted=rows.num_rows - updated, updated=updated),
            made_ids=len(old) == 0,
        )
        statements = old.column(STATEMENT).to_numpy()[found.present]
        return change, FinalType(self.entity, rows, replaced, removed_by=statements)
