"""Rows of a pinned snapshot for those who write: which match, which exist, which edges hang on which nodes.

    found = find_nodes(snapshot, "Vessel", ids)            # addresses by id, all at once
    matched = rows_where(snapshot, entity, where, params, now=now, columns=["__id"])

Everything is by whole columns. Answers are row addresses of the pinned version, good for that pin only. Reads go through
the residency; nothing here changes anything.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.lang.query.typed import And, Compare, Expr, SystemRef
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType
from omnigraph.lang.types import ValueType
from omnigraph.query.candidates import candidate_rows
from omnigraph.query.codes import distinct
from omnigraph.query.expressions import Scope, constant_value, true_rows
from omnigraph.query.limits import SearchLimits
from omnigraph.query.plan import node_tests, variables
from omnigraph.query.residency.columns import Columns
from omnigraph.query.residency.edges import EdgeRows, Side
from omnigraph.query.rowcolumns import SomeEdges
from omnigraph.query.search.predicates import Sought
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.columns import DST, ID, ROW_ADDRESS, SRC, arrow_type, table_schema

TARGET = ""
"""The variable name that a mutation's `where` gives its row."""


@dataclass(frozen=True, slots=True)
class Found:
    """Rows by id, in the order asked: `present[i]` says whether id i exists, and then `addresses[i]` where its row is."""

    present: np.ndarray  # bool
    addresses: np.ndarray  # uint64; 0 where absent

    @property
    def all(self) -> bool:
        return bool(self.present.all())


@dataclass(frozen=True, slots=True)
class Incident:
    """Edges of one type that start or end at certain nodes, each once. `ids`, `src` and `dst` are String arrays."""

    edge: EdgeType
    addresses: np.ndarray  # uint64
    ids: pa.Array
    src: pa.Array
    dst: pa.Array


def find_nodes(snapshot: Snapshot, type_name: str, ids: pa.Array | pa.ChunkedArray) -> Found:
    """The nodes of a type with these ids. Raises StorageFailure."""
    snapshot = snapshot.view()
    nodes = snapshot.nodes(type_name)
    rows = nodes.rows_of(nodes.dictionary.find(ids))
    return _found(rows, nodes.addresses_of)


def find_edges(snapshot: Snapshot, type_name: str, ids: pa.Array | pa.ChunkedArray) -> Found:
    """The edges of a type with these ids. The type's ids become resident. Raises StorageFailure."""
    snapshot = snapshot.view()
    edges = snapshot.edges(type_name)
    found = _found(edges.find(_one(ids)), edges.addresses_of)
    snapshot.recount()
    return found


def incident_edges(snapshot: Snapshot, node_type: str, ids: pa.Array | pa.ChunkedArray) -> list[Incident]:
    """All edges that start or end at the nodes with these ids, by edge type in declaration order; types without any are
    left out. Raises StorageFailure.
    """
    snapshot = snapshot.view()
    vertices = snapshot.nodes(node_type).dictionary.find(ids)
    vertices = vertices[vertices >= 0]
    found: list[Incident] = []
    for edge in snapshot.catalog.incident_edges(node_type):
        edges = snapshot.edges(edge.name)
        ends: tuple[tuple[Side, str], ...] = (("src", edge.source), ("dst", edge.target))
        sides: list[Side] = [side for side, end in ends if end == node_type]
        rows = distinct(np.concatenate([edges.adjacency(side).steps(vertices).rows for side in sides]))
        if len(rows):
            columns = SomeEdges(edge, edges, rows)
            ids, src, dst = (columns.system(TARGET, field) for field in ("id", "src", "dst"))
            found.append(Incident(edge, edges.addresses_of(rows), ids, src, dst))
    snapshot.recount()
    return found


