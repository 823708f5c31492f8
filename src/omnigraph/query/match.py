"""Runs a plan: from a match block to its assignments.

The answer is the set of assignments for which every clause holds; which plan is run and how a hop is walked never shows.
Filters that name one variable are applied before it is expanded from; correlated blocks run once for each distinct tuple
of the outer variables that they use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import numpy as np

from omnigraph.lang.query.typed import Block, Expr, Hop, Pattern
from omnigraph.query import hops
from omnigraph.query.bindings import Bindings, EdgeColumn, joined_together
from omnigraph.query.candidates import candidate_vertices, looked_up, passing
from omnigraph.query.codes import distinct, ranges, runs
from omnigraph.query.expressions import Scope, true_rows
from omnigraph.query.folds import fold_holds
from omnigraph.query.hops import Leg
from omnigraph.query.limits import Spending
from omnigraph.query.measures import UNWATCHED, Watch, Way, place_of
from omnigraph.query.plan import (
    Close,
    Correlate,
    Expand,
    Keep,
    NodeTests,
    Plan,
    Start,
    Statistics,
    Step,
    free_variables,
    plan_pattern,
    variables,
)
from omnigraph.query.residency.edges import Side
from omnigraph.query.rowcolumns import AssignmentColumns
from omnigraph.query.snapshot import Snapshot

FIRST_PIECE = 64
_PIECE_GROWTH = 8
_KEPT_AT_ONCE = 1 << 18
"""Of so many assignments the values are fetched that a condition needs: texts take far more room than numbers."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What all blocks of one query run with. `types`: the node type of every node variable in sight. `plans`: those of the
    blocks that have run, by identity; a block that runs again runs alike.
    """

    snapshot: Snapshot
    scope: Scope
    spending: Spending
    statistics: Statistics
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    watch: Watch = UNWATCHED
    plans: dict[int, Plan] = field(default_factory=dict[int, Plan])

    def inside(self, pattern: Pattern) -> Matching:
        """For a block whose variables are in sight too."""
        return replace(self, types={**self.types, **{node.name: node.type_name for node in pattern.nodes}})

    def columns(self, bindings: Bindings) -> AssignmentColumns:
        return AssignmentColumns(self.snapshot, self.types, bindings)


def match_pattern(
    matching: Matching, pattern: Pattern, wanted: Set[str], start: Bindings | None = None, *, once: bool = False
) -> Bindings:
    """The assignments of a block, each with the `wanted` variables only; `start` holds those of the enclosing block's.

    With `once`, assignments that agree in what is wanted are one: who asks whether there are any need not count them.
    `matching` is that of the inside. Raises LimitExceeded, QueryTimeout, StorageFailure.
    """
    bindings = start or Bindings(1)
    plan = _plan(matching, pattern, bindings)
    for step, needed in zip(plan.steps, plan.needed(wanted), strict=True):
        bindings = _taken(matching, step, bindings, needed, once=once)
    return bindings


def some_assignments(
    matching: Matching, pattern: Pattern, wanted: Set[str], most: int, piece: int = FIRST_PIECE
) -> Bindings:
    """As `match_pattern`, but `most` assignments at most: any, the same of the same state.

    Every step is taken for a piece of what the step before it gave, and for the next piece only if too few assignments came
    out at the end. Pieces begin with `piece` assignments, or `most`, and grow, so that an answer that takes all of them
    costs little more than one that was asked for whole.
    """
    plan = _plan(matching, pattern, Bindings(1))
    steps = list(zip(plan.steps, plan.needed(wanted), strict=True))

    def after(done: int, bindings: Bindings) -> Iterator[Bindings]:
        if done == len(steps):
            yield bindings
            return
        step, needed = steps[done]
        first = 1 if isinstance(step, Start) else max(most, piece)  # one assignment meets all nodes of a type
        for some in bindings.pieces(first, _PIECE_GROWTH):
            yield from after(done + 1, _taken(matching, step, some, needed))

    found: list[Bindings] = []
    for each in after(0, Bindings(1)):
        found.append(each)
        if sum(one.length for one in found) >= most:
            break
    return joined_together(found).first(most)


def _plan(matching: Matching, pattern: Pattern, bindings: Bindings) -> Plan:
    known = matching.plans.get(id(pattern))
    if known is None:
        outer = {name: matching.types.get(name, "") for name in bindings.nodes} | dict.fromkeys(bindings.edges, "")
        known = plan_pattern(pattern, matching.statistics, outer=outer, assignments=bindings.length)
        matching.plans[id(pattern)] = known
        matching.watch.planned(pattern, known)
    return known


def _taken(matching: Matching, step: Step, bindings: Bindings, needed: Set[str], *, once: bool = False) -> Bindings:
    """What a step makes of assignments, those variables of them that are needed after it."""
    matching.spending.check_time()
    with matching.watch.running(place_of(step, "step")):
        match step:
            case Start():
                bindings = _started(matching, step, bindings)
            case Expand():
                counted = _counted(matching, step, bindings, needed, once=once)
                if counted is not None:
                    matching.watch.passed(place_of(step, "hop"), counted.length, "counted")
                bindings = _expanded(matching, step, bindings) if counted is None else counted
            case Close():
                bindings = _closed(matching, step.hop, bindings)
            case Keep():
                bindings = _kept(matching, step.filter, bindings)
            case Correlate():
                bindings = _correlated(matching, step.block, bindings)
            case _:
                assert_never(step)
        kept = bindings.keeping(needed)
        if once and kept.width < bindings.width:
            kept = kept.distinct()[0]
    matching.watch.passed(place_of(step, "step"), kept.length)
    return kept


# --- nodes


def _started(matching: Matching, step: Start, bindings: Bindings) -> Bindings:
    node, at = step.node, place_of(step, "scan")
    with matching.watch.running(at):
        candidates = candidate_vertices(matching.snapshot, matching.scope, node)
    matching.watch.passed(at, len(candidates))
    if bindings.length != 1:
        matching.spending.examine(bindings.length * len(candidates))
        matching.spending.make(bindings.length * len(candidates), bindings.width + 1)
    return bindings.crossed(node.var, candidates)


# --- hops


def legs_of(matching: Matching, hop: Hop, from_left: bool) -> list[Leg]:
    """The ways that a hop crosses its edge types when it is read from one end; a member named twice counts once."""
    legs: dict[tuple[int, Side], Leg] = {}
    types = edge_types(hop)
    for each in hop.members:
        member = types.index(each.edge_type)
        edges = matching.snapshot.edges(each.edge_type)
        ways: tuple[Side, ...] = ("src", "dst")
        if each.direction != "both":
            ways = ("src",) if (each.direction == "out") == from_left else ("dst",)
        for way in ways:
            skip = each.direction == "both" and way == "dst"
            legs.setdefault((member, way), Leg(member, edges, way, skip))
    return list(legs.values())


def edge_types(hop: Hop) -> tuple[str, ...]:
    """The edge types of a hop, each once."""
    return tuple(dict.fromkeys(member.edge_type for member in hop.members))


def _expanded(matching: Matching, step: Expand, bindings: Bindings) -> Bindings:
    hop, products = step.hop, matching.spending.products
    legs = legs_of(matching, hop, step.from_left)
    vertices = bindings.nodes[hop.left if step.from_left else hop.right]
    far = _far_end(matching, step, legs, vertices)
    back = None if far is None else far.back
    if far is not None and back is not None:
        grown = _crossed(matching, step, bindings, hops.meeting(back, vertices, far.nodes, matching.spending))
    elif hop.edge_var is not None:
        grown = _crossed(matching, step, bindings, hops.crossings(legs, vertices, matching.spending))
    else:
        grown = _reached(matching, step, bindings, _hop_pairs(matching, hop, legs, vertices))
    way: Way = "indexed" if matching.spending.products == products else "matrix"
    matching.watch.passed(place_of(step, "hop"), grown.length, way if back is None else "reversed")
    if not step.node.conjuncts:
        return grown
    with matching.watch.running(place_of(step, "filter")):
        if far is None:
            return _arrived(matching, step.node, grown)
        return grown if back is not None else grown.where(np.isin(grown.nodes[step.node.var], far.nodes))


def _reached(matching: Matching, step: Expand, bindings: Bindings, pairs: hops.Pairs) -> Bindings:
    """Assignments over pairs of nodes."""
    matching.spending.make(len(pairs.index), bindings.width + 1)
    return bindings.take(pairs.index).with_node(step.node.var, pairs.neighbours)


def _crossed(matching: Matching, step: Expand, bindings: Bindings, crossing: hops.Crossing) -> Bindings:
    """Assignments over edge rows: each row one of its own if the edge is bound, else each pair of nodes."""
    hop = step.hop
    if hop.edge_var is None:
        return _reached(matching, step, bindings, hops.paired_off(crossing))
    edge = EdgeColumn(edge_types(hop), crossing.member, crossing.rows)
    pairs = hops.Pairs(crossing.index, crossing.neighbours)
    return _reached(matching, step, bindings, pairs).with_edge(hop.edge_var, edge)


_FAR_LEAST = 50_000  # edge rows to look at, below which nothing is worth a thought
_FAR_SHARE = 4  # edge rows met from behind are put in order too


@dataclass(frozen=True, slots=True)
class _FarEnd:
    """All nodes that pass the tests of a hop's far end, and the legs back from them if that is the shorter way."""

    nodes: np.ndarray
    back: list[Leg] | None


