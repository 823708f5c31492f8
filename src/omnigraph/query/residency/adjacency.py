"""Neighbours of vertices over the edge rows of one version, in one direction.

An immutable base block (compressed rows, sorted) and an overlay that replaces whole rows: every vertex with a changed
edge has its complete new row in the overlay, and what is asked is split on those vertices. Both are also matrices of
edge counts, made when a traversal first wants a product.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from omnigraph.query import sparse
from omnigraph.query.codes import ranges
from omnigraph.tables.budget import growth

if TYPE_CHECKING:
    from graphblas import Matrix


@dataclass(frozen=True, slots=True)
class Steps:
    """Edge rows met from some vertices: `index` says from which (a place in what was asked). In no fixed order."""

    index: np.ndarray  # int64
    neighbours: np.ndarray  # int32
    rows: np.ndarray  # int64, numbers of edge rows

    def __len__(self) -> int:
        return len(self.index)


class Block:
    """Compressed sparse rows: row i of the block holds `neighbours[indptr[i]:indptr[i + 1]]`, ascending."""

    def __init__(self, keys: np.ndarray, neighbours: np.ndarray, rows: np.ndarray, height: int, width: int) -> None:
        pairs = (keys.astype(np.int64) << 32) | neighbours
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        self.neighbours = neighbours[order].astype(np.int32, copy=False)
        self.rows = rows[order].astype(np.int64 if len(rows) and rows.max() > 2**31 - 1 else np.int32, copy=False)
        self.indptr = np.zeros(height + 1, np.int64)
        np.cumsum(np.bincount(keys, minlength=height), out=self.indptr[1:])
        self.width = width
        fresh = np.ones(len(pairs), bool)
        fresh[1:] = pairs[1:] != pairs[:-1]
        self.has_parallels = not bool(fresh.all())
        """Whether some pair of vertices is joined by more than one edge row."""
        self._matrix: Matrix | None = None
        self._lock = threading.Lock()

    @property
    def height(self) -> int:
        return len(self.indptr) - 1

    @property
    def nbytes(self) -> int:
        held = self.neighbours.nbytes + self.rows.nbytes + self.indptr.nbytes
        return held * 2 if self._matrix is not None else held

    def ranges(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start and length of each key's row; a key outside the block has an empty one."""
        if self.height == 0:
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        inside = (keys >= 0) & (keys < self.height)
        safe = np.where(inside, keys, 0)
        starts = self.indptr[safe]
        return starts, np.where(inside, self.indptr[safe + 1] - starts, 0)

    def matrix(self) -> Matrix:
        """Edge counts (UINT32), height × width. Safe to share."""
        with self._lock:
            if self._matrix is None:
                self._matrix = self._built()
                growth.note()
            return self._matrix

    def _built(self) -> Matrix:
        indptr, columns = self.indptr, self.neighbours
        counts = np.ones(len(columns), np.uint32)
        if self.has_parallels:
            keys = np.repeat(np.arange(self.height, dtype=np.int64), np.diff(indptr))
            pairs, counts = np.unique((keys << 32) | columns, return_counts=True)
            counts = counts.astype(np.uint32)
            columns = (pairs & 0xFFFFFFFF).astype(np.int64)
            indptr = np.zeros(self.height + 1, np.int64)
            np.cumsum(np.bincount(pairs >> 32, minlength=self.height), out=indptr[1:])
        return sparse.counts(indptr, columns, counts, self.width)


