"""The answer of `explain`: the logical tree, the physical tree, then what the plan rests on, row by row (languages.md 18)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.lang.query.operation import describe
from omnigraph.lang.query.typed import Bm25, Expr, Nearest, Param, ReadQuery, TextSearch
from omnigraph.query.explain.logical import logical_tree
from omnigraph.query.explain.nodes import Node, Row, compact, tree_hash, tree_rows
from omnigraph.query.explain.physical import physical_tree
from omnigraph.query.explain.searches import Searches
from omnigraph.query.expressions import Scope
from omnigraph.query.limits import QuerySettings
from omnigraph.query.plan import Plan, expressions, parts
from omnigraph.query.run import SnapshotStatistics
from omnigraph.query.snapshot import Snapshot

EXPLAIN_VERSION = 1
PASSES = ("bindings_to_filters", "filters_to_scans", "lookup_by_id", "order_by_estimate", "needless_variables")
"""What happens to a query between its text and its steps, in order."""

_LIST_LENGTH_GUESS = 10.0
_SCHEMA = pa.schema([("tree", pa.string()), ("depth", pa.int64()), ("node", pa.string()), ("detail", pa.string())])
TYPES = ("String", "I64?", "String", "String")


def explain(
    query: ReadQuery,
    snapshot: Snapshot,
    settings: QuerySettings,
    scope: Scope,
    *,
    state: Mapping[str, str],
) -> pa.Table:
    """Columns `tree`, `depth`, `node`, `detail`. `state`: where it would run, for the plan rows (`branch` or `snapshot`,
    and `graph_commit_id`); `scope` holds the parameters that are given. Runs nothing and reads no row.
    """
    return _table(explanation(query, snapshot, settings, scope, state=state).rows)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The physical tree, and the rows of both trees and of what they rest on."""

    physical: Node
    rows: tuple[Row, ...]


def explanation(
    query: ReadQuery,
    snapshot: Snapshot,
    settings: QuerySettings,
    scope: Scope,
    *,
    plans: Mapping[int, Plan] | None = None,
    state: Mapping[str, str],
) -> Explanation:
    """As `explain`. `plans`: of the blocks that have run, by the identity of their patterns."""
    logical = logical_tree(query)
    searches = Searches(query, snapshot, settings, scope)
    physical = physical_tree(query, snapshot, _Guessing(snapshot, scope), settings.traversal, searches, plans)
    told: dict[str, object] = {
        "operation": query.name,
        **state,
        "explain_version": EXPLAIN_VERSION,
        "logical_hash": tree_hash(logical),
        "passes": list(PASSES),
        "settings": _settings(query, settings),
        "parameters": sorted({each.name for each in expressions(query) if isinstance(each, Param)}),
        "statistics": _statistics(query, snapshot),
    }
    plan = (Row("plan", None, name, v if isinstance(v, str) else compact(v)) for name, v in told.items())
    return Explanation(physical, (*tree_rows("logical", logical), *tree_rows("physical", physical), *plan))


def _settings(query: ReadQuery, settings: QuerySettings) -> dict[str, object]:
    """Those that the plan read."""
    read = list(expressions(query))
    told: dict[str, object] = {"traversal": settings.traversal}
    if any(isinstance(each, TextSearch | Bm25) for each in read):
        told["fts_scratch_rows"] = settings.fts_scratch_rows
    if any(isinstance(each, Nearest) for each in read):
        told |= {"exact_nearest": "on" if settings.exact_nearest else "off", "ann_nprobes": settings.ann_nprobes}
    return told


@dataclass(frozen=True, slots=True)
class _Guessing(SnapshotStatistics):
    """A list whose parameters were not given has a few elements."""

    def list_length(self, expr: Expr) -> float:
        asked = {each.name for each in parts(expr) if isinstance(each, Param)}
        known = asked <= self.scope.params.keys()
        return SnapshotStatistics.list_length(self, expr) if known else _LIST_LENGTH_GUESS


def _statistics(query: ReadQuery, snapshot: Snapshot) -> dict[str, int]:
    """The rows of each type that the query may look at."""
    catalog = snapshot.catalog
    found: dict[str, int] = {}
    for read in describe(query, catalog).reads:
        entity = catalog.nodes[read.type_name] if read.kind == "node" else catalog.edges[read.type_name]
        found[f"{read.kind}:{read.type_name}"] = snapshot.row_count(entity.id)
    return found


def _table(rows: Iterable[Row]) -> pa.Table:
    listed = list(rows)
    columns = [
        [row.tree for row in listed],
        [row.depth for row in listed],
        [row.node for row in listed],
        [row.detail for row in listed],
    ]
    return pa.table([pa.array(each, of.type) for each, of in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)