def _far_end(matching: Matching, step: Expand, legs: Sequence[Leg], vertices: np.ndarray) -> _FarEnd | None:
    """None if judging each node there costs more than judging whatever is reached."""
    node = step.node
    if step.hop.high > 1 or not node.conjuncts or matching.spending.settings.traversal != "auto":
        return None
    of_type = len(matching.snapshot.dictionary(matching.snapshot.catalog.nodes[node.type_name]))
    ahead = _degrees(legs, vertices)
    if ahead < max(_FAR_LEAST, of_type):
        return None
    nodes = candidate_vertices(matching.snapshot, matching.scope, node)
    if len(nodes) * _FAR_SHARE > of_type:
        return _FarEnd(nodes, None)  # before the way back is made ready, which takes time
    back = legs_of(matching, step.hop, not step.from_left)
    return _FarEnd(nodes, back if _degrees(back, nodes) * _FAR_SHARE <= ahead else None)


def _degrees(legs: Sequence[Leg], vertices: np.ndarray) -> int:
    return sum(int(leg.adjacency.degrees(vertices).sum()) for leg in legs)


def _counted(matching: Matching, step: Expand, bindings: Bindings, needed: Set[str], *, once: bool) -> Bindings | None:
    """The `needed` of a step to where anything is welcome and nobody asks what: the ways are counted and not walked.

    None where that does not give the assignments.
    """
    hop = step.hop
    asked = step.node.var in needed or hop.edge_var in needed or bool(step.node.conjuncts)
    if asked or matching.spending.settings.traversal == "matrix":
        return None
    legs = legs_of(matching, hop, step.from_left)
    vertices = bindings.nodes[hop.left if step.from_left else hop.right]
    if once and hop.low == 1:  # whoever is within more steps has somebody at one step
        matching.spending.examine(len(vertices) * len(legs))
        leads = np.zeros(len(vertices), bool)
        for leg in legs:
            leads |= leg.adjacency.degrees(vertices) > 0
        return bindings.where(leads)
    if hop.high > 1:
        sources, place = np.unique(vertices, return_inverse=True)
        width = _width(matching, hop)
        counts = hops.counted_within(legs, sources, hop.low, hop.high, width, matching.spending)[place]
        return _repeated(matching, bindings.keeping(needed), counts)
    if len(legs) != 1 or (hop.edge_var is None and legs[0].adjacency.has_parallels):
        return None  # pairs would be counted twice
    return _repeated(matching, bindings.keeping(needed), legs[0].adjacency.degrees(vertices))


