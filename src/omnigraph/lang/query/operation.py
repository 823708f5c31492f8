"""What a checked query reads, writes and answers (languages.md 17, `operation`): for policy, listings and tools.

Computed from the typed query alone; knows no data and no caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.lang.query.typed import (
    Delete,
    Expr,
    Insert,
    MutationQuery,
    NodeRef,
    Pattern,
    ReadQuery,
    TypedQuery,
    Update,
)
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import Scalar

FieldKind = Literal["string", "bool", "int", "bigint", "float", "date", "datetime", "vector", "list", "object", "blob"]

_KINDS: dict[Scalar, FieldKind] = {
    Scalar.STRING: "string",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
    Scalar.BLOB: "blob",
}


@dataclass(frozen=True, slots=True, order=True)
class TypeRef:
    kind: Literal["node", "edge"]
    type_name: str


@dataclass(frozen=True, slots=True)
class ResultField:
    name: str
    kind: FieldKind
    nullable: bool
    item_kind: FieldKind | None = None
    vector_dim: int | None = None

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"name": self.name, "kind": self.kind, "nullable": self.nullable}
        if self.item_kind is not None:
            fields["item_kind"] = self.item_kind
        if self.vector_dim is not None:
            fields["vector_dim"] = self.vector_dim
        return fields


@dataclass(frozen=True, slots=True)
class Operation:
    """`reads` and `writes` are sorted and distinct; `result` is empty for a mutation."""

    result: tuple[ResultField, ...]
    reads: tuple[TypeRef, ...]
    writes: tuple[TypeRef, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "result": [field.to_dict() for field in self.result],
            "reads": [{"kind": ref.kind, "type_name": ref.type_name} for ref in self.reads],
            "writes": [{"kind": ref.kind, "type_name": ref.type_name} for ref in self.writes],
        }


def describe(query: TypedQuery, catalog: Catalog) -> Operation:
    """The descriptor of a query that was checked against this catalog."""
    if isinstance(query, ReadQuery):
        result = tuple(_field(item.name, item.expr) for item in query.items)
        return Operation(result, _sorted(_pattern_reads(query.pattern, catalog)), ())
    return Operation((), _sorted(_statement_reads(query, catalog)), _sorted(_statement_writes(query, catalog)))


def _sorted(refs: Iterable[TypeRef]) -> tuple[TypeRef, ...]:
    return tuple(sorted(set(refs)))


def _field(name: str, expr: Expr) -> ResultField:
    if isinstance(expr, NodeRef):
        return ResultField(name, "object", nullable=False)
    of = expr.type
    match of.kind:
        case "vector":
            return ResultField(name, "vector", of.nullable, vector_dim=of.dimension)
        case "list":
            return ResultField(name, "list", of.nullable, item_kind=_KINDS[of.scalar])
        case "scalar" | "enum":
            return ResultField(name, _KINDS[of.scalar], of.nullable)


def _pattern_reads(pattern: Pattern, catalog: Catalog) -> Iterator[TypeRef]:
    """Every type the pattern may look at, ends of edges and nested blocks included."""
    for node in pattern.nodes:
        yield TypeRef("node", node.type_name)
    for hop in pattern.hops:
        for member in hop.members:
            edge = catalog.edges[member.edge_type]
            yield TypeRef("edge", edge.name)
            yield TypeRef("node", edge.source)
            yield TypeRef("node", edge.target)
    for block in pattern.blocks:
        yield from _pattern_reads(block.pattern, catalog)


def _statement_reads(query: MutationQuery, catalog: Catalog) -> Iterator[TypeRef]:
    yield from _statement_writes(query, catalog)
    for statement in query.statements:
        if isinstance(statement, Insert) and statement.kind == "edge":
            edge = catalog.edges[statement.type_name]
            yield TypeRef("node", edge.source)
            yield TypeRef("node", edge.target)


def _statement_writes(query: MutationQuery, catalog: Catalog) -> Iterator[TypeRef]:
    for statement in query.statements:
        match statement:
            case Insert(kind=kind, type_name=name):
                yield TypeRef(kind, name)
            case Update(type_name=name):
                yield TypeRef("node", name)
            case Delete(kind=kind, type_name=name):
                yield TypeRef(kind, name)
                if kind == "node":  # its edges go with a node
                    yield from (TypeRef("edge", edge.name) for edge in catalog.incident_edges(name))
