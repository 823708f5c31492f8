"""Types and rows that the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, NodeType, Property
from omnigraph.lang.types import I64, STRING, Scalar, ValueType, scalar
from omnigraph.manifest.model import TablePin
from omnigraph.tables.columns import table_schema
from omnigraph.tables.stage import Committed, RowChange, commit, stage
from omnigraph.tables.store import TableStore


def prop(name: str, of: ValueType, id_: str | None = None) -> Property:
    return Property(id_ or f"id-{name}", name, of, name)


PORT = NodeType("a0a0a0a0a0a0a0a0", "Port", (prop("name", STRING), prop("depth", I64)))
ROUTE = EdgeType("b0b0b0b0b0b0b0b0", "Route", "Port", "Port", (prop("miles", I64),))
PORTS = table_schema(PORT)
ROUTES = table_schema(ROUTE)

# the same type, two properties later: declared as draft, then berths, with ids that sort the other way
GROWN = NodeType(
    PORT.id,
    PORT.name,
    (
        *PORT.properties,
        prop("draft", scalar(Scalar.F64), "id-zz"),
        prop("berths", ValueType("list", Scalar.STRING), "id-aa"),
    ),
)
GROWN_PORTS = table_schema(GROWN)


def ports(*ids: str, depth: int | None = 1) -> pa.Table:
    columns = {"__id": list(ids), "name": [each.upper() for each in ids], "depth": [depth] * len(ids)}
    return pa.table(columns, schema=PORTS)


def at(*addresses: int) -> np.ndarray:
    return np.array(addresses, np.uint64)


def write(
    tables: TableStore,
    base: TablePin | None,
    rows: pa.Table | pa.RecordBatchReader | None = None,
    *,
    remove: Iterable[int] | None = None,
    overwrite: bool = False,
    schema: pa.Schema = PORTS,
    line: str = "main#1",
    label: str = "main@2",
) -> Committed:
    """Stage and commit on the same pin."""
    removed = None if remove is None else np.array(list(remove), np.uint64)
    staged = stage(
        tables,
        kind="node",
        type_id=PORT.id,
        schema=schema,
        base=base,
        change=RowChange(rows, removed, overwrite),
        line=line,
    )
    return commit(tables, staged, base, label=label)


def ids(tables: TableStore, pin: TablePin) -> list[str]:
    """In table order."""
    return tables.open(pin).read(["__id"]).column("__id").to_pylist()


def addresses(tables: TableStore, pin: TablePin) -> dict[str, int]:
    table = tables.open(pin).read(["__id"], with_row_address=True)
    return dict(zip(table.column("__id").to_pylist(), table.column("_rowaddr").to_pylist(), strict=True))
