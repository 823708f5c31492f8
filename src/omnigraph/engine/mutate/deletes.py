"""Mutations that delete: rows by `where`, and with each node the edges that start or end at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.lookups import NO_ADDRESSES, one_array
from omnigraph.engine.plan import Footprint, TypeChange, WritePlan
from omnigraph.engine.validate import FinalState, FinalType
from omnigraph.lang.query.typed import Delete
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType
from omnigraph.manifest.model import Counts
from omnigraph.query.expressions import Scope
from omnigraph.query.rows import incident_edges, rows_where
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.columns import ID, ROW_ADDRESS


@dataclass
class _Gone:
    entity: EntityType
    addresses: np.ndarray = field(default_factory=lambda: NO_ADDRESSES)  # distinct
    statements: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # the first that named each
    ids: list[pa.Array] = field(default_factory=list[pa.Array])

    def add(self, addresses: np.ndarray, statement: int) -> np.ndarray:
        """Which of these are new, as a mask."""
        new = ~np.isin(addresses, self.addresses)
        self.addresses = np.concatenate([self.addresses, addresses[new]])
        self.statements = np.concatenate([self.statements, np.full(int(new.sum()), statement, np.int64)])
        return new


def deletion_plan(snapshot: Snapshot, statements: Sequence[Delete], scope: Scope) -> WritePlan | None:
    """All deletes of a mutation; None if no row matched. Raises ConstraintViolation (W007), StorageFailure."""
    gone: dict[str, _Gone] = {}
    footprint = Footprint()
    catalog = snapshot.catalog
    for number, statement in enumerate(statements, 1):
        kinds = catalog.nodes if statement.kind == "node" else catalog.edges
        entity = kinds[statement.type_name]
        footprint = footprint.with_mode(entity.id, "read")
        matched = rows_where(snapshot, entity, statement.where, scope.params, now=scope.now)
        new = gone.setdefault(entity.id, _Gone(entity)).add(matched.column(ROW_ADDRESS).to_numpy(), number)
        if isinstance(entity, NodeType):
            ids = one_array(matched.column(ID)).filter(pa.array(new))
            gone[entity.id].ids.append(ids)
            for edge in catalog.incident_edges(entity.name):
                footprint = footprint.with_mode(edge.id, "read")
            for hanging in incident_edges(snapshot, entity.name, ids) if len(ids) else ():
                gone.setdefault(hanging.edge.id, _Gone(hanging.edge)).add(hanging.addresses, number)
    removed = {type_id: each for type_id, each in gone.items() if len(each.addresses)}
    if not removed:
        return None
    for type_id in removed:
        footprint = footprint.with_mode(type_id, "change")
    FinalState(snapshot, [_final(each) for each in removed.values()]).check()
    nodes = sum(len(each.addresses) for each in removed.values() if not isinstance(each.entity, EdgeType))
    edges = sum(len(each.addresses) for each in removed.values() if isinstance(each.entity, EdgeType))
    changes = tuple(
        TypeChange(each.entity, None, each.addresses, Counts(deleted=len(each.addresses))) for each in removed.values()
    )
    return WritePlan("mutation", changes, footprint, affected=(nodes, edges))


def _final(each: _Gone) -> FinalType:
    gone = pc.unique(pa.chunked_array(each.ids, pa.string())) if each.ids else None
    return FinalType(each.entity, None, each.addresses, removed_by=each.statements, gone=gone)
