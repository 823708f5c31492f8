"""A mutation as an operation of the write path: checked against the schema of its base, evaluated, validated.

Time and randomness are fixed when the operation is made, so preparing it again gives the same `now()` and the same ids.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from omnigraph.ambient import random_bytes, ulid
from omnigraph.engine.checked import signatures
from omnigraph.engine.constraints import first, value_violation
from omnigraph.engine.core import GraphCore
from omnigraph.engine.limits import LoadLimits, too_many_bytes, too_many_entities
from omnigraph.engine.mutate.deletes import deletion_plan
from omnigraph.engine.mutate.values import assigned
from omnigraph.engine.mutate.working import WorkingType
from omnigraph.engine.plan import Footprint, TypeChange, WritePlan
from omnigraph.engine.receipts import as_datetime
from omnigraph.engine.validate import FinalState
from omnigraph.errors import ConstraintViolation, InvalidParams, InvalidQuery, InvalidRequest
from omnigraph.lang.query.params import bind_params, choose_query, json_value
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.typed import Assignment, Delete, Insert, MutationQuery, Update
from omnigraph.lang.schema.catalog import EdgeType, EntityType
from omnigraph.query.expressions import Scope, constant_value
from omnigraph.query.keys import node_id
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.columns import DST, ID, SRC

_INSERT_REPEATS = 32


class MutateOperation:
    """One invocation of a mutation query."""

    def __init__(
        self,
        core: GraphCore,
        source: str,
        params: Mapping[str, object],
        *,
        query_name: str | None,
        door: Literal["json", "python"],
    ) -> None:
        self._core = core
        self._source = source
        self._params = params
        self._query_name = query_name
        self._door: Literal["json", "python"] = door
        now_us = core.clock.now_us()
        self._now: dt.datetime = as_datetime(now_us - now_us % 1_000)
        self._ids = _Ids(now_us // 1_000, random_bytes(10))
        self.query: MutationQuery | None = None

    @property
    def repeats(self) -> int:
        """Insert-only mutations are prepared again; updates and deletes looked at rows and are not."""
        return _INSERT_REPEATS if self.shares else 0

    @property
    def shares(self) -> bool:
        """Those that looked at rows have the lane to themselves: nobody makes stale what they saw."""
        assert self.query is not None
        return all(isinstance(s, Insert) for s in self.query.statements)

    @property
    def name(self) -> str:
        """The name of the query that is run, for the receipt.

        From the text alone where nothing was planned: a receipt that is given again owes nothing to the present schema.
        """
        if self.query is not None:
            return self.query.name
        return self._query_name or parse_file(self._source).queries[0].name.text

    def arguments(self) -> dict[str, object]:
        """What is asked for, alike however a door or a caller spells it (interfaces.md 5.4).

        As it was given where text or values are refused: then whoever runs it says why.
        """
        name, params = self._query_name, self._params
        try:
            signature = choose_query(signatures(self._source), name, source=self._source)
            bound = bind_params(signature, params, door=self._door)
        except (InvalidQuery, InvalidParams):
            return {"query": self._source, "name": name, "params": dict(params)}
        values = {param: json_value(value) for param, value in bound.items()}
        return {"query": self._source, "name": signature.name, "params": values}

    def chosen(self, snapshot: Snapshot) -> MutationQuery:
        """The query that is run. Raises InvalidQuery, InvalidParams (`P006`), InvalidRequest (`wrong_verb`)."""
        queries = self._core.checked.queries(self._source, snapshot.catalog, snapshot.manifest.schema)
        chosen = choose_query(queries, self._query_name, source=self._source)
        if not isinstance(chosen, MutationQuery):
            raise InvalidRequest(f"'{chosen.name}' is a read: send it to query.", code="wrong_verb", effects="none")
        return chosen

    def plan(self, snapshot: Snapshot) -> WritePlan | None:
        """Raises InvalidQuery, InvalidParams, InvalidRequest (`wrong_verb`), ConstraintViolation, LimitExceeded,
        StorageFailure.
        """
        with snapshot.naming():
            return self._planned(snapshot)

    def _planned(self, snapshot: Snapshot) -> WritePlan | None:
        chosen = self.chosen(snapshot)
        self.query = chosen
        scope = Scope(bind_params(chosen, self._params, door=self._door), self._now)
        deletes = [s for s in chosen.statements if isinstance(s, Delete)]
        if deletes:
            return deletion_plan(snapshot, deletes, scope)
        self._ids.rewind()
        return _Writing(snapshot, scope, self._ids, self._core.limits).plan(chosen)


class _Ids:
    """ULIDs in statement order, the same after a rewind."""

    def __init__(self, now_ms: int, randomness: bytes) -> None:
        self._now_ms = now_ms
        self._first = int.from_bytes(randomness) & ~(1 << 79)  # room for a larger one each time
        self._next = self._first

    def rewind(self) -> None:
        self._next = self._first

    def mint(self) -> str:
        self._next += 1
        return ulid(self._now_ms, self._next.to_bytes(10))


class _Writing:
    """Inserts and updates on their working state."""

    def __init__(self, snapshot: Snapshot, scope: Scope, ids: _Ids, limits: LoadLimits) -> None:
        self._snapshot = snapshot
        self._scope = scope
        self._ids = ids
        self._limits = limits
        self._types: dict[str, WorkingType] = {}
        self._order: list[WorkingType] = []  # of the inserts, in statement order
        self._nodes = 0
        self._edges = 0
        self._footprint = Footprint()

    def plan(self, query: MutationQuery) -> WritePlan | None:
        inserted: dict[str, list[str | None]] = {}  # ids by type, in statement order
        for number, statement in enumerate(query.statements, 1):
            try:
                self._run(number, statement, inserted)
            except ConstraintViolation as refused:
                raise self._earlier_violation() or refused from None
        for working in self._types.values():
            inserted.setdefault(working.entity.id, []).extend(working.pending_ids())
        found = [each for each in (working.change() for working in self._types.values()) if each is not None]
        if not found:
            return None
        FinalState(self._snapshot, [final for _, final in found]).check()
        changes = tuple(change for change, _ in found)
        self._check_sizes(changes)
        for change in changes:
            self._footprint = self._footprint.with_rows(change, self._snapshot.catalog)
        taken = {type_id: iter(ids) for type_id, ids in inserted.items()}
        ids = tuple(str(next(taken[working.entity.id])) for working in self._order)
        return WritePlan("mutation", changes, self._footprint, affected=(self._nodes, self._edges), ids=ids)

    def _run(self, number: int, statement: Insert | Update | Delete, inserted: dict[str, list[str | None]]) -> None:
        match statement:
            case Insert():
                self._insert(number, statement)
            case Update():
                self._update(number, statement, inserted)
            case Delete():
                raise AssertionError("deletes stand alone")

    def _earlier_violation(self) -> ConstraintViolation | None:
        """What the rows so far break by themselves: it comes before a value that can't even become part of a row."""
        found = first(value_violation(working.entity, working.rows) for working in self._types.values())
        return None if found is None else found.error()

    def _working(self, entity: EntityType) -> WorkingType:
        return self._types.setdefault(entity.id, WorkingType(self._snapshot, entity))

    def _insert(self, number: int, statement: Insert) -> None:
        catalog = self._snapshot.catalog
        entity = (catalog.nodes if statement.kind == "node" else catalog.edges)[statement.type_name]
        working = self._working(entity)
        row = self._values(entity, statement.assignments, self._id_of(entity, statement.assignments))
        minted = None if entity.key else self._ids.mint()
        if minted is not None:
            row[ID] = minted
        working.insert(row, number, minted=minted is not None)
        self._order.append(working)
        if isinstance(entity, EdgeType):
            self._edges += 1
        else:
            self._nodes += 1

    def _update(self, number: int, statement: Update, inserted: dict[str, list[str | None]]) -> None:
        entity = self._snapshot.catalog.nodes[statement.type_name]
        working = self._working(entity)
        inserted.setdefault(entity.id, []).extend(working.pending_ids())
        self._footprint = self._footprint.with_mode(entity.id, "read")
        values = self._values(entity, statement.assignments)
        self._nodes += working.update(statement.where, self._scope, values, number)

    def _id_of(self, entity: EntityType, assignments: Iterable[Assignment]) -> str | None:
        """The id of the node that an insert makes, where the values of its key can be one."""
        values = {
            each.property: constant_value(each.value, self._scope)
            for each in assignments
            if each.property in entity.key
        }
        properties = [entity.property(name) for name in entity.key]
        types = [each.type for each in properties if each is not None and each.name in values]
        if not types or len(types) != len(entity.key):
            return None
        return node_id(types, [values[name] for name in entity.key])

    def _values(
        self, entity: EntityType, assignments: Iterable[Assignment], entity_id: str | None = None
    ) -> dict[str, Any]:
        """Values by column. `entity_id` is named where a value is refused."""
        values: dict[str, Any] = {}
        for each in assignments:
            value = constant_value(each.value, self._scope)
            target = entity.property(each.property)
            if isinstance(entity, EdgeType) and target is None:
                values[SRC if each.property == "from" else DST] = value
            elif target is not None:
                values[target.column] = assigned(entity, target, value, entity_id)
        return values

    def _check_sizes(self, changes: Iterable[TypeChange]) -> None:
        """Rows of each type, and the bytes of their columns, of each type and of all."""
        rows_most, bytes_most = self._limits.write_entities, self._limits.write_bytes
        total = 0
        for change in changes:
            rows, size = (0, 0) if change.rows is None else (change.rows.num_rows, change.rows.nbytes)
            if rows_most is not None and rows > rows_most:
                raise too_many_entities(change.entity, rows_most, rows)
            if bytes_most is not None and size > bytes_most:
                raise too_many_bytes(change.entity, bytes_most, size)
            total += size
        if bytes_most is not None and total > bytes_most:
            raise too_many_bytes(None, bytes_most, total)
