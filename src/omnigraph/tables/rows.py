"""New rows as data files, not yet part of any version.

Brings rows into the table's own columns (names, types, Blobs, nullability) and refuses what does not fit; the values
themselves were validated by who calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import cast

import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.errors import InternalError
from omnigraph.tables.columns import fields_of, is_blob
from omnigraph.tables.failures import RAISED_BELOW
from omnigraph.tables.store import TableStore, stored_field
from omnigraph.tables.version import TableVersion
from omnigraph.tables.whole import check_data

ROWS_PER_FILE = 1 << 20


def written_rows(
    tables: TableStore,
    version: TableVersion,
    schema: pa.Schema,
    missing: list[pa.Field],
    rows: pa.Table | pa.RecordBatchReader | None,
) -> list[FragmentMetadata]:
    """Writes the rows as files of the version's table, in order; no file for no rows.

    `missing` are the columns that the table is going to be extended by (see `extend`); the files then hold every
    column, so that their numbers are those of the extended table. Raises InternalError if a column does not fit,
    StorageFailure (phase stage) if a file did not arrive whole, else what the library raises.
    """
    if rows is None or (isinstance(rows, pa.Table) and rows.num_rows == 0):
        return []
    target = _target(version, schema, missing, rows.schema)
    mode = "overwrite" if missing else "append"
    if isinstance(rows, pa.Table):
        return _write(tables, version, _fitted_table(rows, target), mode)
    source = _Fitted(rows, target)
    try:
        return _write(tables, version, source.reader(), mode)
    except RAISED_BELOW:
        if source.failure is not None:
            raise source.failure from None
        raise


def _write(
    tables: TableStore, version: TableVersion, rows: pa.Table | pa.RecordBatchReader, mode: str
) -> list[FragmentMetadata]:
    written = write_fragments(rows, version.dataset, mode=mode, max_rows_per_file=ROWS_PER_FILE)
    assert isinstance(written, list)
    if tables.location.local_path is not None:
        check_data(os.path.join(tables.location.local_path, version.pin.path), written)
    return written


def _target(version: TableVersion, schema: pa.Schema, missing: list[pa.Field], given: pa.Schema) -> pa.Schema:
    """The columns to write, as the table stores them."""
    for field in fields_of(given):
        index = schema.get_field_index(field.name)
        if index < 0 or not field.type.equals(schema.field(index).type):
            raise InternalError("rows to be written have a column that the type does not have")
    stored = version.stored
    if missing:
        return pa.schema([*fields_of(stored), *map(stored_field, missing)])
    names = [field.name for field in fields_of(given) if not is_blob(schema.field(field.name))]
    return pa.schema([stored.field(name) for name in names])


def _fitted_table(rows: pa.Table, target: pa.Schema) -> pa.Table:
    _refuse_blobs(rows.schema, target, rows)
    return pa.Table.from_arrays(_columns(rows, target), schema=target)


class _Fitted:
    """A stream of rows brought into the table's columns.

    The library sees an exception of the stream as one of its own; the real one is kept in `failure`.
    """

    def __init__(self, rows: pa.RecordBatchReader, target: pa.Schema) -> None:
        self._rows = rows
        self._target = target
        self.failure: Exception | None = None

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._target, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in cast("Iterator[pa.RecordBatch]", self._rows):
                _refuse_blobs(batch.schema, self._target, batch)
                yield pa.RecordBatch.from_arrays(_columns(batch, self._target), schema=self._target)
        except Exception as error:  # whatever it is, it is raised again by who asked for the write
            self.failure = error
            raise


def _columns(rows: pa.Table | pa.RecordBatch, target: pa.Schema) -> list[pa.Array | pa.ChunkedArray]:
    given = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns: list[pa.Array | pa.ChunkedArray] = []
    for field in fields_of(target):
        column = given.get(field.name)
        if column is None or not column.type.equals(field.type):  # not given, or a Blob, which holds nulls only
            column = pa.nulls(rows.num_rows, field.type)
        if not field.nullable and column.null_count:
            raise InternalError("rows to be written lack an id or an end")
        columns.append(column)
    return columns


def _refuse_blobs(given: pa.Schema, target: pa.Schema, rows: pa.Table | pa.RecordBatch) -> None:
    for index, field in enumerate(fields_of(given)):
        kept = target.get_field_index(field.name)
        stored_as_given = kept >= 0 and target.field(kept).type.equals(field.type)
        if not stored_as_given and rows.column(index).null_count != rows.num_rows:
            raise InternalError("Blob values can't be stored by this version")
