"""One byte limit for everything a process keeps of its graphs in memory; what was used least recently goes first.

Entries are immutable states (of a table version, or a key dictionary) that share parts: versions that follow each other
hold the same base arrays. So bytes are counted by part, once, however many entries hold it. Knows nothing of graphs.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(slots=True)
class _Kept:
    entry: Held
    group: Hashable
    parts: dict[int, int]
    used: int


class MemoryBudget:
    """A least-recently-used store of entries below `limit` bytes. Thread-safe.

    The newest entry always stays, even alone above the limit: the query that asked for it needs it now. Entries belong to
    groups, so that what is kept of one table is found without looking at everything.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._groups: dict[Hashable, set[Hashable]] = {}
        self._parts: dict[int, list[int]] = {}  # part -> [bytes, holders]
        self._bytes = 0
        self._evictions = 0
        self._uses = 0
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
            found = self._kept.get(key)
            if found is None:
                return None
            self._uses += 1
            found.used = self._uses
            self._kept.move_to_end(key)
            return found.entry

    def put(self, key: Hashable, entry: Held, *, group: Hashable) -> None:
        """Keep an entry, in place of one with the same key; others are dropped until the limit holds."""
        parts = dict(entry.parts())
        with self._lock:
            self._put(key, entry, group, parts)

    def recount(self, key: Hashable, entry: Held) -> None:
        """Count an entry's parts anew, if it is still kept and they changed."""
        parts = dict(entry.parts())
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept.entry is entry and kept.parts != parts:
                self._put(key, entry, kept.group, parts)

    def drop(self, keys: Iterable[Hashable]) -> None:
        with self._lock:
            for key in keys:
                self._remove(key)

    def held(self, group: Hashable) -> list[Hashable]:
        """The keys of a group, least recently used first."""
        with self._lock:
            return sorted(self._groups.get(group, ()), key=lambda key: self._kept[key].used)

    def groups(self) -> list[Hashable]:
        with self._lock:
            return list(self._groups)

    def _put(self, key: Hashable, entry: Held, group: Hashable, parts: dict[int, int]) -> None:
        for part, size in parts.items():
            holding = self._parts.setdefault(part, [0, 0])
            self._bytes += size - holding[0]
            holding[0] = size
            holding[1] += 1
        self._remove(key)
        self._uses += 1
        self._kept[key] = _Kept(entry, group, parts, self._uses)
        self._groups.setdefault(group, set()).add(key)
        while self._bytes > self.limit and len(self._kept) > 1:
            self._remove(next(iter(self._kept)))
            self._evictions += 1

    def _remove(self, key: Hashable) -> None:
        gone = self._kept.pop(key, None)
        if gone is None:
            return
        members = self._groups[gone.group]
        members.discard(key)
        if not members:
            del self._groups[gone.group]
        for part in gone.parts:
            holding = self._parts[part]
            holding[1] -= 1
            if holding[1] == 0:
                self._bytes -= holding[0]
                del self._parts[part]


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
