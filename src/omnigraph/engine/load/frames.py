"""A frame of one type as a load batch: columns named as the properties, `@id`, and for edges `@src` and `@dst`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import constraints
from omnigraph.engine.identity import LINE_NUMBER, with_derived_ids
from omnigraph.engine.load.batch import LoadBatch, TypeRows, rows_schema
from omnigraph.engine.load.input import Frame
from omnigraph.engine.load.limits import LoadLimits, too_many_bytes, too_many_entities
from omnigraph.errors import InvalidData, InvalidRequest
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.lang.types import Scalar
from omnigraph.tables.columns import DST, ID, SRC


def read_frame(frame: Frame, catalog: Catalog, limits: LoadLimits) -> LoadBatch:
    """The rows of a frame; a row's number, from 1, stands for the line.

    Raises InvalidRequest for an unknown type, InvalidData (W010, W011) naming the column, ConstraintViolation,
    LimitExceeded.
    """
    entity = catalog.nodes.get(frame.type) or catalog.edge_by_word(frame.type)
    if entity is None:
        raise InvalidRequest(f"The schema has no type '{frame.type}'.", effects="none")
    table = frame.table
    if limits.write_entities is not None and table.num_rows > limits.write_entities:
        raise too_many_entities(entity, limits.write_entities, table.num_rows)
    if limits.write_bytes is not None and table.nbytes > limits.write_bytes:
        raise too_many_bytes(entity, limits.write_bytes, table.nbytes)
    columns = _named(entity, table)
    rows = _cast(entity, columns, table.num_rows)
    violation = constraints.first([constraints.value_violation(entity, rows)])
    if violation is not None:
        raise violation.error()
    types = (TypeRows(entity, with_derived_ids(entity, rows)),) if table.num_rows else ()
    return LoadBatch(types, table.num_rows, table.nbytes)


def _named(entity: EntityType, table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Stored column name -> values."""
    names = {"@id": ID}
    if isinstance(entity, EdgeType):
        names |= {"@src": SRC, "@dst": DST}
    names |= {p.name: p.column for p in entity.properties}
    columns: dict[str, pa.ChunkedArray] = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        if name not in names:
            raise InvalidData(
                f"{entity.name} has no property '{name}'; a frame's columns are {', '.join(sorted(names))}.",
                data_code="W011",
                type_name=entity.name,
                property_name=name,
            )
        if names[name] in columns:
            raise _refused(entity, name, f"the column '{name}' comes twice")
        columns[names[name]] = values
    for name in ("@src", "@dst"):
        if isinstance(entity, EdgeType) and names[name] not in columns:
            raise _refused(entity, name, f"an edge needs the column '{name}'")
    return columns


def _cast(entity: EntityType, columns: dict[str, pa.ChunkedArray], length: int) -> pa.Table:
    schema = rows_schema(entity)
    properties = {p.column: p for p in entity.properties}
    arrays: list[pa.ChunkedArray | pa.Array] = []
    for field in (schema.field(place) for place in range(len(schema.names))):
        if field.name == LINE_NUMBER:
            arrays.append(pa.array(np.arange(1, length + 1)))
            continue
        given = columns.get(field.name)
        if given is None:
            arrays.append(pa.nulls(length, field.type))
            continue
        target = properties.get(field.name)
        shown = field.name if target is None else target.name
        if target is not None and target.type.scalar is Scalar.BLOB and given.null_count < length:
            raise InvalidData(
                f"{entity.name}.{shown}: Blob values are not part of this version.",
                data_code="N001",
                type_name=entity.name,
                property_name=shown,
            )
        arrays.append(_column(entity, shown, given, field.type))
        if field.name in (SRC, DST) and (arrays[-1].null_count or pc.any(pc.equal(arrays[-1], "")).as_py()):
            raise _refused(entity, shown, "the end of an edge is a non-empty String")
    return pa.Table.from_arrays(
        [a if isinstance(a, pa.ChunkedArray) else pa.chunked_array([a]) for a in arrays], schema=schema
    )


def _column(entity: EntityType, name: str, values: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    """The values in the property's type, where no value changes."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
        kind = values.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    numbers = (pa.types.is_integer(kind), pa.types.is_floating(kind))
    fits = (
        pa.types.is_null(kind)
        or kind == to
        or (text and pa.types.is_string(to))
        or (any(numbers) and pa.types.is_floating(to))
        or (any(numbers) and pa.types.is_integer(to))  # pandas keeps integers with nulls as floats
        or (pa.types.is_date(kind) and pa.types.is_date(to))
        or (pa.types.is_timestamp(kind) and pa.types.is_timestamp(to))
        or (_is_list(kind) and _is_list(to))
    )
    if not fits:
        raise _refused(entity, name, f"a column of {kind} does not fit {_wanted(entity, name)}")
    try:
        if pa.types.is_timestamp(kind) and kind.tz is None:
            values = values.cast(pa.timestamp(kind.unit, "UTC"))
        return values.cast(to, safe=not pa.types.is_floating(to))
    except pa.ArrowInvalid:
        raise _refused(entity, name, f"a value does not fit {_wanted(entity, name)}") from None


def _wanted(entity: EntityType, name: str) -> str:
    """The type of a column as the schema spells it."""
    found = entity.property(name)
    return "String" if found is None else found.type.spelling()


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _refused(entity: EntityType, name: str, message: str) -> InvalidData:
    return InvalidData(f"{entity.name}.{name}: {message}.", data_code="W010", type_name=entity.name, property_name=name)
