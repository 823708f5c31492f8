"""The columns of an answer: names, Arrow types, and their spelling in the query language."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from omnigraph.lang.query.typed import Expr, NodeRef, ReturnItem
from omnigraph.lang.schema.catalog import Catalog, NodeType, Property
from omnigraph.lang.types import Scalar
from omnigraph.query.rowcolumns import SomeVertices
from omnigraph.tables.columns import arrow_type

NODE_ID = "@id"


@dataclass(frozen=True, slots=True)
class QueryOutput:
    """An answer. `types` are the columns' types as the query language spells them; a node column's is its node type."""

    table: pa.Table
    types: tuple[str, ...]


def spelled_type(expr: Expr) -> str:
    return expr.type_name if isinstance(expr, NodeRef) else expr.type.spelling()


def result_type(expr: Expr, catalog: Catalog) -> pa.DataType:
    """The Arrow type of a result column, the same with rows and without."""
    if isinstance(expr, NodeRef):
        shown = shown_properties(catalog.nodes[expr.type_name])
        return pa.struct([(NODE_ID, pa.string()), *((each.name, arrow_type(each.type)) for each in shown)])
    return arrow_type(expr.type)


def shown_properties(node_type: NodeType) -> tuple[Property, ...]:
    """The properties of a node object, in column order: neither Blobs nor vectors (languages.md 10.1)."""
    return tuple(
        each for each in node_type.properties if each.type.kind != "vector" and each.type.scalar is not Scalar.BLOB
    )


def node_objects(node_type: NodeType, of: pa.DataType, vertices: SomeVertices) -> pa.Array:
    """Node objects as a struct column, `@id` first. Nulls stay null; the encoder leaves them out."""
    shown = shown_properties(node_type)
    values = [vertices.system("", "id")] + [vertices.property("", each.name, each.type) for each in shown]
    fields = [of.field(i) for i in range(of.num_fields)]
    return pa.StructArray.from_arrays(
        [fitted(each, field.type) for each, field in zip(values, fields, strict=True)], fields=fields
    )


def fitted(values: pa.Array, of: pa.DataType) -> pa.Array:
    return values if values.type == of else values.cast(of)


def column_names(items: tuple[ReturnItem, ...]) -> list[str]:
    return [item.name for item in items]
