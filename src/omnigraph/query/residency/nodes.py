"""The nodes of one pinned version: vertex number → row, and which vertices live here.

A version that follows another holds the same base and, beside it, the vertices whose row changed. Knows one table and
the dictionary that names its vertices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from omnigraph.query.residency.columns import AddressBlock, Columns, RowSpace, one_array, split_take
from omnigraph.query.residency.delta import RowDelta
from omnigraph.query.residency.dictionary import KeyDictionary
from omnigraph.query.sources import TableSource
from omnigraph.tables.columns import ID, ROW_ADDRESS

_NONE = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class NodeBase:
    vertex_of_row: np.ndarray  # int32
    row_of_vertex: np.ndarray  # int32, −1 for vertices that the base does not hold

    def parts(self) -> Iterable[tuple[int, int]]:
        yield id(self), self.vertex_of_row.nbytes + self.row_of_vertex.nbytes


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Immutable, but for columns that become resident. `changed` is sorted; `changed_row` is −1 for a deleted node."""

    dictionary: KeyDictionary
    base: NodeBase
    columns: Columns
    tail_vertices: np.ndarray  # int32 by tail row
    changed: np.ndarray  # int32
    changed_row: np.ndarray  # int64
    live: int

    def __len__(self) -> int:
        return self.live

    @property
    def doubtful(self) -> bool:
        return self.columns.doubtful

    def rows_of(self, vertices: np.ndarray) -> np.ndarray:
        """int64 row numbers of vertices (−1 allowed), −1 where this version has no such node."""
        known = self.base.row_of_vertex
        inside = vertices.astype(np.uint32) < len(known)  # −1 is the largest of these
        if inside.all():
            rows = known[vertices].astype(np.int64)
        elif len(known) == 0:
            rows = np.full(len(vertices), -1, np.int64)
        else:
            rows = np.where(inside, known[np.where(inside, vertices, 0)], -1).astype(np.int64)
        if len(self.changed):
            at = np.minimum(np.searchsorted(self.changed, vertices), len(self.changed) - 1)
            rows = np.where(self.changed[at] == vertices, self.changed_row[at], rows)
        return rows

    def vertices_of(self, rows: np.ndarray) -> np.ndarray:
        return split_take(self.base.vertex_of_row, self.tail_vertices, rows)

    def vertices(self) -> np.ndarray:
        """int32, all live ones, in no order that means anything."""
        base = self.base.vertex_of_row
        if len(self.changed) == 0:
            return base
        stale = np.zeros(max(len(self.base.row_of_vertex), int(self.changed[-1]) + 1), bool)
        stale[self.changed] = True
        return np.concatenate([base[~stale[base]], self.changed[self.changed_row >= 0]])

    def current(self, rows: np.ndarray) -> np.ndarray:
        """Bool by row number: whether the row is its vertex's row in this version."""
        return self.rows_of(self.vertices_of(rows)) == rows

    def addresses_of(self, rows: np.ndarray) -> np.ndarray:
        return self.columns.space.addresses(rows)

    def adopted(self, source: TableSource | None, delta: RowDelta) -> NodeRows:
        """The version that differs from this one by these rows."""
        space = self.columns.space
        gone = self.vertices_of(_known(space.find(delta.removed)))
        came = self.dictionary.add(delta.rows.column(ID))
        new_rows = np.arange(len(space), len(space) + len(came), dtype=np.int64)
        extended = space.extended(delta.addresses)
        changed, changed_row = _replaced(self.changed, self.changed_row, gone, came, new_rows)
        return NodeRows(
            self.dictionary,
            self.base,
            self.columns.extended(source, extended, delta.rows),
            np.concatenate([self.tail_vertices, came]) if len(came) else self.tail_vertices,
            changed,
            changed_row,
            self.live - len(gone) + len(came),
        )

    def folded(self) -> NodeRows:
        """The same nodes with everything in the base."""
        vertices = self.vertices()
        rows = self.rows_of(vertices)
        space = RowSpace(AddressBlock(self.addresses_of(rows)), AddressBlock(np.empty(0, np.uint64)))
        base = _base(vertices, len(self.dictionary))
        none = np.empty(0, np.int64)
        return NodeRows(self.dictionary, base, self.columns.gathered(space, rows), _NONE, _NONE, none, self.live)

    @property
    def overlay_size(self) -> int:
        return len(self.changed) + len(self.tail_vertices)

    def parts(self) -> Iterable[tuple[int, int]]:
        yield from self.base.parts()
        yield from self.columns.parts()
        yield from self.dictionary.parts()
        own = self.tail_vertices.nbytes + self.changed.nbytes + self.changed_row.nbytes
        yield id(self), own


def load_nodes(dictionary: KeyDictionary, source: TableSource | None) -> NodeRows:
    """Read the ids of a version. Raises StorageFailure."""
    none = np.empty(0, np.int64)
    if source is None:
        space = RowSpace(AddressBlock(np.empty(0, np.uint64)), AddressBlock(np.empty(0, np.uint64)))
        return NodeRows(dictionary, NodeBase(_NONE, _NONE), Columns(None, space), _NONE, _NONE, none, 0)
    table = source.scan([ID], with_row_address=True).read_all()
    vertices = dictionary.add(one_array(table.column(ID)))
    addresses = table.column(ROW_ADDRESS).to_numpy()
    space = RowSpace(AddressBlock(addresses), AddressBlock(np.empty(0, np.uint64)))
    base = _base(vertices, len(dictionary))
    return NodeRows(dictionary, base, Columns(source, space), _NONE, _NONE, none, len(vertices))


def _base(vertices: np.ndarray, size: int) -> NodeBase:
    row_of_vertex = np.full(size, -1, np.int32)
    row_of_vertex[vertices] = np.arange(len(vertices), dtype=np.int32)
    return NodeBase(vertices, row_of_vertex)


def _known(rows: np.ndarray) -> np.ndarray:
    return rows[rows >= 0]


def _replaced(
    changed: np.ndarray, changed_row: np.ndarray, gone: np.ndarray, came: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The overlay after nodes went and came; a node that did both (an update) has its new row."""
    vertices = np.concatenate([changed, gone, came])
    values = np.concatenate([changed_row, np.full(len(gone), -1, np.int64), rows])
    order = np.argsort(vertices, kind="stable")  # stable: of equal vertices the last is the newest
    vertices, values = vertices[order], values[order]
    last = np.ones(len(vertices), bool)
    last[:-1] = vertices[1:] != vertices[:-1]
    return vertices[last], values[last]
