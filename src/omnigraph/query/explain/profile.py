"""The answer of a profile: the explanation of a run that took place, and what each node of its physical tree did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.lang.query.typed import ReadQuery
from omnigraph.query.explain.answer import explanation
from omnigraph.query.explain.nodes import Node, Row, compact, in_pre_order
from omnigraph.query.expressions import Scope
from omnigraph.query.limits import QuerySettings
from omnigraph.query.measures import Measure, Measures
from omnigraph.query.snapshot import Snapshot

_MICROSECONDS = 1_000_000


def profile(
    query: ReadQuery,
    snapshot: Snapshot,
    settings: QuerySettings,
    scope: Scope,
    measures: Measures,
    *,
    rows: int,
    state: Mapping[str, str],
) -> tuple[dict[str, Any], ...]:
    """The rows of `explain` for the plans that were run, then one of tree `profile` for each node of the physical tree, in
    the same order (languages.md 18). `rows`: those of the answer.

    Its detail: `id`, the node's place in the physical tree; `rows_out`; `wall_us`, its own time without that of its inputs;
    `ran`, false for what no assignment came to; `examined`, the edge rows that it looked at; of a hop, the `mode` it was
    walked in.
    """
    explained = explanation(query, snapshot, settings, scope, plans=measures.plans, state=state)
    measured = _measured(explained.physical, measures, rows)
    return tuple(_as_object(row) for row in (*explained.rows, *measured))


def _measured(root: Node, measures: Measures, rows: int) -> Iterator[Row]:
    for number, (node, depth) in enumerate(in_pre_order(root)):
        found = _measure(node, measures)
        told: dict[str, object] = {
            "id": number,
            "rows_out": rows if node.kind in ("Project", "Limit") else 0 if found is None else found.rows,
            "wall_us": 0 if found is None else round(found.seconds * _MICROSECONDS),
            "ran": found is not None or node.kind in ("Project", "Limit"),
            "examined": 0 if found is None else found.examined,
        }
        if found is not None and found.way is not None:
            told["mode"] = found.way
        yield Row("profile", depth, node.kind, compact(told))


def _measure(node: Node, measures: Measures) -> Measure | None:
    """What the parts of a node add up to; None if nothing of it ran."""
    at = node.measured
    if at is None:
        return None
    parts = [measures.of[each] for each in at.costs if each in measures.of]
    out = measures.of.get(at.rows)
    if out is None and not parts:
        return None
    way = None if at.way is None or at.way not in measures.of else measures.of[at.way].way
    return Measure(
        rows=0 if out is None else out.rows,
        seconds=sum(each.seconds for each in parts),
        examined=sum(each.examined for each in parts),
        way=way,
    )


def _as_object(row: Row) -> dict[str, Any]:
    """As a row of `explain` is spelled on the wire, where a null is left out."""
    depth = {} if row.depth is None else {"depth": row.depth}
    return {"tree": row.tree, **depth, "node": row.node, "detail": row.detail}