def source_counts(snapshot: Snapshot, edge_type: str, source_ids: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """int64: how many edges of a type start at each of these nodes; 0 for an unknown id. Raises StorageFailure."""
    snapshot = snapshot.view()
    entity = snapshot.catalog.edges[edge_type]
    edges = snapshot.edges(edge_type)  # before the look-up: reading edges is what numbers their ends
    vertices = snapshot.dictionary(snapshot.catalog.nodes[entity.source]).find(source_ids)
    counts = edges.adjacency("src").degrees(vertices)
    snapshot.recount()
    return counts


def rows_where(
    snapshot: Snapshot,
    entity: EntityType,
    where: Expr,
    params: Mapping[str, object],
    *,
    now: dt.datetime,
    columns: Sequence[str] = (ID,),
) -> pa.Table:
    """The rows of a type for which `where` is true: the stored `columns` asked, and `_rowaddr` last.

    A `where` that names an id, a key or an edge's end looks it up. What is in memory is not read again. Blob columns read
    as nulls. Raises StorageFailure.
    """
    snapshot = snapshot.view()
    scope = Scope(params, now)
    conjuncts = tuple(_conjuncts(where))
    known: dict[str, pa.Array] = {}
    if isinstance(entity, NodeType):
        nodes = snapshot.nodes(entity.name)
        residents = nodes.columns
        tests = node_tests(TARGET, entity.name, conjuncts, entity.key)
        rows = candidate_rows(snapshot, scope, tests)
        if ID in columns:
            known[ID] = nodes.dictionary.keys(nodes.vertices_of(rows))
    else:
        edges = snapshot.edges(entity.name)
        residents = edges.columns
        rows = _edge_rows(entity, edges, conjuncts, scope)
    snapshot.recount()
    schema = table_schema(entity)
    found = _stored(residents, rows, [schema.field(name) for name in columns], known)
    return found.append_column(ROW_ADDRESS, pa.array(residents.space.addresses(rows), pa.uint64()))


def _stored(
    residents: Columns, rows: np.ndarray, fields: Sequence[pa.Field], known: Mapping[str, pa.Array]
) -> pa.Table:
    """These fields of live rows: known values, resident columns, and the rest by one look at the table."""
    schema = pa.schema(fields)
    if len(rows) == 0 or residents.source is None:
        return schema.empty_table()
    absent = [field for field in fields if field.name not in known and field.name not in residents]
    looked_up = residents.source.take(residents.space.addresses(rows), absent) if absent else None

    def values(field: pa.Field) -> pa.Array | pa.ChunkedArray:
        if field.name in known:
            return known[field.name]
        if looked_up is not None and field.name in looked_up.column_names:
            return looked_up.column(field.name)
        return residents.get(field.name).take(rows)

    columns = {field.name: values(field) for field in fields}
    typed = [
        each if each.type == f.type else each.cast(f.type) for f, each in zip(fields, columns.values(), strict=True)
    ]
    return pa.Table.from_arrays(typed, schema=schema)


def matching_rows(
    entity: EntityType, rows: pa.Table, where: Expr, params: Mapping[str, object], *, now: dt.datetime
) -> np.ndarray:
    """Which rows of a table in the type's stored columns make `where` true: for rows that no version holds yet."""
    return true_rows(where, _TableColumns(entity, rows), Scope(params, now))


class _TableColumns:
    def __init__(self, entity: EntityType, rows: pa.Table) -> None:
        self._entity = entity
        self._rows = rows
        self.length = rows.num_rows

    def property(self, var: str, name: str, of: ValueType) -> pa.Array:
        found = self._entity.property(name)
        assert found is not None
        return _one(self._rows.column(found.column).cast(arrow_type(found.type)))

    def system(self, var: str, field: str) -> pa.Array:
        if field == "type":
            return pa.repeat(pa.scalar(self._entity.name), self.length)
        return _one(self._rows.column({"id": ID, "src": SRC, "dst": DST}[field]))

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        raise InternalError("a mutation searches a property")


def _edge_rows(entity: EdgeType, edges: EdgeRows, conjuncts: Sequence[Expr], scope: Scope) -> np.ndarray:
    """Live rows that satisfy all conjuncts, narrowed first by an end or an id if one is named."""
    rows: np.ndarray | None = None
    for each in conjuncts:
        named = _named(each)
        if named is None:
            continue
        value = constant_value(named[1], scope)
        ids = pa.array([] if value is None else [value], pa.string())
        if named[0] == "id":
            rows = edges.find(ids)
            rows = rows[rows >= 0]
            break
        side: Side = "src" if named[0] == "src" else "dst"
        vertices = edges.ends[0 if side == "src" else 1].find(ids)
        rows = edges.adjacency(side).steps(vertices).rows.astype(np.int64)
        break
    if rows is None:
        rows = edges.rows()
    columns = SomeEdges(entity, edges, rows)
    mask = np.ones(len(rows), bool)
    for each in conjuncts:
        mask &= true_rows(each, columns, scope)
    return rows[mask]


def _named(expr: Expr) -> tuple[str, Expr] | None:
    """`(field, constant)` of `@id = constant`, `@src = constant`, `@dst = constant`, either way round."""
    if isinstance(expr, Compare) and expr.op == "=":
        for left, right in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(left, SystemRef) and left.field != "type" and not variables(right):
                return left.field, right
    return None


def _conjuncts(where: Expr) -> Iterable[Expr]:
    if isinstance(where, And):
        yield from _conjuncts(where.left)
        yield from _conjuncts(where.right)
    else:
        yield where


def _found(rows: np.ndarray, addresses_of: Callable[[np.ndarray], np.ndarray]) -> Found:
    present = rows >= 0
    addresses = np.zeros(len(rows), np.uint64)
    addresses[present] = addresses_of(rows[present])
    return Found(present, addresses)


def _one(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
