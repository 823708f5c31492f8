"""What a process keeps of its graphs in memory, by pinned version: looked up, built once, handed on by publications.

Results never depend on what is here; losing it costs time only. States are named by pin and by the dictionaries that
number their vertices, so a dictionary that was dropped and built anew can't meet a state with the old numbers.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import pyarrow as pa

from omnigraph.manifest.model import Manifest, TablePin
from omnigraph.query.residency.delta import RowDelta
from omnigraph.query.residency.dictionary import KeyDictionary
from omnigraph.query.residency.edges import EdgeRows, load_edges
from omnigraph.query.residency.nodes import NodeRows, load_nodes
from omnigraph.query.sources import TableOpener, TableSource
from omnigraph.tables.budget import MemoryBudget, process_budget
from omnigraph.tables.changes import RowDifference, difference
from omnigraph.tables.columns import DST, ID, ROW_ADDRESS, SRC

_SUPERSEDED_KEPT = 8
_FOLD_LEAST = 1024
_FOLD_SHARE = 64

State = NodeRows | EdgeRows
_S = TypeVar("_S", NodeRows, EdgeRows)


@dataclass(frozen=True, slots=True)
class StateKey:
    graph: str
    type_id: str
    pin: TablePin | None
    dictionaries: tuple[int, ...]

    @property
    def group(self) -> tuple[str, str]:
        return self.graph, self.type_id

    def of_same_type(self, other: StateKey) -> bool:
        """Whether both number their vertices alike and are versions of one type."""
        return (self.graph, self.type_id, self.dictionaries) == (other.graph, other.type_id, other.dictionaries)

    def in_same_folder(self, other: StateKey) -> bool:
        """Whether rows can be compared by place."""
        if self.pin is None or other.pin is None:
            return False
        return self.of_same_type(other) and self.pin.path == other.pin.path


Compare = Callable[[Any, TablePin, TablePin, Iterable[str | pa.Field]], RowDifference]
"""`tables.changes.difference`, or what a test has in its place."""


@dataclass(slots=True)
class Counters:
    """How states came to be: read whole from storage, taken over from a publication, derived by comparing with a version
    in memory, folded into a new base.
    """

    rebuilds: int = 0
    adoptions: int = 0
    comparisons: int = 0
    folds: int = 0


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A dictionary with a number that no other of this process ever has."""

    serial: int
    dictionary: KeyDictionary

    def parts(self) -> Iterable[tuple[int, int]]:
        return self.dictionary.parts()


@dataclass(slots=True)
class _Flight:
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: int = 0