def _repeated(matching: Matching, bindings: Bindings, counts: np.ndarray) -> Bindings:
    """Every assignment so many times, each time a row that walking would have looked at."""
    rows = int(counts.sum())
    matching.spending.examine(rows)
    matching.spending.make(rows, bindings.width)
    return bindings.repeated(counts)


def _arrived(matching: Matching, node: NodeTests, bindings: Bindings) -> Bindings:
    """Assignments whose new variable passes its tests."""
    if node.lookup is not None:
        named = looked_up(matching.snapshot, matching.scope, node)
        bindings = bindings.where(np.isin(bindings.nodes[node.var], named))
    return bindings.where(passing(matching.snapshot, matching.scope, node, bindings.nodes[node.var]))


def _hop_pairs(matching: Matching, hop: Hop, legs: list[Leg], vertices: np.ndarray) -> hops.Pairs:
    """The pairs of a hop from each of the vertices, which may repeat."""
    if hop.high == 1 and matching.spending.settings.traversal != "matrix":
        return hops.neighbours(legs, vertices, matching.spending)
    sources, place = np.unique(vertices, return_inverse=True)
    pairs = hops.within(legs, sources, hop.low, hop.high, _width(matching, hop), matching.spending)
    if len(sources) == len(vertices) and np.array_equal(place, np.arange(len(vertices))):
        return pairs
    order, begins, own = runs(pairs.index, place)
    rows = int(own.sum())
    matching.spending.examine(rows)
    matching.spending.make(rows, 2)
    index = np.repeat(np.arange(len(vertices)), own)
    return hops.Pairs(index, pairs.neighbours[order[ranges(begins, own)]])


