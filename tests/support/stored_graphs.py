"""Graphs whose tables lie in storage, without an engine around them.

graph = StoredGraph(harbour_catalog(), tmp_path)
graph.put({...}); graph.index()
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import Catalog, EntityType, NodeType
from omnigraph.manifest.model import TablePin
from omnigraph.query.residency import MemoryBudget, Residency, RowDelta
from omnigraph.store.open import open_store
from omnigraph.tables.columns import ID, ROW_ADDRESS, table_schema
from omnigraph.tables.index_build import build_indexes, commit_indexes
from omnigraph.tables.index_plans import Wanted
from omnigraph.tables.stage import RowChange, commit, stage
from omnigraph.tables.store import TableStore
from support.memory_graphs import MemoryGraph


class StoredGraph(MemoryGraph):
    """A graph in memory whose tables lie in storage."""

    def __init__(self, catalog: Catalog, root: Path) -> None:
        super().__init__(catalog, residency=Residency(MemoryBudget(1 << 28)))
        self.tables = TableStore(open_store(root))

    def _changed(
        self, entity: EntityType, before: TablePin | None, rows: pa.Table, gone: set[str]
    ) -> tuple[TablePin, RowDelta]:
        removed = np.empty(0, np.uint64)
        if before is not None:
            held = self.tables.open(before).read([ID], with_row_address=True)
            mask = np.array([key in gone for key in held.column(ID).to_pylist()], bool)
            removed = held.column(ROW_ADDRESS).to_numpy()[mask]
        change = RowChange(rows=rows if rows.num_rows else None, remove=removed)
        staged = stage(
            self.tables,
            kind=entity.kind,
            type_id=entity.id,
            schema=table_schema(entity),
            base=before,
            change=change,
        )
        if staged.is_empty and before is not None:
            return before, RowDelta(removed, rows, np.empty(0, np.uint64))
        done = commit(self.tables, staged, before, label="main@1")
        return done.pin, RowDelta(removed, rows, done.appended)

    def index(self, *, full: bool = False) -> None:
        """Build an index of every text and every vector of the nodes, whatever the schema says and however few there are."""
        types = dict(self.manifest.types)
        for entity in self.catalog.nodes.values():
            pin = types[entity.id].pin
            if pin is None:
                continue
            staged = build_indexes(self.tables, pin, _wanted(entity), full=full, vector_bytes_least=0)
            if staged.built:
                done = commit_indexes(self.tables, staged, pin, label="main@1")
                types[entity.id] = replace(types[entity.id], pin=done.pin)
        old, self.manifest = self.manifest, replace(self.manifest, version=self.manifest.version + 1, types=types)
        nothing = pa.table({name: pa.array([], pa.string()) for name in (ID, "__src", "__dst")})
        changed = [each for each in types if types[each].pin != old.types[each].pin]
        none = np.empty(0, np.uint64)
        self.residency.adopt(self.tables, old, self.manifest, {each: RowDelta(none, nothing, none) for each in changed})


def _wanted(entity: NodeType) -> list[Wanted]:
    return [
        Wanted(each.column, "vector" if each.type.kind == "vector" else "text", each.type.dimension or 0)
        for each in entity.properties
        if each.type.kind == "vector" or (each.type.kind == "scalar" and each.type.is_text)
    ]