class Residency:
    """Thread-safe. Several graphs may share one; all of a process share the byte limit by default."""

    def __init__(self, budget: MemoryBudget | None = None, *, compare: Compare = difference) -> None:
        self.budget = budget or process_budget()
        self._compare = compare
        self.counters = Counters()
        self._lock = threading.Lock()
        self._flights: dict[object, _Flight] = {}
        self._serials = itertools.count(1)
        self._superseded: dict[tuple[str, str], set[StateKey]] = {}
        self._folding: set[tuple[str, str]] = set()
        self._folder: ThreadPoolExecutor | None = None
        self._folds: list[Future[None]] = []

    def dictionary(self, graph: str, type_id: str) -> tuple[int, KeyDictionary]:
        """The key dictionary of a node type now in use, and its serial number. Keep both for as long as numbers matter."""
        key = ("keys", graph, type_id)
        with self._lock:
            found = cast("_Numbered | None", self.budget.get(key))
            if found is None:
                found = _Numbered(next(self._serials), KeyDictionary())
                self.budget.put(key, found, group="keys")
        return found.serial, found.dictionary

    def nodes(self, key: StateKey, dictionary: KeyDictionary, tables: TableOpener) -> NodeRows:
        """The nodes of a pinned version. Raises StorageFailure if they have to be read and can't be."""
        return self._state(key, tables, lambda source: load_nodes(dictionary, source))

    def edges(self, key: StateKey, ends: tuple[KeyDictionary, KeyDictionary], tables: TableOpener) -> EdgeRows:
        """The edges of a pinned version. Raises StorageFailure if they have to be read and can't be."""
        return self._state(key, tables, lambda source: load_edges(ends, source))

    def _state(self, key: StateKey, tables: TableOpener, load: Callable[[TableSource | None], _S]) -> _S:
        found = self._trusted(key)
        if found is not None:
            return cast(_S, found)
        if key.pin is None:
            state = load(None)
            self.budget.put(key, state, group=key.group)
            return state
        with self._lock:
            flight = self._flights.setdefault(key, _Flight())
            flight.waiting += 1
        try:
            with flight.lock:
                found = self._trusted(key)
                if found is None:
                    found = self._compared(key, tables)
                if found is None:
                    found = load(tables.open(key.pin))
                    self.counters.rebuilds += 1
                    self.budget.put(key, found, group=key.group)
                return cast(_S, found)
        finally:
            with self._lock:
                flight.waiting -= 1
                if flight.waiting == 0:
                    self._flights.pop(key, None)

    def _trusted(self, key: StateKey) -> State | None:
        """The state in memory, unless damage was met in the table that it reads from: then it is built anew."""
        found = cast("State | None", self.budget.get(key))
        if found is not None and found.doubtful:
            self.budget.drop([key])
            return None
        return found

    def _compared(self, key: StateKey, tables: TableOpener) -> State | None:
        """The state of a version that came from elsewhere, from the latest one in memory that lies in the same folder.

        None if there is none, or if the two do not agree on addresses: they share rows under different ones, or the latest
        one has other rows under those of the new ones (fragments of two branches may have one number). Then reading anew is
        simpler.
        """
        pin = key.pin
        assert pin is not None
        known = [other for other in self._states(key.group) if key.in_same_folder(other)]
        for other in known[-1:]:
            state = cast("State | None", self.budget.get(other))
            if state is None or state.doubtful or other.pin is None:
                continue
            found = self._compare(tables, other.pin, pin, _compared_fields(state))
            if found.renumbered:
                return None
            addresses = found.added.column(ROW_ADDRESS).to_numpy()
            delta = RowDelta(found.removed, found.added.drop_columns([ROW_ADDRESS]), addresses)
            if not _fits(state, delta) or (state.columns.space.find(addresses) >= 0).any():
                return None
            follower = self._followed(state, tables.open(pin), delta)
            self.counters.comparisons += 1
            self._keep(key, follower)
            return follower
        return None

    def _states(self, group: tuple[str, str]) -> list[StateKey]:
        """The states of a type that are in memory, least recently used first."""
        return cast("list[StateKey]", self.budget.held(group))

    def recount(self, key: StateKey, state: State) -> None:
        """Count a state's bytes anew after columns or adjacency became resident."""
        self.budget.recount(key, state)

    def adopt(self, tables: TableOpener, old: Manifest, new: Manifest, changes: Mapping[str, RowDelta]) -> None:
        """Take over what a publication changed: `changes` by type id, from `old`'s pin to `new`'s.

        Only types whose old version is in memory are carried on; a type that is left out, or whose rows are not known
        one by one (an overwrite, a compaction), is read again when it is next asked for.
        """
        for type_id, delta in changes.items():
            before, after = old.types.get(type_id), new.types.get(type_id)
            if after is None or after.pin is None:
                continue
            self._adopt_type(tables, new.graph, type_id, before.pin if before else None, after.pin, delta)

    def _adopt_type(
        self, tables: TableOpener, graph: str, type_id: str, before: TablePin | None, after: TablePin, delta: RowDelta
    ) -> None:
        for key in [key for key in self._states((graph, type_id)) if key.pin == before]:
            state = cast("State | None", self.budget.get(key))
            if state is None or state.doubtful or not _fits(state, delta):
                continue
            follower = self._followed(state, tables.open(after), delta)
            self.counters.adoptions += 1
            after_key = StateKey(graph, type_id, after, key.dictionaries)
            self._keep(after_key, follower)
            self._supersede(key)

    def _keep(self, key: StateKey, follower: State) -> None:
        self.budget.put(key, follower, group=key.group)
        if follower.overlay_size > _overlay_share(follower):
            self._fold_soon(key, follower)

    def _followed(self, state: State, source: TableSource, delta: RowDelta) -> State:
        """The version after a delta. Folding is for the background, unless it does not keep up with the writes."""
        if state.overlay_size > 2 * _overlay_share(state):
            state = state.folded()
            self.counters.folds += 1
        return state.adopted(source, delta)

    def _supersede(self, key: StateKey) -> None:
        """Versions behind a head go after a few more, unless someone still reads them."""
        known = self._states(key.group)
        with self._lock:
            behind = self._superseded.setdefault(key.group, set())
            behind.add(key)
            behind.intersection_update(known)
            surplus = [other for other in known if other in behind][:-_SUPERSEDED_KEPT]
            behind.difference_update(surplus)
        self.budget.drop(surplus)

    def _fold_soon(self, key: StateKey, state: State) -> None:
        line = (key.graph, key.type_id)
        with self._lock:
            if line in self._folding:
                return
            self._folding.add(line)
            if self._folder is None:
                self._folder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="omnigraph-fold")
            self._folds = [each for each in self._folds if not each.done()]
            self._folds.append(self._folder.submit(self._fold, key, state, line))

    def _fold(self, key: StateKey, state: State, line: tuple[str, str]) -> None:
        try:
            folded = state.folded()
            if self.budget.get(key) is state:
                self.budget.put(key, folded, group=key.group)
                self.counters.folds += 1
        finally:
            with self._lock:
                self._folding.discard(line)

    def settle(self) -> None:
        """Wait for folding in the background."""
        for each in list(self._folds):
            each.result()


def _overlay_share(state: State) -> int:
    """How many rows may lie over a base before it is worth making a new one."""
    return max(_FOLD_LEAST, len(state.columns.space.base) // _FOLD_SHARE)


def _compared_fields(state: State) -> list[pa.Field]:
    """The columns that a state needs of rows that came: ids, ends, and what is resident."""
    names = [ID] if isinstance(state, NodeRows) else [ID, SRC, DST]
    fields = [pa.field(name, pa.string()) for name in names]
    return fields + [field for field in state.columns.fields() if field.name not in names]


def _fits(state: State, delta: RowDelta) -> bool:
    """Whether the delta speaks of this state's rows. If it does not, reading anew is right and merely slow."""
    if len(delta.addresses) != delta.rows.num_rows:
        return False
    rows = state.columns.space.find(delta.removed)
    if len(rows) and rows.min() < 0:
        return False
    live = state.current(rows) if isinstance(state, NodeRows) else state.is_live(rows)
    return bool(live.all())
