"""Small steps between the write path and the rows of its base."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, EntityType
from omnigraph.query.rows import Found, find_edges, find_nodes
from omnigraph.query.snapshot import Snapshot

NO_ADDRESSES = np.empty(0, np.uint64)


def find_ids(snapshot: Snapshot, entity: EntityType, ids: pa.Array) -> Found:
    """Look ids up in the pinned version of their type. A type that never held a row costs nothing. Raises StorageFailure."""
    if snapshot.pin(entity.id) is None or len(ids) == 0:
        return Found(np.zeros(len(ids), bool), np.zeros(len(ids), np.uint64))
    if isinstance(entity, EdgeType):
        return find_edges(snapshot, entity.name, ids)
    return find_nodes(snapshot, entity.name, ids)


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
