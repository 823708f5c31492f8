"""Constraints that other rows or other types decide: W005, W006, W007."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.constraints.order import (
    codes_of,
    earlier_equal,
    first_row,
    has_repeats,
    line_of,
    place_of,
    ranks,
    statement_of,
)
from omnigraph.engine.constraints.violation import Violation, placed, quoted, shown_value, violation_at
from omnigraph.lang.schema.catalog import EdgeType, EntityType
from omnigraph.tables.columns import DST, ID, SRC


def unique_violation(
    entity: EntityType, group: tuple[str, ...], rows: pa.Table, others: pa.Table | None = None
) -> Violation | None:
    """W005 for one `@unique` group: the first row whose tuple an earlier row, or one of `others`, has too.

    `rows` are the new and changed rows; `others` (columns `__id` and the group's) the rows of the type that stay as they
    are, or those of them with an equal tuple. Tuples with a null are exempt; −0.0 equals 0.0.
    """
    columns = _group_columns(entity, group)
    mine = _without_nulls(rows, columns)
    if not len(mine):
        return None
    others = None if others is None else _equal_candidates(_without_nulls(others, columns), mine, columns)
    before = 0 if others is None else len(others)
    codes = codes_of([_joined(others, mine, column) for column in columns])
    if not has_repeats(codes):
        return None
    order = ranks(mine)
    earlier = earlier_equal(codes, np.concatenate([np.full(before, -1, dtype=np.int64), order]))[before:]
    taken = np.flatnonzero(earlier >= 0)
    if not len(taken):
        return None
    row = int(taken[np.argmin(order[taken])])
    holder = _holder(entity, others, mine, int(earlier[row]))
    values = ", ".join(shown_value(mine.column(column), row) for column in columns)
    message = f"@unique({', '.join(group)}): {values} belongs to {holder}"
    return violation_at(entity, mine, row, "W005", "unique", message, ", ".join(group))


def _holder(entity: EntityType, others: pa.Table | None, mine: pa.Table, place: int) -> str:
    """The row that has the tuple already, in words; `place` counts the others first."""
    if others is not None and place < len(others):
        return f"{entity.kind} {quoted(others.column(ID)[place].as_py())}"
    row = place - (0 if others is None else len(others))
    line = line_of(mine, row)
    return f"{entity.kind} {quoted(mine.column(ID)[row].as_py())}" if line is None else f"the record on line {line}"


def endpoint_violation(
    edge: EdgeType,
    rows: pa.Table,
    source_exists: pa.Array | pa.ChunkedArray,
    target_exists: pa.Array | pa.ChunkedArray,
) -> Violation | None:
    """W006: the first edge with an end that does not exist in the final state. One Boolean a row for each end."""
    found: list[tuple[tuple[int, str], int, Violation]] = []
    ends = (("@src", SRC, edge.source, source_exists), ("@dst", DST, edge.target, target_exists))
    for rank, (member, column, node_type, exists) in enumerate(ends):
        row = first_row(rows, pc.invert(exists))
        if row is not None:
            what = f"{member}: there is no {node_type} with the id {quoted(rows.column(column)[row].as_py())}"
            violation = violation_at(edge, rows, row, "W006", "endpoint", what, member)
            found.append((place_of(rows, row), rank, violation))
    return min(found, key=lambda item: item[:2])[2] if found else None


def cardinality_violation(edge: EdgeType, sources: pa.Table) -> Violation | None:
    """W007: the first source node with too few or too many edges of the type in the final state. It is told of that node.

    `sources` has `__src`, `count` (integers) and, if the write had any, `line_number` or `statement` (the first for
    the source); one row for each source that gained, lost or kept a changed edge and that still exists.
    """
    low, high = edge.cardinality
    counts = sources.column("count")
    bad = pc.less(counts, low)
    if high is not None:
        bad = pc.or_(bad, pc.greater(counts, high))
    row = first_row(sources, bad, by=SRC)
    if row is None:
        return None
    source, count = sources.column(SRC)[row].as_py(), counts[row].as_py()
    bounds = f"{low}..{'' if high is None else high}"
    line = line_of(sources, row)
    return Violation(
        code="W007",
        constraint="cardinality",
        kind="node",
        type_name=edge.source,
        message=placed(
            line, f"{edge.name}: @card({bounds}): {edge.source} {quoted(source)} would have {count} of these edges"
        ),
        entity_id=source,
        line_number=line,
        statement=statement_of(sources, row),
    )


def _group_columns(entity: EntityType, group: tuple[str, ...]) -> list[str]:
    ends = {"@src": SRC, "@dst": DST}
    columns = {p.name: p.column for p in entity.properties}
    return [ends[member] if member in ends else columns[member] for member in group]


def _without_nulls(rows: pa.Table, columns: list[str]) -> pa.Table:
    if not any(rows.column(column).null_count for column in columns):
        return rows
    whole = pc.is_valid(rows.column(columns[0]))
    for column in columns[1:]:
        whole = pc.and_(whole, pc.is_valid(rows.column(column)))
    return rows.filter(whole)


def _equal_candidates(others: pa.Table, mine: pa.Table, columns: list[str]) -> pa.Table:
    """The others that agree with some new row in every column taken alone; few, if the new rows are few."""
    if len(others) < 4 * len(mine):
        return others
    for column in columns:
        wanted = mine.column(column)
        if not pa.types.is_floating(wanted.type):  # where -0.0 must find 0.0
            others = others.filter(
                pc.is_in(others.column(column), value_set=wanted.cast(others.schema.field(column).type))
            )
    return others


def _joined(others: pa.Table | None, mine: pa.Table, column: str) -> pa.ChunkedArray:
    kind = mine.schema.field(column).type
    if others is None:
        return mine.column(column)
    return pa.chunked_array([*others.column(column).cast(kind).chunks, *mine.column(column).chunks], type=kind)
