"""A frame of one type as a load batch: columns named as the properties, `@id`, and for edges `@src` and `@dst`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.engine import constraints
from omnigraph.engine.identity import LINE_NUMBER, with_derived_ids
from omnigraph.engine.limits import LoadLimits, too_many_bytes, too_many_entities
from omnigraph.engine.load.batch import LoadBatch, TypeRows, rows_schema
from omnigraph.engine.load.cells import Misfit, WrongColumn, id_column, value_column
from omnigraph.engine.load.input import Frame
from omnigraph.errors import InvalidData, InvalidRequest
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.tables.columns import DST, ID, SRC, fields_of

_UNNAMED_INDEX: Final = re.compile(r"__index_level_\d+__")  # as Arrow calls one
_SHOWN_NAMES: Final = {ID: "@id", SRC: "@src", DST: "@dst"}


def read_frame(frame: Frame, catalog: Catalog, limits: LoadLimits) -> LoadBatch:
    """The rows of a frame; a row's number, from 1, stands for the line.

    What is refused is the first row that holds a value its property can't have or that breaks a constraint by itself, by
    the codes of records. Raises InvalidRequest for an unknown type, InvalidData (W010, W011) naming the column,
    ConstraintViolation, LimitExceeded.
    """
    entity = catalog.nodes.get(frame.type) or catalog.edge_by_word(frame.type)
    if entity is None:
        raise InvalidRequest(f"The schema has no type '{frame.type}'.", effects="none")
    table = frame.table
    if limits.write_entities is not None and table.num_rows > limits.write_entities:
        raise too_many_entities(entity, limits.write_entities, table.num_rows)
    if limits.write_bytes is not None and table.nbytes > limits.write_bytes:
        raise too_many_bytes(entity, limits.write_bytes, table.nbytes)
    columns = _named(entity, frame)
    rows = _stored(entity, columns, table.num_rows)
    misfit = None
    if isinstance(rows, Misfit):
        misfit, before = rows, {name: values.slice(0, rows.row) for name, values in columns.items()}
        rows = _stored(entity, before, misfit.row)
        assert not isinstance(rows, Misfit)
    violation = constraints.first([constraints.value_violation(entity, rows)])
    if violation is not None:
        raise violation.error()
    if misfit is not None:
        raise misfit.error(entity, columns.get(ID))
    types = (TypeRows(entity, with_derived_ids(entity, rows)),) if table.num_rows else ()
    return LoadBatch(types, table.num_rows, table.nbytes)


def _named(entity: EntityType, frame: Frame) -> dict[str, pa.ChunkedArray]:
    """Stored column name -> values."""
    names = {"@id": ID}
    if isinstance(entity, EdgeType):
        names |= {"@src": SRC, "@dst": DST}
    names |= {p.name: p.column for p in entity.properties}
    columns: dict[str, pa.ChunkedArray] = {}
    for name, values in zip(frame.table.column_names, frame.table.columns, strict=True):
        if name not in names:
            raise InvalidData(
                f"{entity.name} has no property '{name}'; {_advice(name, names, frame)}.",
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


def _advice(name: str, names: Mapping[str, str], frame: Frame) -> str:
    if name in frame.index:
        return "it names the index of the frame: drop that by `reset_index(drop=True)`, or name it as a property"
    if _UNNAMED_INDEX.fullmatch(name):
        return "it is the index of a pandas frame: leave that out by `Table.from_pandas(…, preserve_index=False)`"
    return f"a frame's columns are {', '.join(sorted(names))}"


def _stored(entity: EntityType, columns: Mapping[str, pa.ChunkedArray], length: int) -> pa.Table | Misfit:
    """The columns in stored form, or the first row with a value that has none; of several in it, the first declared."""
    schema = rows_schema(entity)
    properties = {p.column: p for p in entity.properties}
    arrays: list[pa.ChunkedArray] = []
    misfits: list[Misfit] = []
    for field in fields_of(schema):
        given = columns.get(field.name)
        if field.name == LINE_NUMBER:
            found = pa.chunked_array([np.arange(1, length + 1)])
        elif given is None:
            found = pa.chunked_array([pa.nulls(length, field.type)])
        elif (target := properties.get(field.name)) is None:
            found = id_column(_SHOWN_NAMES[field.name], given, may_be_null=field.name == ID)
        else:
            found = value_column(target, given)
        match found:
            case Misfit():
                misfits.append(found)
            case WrongColumn(name, what):
                raise _refused(entity, name, what)
            case _:
                arrays.append(found)
    if misfits:
        return min(misfits, key=lambda misfit: misfit.row)
    return pa.Table.from_arrays(arrays, schema=schema)


def _refused(entity: EntityType, name: str, message: str) -> InvalidData:
    return InvalidData(f"{entity.name}.{name}: {message}.", data_code="W010", type_name=entity.name, property_name=name)
