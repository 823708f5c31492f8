"""Key dictionary of a node type: key → vertex number, append-only, shared by all versions and branches of a graph.

Vertex numbers are dense, never reused, and mean nothing outside the process. A number says nothing about whether a
version holds such a node; that is for the rows of the version to say.

A large sorted base and a small sorted tail: the base holds the vertices below `len(base)`, the tail the ones after.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.tables.budget import growth

_TAIL_LEAST = 512
_SINGLY = 4  # so few keys cost less one by one than three kernels
_NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class _Tier:
    """Keys in byte order. `number[i]` is the vertex of key i, `place[v - first]` where vertex v's key stands."""

    first: int
    keys: pa.Array
    number: np.ndarray  # int32
    place: np.ndarray  # int32

    @property
    def end(self) -> int:
        return self.first + len(self.number)

    def find(self, keys: pa.Array) -> np.ndarray:
        """Vertex of each key, −1 where this tier lacks it."""
        size = len(self.number)
        if size == 0 or len(keys) == 0:
            return np.full(len(keys), -1, np.int32)
        if len(keys) <= _SINGLY:
            return np.array([self._find_one(key) for key in keys.to_pylist()], np.int32)
        keys = keys.cast(self.keys.type)
        if len(keys) * 16 > size:  # one hash table over all keys costs less than that many searches
            place = pc.index_in(keys, value_set=self.keys).fill_null(-1).to_numpy(zero_copy_only=False)
            return np.where(place >= 0, self.number[place], np.int32(-1))
        place = pc.search_sorted(self.keys, keys).to_numpy(zero_copy_only=False)
        place = np.minimum(place, size - 1)
        same = pc.equal(self.keys.take(pa.array(place)), keys).to_numpy(zero_copy_only=False)
        return np.where(same, self.number[place], np.int32(-1))

    def _find_one(self, key: str) -> int:
        low, high = 0, len(self.number)
        while low < high:  # the order of code points is the order of UTF-8
            middle = (low + high) >> 1
            if self.keys[middle].as_py() < key:
                low = middle + 1
            else:
                high = middle
        return int(self.number[low]) if low < len(self.number) and self.keys[low].as_py() == key else -1

    def merged(self, other: _Tier) -> _Tier:
        """This tier and the one whose vertices follow, as one."""
        mine = _widened(self.keys, other.keys)
        theirs = other.keys.cast(mine.type)
        at = pc.search_sorted(mine, theirs).to_numpy(zero_copy_only=False).astype(np.int64)
        order = np.insert(np.arange(len(mine)), at, np.arange(len(mine), len(mine) + len(theirs)))
        keys = pa.concat_arrays([mine, theirs]).take(pa.array(order))
        return _tier(self.first, keys, np.concatenate([self.number, other.number])[order])


def _tier(first: int, keys: pa.Array, number: np.ndarray) -> _Tier:
    place = np.empty(len(number), np.int32)
    place[number - first] = np.arange(len(number), dtype=np.int32)
    return _Tier(first, keys, number.astype(np.int32), place)


def _widened(keys: pa.Array, more: pa.Array) -> pa.Array:
    """`keys` in a type whose offsets can address both together."""
    if keys.type == pa.string() and keys.nbytes + more.nbytes > 2**31 - 2**20:
        return keys.cast(pa.large_string())
    return keys


@dataclass(frozen=True, slots=True)
class _Tiers:
    base: _Tier
    tail: _Tier

    def find(self, keys: pa.Array) -> np.ndarray:
        found = self.base.find(keys)
        if len(self.tail.number):
            found = np.where(found >= 0, found, self.tail.find(keys))
        return found


