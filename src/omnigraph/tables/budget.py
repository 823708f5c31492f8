"""One byte limit for everything a process keeps of its graphs in memory; what was used least recently goes first.

Entries are open table versions, immutable states of them, key dictionaries, positions of deleted rows. They share parts:
versions that follow each other hold the same base arrays. So bytes are counted by part, once, however many entries hold
it. Knows nothing of graphs, and lies in this room because it is the lowest one that keeps something.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Generator, Hashable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

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
        self._abandoned: deque[Hashable] = deque()  # groups to be dropped by whoever has the lock next
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        with self._locked():
            return self._bytes

    @property
    def evictions(self) -> int:
        return self._evictions

    def get(self, key: Hashable) -> Held | None:
        """The entry, which thereby becomes the most recently used."""
        with self._locked():
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
        with self._locked():
            self._put(key, entry, group, parts)

    def recount(self, key: Hashable, entry: Held) -> None:
        """Count an entry's parts anew, if it is still kept and they changed."""
        parts = dict(entry.parts())
        with self._locked():
            kept = self._kept.get(key)
            if kept is not None and kept.entry is entry and kept.parts != parts:
                self._put(key, entry, kept.group, parts)

    def drop(self, keys: Iterable[Hashable]) -> None:
        with self._locked():
            for key in keys:
                self._remove(key)

    def held(self, group: Hashable) -> list[Hashable]:
        """The keys of a group, least recently used first."""
        with self._locked():
            return sorted(self._groups.get(group, ()), key=lambda key: self._kept[key].used)

    def groups(self) -> list[Hashable]:
        with self._locked():
            return list(self._groups)

    def abandon(self, group: Hashable) -> None:
        """Drop a group, now or before anything else is done here. To be called from finalizers: these may run in the
        middle of any other method on the same thread, so this waits for no lock.
        """
        self._abandoned.append(group)
        if self._lock.acquire(blocking=False):
            try:
                self._drop_abandoned()
            finally:
                self._lock.release()

    @contextmanager
    def _locked(self) -> Generator[None]:
        with self._lock:
            self._drop_abandoned()
            yield

    def _drop_abandoned(self) -> None:
        while self._abandoned:
            for key in list(self._groups.get(self._abandoned.popleft(), ())):
                self._remove(key)

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


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_shelves = itertools.count(1)


class Shelf(Generic[K, V]):
    """What one part of the program keeps within a budget, under keys of its own. Thread-safe; dropped with its owner.

    Losing a value costs time only: every one of them can be had again from storage.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._group = ("shelf", next(_shelves))
        weakref.finalize(self, budget.abandon, self._group).atexit = False

    def get(self, key: K) -> V | None:
        found = cast("_Weighed[V] | None", self._budget.get((self._group, key)))
        return None if found is None else found.value

    def put(self, key: K, value: V, weight: int, *, part: object | None = None) -> None:
        """Keep a value of so many bytes, in place of one with the same key. `part`: what holds the bytes, if values
        may share it.
        """
        entry = _Weighed(value, weight, value if part is None else part)
        self._budget.put((self._group, key), entry, group=self._group)

    def drop(self, keys: Iterable[K]) -> None:
        self._budget.drop([(self._group, key) for key in keys])

    def clear(self) -> None:
        self._budget.drop(self._budget.held(self._group))

    def __len__(self) -> int:
        return len(self._budget.held(self._group))


@dataclass(frozen=True, slots=True)
class _Weighed(Generic[V]):
    value: V
    weight: int
    part: object

    def parts(self) -> Iterable[tuple[int, int]]:
        return ((id(self.part), self.weight),)


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
