"""Value types as Arrow columns: what a graph's types look like as tables.

    table_schema(catalog.nodes["Paper"])  ->  __id: string not null, title: string, year: int32 ...

Knows catalogs and Arrow, nothing of storage. Property columns are nullable here whatever the schema says: a property
that was added later has no values in older rows, and required values are the write path's rule, not the table's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, cast

import pyarrow as pa

from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.types import Scalar, ValueType

ID: Final = "__id"
SRC: Final = "__src"
DST: Final = "__dst"
ROW_ADDRESS: Final = "_rowaddr"
"""The column that scans add: fragment number in the upper 32 bits, position in the lower. Good for one pin only."""

PROPERTY_ID: Final = b"omnigraph:property"
BLOB: Final = b"omnigraph:blob"

_SCALARS: Final[dict[Scalar, pa.DataType]] = {
    Scalar.STRING: pa.utf8(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("ms", tz="UTC"),
    Scalar.BLOB: pa.large_binary(),
}


def arrow_type(value_type: ValueType) -> pa.DataType:
    """The Arrow type that values of a property, parameter or expression have in memory.

    A Blob is `large_binary` here; its stored form is the table room's own matter.
    """
    match value_type.kind:
        case "scalar":
            return _SCALARS[value_type.scalar]
        case "enum":
            return pa.utf8()
        case "list":
            return pa.list_(_SCALARS[value_type.scalar])
        case "vector":
            return pa.list_(pa.float32(), value_type.dimension)


@lru_cache(1024)
def table_schema(entity_type: EntityType) -> pa.Schema:
    """All columns of a type: `__id`, for edges `__src` and `__dst`, then the properties in catalog order.

    Each property field carries its id (`omnigraph:property`) as metadata, which orders columns that a table lacks.
    """
    ends = (SRC, DST) if entity_type.kind == "edge" else ()
    fields = [pa.field(name, pa.utf8(), nullable=False) for name in (ID, *ends)]
    for each in entity_type.properties:
        metadata = {PROPERTY_ID: each.id.encode()}
        if each.type.kind == "scalar" and each.type.scalar is Scalar.BLOB:
            metadata[BLOB] = b"1"
        fields.append(pa.field(each.column, arrow_type(each.type), nullable=True, metadata=metadata))
    return pa.schema(fields)


def is_blob(field: pa.Field) -> bool:
    """Whether a field of `table_schema` is a Blob property."""
    return field.metadata is not None and BLOB in field.metadata


def fields_of(schema: pa.Schema) -> list[pa.Field]:
    """The fields of a schema, with a type that checkers know."""
    return cast("list[pa.Field]", list(schema))


def in_property_order(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """Fields in the order of their property ids: the order in which a table is extended, the same in every process."""

    def property_id(field: pa.Field) -> tuple[bytes, str]:
        metadata = cast("dict[bytes, bytes]", field.metadata or {})
        return metadata.get(PROPERTY_ID, b""), field.name

    return sorted(fields, key=property_id)