class KeyDictionary:
    """Thread-safe: readers see one immutable state, additions replace it under a lock."""

    def __init__(self) -> None:
        empty = np.empty(0, np.int32)
        self._tiers = _Tiers(_Tier(0, _NO_KEYS, empty, empty), _Tier(0, _NO_KEYS, empty, empty))
        self._lock = threading.Lock()
        self._ranks: tuple[int, np.ndarray] | None = None

    def __len__(self) -> int:
        return self._tiers.tail.end

    def find(self, keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """int32 vertex numbers of String keys, −1 for a key never seen and for null."""
        tiers = self._tiers
        values = _flat(keys)
        if values.null_count:
            found = np.full(len(values), -1, np.int32)
            found[values.is_valid().to_numpy(zero_copy_only=False)] = self.find(values.drop_null())
            return found
        if len(values) < 64:
            return tiers.find(values)
        coded = values.dictionary_encode()
        return tiers.find(coded.dictionary)[coded.indices.to_numpy(zero_copy_only=False)]

    def add(self, keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """Vertex numbers of the keys; those never seen get the next numbers."""
        values = _flat(keys)
        if len(values) <= 1:
            return self._added(values)
        coded = values.dictionary_encode()
        return self._added(coded.dictionary)[coded.indices.to_numpy(zero_copy_only=False)]

    def _added(self, distinct: pa.Array) -> np.ndarray:
        found = self._tiers.find(distinct)
        if len(found) == 0 or found.min() >= 0:
            return found
        with self._lock:
            found = self._tiers.find(distinct)
            missing = np.flatnonzero(found < 0)
            if len(missing) == len(distinct):
                return self._append(distinct)
            if len(missing):
                found[missing] = self._append(distinct.take(pa.array(missing)))
        return found

    def _append(self, keys: pa.Array) -> np.ndarray:
        """Number new, distinct keys. Called under the lock."""
        growth.note()
        tiers = self._tiers
        base, tail = tiers.base, tiers.tail
        first = tail.end
        if len(keys) == 1:  # what most writes bring
            added = _Tier(first, keys, np.array([first], np.int32), np.zeros(1, np.int32))
        else:
            order = pc.sort_indices(keys).to_numpy(zero_copy_only=False).astype(np.int64)
            added = _tier(first, keys.take(pa.array(order)), (first + order).astype(np.int32))
        if len(tail.number):
            added = tail.merged(added)
        if len(added.number) > max(_TAIL_LEAST, 4 * math.isqrt(len(base.number))):
            base = base.merged(added) if len(base.number) else added
            added = _Tier(base.end, _NO_KEYS, np.empty(0, np.int32), np.empty(0, np.int32))
        self._tiers = _Tiers(base, added)
        return np.arange(first, first + len(keys), dtype=np.int32)

    def keys(self, vertices: np.ndarray) -> pa.Array:
        """The keys of these vertex numbers, as a String array."""
        tiers = self._tiers
        base, tail = tiers.base, tiers.tail
        if len(tail.number) == 0 or len(vertices) == 0 or vertices.max() < base.end:
            return base.keys.take(pa.array(base.place[vertices])).cast(pa.string())
        late = vertices >= base.end
        ours = base.keys.take(pa.array(base.place[vertices[~late]])).cast(pa.string())
        theirs = tail.keys.take(pa.array(tail.place[vertices[late] - tail.first])).cast(pa.string())
        order = np.empty(len(vertices), np.int64)
        order[~late] = np.arange(len(ours))
        order[late] = np.arange(len(ours), len(vertices))
        return pa.concat_arrays([ours, theirs]).take(pa.array(order))

    def ranks(self) -> np.ndarray:
        """int32 by vertex: the place of its key among all keys in byte order, which is the order of ids."""
        known = self._ranks
        tiers = self._tiers
        base, tail = tiers.base, tiers.tail
        if known is not None and known[0] == tail.end:
            return known[1]
        if len(tail.number) == 0:
            ranks = base.place
        else:
            at = pc.search_sorted(base.keys, tail.keys.cast(base.keys.type)).to_numpy(zero_copy_only=False)
            ahead = np.searchsorted(at, np.arange(len(base.number)), side="right").astype(np.int32)
            at_place = at.astype(np.int32) + np.arange(len(tail.number), dtype=np.int32)
            ranks = np.concatenate([base.place + ahead[base.place], at_place[tail.place]])
        self._ranks = (tail.end, ranks)
        return ranks

    def parts(self) -> Iterable[tuple[int, int]]:
        tiers = self._tiers
        size = sum(t.keys.nbytes + t.number.nbytes + t.place.nbytes for t in (tiers.base, tiers.tail))
        return [(id(self), size)]


def _flat(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(keys, pa.ChunkedArray):
        return keys.chunk(0) if keys.num_chunks == 1 else keys.combine_chunks()
    return keys
