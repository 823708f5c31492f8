"""One pinned state of a graph, as queries see it.

    snapshot = Snapshot(manifest, catalog, tables, residency)
    vessels = snapshot.nodes("Vessel")

A query pins a manifest at its start and never looks again. What it needs in memory is found or built through the
residency; within one snapshot a node type keeps one dictionary, so vertex numbers of different tables agree.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.manifest.model import Manifest, TablePin
from omnigraph.query.residency.dictionary import KeyDictionary
from omnigraph.query.residency.edges import EdgeRows
from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.residency.residency import Residency, StateKey
from omnigraph.query.sources import TableOpener, TableSource
from omnigraph.tables.budget import growth
from omnigraph.tables.failures import MissingTable


@dataclass(slots=True)
class _Seen:
    """What this snapshot has resolved so far."""

    dictionaries: dict[str, tuple[int, KeyDictionary]] = field(default_factory=dict[str, tuple[int, KeyDictionary]])
    nodes: dict[str, tuple[StateKey, NodeRows]] = field(default_factory=dict[str, tuple[StateKey, NodeRows]])
    edges: dict[str, tuple[StateKey, EdgeRows]] = field(default_factory=dict[str, tuple[StateKey, EdgeRows]])
    lock: threading.RLock = field(default_factory=threading.RLock)
    counted: int = field(default_factory=lambda: growth.count)  # what `growth` said when bytes were last counted


@dataclass(frozen=True)
class Snapshot:
    """Thread-safe. One that is only held keeps nothing in memory: whoever runs on it works with a `view`."""

    manifest: Manifest
    catalog: Catalog
    tables: TableOpener
    residency: Residency
    _seen: _Seen = field(default_factory=_Seen, init=False, repr=False, compare=False)

    def view(self) -> Snapshot:
        """The same state for one operation: what it resolves stays in memory until it ends, whatever the budget drops."""
        return Snapshot(self.manifest, self.catalog, self.tables, self.residency)

    def pin(self, type_id: str) -> TablePin | None:
        entry = self.manifest.types.get(type_id)
        return None if entry is None else entry.pin

    def table(self, type_id: str) -> TableSource | None:
        """The table of a type at its pinned version; None for a type that never held a row. Raises StorageFailure."""
        pin = self.pin(type_id)
        if pin is None:
            return None
        with self.naming():
            return self.tables.open(pin)

    @contextmanager
    def naming(self) -> Generator[None]:
        """Around reads of this state: where stored data is missing, the error names its type and the commit."""
        try:
            yield
        except MissingTable as missing:
            raise MissingTable(missing.pin, self._told(missing.pin)) from None

    def _told(self, pin: TablePin | None) -> str:
        path = None if pin is None else pin.path
        stored = {type_id for type_id, entry in self.manifest.types.items() if entry.pin and entry.pin.path == path}
        types = (*self.catalog.nodes.values(), *self.catalog.edges.values())
        names = [f"{each.kind} type '{each.name}'" for each in types if each.id in stored]
        return f"of {', '.join(names) or 'a table'} at commit {self.manifest.head_commit.id}"

    def row_count(self, type_id: str) -> int:
        """Rows of a type as the manifest says: no request."""
        entry = self.manifest.types.get(type_id)
        return 0 if entry is None else entry.rows

    def dictionary(self, node_type: NodeType) -> KeyDictionary:
        return self._numbered(node_type)[1]

    def _numbered(self, node_type: NodeType) -> tuple[int, KeyDictionary]:
        with self._seen.lock:
            found = self._seen.dictionaries.get(node_type.id)
            if found is None:
                found = self.residency.dictionary(self.manifest.graph, node_type.id)
                self._seen.dictionaries[node_type.id] = found
            return found

    def nodes(self, type_name: str) -> NodeRows:
        """The nodes of a type. Raises StorageFailure if they have to be read and can't be."""
        found = self._seen.nodes.get(type_name)
        if found is None:
            entity = self.catalog.nodes[type_name]
            serial, dictionary = self._numbered(entity)
            key = StateKey(self.manifest.graph, entity.id, self.pin(entity.id), (serial,))
            with self.naming():
                found = key, self.residency.nodes(key, dictionary, self.tables)
            with self._seen.lock:
                found = self._seen.nodes.setdefault(type_name, found)
        return found[1]

    def edges(self, type_name: str) -> EdgeRows:
        """The edges of a type. Raises StorageFailure if they have to be read and can't be."""
        found = self._seen.edges.get(type_name)
        if found is None:
            entity = self.catalog.edges[type_name]
            serials, ends = zip(
                *(self._numbered(self._end(entity, side)) for side in ("source", "target")), strict=True
            )
            key = StateKey(self.manifest.graph, entity.id, self.pin(entity.id), serials)
            with self.naming():
                found = key, self.residency.edges(key, (ends[0], ends[1]), self.tables)
            with self._seen.lock:
                found = self._seen.edges.setdefault(type_name, found)
        return found[1]

    def _end(self, edge: EdgeType, side: str) -> NodeType:
        return self.catalog.nodes[edge.source if side == "source" else edge.target]

    def recount(self) -> None:
        """Have the residency count anew what was resolved, if anything in this process has grown since."""
        grown = growth.count
        if self._seen.counted == grown:
            return
        self._seen.counted = grown
        for key, state in [*self._seen.nodes.values(), *self._seen.edges.values()]:
            self.residency.recount(key, state)
