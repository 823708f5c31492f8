"""How a read is run on one pinned state, as a tree: the very steps that `match_pattern` takes, with what is expected of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from omnigraph.lang.query.typed import And, Expr, Hop, Or, Pattern, PropertyRef, ReadQuery
from omnigraph.lang.query.typed_text import typed_text
from omnigraph.query.explain.nodes import Measured, Node
from omnigraph.query.explain.searches import Searches
from omnigraph.query.explain.shared import argument_node, block_node, hop_detail, tail_nodes
from omnigraph.query.hops import ROWS_AT_MOST
from omnigraph.query.limits import Traversal
from omnigraph.query.measures import place_of
from omnigraph.query.plan import (
    Close,
    Correlate,
    Expand,
    Keep,
    NodeTests,
    Plan,
    Start,
    Statistics,
    expressions,
    plan_pattern,
)
from omnigraph.query.snapshot import Snapshot


def physical_tree(
    query: ReadQuery,
    snapshot: Snapshot,
    statistics: Statistics,
    traversal: Traversal,
    searches: Searches,
    plans: Mapping[int, Plan] | None = None,
) -> Node:
    """The plan of a checked read. Nothing is scanned: numbers are those of the manifest and the planner's guesses.

    `plans`: those of the blocks that have run, by the identity of their patterns; the others are planned here.
    """
    columns: dict[str, set[str]] = {}
    for each in expressions(query):
        if isinstance(each, PropertyRef):
            columns.setdefault(each.var, set()).add(each.name)
    made = _Physical(snapshot, statistics, traversal, columns, searches, plans or {})
    return tail_nodes(query, made.pattern(query.pattern, None, {}))


@dataclass(frozen=True, slots=True)
class _Physical:
    snapshot: Snapshot
    statistics: Statistics
    traversal: Traversal
    columns: Mapping[str, set[str]]
    searches: Searches
    plans: Mapping[int, Plan]

    def pattern(self, pattern: Pattern, root: Node | None, outer: Mapping[str, str]) -> Node:
        types = {**outer, **{node.name: node.type_name for node in pattern.nodes}}
        frontier = 1.0
        plan = self.plans.get(id(pattern)) or plan_pattern(pattern, self.statistics, outer=outer)
        if root is None and not (plan.steps and isinstance(plan.steps[0], Start)):
            root = Node("Unit", {})  # one assignment of nothing
        for step in plan.steps:
            whole = place_of(step, "step")
            measured = Measured(whole, (whole,))
            match step:
                case Start():
                    root = self._started(step, root, measured)
                    frontier = step.expected
                case Expand():
                    assert root is not None
                    root = self._expand(step, root, frontier, types)
                    if step.node.conjuncts:
                        root = _kept(step.node.conjuncts, root, Measured(whole, (place_of(step, "filter"),)))
                    frontier = step.expected
                case Close(hop=hop):
                    assert root is not None
                    root = Node("Expand", self._closing(hop, frontier, types), (root,), measured)
                case Keep(filter=kept):
                    root = _kept((kept,), root, measured)
                case Correlate(block=block):
                    assert root is not None
                    root = block_node(block, root, self.pattern(block.pattern, argument_node(block), types), measured)
                case _:
                    assert_never(step)
        assert root is not None
        return root

    def _started(self, step: Start, root: Node | None, measured: Measured) -> Node:
        scanned = place_of(step, "scan")
        if root is None:
            return self._scan(step.node, step.expected, Measured(measured.rows, (scanned, *measured.costs)))
        scan = self._scan(step.node, step.expected, Measured(scanned, (scanned,)))
        return Node("Join", {"kind": "cross", "on": []}, (root, scan), measured)

    def _scan(self, node: NodeTests, expected: float, measured: Measured) -> Node:
        entity = self.snapshot.catalog.nodes[node.type_name]
        pin = self.snapshot.pin(entity.id)
        ranked = self.searches.ranked(node.var, node.type_name, expected)
        detail: dict[str, Any] = {
            "binding": f"${node.var}",
            "type": node.type_name,
            "version": None if pin is None else str(pin.version),
            "columns": sorted(self.columns.get(node.var, ())),
            "filter": " and ".join(_conjunct(each) for each in node.conjuncts) or None,
            "access": self.searches.access(node, ranked),
            "rows": self.snapshot.row_count(entity.id),
            "estimate": round(expected, 2),
            **ranked,
        }
        return Node("Scan", detail, measured=measured)

    def _expand(self, step: Expand, root: Node, frontier: float, types: Mapping[str, str]) -> Node:
        hop = step.hop
        mode = self._mode(hop, frontier, types[hop.left if step.from_left else hop.right])
        detail = {
            **self._hop(hop, from_left=step.from_left),
            "mode": mode,
            "alternatives": self._alternatives(step, mode),
            "frontier_estimate": round(frontier, 2),
            "estimate": round(step.expected, 2),
            **self.searches.ranked(step.node.var, step.node.type_name, step.expected),
        }
        hopped, whole = place_of(step, "hop"), place_of(step, "step")
        measured = Measured(hopped if step.node.conjuncts else whole, (whole,), hopped)
        return Node("Expand", detail, (root,), measured)

    def _closing(self, hop: Hop, frontier: float, types: Mapping[str, str]) -> dict[str, Any]:
        """A hop between two nodes that are there already: each pair is looked up, or all that one end reaches is found."""
        return {
            **self._hop(hop, from_left=True),
            "closes": True,
            "mode": "indexed" if hop.high == 1 or hop.left == hop.right else self._mode(hop, frontier, types[hop.left]),
            "alternatives": [],
            "frontier_estimate": round(frontier, 2),
        }

    def _alternatives(self, step: Expand, mode: Traversal) -> list[str]:
        """How else the hop may be walked: which way is cheaper turns out when it is known what is there."""
        others = [] if step.hop.edge_var is not None else ["matrix" if mode == "indexed" else "indexed"]
        turned = self.traversal == "auto" and step.hop.high == 1 and step.node.conjuncts
        return [*others, "reversed"] if turned else others

    def _mode(self, hop: Hop, frontier: float, near_type: str) -> Traversal:
        """How the hop is walked: as the setting says, else by what its greatest step is expected to examine."""
        if hop.edge_var is not None:
            return "indexed"
        if self.traversal != "auto":
            return self.traversal
        rows = sum(self.statistics.edge_rows(each.edge_type) for each in hop.members)
        degree = rows / max(self.statistics.node_rows(near_type), 1.0)
        examined = min(frontier * degree * max(degree, 1.0) ** min(hop.high - 1, 30), rows)
        return "indexed" if hop.high == 1 or examined <= ROWS_AT_MOST["auto"] else "matrix"

    def _hop(self, hop: Hop, *, from_left: bool) -> dict[str, Any]:
        catalog = self.snapshot.catalog
        versions: dict[str, str | None] = {}
        for member in hop.members:
            pin = self.snapshot.pin(catalog.edges[member.edge_type].id)
            versions[member.edge_type] = None if pin is None else str(pin.version)
        return {**hop_detail(hop, from_left=from_left), "versions": versions}


def _kept(conjuncts: Sequence[Expr], root: Node | None, measured: Measured) -> Node:
    """A filter; over nothing it is asked of the one empty assignment."""
    children = () if root is None else (root,)
    return Node("Filter", {"conjuncts": [typed_text(each) for each in conjuncts]}, children, measured)


def _conjunct(expr: Expr) -> str:
    text = typed_text(expr)
    return f"({text})" if isinstance(expr, Or | And) else text
