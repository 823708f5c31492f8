"""One entity of a state, looked up by its id."""

from __future__ import annotations

from typing import Any

from omnigraph.engine.arguments import text_bytes
from omnigraph.engine.core import GraphCore
from omnigraph.engine.reading.selectors import Pinned
from omnigraph.engine.receipts import as_datetime
from omnigraph.errors import InvalidRequest
from omnigraph.lang.query.faults import nearest_name
from omnigraph.lang.query.typed import Compare, Constant, SystemRef
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.lang.types import BOOL, STRING
from omnigraph.query.rows import TARGET, rows_where
from omnigraph.tables.columns import DST, ID, SRC


def read_entity(core: GraphCore, state: Pinned, type_name: str, entity_id: str) -> dict[str, Any] | None:
    """`@id` (for an edge `@src` and `@dst` too), then every property in column order, a null as None. None if there is no
    such entity.

    Raises InvalidRequest for a type that the schema lacks, StorageFailure.
    """
    entity = named_type(state.snapshot.catalog, type_name)
    text_bytes(entity_id, "An id")
    where = Compare("=", SystemRef(TARGET, "id", STRING), Constant(entity_id, STRING), BOOL)
    fields = {"@id": ID, **({"@src": SRC, "@dst": DST} if isinstance(entity, EdgeType) else {})}
    fields |= {each.name: each.column for each in entity.properties}
    with state.snapshot.naming():
        found = rows_where(
            state.snapshot, entity, where, {}, now=as_datetime(core.clock.now_us()), columns=list(fields.values())
        )
    rows = found.slice(0, 1).to_pylist()
    return {name: rows[0][column] for name, column in fields.items()} if rows else None


def named_type(catalog: Catalog, name: str) -> EntityType:
    """A node type, or an edge type as queries name it. Raises InvalidRequest, with a name that is near."""
    text_bytes(name, "A type's name")
    found = catalog.nodes.get(name) or catalog.edge_by_word(name)
    if found is None:
        raise unknown_type(catalog, name)
    return found


def unknown_type(catalog: Catalog, name: str) -> InvalidRequest:
    """The error for a type that the schema lacks."""
    near = nearest_name(name, [*catalog.nodes, *catalog.edges])
    return InvalidRequest(f"The schema has no type '{name}'." + (f" Did you mean '{near}'?" if near else ""))
