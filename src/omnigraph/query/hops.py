"""From vertices over the edges of a hop: the pairs that one step joins, the edge rows it crosses, or the pairs at a distance.

`dist(a, b)` is the least number of steps for a ≠ b; for a = b it is 1 if there is a step from a to itself, otherwise
infinite (languages.md 8.4). Two ways give the same pairs: walking rows of neighbours, and products of sparse matrices.
Knows adjacency and limits; neither patterns nor values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from graphblas import Matrix
from graphblas import binary as gb_binary

from omnigraph.query.limits import Spending
from omnigraph.query.residency.adjacency import Adjacency, Steps
from omnigraph.query.residency.edges import EdgeRows, Side

_MATRIX_SOURCES = 16
_MATRIX_STEPS = 20_000
_THREADED_STEPS = 2_000_000
_SEARCHES_AT_ONCE = 8_192


@dataclass(frozen=True, slots=True)
class Leg:
    """One edge type of a hop, crossed one way. `skip_loops`: the way back of an undirected hop, where the way out has
    already met every self-loop.
    """

    member: int
    edges: EdgeRows
    side: Side
    skip_loops: bool = False

    @property
    def adjacency(self) -> Adjacency:
        return self.edges.adjacency(self.side)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Edge rows crossed: from place `index` of the vertices asked, over row `rows` of member `member`, to `neighbours`."""

    index: np.ndarray
    neighbours: np.ndarray
    member: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, slots=True)
class Pairs:
    index: np.ndarray  # int64 places in the vertices asked
    neighbours: np.ndarray  # int32


def crossings(legs: Sequence[Leg], vertices: np.ndarray, spending: Spending) -> Crossing:
    """Every edge row at every vertex, parallel edges apart."""
    _charge(legs, vertices, spending)
    found = [(leg, _steps(leg, vertices)) for leg in legs]
    if not found:
        none = np.empty(0, np.int64)
        return Crossing(none, none.astype(np.int32), none.astype(np.int16), none)
    return Crossing(
        np.concatenate([steps.index for _, steps in found]),
        np.concatenate([steps.neighbours for _, steps in found]),
        np.concatenate([np.full(len(steps), leg.member, np.int16) for leg, steps in found]),
        np.concatenate([steps.rows.astype(np.int64) for _, steps in found]),
    )


def joined(legs: Sequence[Leg], vertices: np.ndarray, others: np.ndarray, spending: Spending) -> np.ndarray:
    """Where one step leads from `vertices[i]` to `others[i]`."""
    spending.examine(len(vertices) * len(legs))
    found = np.zeros(len(vertices), bool)
    for leg in legs:
        found |= leg.adjacency.joined(vertices, others)
    return found


def neighbours(legs: Sequence[Leg], vertices: np.ndarray, spending: Spending) -> Pairs:
    """The distinct vertices one step away from each vertex. Repeated vertices are answered each for itself."""
    _charge(legs, vertices, spending)
    found = [leg.adjacency.steps(vertices) for leg in legs]
    if len(found) == 1 and not legs[0].adjacency.has_parallels:
        return Pairs(found[0].index, found[0].neighbours)
    if not found:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int32))
    codes = np.unique(np.concatenate([_codes(steps.index, steps.neighbours) for steps in found]))
    return _pairs(codes)


def within(legs: Sequence[Leg], vertices: np.ndarray, low: int, high: int, width: int, spending: Spending) -> Pairs:
    """The pairs with low ≤ dist ≤ high. `width`: the number of vertices there are. Vertices are distinct."""
    traversal = spending.settings.traversal
    first = int(sum(leg.adjacency.degrees(vertices).sum() for leg in legs))
    by_matrix = traversal == "matrix" or (
        traversal == "auto" and (len(vertices) >= _MATRIX_SOURCES or first >= _MATRIX_STEPS)
    )
    found: list[Pairs] = []
    for begin in range(0, len(vertices), _SEARCHES_AT_ONCE):
        part = vertices[begin : begin + _SEARCHES_AT_ONCE]
        search = _search_by_matrix if by_matrix else _search_by_index
        pairs = search(legs, part, low, high, width, spending)
        found.append(Pairs(pairs.index + begin, pairs.neighbours))
    if len(found) == 1:
        return found[0]
    if not found:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int32))
    return Pairs(np.concatenate([p.index for p in found]), np.concatenate([p.neighbours for p in found]))