@dataclass(frozen=True, slots=True)
class Overlay:
    """Complete new rows: row i of the block is that of vertex `keys[i]`. `keys` is sorted."""

    keys: np.ndarray  # int32
    block: Block

    def places(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the vertices are here, and their rows in the block."""
        at = np.minimum(np.searchsorted(self.keys, vertices), len(self.keys) - 1)
        return self.keys[at] == vertices, at


@dataclass(frozen=True, slots=True)
class Adjacency:
    base: Block
    overlay: Overlay | None

    @property
    def has_parallels(self) -> bool:
        return self.base.has_parallels or (self.overlay is not None and self.overlay.block.has_parallels)

    def degrees(self, vertices: np.ndarray) -> np.ndarray:
        """int64 edge rows at each vertex."""
        _, counts = self.base.ranges(vertices)
        if self.overlay is not None:
            here, at = self.overlay.places(vertices)
            counts = np.where(here, self.overlay.block.ranges(at)[1], counts)
        return counts

    def steps(self, vertices: np.ndarray) -> Steps:
        """All edge rows at these vertices (repeats allowed)."""
        starts, counts = self.base.ranges(vertices)
        if self.overlay is None:
            return _spread(self.base, starts, counts)
        here, at = self.overlay.places(vertices)
        if not here.any():
            return _spread(self.base, starts, counts)
        ours = _spread(self.base, starts, np.where(here, 0, counts))
        late = _spread(self.overlay.block, *self.overlay.block.ranges(at[here]))
        index = np.flatnonzero(here)[late.index]
        return Steps(
            np.concatenate([ours.index, index]),
            np.concatenate([ours.neighbours, late.neighbours]),
            np.concatenate([ours.rows, late.rows]),
        )

    def joined(self, vertices: np.ndarray, others: np.ndarray) -> np.ndarray:
        """bool: whether an edge row runs from `vertices[i]` to `others[i]`."""
        found = _contains(self.base, *self.base.ranges(vertices), others)
        if self.overlay is not None:
            here, at = self.overlay.places(vertices)
            if here.any():
                block = self.overlay.block
                found[here] = _contains(block, *block.ranges(at[here]), others[here])
        return found

    def product(self, frontier: Matrix, width: int, *, large: bool, seen: Matrix | None = None) -> Matrix:
        """One step of many searches: frontier (searches × vertices) times the counts, as a Boolean pattern, without what was
        `seen`.

        `large`: the work is worth more than one thread.
        """
        base = self.base.matrix()
        if self.overlay is None and base.nrows == frontier.ncols and base.ncols == width:
            return sparse.step(frontier, base, threaded=large, seen=seen)
        reached = self._parts_product(frontier, base, width, large=large)
        return reached if seen is None else sparse.without(reached, seen)

    def _parts_product(self, frontier: Matrix, base: Matrix, width: int, *, large: bool) -> Matrix:
        """Base and overlay apart, each with the part of the frontier that is its own."""
        search, vertex = sparse.places(frontier)
        here = np.zeros(len(vertex), bool)
        result = None
        if self.overlay is not None:
            here, at = self.overlay.places(vertex)
            if here.any():
                part = sparse.pattern(search[here], at[here], frontier.nrows, max(len(self.overlay.keys), 1))
                late = sparse.step(part, self.overlay.block.matrix(), threaded=large)
                result = sparse.widened(late, width)
        keep = ~here & (vertex < base.nrows)
        if result is None or keep.any():
            part = sparse.pattern(search[keep], vertex[keep], frontier.nrows, base.nrows)
            ours = sparse.widened(sparse.step(part, base, threaded=large), width)
            if result is None:
                return ours
            sparse.add(result, ours)
        return result


def overlaid(base: Block, keys: np.ndarray, removed: np.ndarray, came: Steps) -> Overlay | None:
    """Complete new rows for all `keys` (sorted): the base's without the removed rows (sorted), and those that came.

    `came.index` counts places in `keys`.
    """
    if len(keys) == 0:
        return None
    old = _spread(base, *base.ranges(keys))
    if len(removed):
        at = np.minimum(np.searchsorted(removed, old.rows), len(removed) - 1)
        stays = removed[at] != old.rows
        old = Steps(old.index[stays], old.neighbours[stays], old.rows[stays])
    width = max(base.width, int(came.neighbours.max()) + 1 if len(came) else 0)
    block = Block(
        np.concatenate([old.index, came.index]),
        np.concatenate([old.neighbours, came.neighbours]),
        np.concatenate([old.rows, came.rows]),
        len(keys),
        width,
    )
    return Overlay(keys, block)


def _spread(block: Block, starts: np.ndarray, counts: np.ndarray) -> Steps:
    """The block's entries of all these ranges, one after another."""
    index = np.repeat(np.arange(len(counts)), counts)
    places = ranges(starts, counts)
    return Steps(index, block.neighbours[places], block.rows[places])


def _contains(block: Block, starts: np.ndarray, counts: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Binary search for `wanted[i]` in range i, all ranges at once."""
    low, high = starts.copy(), starts + counts
    if len(block.neighbours) == 0 or len(counts) == 0:
        return np.zeros(len(counts), bool)
    last = len(block.neighbours) - 1
    for _ in range(int(counts.max()).bit_length()):
        middle = (low + high) >> 1
        less = (low < high) & (block.neighbours[np.minimum(middle, last)] < wanted)
        low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        # an exhausted range keeps low == high
        high = np.maximum(high, low)
    inside = low < starts + counts
    return inside & (block.neighbours[np.minimum(low, last)] == wanted)


def parts_of(adjacency: Adjacency) -> Iterable[tuple[int, int]]:
    yield id(adjacency.base), adjacency.base.nbytes
    if adjacency.overlay is not None:
        yield id(adjacency.overlay), adjacency.overlay.block.nbytes + adjacency.overlay.keys.nbytes
