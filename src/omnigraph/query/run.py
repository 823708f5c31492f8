"""Runs a checked read query on a snapshot.

    output = run_read(query, snapshot, {"country": "NO"}, now=now, settings=QuerySettings())

Match, then group or order, then fetch the columns of the rows that remain. Reads nothing but the snapshot's tables;
results never depend on what is in memory.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from omnigraph.ambient import Clock
from omnigraph.lang.query.typed import (
    Aggregate,
    Expr,
    NodeRef,
    OrderKey,
    Param,
    Rank,
    ReadQuery,
    SystemRef,
)
from omnigraph.query.bindings import Bindings
from omnigraph.query.expressions import (
    Embedder,
    RankedColumns,
    RowColumns,
    Scope,
    constant_value,
    evaluated_array,
)
from omnigraph.query.groupkeys import group_key
from omnigraph.query.limits import QuerySettings, Spending, out_of_memory
from omnigraph.query.match import FIRST_PIECE, Matching, match_pattern, some_assignments
from omnigraph.query.measures import UNWATCHED, Watch, tail_place
from omnigraph.query.output import QueryOutput, fitted, node_objects, result_type, spelled_type
from omnigraph.query.plan import Statistics, shown_ties, variables
from omnigraph.query.relational.aggregates import aggregate
from omnigraph.query.relational.choice import choose_tail
from omnigraph.query.relational.keys import comparable, shown
from omnigraph.query.relational.tail import Groups, SortKey, Tail
from omnigraph.query.rowcolumns import AssignmentColumns, SomeVertices
from omnigraph.query.search.ranks import Ranking, ranked_property
from omnigraph.query.snapshot import Snapshot


def run_read(
    query: ReadQuery,
    snapshot: Snapshot,
    params: Mapping[str, object],
    *,
    now: dt.datetime,
    settings: QuerySettings | None = None,
    clock: Clock | None = None,
    statistics: Statistics | None = None,
    tail: Tail | None = None,
    embedder: Embedder | None = None,
    watch: Watch = UNWATCHED,
    piece: int = FIRST_PIECE,
) -> QueryOutput:
    """The answer of a read. `params` are values of the declared types, absent or None for null; `now` is in UTC.

    `clock` measures `query_timeout_ms`; without one, time is not limited. `statistics` and `tail` replace what the
    planner and the relational tail choose by, `piece` how many assignments a read that takes any few begins with; no answer
    depends on them, but for which few. `embedder` makes vectors of query texts. `watch`
    is told how it goes.
    Raises LimitExceeded (`traversal_work`, `query_memory`, `max_result_rows`), QueryTimeout, StorageFailure.
    """
    spending = Spending(settings or QuerySettings(), None if clock is None else clock.boot_seconds)
    scope = Scope(params, now, embedder, spending.of_search, spending.settings.probes)
    limit = _limit(query, params)
    snapshot = snapshot.view()
    known = statistics or SnapshotStatistics(snapshot, scope)
    watch.begins(spending)
    matching = Matching(snapshot, scope, spending, known, watch=watch).inside(query.pattern)
    try:
        if limit is None or query.order or query.aggregated:
            bindings = match_pattern(matching, query.pattern, _wanted(query))
        else:
            bindings = some_assignments(matching, query.pattern, _wanted(query), limit, piece)
        run = _Run(query, matching, limit, tail)
        table = run.aggregated(bindings) if query.aggregated else run.plain(bindings)
    except MemoryError:
        most = spending.settings.memory_bytes
        raise out_of_memory(
            f"there is no memory left for the query, which may take {most:,} bytes", most, most
        ) from None
    except pa.ArrowInvalid as error:
        if "overflowed binary array capacity" not in str(error):
            raise
        raise out_of_memory(
            "the texts that a step would make at once are of more than 2 GiB", 2 << 30, 2 << 30
        ) from None
    finally:
        snapshot.recount()
    return QueryOutput(table, tuple(spelled_type(item.expr) for item in query.items))


def _wanted(query: ReadQuery) -> set[str]:
    """The variables that an answer is made of; an ordered one without groups is ordered by the ids of all that are named.

    A node that is only counted is none of them.
    """
    wanted: set[str] = set()
    for each in (*query.items, *query.order):
        if not (isinstance(each.expr, Aggregate) and isinstance(each.expr.argument, NodeRef)):
            wanted |= variables(each.expr)
    for tie in () if query.aggregated else shown_ties(query):
        wanted |= variables(tie)
    return wanted


def _limit(query: ReadQuery, params: Mapping[str, object]) -> int | None:
    """Rows at most. A parameter's value was checked when it was bound."""
    return cast(int, params[query.limit.name]) if isinstance(query.limit, Param) else query.limit