def _width(matching: Matching, hop: Hop) -> int:
    """Vertices that a hop's matrices speak of, both ends included."""
    catalog, snapshot = matching.snapshot.catalog, matching.snapshot
    names = {end for member in hop.members for end in _ends(catalog.edges[member.edge_type])}
    return max([1, *(len(snapshot.dictionary(catalog.nodes[name])) for name in names)])


def _ends(edge: Any) -> tuple[str, str]:
    return edge.source, edge.target


def _closed(matching: Matching, hop: Hop, bindings: Bindings) -> Bindings:
    if bindings.length == 0 and hop.edge_var is None:
        return bindings
    if hop.edge_var is not None:
        return _closed_over_edges(matching, hop, bindings)
    if hop.left == hop.right and hop.low > 1:  # no longer cycle counts as a distance
        return bindings.take(np.empty(0, np.int64))
    left, right = bindings.nodes[hop.left], bindings.nodes[hop.right]
    if hop.high == 1 or hop.left == hop.right:
        legs = legs_of(matching, hop, from_left=True)
        return bindings.where(hops.joined(legs, left, right, matching.spending))
    from_left = len(distinct(left)) <= len(distinct(right))
    near, far = (left, right) if from_left else (right, left)
    legs = legs_of(matching, hop, from_left)
    sources, place = np.unique(near, return_inverse=True)
    pairs = hops.within(legs, sources, hop.low, hop.high, _width(matching, hop), matching.spending)
    known = (pairs.index << 32) | pairs.neighbours
    return bindings.where(np.isin((place.astype(np.int64) << 32) | far, known))


def _closed_over_edges(matching: Matching, hop: Hop, bindings: Bindings) -> Bindings:
    """One assignment for each edge row between the two bound ends."""
    assert hop.edge_var is not None
    left, right = bindings.nodes[hop.left], bindings.nodes[hop.right]
    ways = [
        (near, far, legs_of(matching, hop, from_left))
        for near, far, from_left in ((left, right, True), (right, left, False))
    ]
    near, far, legs = min(ways, key=lambda way: sum(int(leg.adjacency.degrees(way[0]).sum()) for leg in way[2]))
    crossing = hops.crossings(legs, near, matching.spending)
    meets = crossing.neighbours == far[crossing.index]
    edge = EdgeColumn(edge_types(hop), crossing.member[meets], crossing.rows[meets])
    return bindings.take(crossing.index[meets]).with_edge(hop.edge_var, edge)


# --- filters and blocks


def _kept(matching: Matching, expr: Expr, bindings: Bindings) -> Bindings:
    if bindings.length == 0:
        return bindings
    found: list[np.ndarray] = []
    for some in bindings.pieces(_KEPT_AT_ONCE, 1):
        matching.spending.check_time()
        found.append(true_rows(expr, matching.columns(some), matching.scope))
    return bindings.where(np.concatenate(found))


def _correlated(matching: Matching, block: Block, bindings: Bindings) -> Bindings:
    """Keeps the assignments for which the block holds, asking once for each distinct tuple of what it uses."""
    if bindings.length == 0:
        return bindings
    asked, place = bindings.keeping(free_variables(block)).distinct()
    matching.watch.passed(place_of(block, "argument"), asked.length)
    inside = matching.inside(block.pattern)
    marked = asked.with_node(MARK, np.arange(asked.length, dtype=np.int64))
    wanted = {MARK} | (frozenset[str]() if block.argument is None else variables(block.argument))
    found = match_pattern(inside, block.pattern, wanted, marked, once=block.func is None)
    marks = found.nodes[MARK]
    if block.func is None:
        holds = np.zeros(asked.length, bool)
        holds[marks] = True
        holds ^= block.negated
    else:
        holds = fold_holds(block, marks, asked.length, inside.columns(found), matching.scope)
    return bindings.where(holds[place])


MARK = "__alpha"
"""A variable that no query can name: which tuple of outer variables an inner assignment belongs to."""