def _search_by_index(
    legs: Sequence[Leg], sources: np.ndarray, low: int, high: int, width: int, spending: Spending
) -> Pairs:
    """Breadth first by gathering rows: the least overhead for few sources."""
    seen = _codes(np.arange(len(sources), dtype=np.int64), sources)
    frontier = seen
    found: list[np.ndarray] = []
    for distance in range(1, high + 1):
        index, at = frontier >> 32, (frontier & 0xFFFFFFFF).astype(np.int32)
        _charge(legs, at, spending)
        parts = [leg.adjacency.steps(at) for leg in legs]
        reached = np.unique(np.concatenate([_codes(index[s.index], s.neighbours) for s in parts]))
        # the seeds do not mask the first step: a self-loop is a step of its own
        frontier = reached if distance == 1 else reached[~_among(reached, seen)]
        if distance >= low:
            found.append(frontier)
        if len(frontier) == 0 or distance == high:
            break
        seen = np.union1d(seen, frontier)
    return _pairs(np.concatenate(found)) if found else _pairs(np.empty(0, np.int64))


def _search_by_matrix(
    legs: Sequence[Leg], sources: np.ndarray, low: int, high: int, width: int, spending: Spending
) -> Pairs:
    """Breadth first for all sources at once: one masked sparse product a step."""
    count = len(sources)
    frontier = Matrix.from_coo(np.arange(count), sources, True, dtype=bool, nrows=count, ncols=width)
    seen = frontier.dup()
    found: list[Pairs] = []
    at = sources
    for distance in range(1, high + 1):
        work = _charge(legs, at, spending)
        threads = 0 if work >= _THREADED_STEPS else 1
        reached = None
        for leg in legs:
            part = leg.adjacency.product(frontier, width, threads)
            if reached is None:
                reached = part
            else:
                reached(gb_binary.any).update(part)
        if reached is None:
            break
        if distance > 1:  # the seeds do not mask the first step: a self-loop is a step of its own
            fresh = Matrix(bool, count, width)
            fresh(~seen.S, replace=True).update(reached)
            reached = fresh
        index, vertex, _ = reached.to_coo(values=False)
        at = vertex.astype(np.int32)
        if distance >= low:
            found.append(Pairs(index.astype(np.int64), at))
        if len(at) == 0 or distance == high:
            break
        seen(gb_binary.any).update(reached)
        frontier = reached
    if not found:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int32))
    return Pairs(np.concatenate([p.index for p in found]), np.concatenate([p.neighbours for p in found]))


def _charge(legs: Sequence[Leg], vertices: np.ndarray, spending: Spending) -> int:
    """Count the edge rows at these vertices before anyone looks at them."""
    work = int(sum(leg.adjacency.degrees(vertices).sum() for leg in legs))
    spending.examine(work)
    return work


def _steps(leg: Leg, vertices: np.ndarray) -> Steps:
    steps = leg.adjacency.steps(vertices)
    if not leg.skip_loops:
        return steps
    other = vertices[steps.index] != steps.neighbours
    return Steps(steps.index[other], steps.neighbours[other], steps.rows[other])


def _codes(index: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    return (index.astype(np.int64) << 32) | vertices


def _pairs(codes: np.ndarray) -> Pairs:
    return Pairs(codes >> 32, (codes & 0xFFFFFFFF).astype(np.int32))


def _among(codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which codes stand in a sorted array."""
    if len(known) == 0:
        return np.zeros(len(codes), bool)
    at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return known[at] == codes