@dataclass(frozen=True, slots=True)
class SnapshotStatistics:
    """What the manifest and the catalog say, without a request."""

    snapshot: Snapshot
    scope: Scope

    def node_rows(self, type_name: str) -> float:
        return self.snapshot.row_count(self.snapshot.catalog.nodes[type_name].id)

    def edge_rows(self, edge_type: str) -> float:
        return self.snapshot.row_count(self.snapshot.catalog.edges[edge_type].id)

    def key_of(self, type_name: str) -> tuple[str, ...]:
        return self.snapshot.catalog.nodes[type_name].key

    def list_length(self, expr: Expr) -> float:
        return len(constant_value(expr, self.scope) or ())


@dataclass(frozen=True, slots=True)
class _Run:
    """From assignments to rows."""

    query: ReadQuery
    matching: Matching
    limit: int | None
    tail: Tail | None

    @property
    def _spending(self) -> Spending:
        return self.matching.spending

    @property
    def _watch(self) -> Watch:
        return self.matching.watch

    # rows of single assignments

    def plain(self, bindings: Bindings) -> pa.Table:
        scores: np.ndarray | None = None
        if self.query.order:
            bindings, scores = self._ordered(bindings)
        self._spending.check_rows(bindings.length)
        with self._watch.running(tail_place("columns")):
            columns = self.matching.columns(bindings)
            return self._table([self._column(item.expr, columns, scores) for item in self.query.items])

    def _ordered(self, bindings: Bindings) -> tuple[Bindings, np.ndarray | None]:
        """The assignments of the answer in order, and the scores that they have if they are ranked."""
        scores: np.ndarray | None = None
        rank = self.query.order[0].expr
        if isinstance(rank, Rank):
            with self._watch.running(tail_place("rank")):
                bindings, scores = self._ranked(rank, bindings)
            self._watch.passed(tail_place("rank"), bindings.length)
        if self.limit is None:
            self._spending.check_rows(bindings.length)  # before they are put in order
        with self._watch.running(tail_place("order")):
            keys = [self._sort_key(bindings, key, scores) for key in self.query.order] + self._tie_breaks(bindings)
            tail = self.tail or choose_tail(bindings.length, len(keys), self.limit)
            chosen = tail.order(bindings.length, keys, self.limit)
            self._watch.passed(tail_place("order"), len(chosen))
            return bindings.take(chosen), None if scores is None else scores[chosen]

    def _ranked(self, rank: Rank, bindings: Bindings) -> tuple[Bindings, np.ndarray]:
        """The assignments whose node has a score, and their scores; with a limit, those that can't be in the answer may
        be missing.
        """
        var = ranked_property(rank).var
        type_name, snapshot = self.matching.types[var], self.matching.snapshot
        ranking = Ranking(snapshot.catalog.nodes[type_name], snapshot.nodes(type_name), self.matching.scope, self.limit)
        vertices = bindings.nodes[var]
        has, values = ranking.by_vertex(rank, vertices)
        self._spending.check_time()
        scored = has[vertices]
        return bindings.where(scored), values[vertices[scored]]

    def _sort_key(self, bindings: Bindings, key: OrderKey, scores: np.ndarray | None) -> SortKey:
        return SortKey(lambda rows: self._comparable(key.expr, bindings, rows, scores), key.descending)

    def _comparable(
        self, expr: Expr, bindings: Bindings, rows: np.ndarray | None, scores: np.ndarray | None
    ) -> pa.Array:
        asked = bindings if rows is None else bindings.take(rows)
        if isinstance(expr, NodeRef):
            return self._id_ranks(expr.var, asked)
        of_rows = scores if scores is None or rows is None else scores[rows]
        columns = _ranked_columns(self.matching.columns(asked), of_rows)
        return comparable(evaluated_array(expr, columns, self.matching.scope))

    def _id_ranks(self, var: str, bindings: Bindings) -> pa.Array:
        """Numbers in the order of the nodes' ids."""
        dictionary = self.matching.snapshot.nodes(self.matching.types[var]).dictionary
        return pa.array(dictionary.ranks()[bindings.nodes[var]])

    def _tie_breaks(self, bindings: Bindings) -> list[SortKey]:
        keys: list[SortKey] = []
        for tie in shown_ties(self.query):
            assert isinstance(tie, SystemRef)
            if tie.field == "id" and tie.var in bindings.nodes:
                keys.append(SortKey(lambda rows, var=tie.var: self._id_ranks(var, _some(bindings, rows))))
            else:
                keys.append(SortKey(lambda rows, tie=tie: self._system(tie, _some(bindings, rows))))
        return keys

    def _system(self, ref: SystemRef, bindings: Bindings) -> pa.Array:
        return self.matching.columns(bindings).system(ref.var, ref.field)

    def _column(self, expr: Expr, columns: AssignmentColumns, scores: np.ndarray | None = None) -> pa.Array:
        of = result_type(expr, self.matching.snapshot.catalog)
        if isinstance(expr, NodeRef):
            return self._objects(expr, columns.bindings.nodes[expr.var])
        return fitted(evaluated_array(expr, _ranked_columns(columns, scores), self.matching.scope), of)

    def _objects(self, node: NodeRef, vertices: np.ndarray) -> pa.Array:
        snapshot = self.matching.snapshot
        entity = snapshot.catalog.nodes[node.type_name]
        rows = SomeVertices(entity, snapshot.nodes(node.type_name), vertices)
        return node_objects(entity, result_type(node, snapshot.catalog), rows)

    def _table(self, columns: list[pa.Array]) -> pa.Table:
        return pa.table(columns, names=[item.name for item in self.query.items])

    # rows of groups

    def aggregated(self, bindings: Bindings) -> pa.Table:
        with self._watch.running(tail_place("groups")):
            count, values, heads = self._grouped(bindings)
        self._watch.passed(tail_place("groups"), count)
        with self._watch.running(tail_place("order")):
            chosen = self._ordered_groups(count, values, heads)
        self._watch.passed(tail_place("order"), count if chosen is None else len(chosen))
        self._spending.check_rows(count if chosen is None else len(chosen))
        with self._watch.running(tail_place("columns")):
            if chosen is not None:
                values = [each.take(pa.array(chosen)) for each in values]
            types = [result_type(item.expr, self.matching.snapshot.catalog) for item in self.query.items]
            return self._table([fitted(each, of) for each, of in zip(values, types, strict=True)])

    def _grouped(self, bindings: Bindings) -> tuple[int, list[pa.Array], AssignmentColumns]:
        """How many groups there are, the value of each item by group, and an assignment of each group."""
        columns = self.matching.columns(bindings)
        groups = self._groups(bindings, columns)
        heads = self.matching.columns(bindings.take(groups.first))
        values: list[pa.Array] = []
        for item in self.query.items:
            self._spending.check_time()
            expr = item.expr
            if isinstance(expr, Aggregate):
                counted = None if isinstance(expr.argument, NodeRef) else self._argument(expr, columns)
                values.append(aggregate(expr.func, counted, groups.of_row, groups.count))
            else:
                values.append(shown(self._column(expr, heads)))
        return groups.count, values, heads

    def _argument(self, expr: Aggregate, columns: AssignmentColumns) -> pa.Array:
        return evaluated_array(expr.argument, columns, self.matching.scope)

    def _groups(self, bindings: Bindings, columns: AssignmentColumns) -> Groups:
        """Without a key all assignments are one group, even if there are none."""
        keys = [item.expr for item in self.query.items if not isinstance(item.expr, Aggregate)]
        if not keys:
            return Groups(np.zeros(bindings.length, np.int64), np.empty(0, np.int64), 1)
        tail = self.tail or choose_tail(bindings.length, len(keys))
        return tail.groups([group_key(key, self.matching, columns) for key in keys])

    def _ordered_groups(self, groups: int, values: list[pa.Array], heads: AssignmentColumns) -> np.ndarray | None:
        """The groups of the answer in order; None if all stay as they are."""
        if not self.query.order:
            return None if self.limit is None or self.limit >= groups else np.arange(self.limit)
        items = [item.expr for item in self.query.items]
        keys: list[SortKey] = []
        for key in self.query.order:
            place = key.item if key.item is not None else items.index(key.expr)
            keys.append(self._group_sort_key(items[place], values[place], heads, key.descending))
        for tie in shown_ties(self.query):
            keys.append(self._group_sort_key(tie, values[items.index(tie)], heads, descending=False))
        return (self.tail or choose_tail(groups, len(keys), self.limit)).order(groups, keys, self.limit)

    def _group_sort_key(self, expr: Expr, value: pa.Array, heads: AssignmentColumns, descending: bool) -> SortKey:
        whole = self._id_ranks(expr.var, heads.bindings) if isinstance(expr, NodeRef) else comparable(value)
        return SortKey(lambda rows: whole if rows is None else whole.take(pa.array(rows)), descending)


def _ranked_columns(columns: AssignmentColumns, scores: np.ndarray | None) -> RowColumns:
    return columns if scores is None else RankedColumns(columns, pa.array(scores))


def _some(bindings: Bindings, rows: np.ndarray | None) -> Bindings:
    return bindings if rows is None else bindings.take(rows)
