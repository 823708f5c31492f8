"""The edges of one pinned version: their ends as vertex numbers, and the neighbours of vertices either way.

A version that follows another holds the same base, the rows that went and the rows that came; adjacency in a direction is
made when it is first wanted. Knows one table and the dictionaries of its two end types.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.residency.adjacency import Adjacency, Block, Steps, overlaid, parts_of
from omnigraph.query.residency.columns import AddressBlock, Column, Columns, RowSpace, one_array, split_take
from omnigraph.query.residency.delta import RowDelta
from omnigraph.query.residency.dictionary import KeyDictionary
from omnigraph.query.sources import TableSource
from omnigraph.tables.budget import growth
from omnigraph.tables.columns import DST, ID, ROW_ADDRESS, SRC

Side = Literal["src", "dst"]
ID_FIELD = pa.field(ID, pa.string())

_NO_VERTICES = np.empty(0, np.int32)
_NO_ROWS = np.empty(0, np.int64)
_NO_ADDRESSES = np.empty(0, np.uint64)


class EdgeBase:
    """Ends of the base rows, and what is derived from them once for all versions that share the base. Thread-safe."""

    def __init__(self, src: np.ndarray, dst: np.ndarray, heights: tuple[int, int]) -> None:
        self.src = src
        self.dst = dst
        self._heights = heights
        self._blocks: dict[Side, Block] = {}
        self._ids: tuple[pa.Array, pa.Array] | None = None
        self._lock = threading.Lock()

    def block(self, side: Side) -> Block:
        """Edge rows by their `src` (the way out) or by their `dst` (the way in)."""
        with self._lock:
            block = self._blocks.get(side)
            if block is None:
                rows = np.arange(len(self.src), dtype=np.int32)
                out, into = self._heights
                if side == "src":
                    block = Block(self.src, self.dst, rows, out, into)
                else:
                    block = Block(self.dst, self.src, rows, into, out)
                self._blocks[side] = block
            return block

    def ids_sorted(self, column: Column) -> tuple[pa.Array, pa.Array]:
        """Ids of the base rows in byte order, and the row of each."""
        with self._lock:
            if self._ids is None:
                order = pc.sort_indices(column.base)
                self._ids = (column.base.take(order), order)
                growth.note()
            return self._ids

    def parts(self) -> Iterable[tuple[int, int]]:
        yield id(self), self.src.nbytes + self.dst.nbytes
        ids = self._ids
        if ids is not None:
            yield id(ids), ids[0].nbytes + ids[1].nbytes


class EdgeRows:
    """Immutable, but for what becomes resident on demand. Thread-safe."""

    def __init__(
        self,
        ends: tuple[KeyDictionary, KeyDictionary],
        base: EdgeBase,
        columns: Columns,
        tail: tuple[np.ndarray, np.ndarray],
        removed: np.ndarray,
    ) -> None:
        self.ends = ends
        self.base = base
        self.columns = columns
        self._tail = tail
        self._removed = removed  # sorted row numbers
        self._adjacency: dict[Side, Adjacency] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.columns.space) - len(self._removed)

    @property
    def doubtful(self) -> bool:
        return self.columns.doubtful

    def src_of(self, rows: np.ndarray) -> np.ndarray:
        return split_take(self.base.src, self._tail[0], rows)

    def dst_of(self, rows: np.ndarray) -> np.ndarray:
        return split_take(self.base.dst, self._tail[1], rows)

    def rows(self) -> np.ndarray:
        """int64, all live rows."""
        rows = np.arange(len(self.columns.space), dtype=np.int64)
        return np.delete(rows, self._removed) if len(self._removed) else rows

    def is_live(self, rows: np.ndarray) -> np.ndarray:
        if len(self._removed) == 0:
            return np.ones(len(rows), bool)
        at = np.minimum(np.searchsorted(self._removed, rows), len(self._removed) - 1)
        return self._removed[at] != rows

    def addresses_of(self, rows: np.ndarray) -> np.ndarray:
        return self.columns.space.addresses(rows)

    def adjacency(self, side: Side) -> Adjacency:
        """By `src`: the way out. By `dst`: the way in."""
        with self._lock:
            known = self._adjacency.get(side)
            if known is None:
                known = self._adjacency[side] = self._built(side)
                growth.note()
            return known

    def _built(self, side: Side) -> Adjacency:
        block = self.base.block(side)
        size = len(self.base.src)
        tail_rows = np.arange(size, len(self.columns.space), dtype=np.int64)
        stays = self.is_live(tail_rows)
        gone = self._removed[self._removed < size]
        if side == "src":
            base_ends, ends, others = self.base.src, self._tail[0], self._tail[1]
        else:
            base_ends, ends, others = self.base.dst, self._tail[1], self._tail[0]
        ends, others, tail_rows = ends[stays], others[stays], tail_rows[stays]
        keys = np.unique(np.concatenate([base_ends[gone], ends]))
        came = Steps(np.searchsorted(keys, ends), others, tail_rows)
        return Adjacency(block, overlaid(block, keys, gone, came))

    def find(self, ids: pa.Array) -> np.ndarray:
        """int64 row numbers of edges by id, −1 where this version has none. Makes the ids resident. Raises StorageFailure."""
        if ids.null_count:
            found = np.full(len(ids), -1, np.int64)
            found[ids.is_valid().to_numpy(zero_copy_only=False)] = self.find(ids.drop_null())
            return found
        self.columns.load([ID_FIELD])
        column = self.columns.get(ID)
        rows = np.full(len(ids), -1, np.int64)
        if len(column.base):
            keys, order = self.base.ids_sorted(column)
            at = np.minimum(pc.search_sorted(keys, ids.cast(keys.type)).to_numpy(zero_copy_only=False), len(keys) - 1)
            same = pc.equal(keys.take(pa.array(at)), ids.cast(keys.type)).to_numpy(zero_copy_only=False)
            found = order.take(pa.array(at)).to_numpy(zero_copy_only=False).astype(np.int64)
            rows = np.where(same, found, -1)
            rows[rows >= 0] = np.where(self.is_live(rows[rows >= 0]), rows[rows >= 0], -1)
        if len(column.tail):
            live = np.flatnonzero(self.is_live(np.arange(len(column.base), len(self.columns.space))))
            late = pc.index_in(ids, value_set=column.tail.take(pa.array(live)).cast(ids.type))
            late = late.fill_null(-1).to_numpy(zero_copy_only=False)
            hit = late >= 0
            rows[hit] = live[late[hit]] + len(column.base)
        return rows

    def adopted(self, source: TableSource | None, delta: RowDelta) -> EdgeRows:
        """The version that differs from this one by these rows. All removed addresses must be live here."""
        space = self.columns.space
        src = self.ends[0].add(delta.rows.column(SRC))
        dst = self.ends[1].add(delta.rows.column(DST))
        extended = space.extended(delta.addresses)
        tail = (np.concatenate([self._tail[0], src]), np.concatenate([self._tail[1], dst])) if len(src) else self._tail
        gone = space.find(delta.removed)
        removed = np.sort(np.concatenate([self._removed, gone])) if len(gone) else self._removed
        return EdgeRows(self.ends, self.base, self.columns.extended(source, extended, delta.rows), tail, removed)

    def folded(self) -> EdgeRows:
        """The same edges with everything in the base."""
        rows = self.rows()
        space = RowSpace(AddressBlock(self.addresses_of(rows)), AddressBlock(_NO_ADDRESSES))
        base = EdgeBase(self.src_of(rows), self.dst_of(rows), (len(self.ends[0]), len(self.ends[1])))
        for side in list(self._adjacency):
            base.block(side)
        return EdgeRows(self.ends, base, self.columns.gathered(space, rows), (_NO_VERTICES, _NO_VERTICES), _NO_ROWS)

    @property
    def overlay_size(self) -> int:
        return len(self._removed) + len(self._tail[0])

    def parts(self) -> Iterable[tuple[int, int]]:
        yield from self.base.parts()
        yield from self.columns.parts()
        for dictionary in self.ends:
            yield from dictionary.parts()
        for adjacency in list(self._adjacency.values()):
            yield from parts_of(adjacency)
        yield id(self), self._tail[0].nbytes * 2 + self._removed.nbytes


def load_edges(ends: tuple[KeyDictionary, KeyDictionary], source: TableSource | None) -> EdgeRows:
    """Read the ends of a version's edges. Raises StorageFailure."""
    none = (_NO_VERTICES, _NO_VERTICES)
    empty = AddressBlock(_NO_ADDRESSES)
    if source is None:
        base = EdgeBase(_NO_VERTICES, _NO_VERTICES, (0, 0))
        return EdgeRows(ends, base, Columns(None, RowSpace(empty, empty)), none, _NO_ROWS)
    table = source.scan([SRC, DST], with_row_address=True).read_all()
    src = ends[0].add(one_array(table.column(SRC)))
    dst = ends[1].add(one_array(table.column(DST)))
    space = RowSpace(AddressBlock(table.column(ROW_ADDRESS).to_numpy()), empty)
    base = EdgeBase(src, dst, (len(ends[0]), len(ends[1])))
    return EdgeRows(ends, base, Columns(source, space), none, _NO_ROWS)
