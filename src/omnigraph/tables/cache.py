"""A small cache with a limit: least recently used entries go first, and losing one costs time only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Keeps values while their weights add up to at most `limit`. Thread-safe. The newest value always stays."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> V:
        """The value kept under the key from now on: this one, or the one that was there already."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found[0]
            self._kept[key] = value, weight
            self._weight += weight
            while self._weight > self._limit and len(self._kept) > 1:
                _, (_, freed) = self._kept.popitem(last=False)
                self._weight -= freed
            return value
