"""Graphs whose tables are Arrow tables in memory: what queries ask of storage, without storage.

    graph = MemoryGraph(harbour_catalog())
    graph.put({"Port": {"p1": {...}}}, {"CallsAt": {"c1": ("1", "p1", {...})}})
    run_read(query, graph.snapshot(), {}, now=NOW)

Row addresses are made as the table library makes them: removed rows keep their places, new rows get new fragments.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.model import Commit, Lineage, Manifest, TablePin, TypeEntry
from omnigraph.query.residency import MemoryBudget, Residency, RowDelta
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.changes import RowDifference
from omnigraph.tables.columns import DST, ID, ROW_ADDRESS, SRC, table_schema

Nodes = Mapping[str, Mapping[str, Mapping[str, Any]]]  # type -> id -> properties
Edges = Mapping[str, Mapping[str, tuple[str, str, Mapping[str, Any]]]]  # type -> id -> (src, dst, properties)

HARBOUR_SCHEMA = Path(__file__).resolve().parents[1] / "data" / "harbour.pg"


def catalog_of(source: str) -> Catalog:
    numbers = itertools.count(1)
    return compile_schema(source, mint=lambda: f"{next(numbers):016x}")


class NoIndexes:
    """A table that nothing was built for."""

    def usable(self, column: str, kind: str) -> bool:
        return False

    def holding(self, column: str, text: str) -> Any:
        raise AssertionError("an index was asked that is not there")

    def nearest(self, column: str, vector: np.ndarray, count: int, probes: int) -> Any:
        raise AssertionError("an index was asked that is not there")


class MemoryTable:
    """A table version. `fields` may be asked beyond what it stores; `scans` counts how often rows were read."""

    def __init__(self, pin: TablePin, rows: pa.Table, addresses: np.ndarray) -> None:
        self.pin = pin
        self.doubtful = False
        self.held = rows
        self.addresses = addresses
        self.schema = rows.schema
        self.rows = rows.num_rows
        self.bytes = rows.nbytes
        self.scans: list[tuple[str, ...]] = []
        self.search_indexes = NoIndexes()

    def scan(
        self,
        columns: Iterable[str | pa.Field],
        *,
        filter: Any = None,
        with_row_address: bool = False,
        batch_size: int | None = None,
    ) -> pa.RecordBatchReader:
        assert filter is None
        table = self._columns(columns)
        self.scans.append(tuple(table.column_names))
        if with_row_address:
            table = table.append_column(ROW_ADDRESS, pa.array(self.addresses, pa.uint64()))
        return table.to_reader(max_chunksize=batch_size or 2)

    def take(self, addresses: np.ndarray, columns: Iterable[str | pa.Field]) -> pa.Table:
        place = {int(address): i for i, address in enumerate(self.addresses)}
        places = pa.array([place[int(address)] for address in addresses], pa.int64())
        return self._columns(columns).take(places)

    def _columns(self, columns: Iterable[str | pa.Field]) -> pa.Table:
        values: dict[str, Any] = {}
        for column in columns:
            name = column if isinstance(column, str) else column.name
            if name in self.held.column_names:
                values[name] = self.held.column(name)
            else:
                assert not isinstance(column, str)
                values[name] = pa.nulls(self.rows, column.type)
        return pa.table(values)


class MemoryTables:
    def __init__(self) -> None:
        self.versions: dict[TablePin, MemoryTable] = {}

    def open(self, pin: TablePin) -> MemoryTable:
        return self.versions[pin]


def memory_difference(
    tables: MemoryTables, a: TablePin, b: TablePin, columns: Iterable[str | pa.Field]
) -> RowDifference:
    """What leads from one version to another, rows told apart by their addresses."""
    former, latter = tables.open(a), tables.open(b)
    removed = np.setdiff1d(former.addresses, latter.addresses)
    added = np.setdiff1d(latter.addresses, former.addresses)
    rows = latter.take(added, columns).append_column(ROW_ADDRESS, pa.array(added, pa.uint64()))
    return RowDifference(removed, rows)


def memory_residency(limit: int = 1 << 30) -> Residency:
    return Residency(MemoryBudget(limit), compare=memory_difference)


class MemoryGraph:
    """One branch. `snapshot` pins the present state; changes make new versions and leave the old ones readable."""

    def __init__(self, catalog: Catalog, *, residency: Residency | None = None, graph: str = "G") -> None:
        self.catalog = catalog
        self.tables: Any = MemoryTables()
        self.residency = residency or memory_residency()
        self._versions = itertools.count(1)
        self._fragments = itertools.count(0)
        types = {t.id: TypeEntry(t.kind, t.name, None, "none") for t in self.entities}
        commit = Commit(CommitId("main", 1, "0" * 16), (), 0, "genesis", None, 0)
        self.manifest = Manifest(
            graph, "main", 1, "active", 1, None, None, None, (commit,), "s", types, Lineage((commit,)), "0" * 32
        )

    @property
    def entities(self) -> list[EntityType]:
        return [*self.catalog.nodes.values(), *self.catalog.edges.values()]

    def entity(self, name: str) -> EntityType:
        return next(t for t in self.entities if t.name == name)

    def snapshot(self, residency: Residency | None = None) -> Snapshot:
        return Snapshot(self.manifest, self.catalog, self.tables, residency or self.residency)

    def put(
        self,
        nodes: Nodes | None = None,
        edges: Edges | None = None,
        *,
        remove: Mapping[str, Iterable[str]] | None = None,
        adopt: bool = True,
    ) -> None:
        """Upsert entities and remove ids, all as one publication; with `adopt` the residency is told the rows."""
        changes: dict[str, RowDelta] = {}
        old = self.manifest
        types = dict(old.types)
        for entity in self.entities:
            named = {**(nodes or {}), **(edges or {})}.get(entity.name, {})
            gone = set((remove or {}).get(entity.name, ())) | set(named)
            if not gone:
                continue
            rows = _rows(entity, named)
            pin, delta = self._changed(entity, types[entity.id].pin, rows, gone)
            types[entity.id] = replace(types[entity.id], pin=pin, rows=self.tables.open(pin).rows)
            changes[entity.id] = delta
        self.manifest = replace(old, version=old.version + 1, types=types)
        if adopt:
            self.residency.adopt(self.tables, old, self.manifest, changes)

    def _changed(
        self, entity: EntityType, before: TablePin | None, rows: pa.Table, gone: set[str]
    ) -> tuple[TablePin, RowDelta]:
        fragment = next(self._fragments)
        came = (np.uint64(fragment) << np.uint64(32)) + np.arange(rows.num_rows, dtype=np.uint64)
        held, addresses = table_schema(entity).empty_table(), np.empty(0, np.uint64)
        removed = np.empty(0, np.uint64)
        if before is not None:
            table = self.tables.open(before)
            stays = np.array([i not in gone for i in table.held.column(ID).to_pylist()], bool)
            held, addresses = table.held.filter(pa.array(stays, pa.bool_())), table.addresses[stays]
            removed = table.addresses[~stays]
        pin = TablePin(f"{entity.kind}s/{entity.id}", next(self._versions))
        whole = pa.concat_tables([held.cast(rows.schema), rows])
        self.tables.versions[pin] = MemoryTable(pin, whole, np.concatenate([addresses, came]))
        return pin, RowDelta(removed, rows, came)


def _rows(entity: EntityType, named: Mapping[str, Any]) -> pa.Table:
    schema = table_schema(entity)
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for key, value in named.items():
        properties = value
        columns[ID].append(key)
        if entity.kind == "edge":
            src, dst, properties = value
            columns[SRC].append(src)
            columns[DST].append(dst)
        for each in entity.properties:
            columns[each.column].append(properties.get(each.name))
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


# --- the harbour of languages.md 1


def harbour_catalog() -> Catalog:
    return catalog_of(HARBOUR_SCHEMA.read_text(encoding="utf-8"))


HARBOUR_NODES: Nodes = {
    "Vessel": {
        "1": {
            "imo": 1,
            "title": "Alma",
            "tonnage": 500.0,
            "status": "active",
            "tags": ["ferry", "night"],
            "hull": [0.0, 0.0],
        },
        "2": {"imo": 2, "title": "Brig", "status": "laid-up", "hull": [3.0, 4.0]},
        "3": {"imo": 3, "title": "Corvo", "tonnage": 1200.5, "status": "active", "tags": []},
    },
    "Port": {
        '["BGO","NO"]': {"country": "NO", "code": "BGO", "title": "Bergen"},
        '["LIS","PT"]': {"country": "PT", "code": "LIS", "title": "Lisboa"},
    },
    "Sailor": {
        "s1": {"name": "Ines", "rank": 3},
        "s2": {"name": "Otto"},
        "s3": {"name": "Pia", "rank": 3},
    },
}
_BERGEN, _LISBOA = '["BGO","NO"]', '["LIS","PT"]'
HARBOUR_EDGES: Edges = {
    "CallsAt": {
        "c1": ("1", _BERGEN, {"berth": "A"}),
        "c2": ("1", _BERGEN, {"berth": "B"}),
        "c3": ("3", _LISBOA, {}),
        "c4": ("2", _BERGEN, {"berth": "A"}),
    },
    "Follows": {
        "f1": ("1", "2", {}),
        "f2": ("2", "3", {}),
        "f3": ("3", "1", {}),
        "f4": ("3", "3", {}),
        "f5": ("1", "2", {}),
    },
    "Tows": {'["1","2"]': ("1", "2", {})},
    "ServesOn": {"o1": ("s1", "1", {}), "o2": ("s2", "1", {})},
}


def harbour(residency: Residency | None = None) -> MemoryGraph:
    graph = MemoryGraph(harbour_catalog(), residency=residency)
    graph.put(HARBOUR_NODES, HARBOUR_EDGES)
    return graph
