"""Scalar indexes, and finding rows by id with one or without.

An index changes how fast an answer comes and never which: rows that it does not cover are scanned.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import Index

from omnigraph.errors import InternalError, StoragePhase
from omnigraph.manifest.model import TablePin
from omnigraph.tables.columns import ID, ROW_ADDRESS
from omnigraph.tables.detached import detached
from omnigraph.tables.failures import storage_failures
from omnigraph.tables.filters import one_of
from omnigraph.tables.stage import Committed
from omnigraph.tables.store import TableStore
from omnigraph.tables.version import Addresses, TableVersion
from omnigraph.tables.whole import check_sizes

_SCAN_SHARE = 128  # one wanted id in so many rows: reading the column is cheaper than asking for each


def index_name(column: str) -> str:
    """The name under which a column's scalar index is kept."""
    return f"{column}_idx"


def lookup_ids(version: TableVersion, ids: Sequence[str] | pa.Array) -> Addresses:
    """Addresses of the live rows with these ids, in table order; ids that are not there are left out.

    Raises StorageFailure (phase read).
    """
    if len(ids) == 0 or version.rows == 0:
        return np.empty(0, np.uint64)
    wanted = pa.array(ids, pa.utf8())
    if len(ids) * _SCAN_SHARE > version.rows and len(ids) > _SCAN_SHARE:
        table = version.read([ID], with_row_address=True)
        return table.column(ROW_ADDRESS).filter(pc.is_in(table.column(ID), value_set=wanted)).to_numpy()
    found = version.read([], filter=one_of(ID, wanted), with_row_address=True)
    return found.column(ROW_ADDRESS).to_numpy()


def build_scalar_index(tables: TableStore, pin: TablePin, column: str, *, label: str) -> Committed:
    """A new version of the table with a BTREE index over all its rows; one that was there is replaced.

    The rows are the same. Raises StorageFailure (phase stage); InternalError if there is no row to index.
    """
    base = tables.open(pin)
    if base.rows == 0:
        raise InternalError("an index over no rows was asked for")
    with storage_failures(StoragePhase.STAGE, base):
        former = _segments(base, column)
        index = base.dataset.create_index_uncommitted(  # pyright: ignore[reportUnknownMemberType]
            column,
            "BTREE",
            name=index_name(column),
            replace=bool(former),
            fragment_ids=list(base.dataset.fragment_ids()),
        )
        if tables.location.local_path is not None:
            folder = os.path.join(tables.location.local_path, pin.path, "_indices", str(index.uuid))
            check_sizes(folder, {file.path: file.size_bytes for file in index.files or ()})
        operation = lance.LanceOperation.CreateIndex([index], former)
        version, files = detached(tables, base, operation, label=label, rows=base.rows, size=base.bytes)
    parts = [f"_indices/{index.uuid}/{file.path}" for file in index.files or ()]
    written = tuple(f"{pin.path}/{each}" for each in (*parts, *files))
    return Committed(version.pin, version.rows, version.bytes, np.empty(0, np.uint64), (), written)


def _segments(version: TableVersion, column: str) -> list[Index]:
    """What a new index of the column replaces: every segment must be named, since a forgotten one would stay."""
    return [
        Index(
            uuid=segment.uuid,
            name=index.name,
            fields=index.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        for index in version.dataset.describe_indices()
        if index.name == index_name(column)
        for segment in index.segments
    ]
