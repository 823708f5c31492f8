"""One byte limit for everything a process keeps of its graphs in memory; what was used least recently goes first.

Entries are immutable states (of a table version, or a key dictionary) that share parts: versions that follow each other
hold the same base arrays. So bytes are counted by part, once, however many entries hold it. Knows nothing of graphs.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol

from omnigraph.errors import InvalidRequest

VARIABLE = "OMNIGRAPH_CACHE_BYTES"


class Growth:
    """How often something that may be kept became larger in this process. Whoever counts bytes looks here first: a query
    that found everything in memory has nothing to count.
    """

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """Counting may miss one of two threads; that the count changed, nobody misses."""
        self.count += 1


growth = Growth()


class Held(Protocol):
    """Something that can be kept: `parts` names what it holds by identity, with the bytes of each part."""

    def parts(self) -> Iterable[tuple[int, int]]: ...


class MemoryBudget:
    """A least-recently-used store of entries below `limit` bytes. Thread-safe.

    The newest entry always stays, even alone above the limit: the query that asked for it needs it now.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[Hashable, tuple[Held, dict[int, int]]] = OrderedDict()
        self._held: dict[int, list[int]] = {}  # part -> [bytes, holders]
        self._bytes = 0
        self._evictions = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def evictions(self) -> int:
        return self._evictions

    def get(self, key: Hashable) -> Held | None:
        """The entry, which thereby becomes the most recently used."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, entry: Held) -> None:
        """Keep an entry, or count it anew after it grew; others are dropped until the limit holds."""
        parts = dict(entry.parts())
        with self._lock:
            old = self._entries.pop(key, None)
            for part, size in parts.items():
                holding = self._held.setdefault(part, [0, 0])
                self._bytes += size - holding[0]
                holding[0] = size
                holding[1] += 1
            if old is not None:
                self._release(old[1])
            self._entries[key] = (entry, parts)
            while self._bytes > self.limit and len(self._entries) > 1:
                _, (_, oldest) = self._entries.popitem(last=False)
                self._evictions += 1
                self._release(oldest)

    def recount(self, key: Hashable, entry: Held) -> None:
        """Count an entry's parts anew, if it is kept and they changed."""
        parts = dict(entry.parts())
        with self._lock:
            kept = self._entries.get(key)
            if kept is None or kept[0] is not entry or kept[1] == parts:
                return
        self.put(key, entry)

    def drop(self, keys: Iterable[Hashable]) -> None:
        with self._lock:
            for key in keys:
                old = self._entries.pop(key, None)
                if old is not None:
                    self._release(old[1])

    def held(self) -> list[Hashable]:
        """All keys, least recently used first."""
        with self._lock:
            return list(self._entries)

    def _release(self, parts: Mapping[int, int]) -> None:
        for part in parts:
            holding = self._held[part]
            holding[1] -= 1
            if holding[1] == 0:
                self._bytes -= holding[0]
                del self._held[part]


def limit_from_environment(environ: Mapping[str, str] | None = None) -> int:
    """`OMNIGRAPH_CACHE_BYTES`, else a quarter of the machine's memory. Raises InvalidRequest for a bad value."""
    text = (os.environ if environ is None else environ).get(VARIABLE, "")
    if text:
        if not (text.isascii() and text.isdigit()):
            raise InvalidRequest(f"{VARIABLE} must be a whole number of bytes", code="invalid_setting")
        return int(text)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


_process_budget: MemoryBudget | None = None
_process_lock = threading.Lock()


def process_budget() -> MemoryBudget:
    """The budget that all graphs of this process share, made on first use."""
    global _process_budget
    with _process_lock:
        if _process_budget is None:
            _process_budget = MemoryBudget(limit_from_environment())
        return _process_budget
