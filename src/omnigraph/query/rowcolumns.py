"""Columns of values for expressions: of all rows of a type, of some vertices, of the assignments of a pattern.

Reads through the residency, where columns that are asked for become resident. Knows catalogs and residents, no patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.types import ValueType
from omnigraph.query.bindings import Bindings, EdgeColumn
from omnigraph.query.limits import SearchLimits
from omnigraph.query.residency.edges import ID_FIELD, EdgeRows
from omnigraph.query.residency.nodes import NodeRows
from omnigraph.query.search.predicates import Sought, rows_holding
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.columns import arrow_type


def field_of(entity: EntityType, name: str) -> pa.Field:
    """The stored column of a property."""
    found = entity.property(name)
    assert found is not None
    return pa.field(found.column, arrow_type(found.type))


class WholeType:
    """A stretch of all rows of a node type, without a copy: the base rows, or the tail rows.

    Rows that the version no longer has are among them; who scans leaves them out afterwards.
    """

    def __init__(self, entity: EntityType, nodes: NodeRows, tail: bool) -> None:
        self._entity = entity
        self._nodes = nodes
        self._tail = tail
        base, space = len(nodes.columns.space.base), len(nodes.columns.space)
        self.first = base if tail else 0
        self.length = space - base if tail else base

    def property(self, var: str, name: str, of: ValueType) -> pa.Array:
        field = field_of(self._entity, name)
        self._nodes.columns.load([field])
        column = self._nodes.columns.get(field.name)
        return column.tail if self._tail else column.base

    def system(self, var: str, field: str) -> pa.Array:
        rows = np.arange(self.first, self.first + self.length)
        return self._nodes.dictionary.keys(self._nodes.vertices_of(rows))

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        part = "tail" if self._tail else "base"
        mask = np.zeros(self.length, bool)
        mask[rows_holding(self._nodes, field_of(self._entity, name), what, limits, (part,)) - self.first] = True
        return mask


class SomeVertices:
    """Vertices of one node type, all of them live."""

    def __init__(self, entity: EntityType, nodes: NodeRows, vertices: np.ndarray) -> None:
        self._entity = entity
        self._nodes = nodes
        self._vertices = vertices
        self._rows: np.ndarray | None = None
        self.length = len(vertices)

    def rows(self) -> np.ndarray:
        if self._rows is None:
            self._rows = self._nodes.rows_of(self._vertices)
        return self._rows

    def property(self, var: str, name: str, of: ValueType) -> pa.Array:
        return self._nodes.columns.values(field_of(self._entity, name), self.rows())

    def system(self, var: str, field: str) -> pa.Array:
        return self._nodes.dictionary.keys(self._vertices)

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        return np.isin(self.rows(), rows_holding(self._nodes, field_of(self._entity, name), what, limits))


class SomeEdges:
    """Edge rows of one type."""

    def __init__(self, entity: EntityType, edges: EdgeRows, rows: np.ndarray) -> None:
        self._entity = entity
        self._edges = edges
        self._rows = rows
        self.length = len(rows)

    def property(self, var: str, name: str, of: ValueType) -> pa.Array:
        values = self._edges.columns.values(field_of(self._entity, name), self._rows)
        return values if values.type == arrow_type(of) else values.cast(arrow_type(of))

    def system(self, var: str, field: str) -> pa.Array:
        match field:
            case "src":
                return self._edges.ends[0].keys(self._edges.src_of(self._rows))
            case "dst":
                return self._edges.ends[1].keys(self._edges.dst_of(self._rows))
            case "id":
                return self._edges.columns.values(ID_FIELD, self._rows)
            case _:
                return pa.repeat(pa.scalar(self._entity.name), self.length)

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        raise InternalError("an edge's property is searched")


Fetch = Callable[[SomeVertices | SomeEdges], pa.Array]


class AssignmentColumns:
    """The variables of assignments. What was fetched once is kept for the assignments' lifetime."""

    def __init__(self, snapshot: Snapshot, types: Mapping[str, str], bindings: Bindings) -> None:
        self._snapshot = snapshot
        self._types = types
        self.bindings = bindings
        self._vertices: dict[str, SomeVertices] = {}
        self._fetched: dict[tuple[str, str, str], pa.Array] = {}

    @property
    def length(self) -> int:
        return self.bindings.length

    def property(self, var: str, name: str, of: ValueType) -> pa.Array:
        return self._once(var, "property", name, lambda rows: rows.property(var, name, of), of)

    def system(self, var: str, field: str) -> pa.Array:
        return self._once(var, "system", field, lambda rows: rows.system(var, field), None)

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        return self._nodes(var).holding(var, name, what, limits)

    def _once(self, var: str, kind: str, name: str, fetch: Fetch, of: ValueType | None) -> pa.Array:
        key = (var, kind, name)
        found = self._fetched.get(key)
        if found is None:
            edge = self.bindings.edges.get(var)
            found = fetch(self._nodes(var)) if edge is None else self._of_edges(edge, fetch, of)
            self._fetched[key] = found
        return found

    def _nodes(self, var: str) -> SomeVertices:
        found = self._vertices.get(var)
        if found is None:
            type_name = self._types[var]
            entity = self._snapshot.catalog.nodes[type_name]
            found = SomeVertices(entity, self._snapshot.nodes(type_name), self.bindings.nodes[var])
            self._vertices[var] = found
        return found

    def _of_edges(self, edge: EdgeColumn, fetch: Fetch, of: ValueType | None) -> pa.Array:
        """Each member's values, put back in the order of the assignments."""
        parts: list[pa.Array] = []
        places: list[np.ndarray] = []
        for member, type_name in enumerate(edge.types):
            at = np.flatnonzero(edge.member == member)
            if len(at) == 0 and len(edge.types) > 1:
                continue
            entity = self._snapshot.catalog.edges[type_name]
            parts.append(fetch(SomeEdges(entity, self._snapshot.edges(type_name), edge.rows[at])))
            places.append(at)
        if not parts:
            return pa.array([], pa.string() if of is None else arrow_type(of))
        if len(parts) == 1:
            return parts[0]
        order = np.empty(self.length, np.int64)
        order[np.concatenate(places)] = np.arange(self.length)
        return pa.concat_arrays(parts).take(pa.array(order))
