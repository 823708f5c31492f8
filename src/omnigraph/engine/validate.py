"""The constraints of a write's final state, put together from columns and look-ups (languages.md 4.4).

What each rule says is in `engine/constraints`; here is what each rule needs to know of the base: which ends exist, which
rows hold an equal tuple, how many edges a source will have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.constraints import (
    Violation,
    cardinality_violation,
    endpoint_violation,
    first,
    unique_violation,
    value_violation,
)
from omnigraph.engine.constraints.order import NO_NUMBER, numbers_of
from omnigraph.engine.constraints.violation import quoted
from omnigraph.engine.identity import LINE_NUMBER, STATEMENT
from omnigraph.engine.lookups import find_ids, one_array
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType
from omnigraph.query.rows import source_counts
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.columns import DST, ID, ROW_ADDRESS, SRC
from omnigraph.tables.filters import one_of

_FILTERED_ROWS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class FinalType:
    """What one type will be: the base without `removed` (all of it, with `overwrite`), and `rows`.

    `rows` holds new and changed rows; a changed row's address is among `removed`. `removed_by` says of each of these on
    account of which line or statement it goes. `gone` says which nodes end to exist (None: none of them does).
    """

    entity: EntityType
    rows: pa.Table | None
    removed: np.ndarray
    overwrite: bool = False
    gone: pa.Array | None = None
    values_checked: bool = False  # the rules of single values were judged when the records were read
    removed_by: np.ndarray | None = None


class FinalState:
    """The types that a write changes, seen against its base."""

    def __init__(self, snapshot: Snapshot, types: Iterable[FinalType]) -> None:
        self.snapshot = snapshot
        self.types: Mapping[str, FinalType] = {each.entity.id: each for each in types}

    def check(self) -> None:
        """Raises ConstraintViolation for the first violation in record or statement order, then by type name, then by id."""
        found = first(self._violations())
        if found is not None:
            raise found.error()

    def node_exists(self, node_type: NodeType, ids: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """bool for each id: whether the final state has that node."""
        final = self.types.get(node_type.id)
        if final is not None and final.overwrite:
            exists = np.zeros(len(ids), bool)
        else:
            exists = find_ids(self.snapshot, node_type, ids).present
            if final is not None and final.gone is not None:
                exists &= ~_is_in(ids, final.gone)
        if final is not None and final.rows is not None and not exists.all():
            exists = exists | _is_in(ids, final.rows.column(ID))
        return exists

    def _violations(self) -> Iterator[Violation | None]:
        for final in self.types.values():
            if final.rows is not None and len(final.rows):
                if not final.values_checked:
                    yield value_violation(final.entity, final.rows)
                yield from self._unique(final, final.rows)
            if isinstance(final.entity, EdgeType):
                yield self._cardinality(final.entity, final)
        yield from self._endpoints()
        yield from self._left_hanging()

    def _unique(self, final: FinalType, rows: pa.Table) -> Iterator[Violation | None]:
        entity = final.entity
        for group in entity.uniques:
            if set(group) == set(entity.key):
                continue  # guaranteed by the id
            yield unique_violation(entity, group, rows, self._others(final, rows, group))

    def _others(self, final: FinalType, rows: pa.Table, group: Sequence[str]) -> pa.Table | None:
        """Rows of the base that stay as they are, or those of them that may hold an equal tuple."""
        table = None if final.overwrite else self.snapshot.table(final.entity.id)
        if table is None:
            return None
        ends = {"@src": SRC, "@dst": DST}
        fields = {p.name: pa.field(p.column, rows.schema.field(p.column).type) for p in final.entity.properties}
        columns = [pa.field(ends[m], pa.string()) if m in ends else fields[m] for m in group]
        stored = [f for f in columns if table.schema.get_field_index(f.name) >= 0]
        if len(stored) < len(columns):
            return None  # a column that the table lacks is null in every row
        condition = None
        if len(rows) <= _FILTERED_ROWS_MAX:
            leading = pc.unique(one_array(rows.column(stored[0].name))).drop_null()
            if not len(leading):
                return None  # a tuple with a null is exempt
            condition = one_of(stored[0].name, leading)
        found = table.scan([pa.field(ID, pa.string()), *columns], filter=condition, with_row_address=True).read_all()
        if len(final.removed):
            stays = ~np.isin(found.column(ROW_ADDRESS).to_numpy(), final.removed)
            found = found.filter(pa.array(stays))
        return found

    def _endpoints(self) -> Iterator[Violation | None]:
        """Ends of new edges that don't exist. The ends of all edge types are looked up together, once for each node type:
        making a set of a type's ids costs more than finding ends in it.
        """
        nodes = self.snapshot.catalog.nodes
        asked: list[tuple[EdgeType, pa.Table]] = []
        ends: dict[str, list[pa.Array]] = {}
        for final in self.types.values():
            edge, rows = final.entity, final.rows
            if isinstance(edge, EdgeType) and rows is not None and len(rows):
                asked.append((edge, rows))
                ends.setdefault(edge.source, []).append(one_array(rows.column(SRC)))
                ends.setdefault(edge.target, []).append(one_array(rows.column(DST)))
        exists = {name: self.node_exists(nodes[name], pa.chunked_array(parts)) for name, parts in ends.items()}
        read = dict.fromkeys(ends, 0)

        def next_of(name: str, count: int) -> np.ndarray:
            begin = read[name]
            read[name] += count
            return exists[name][begin : begin + count]

        for edge, rows in asked:
            source, target = next_of(edge.source, len(rows)), next_of(edge.target, len(rows))
            if not (source.all() and target.all()):
                yield endpoint_violation(edge, rows, pa.array(source), pa.array(target))

    def _cardinality(self, edge: EdgeType, final: FinalType) -> Violation | None:
        if edge.cardinality == (0, None):
            return None
        added = pa.array([], pa.string()) if final.rows is None else one_array(final.rows.column(SRC))
        snapshot = self.snapshot
        if snapshot.pin(edge.id) is None:
            lost = pa.array([], pa.string())
        else:
            edges = snapshot.edges(edge.name)
            removed = edges.rows() if final.overwrite else edges.columns.space.find(final.removed)
            lost = edges.ends[0].keys(edges.src_of(removed))
        sources = pc.unique(pa.concat_arrays([added, lost.cast(added.type)]))
        counts = _occurrences(sources, added) - _occurrences(sources, lost)
        if snapshot.pin(edge.id) is not None:
            counts = counts + source_counts(snapshot, edge.name, sources)
        alive = self.node_exists(snapshot.catalog.nodes[edge.source], sources)
        judged = pa.table({SRC: sources, "count": pa.array(counts)})
        numbers = np.full(len(sources), NO_NUMBER, np.int64)
        for ends, by in ((added, None if final.rows is None else numbers_of(final.rows)), (lost, final.removed_by)):
            if by is not None:
                np.minimum.at(numbers, _places(sources, ends), by)
        name = LINE_NUMBER if final.rows is not None and LINE_NUMBER in final.rows.column_names else STATEMENT
        judged = judged.append_column(name, pa.array(numbers, mask=numbers == NO_NUMBER))
        return cardinality_violation(edge, judged.filter(pa.array(alive)))

    def _left_hanging(self) -> Iterator[Violation | None]:
        """Edges of the base that lose an end because their node type is overwritten."""
        snapshot = self.snapshot
        for edge in snapshot.catalog.edges.values():
            final = self.types.get(edge.id)
            if snapshot.pin(edge.id) is None or (final is not None and final.overwrite):
                continue
            for column, end, place in ((SRC, edge.source, 0), (DST, edge.target, 1)):
                node_type = snapshot.catalog.nodes[end]
                overwritten = self.types.get(node_type.id)
                if overwritten is None or not overwritten.overwrite:
                    continue
                edges = snapshot.edges(edge.name)
                rows = edges.rows()
                if final is not None and len(final.removed):
                    rows = rows[~np.isin(rows, edges.columns.space.find(final.removed))]
                vertices = edges.src_of(rows) if column == SRC else edges.dst_of(rows)
                distinct, inverse = np.unique(vertices, return_inverse=True)
                exists = self.node_exists(node_type, edges.ends[place].keys(distinct))[inverse]
                if not exists.all():
                    yield _hanging(snapshot, edge, rows[~exists], column)


def _hanging(snapshot: Snapshot, edge: EdgeType, rows: np.ndarray, column: str) -> Violation:
    """The first by id of edges of the base that would be left without an end."""
    edges = snapshot.edges(edge.name)
    table = snapshot.table(edge.id)
    assert table is not None
    found = table.take(edges.addresses_of(rows), [ID, SRC, DST]).sort_by(ID)
    entity_id, end = found.column(ID)[0].as_py(), found.column(column)[0].as_py()
    node_type = edge.source if column == SRC else edge.target
    member = "@src" if column == SRC else "@dst"
    return Violation(
        code="W006",
        constraint="endpoint",
        kind="edge",
        type_name=edge.name,
        message=f"{edge.name} {quoted(entity_id)} would be left without its end:"
        f" there is no {node_type} {quoted(end)} any more",
        entity_id=entity_id,
        property=member,
    )


def _is_in(ids: pa.Array | pa.ChunkedArray, of: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Which ids are among others. Null is no id."""
    values = one_array(of).drop_null()
    return pc.is_in(ids, value_set=values.cast(ids.type)).to_numpy(zero_copy_only=False)


def _occurrences(values: pa.Array, among: pa.Array) -> np.ndarray:
    """int64: how often each of `values` (distinct) occurs."""
    return np.bincount(_places(values, among), minlength=len(values)).astype(np.int64)


def _places(values: pa.Array, of: pa.Array) -> np.ndarray:
    """Where each of `of` stands among `values`, which are distinct and hold all of them."""
    return pc.index_in(of.cast(values.type), value_set=values).to_numpy(zero_copy_only=False)
