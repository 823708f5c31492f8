"""From vertices over the edges of a hop: the pairs that one step joins, the edge rows it crosses, or the pairs at a distance.

`dist(a, b)` is the least number of steps for a ≠ b; for a = b it is 1 if there is a step from a to itself, otherwise
infinite (languages.md 8.4). Two ways give the same pairs: walking rows of neighbours, and products of sparse matrices.
Knows adjacency and limits; neither patterns nor values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from omnigraph.query import sparse
from omnigraph.query.codes import distinct, ranges, runs
from omnigraph.query.limits import Spending, Traversal
from omnigraph.query.residency.adjacency import Adjacency, Steps
from omnigraph.query.residency.edges import EdgeRows, Side

if TYPE_CHECKING:
    from graphblas import Matrix

ROWS_AT_MOST: dict[Traversal, float] = {"auto": 1_500, "indexed": math.inf, "matrix": -1}
"""Edge rows of one step up to which gathering them costs less than a product of sparse matrices (both were measured)."""
_THREADED_STEPS = 2_000_000
_REPEATS = 4  # so many questions an edge row of the nodes they are about: finding all rows once costs less
_SEARCHES_AT_ONCE = 8_192
_STEP_NUMBERS = 3  # whence, whither, over which row


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
    spending.make(_charge(legs, vertices, spending), _STEP_NUMBERS)
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
    sources = distinct(vertices)
    for leg in legs:
        if int(leg.adjacency.degrees(sources).sum()) * _REPEATS <= len(vertices):
            steps = leg.adjacency.steps(sources)
            known = np.sort(_codes(sources[steps.index], steps.neighbours))
            found |= _among(_codes(vertices, others), known)
        else:
            found |= leg.adjacency.joined(vertices, others)
    return found


def neighbours(legs: Sequence[Leg], vertices: np.ndarray, spending: Spending) -> Pairs:
    """The distinct vertices one step away from each vertex. Repeated vertices are answered each for itself."""
    spending.make(_charge(legs, vertices, spending), _STEP_NUMBERS)
    found = [leg.adjacency.steps(vertices) for leg in legs]
    if len(found) == 1 and not legs[0].adjacency.has_parallels:
        return Pairs(found[0].index, found[0].neighbours)
    if not found:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int32))
    codes = distinct(np.concatenate([_codes(steps.index, steps.neighbours) for steps in found]))
    return _pairs(codes)


def meeting(back: Sequence[Leg], vertices: np.ndarray, targets: np.ndarray, spending: Spending) -> Crossing:
    """As `crossings`, but only to `targets` (distinct), which are walked back from: `back` are the legs as they are crossed
    from there. Cheaper where few edges lead to them.
    """
    met = crossings(back, targets, spending)
    order, begins, counts = runs(met.neighbours, vertices)
    rows = int(counts.sum())
    spending.examine(rows)
    spending.make(rows, _STEP_NUMBERS)
    at = order[ranges(begins, counts)]
    return Crossing(
        np.repeat(np.arange(len(vertices)), counts),
        targets[met.index[at]].astype(np.int32, copy=False),
        met.member[at],
        met.rows[at],
    )


def paired_off(crossing: Crossing) -> Pairs:
    """The pairs that some crossings join, each once."""
    return _pairs(distinct(_codes(crossing.index, crossing.neighbours)))


def within(legs: Sequence[Leg], vertices: np.ndarray, low: int, high: int, width: int, spending: Spending) -> Pairs:
    """The pairs with low ≤ dist ≤ high. `width`: the number of vertices there are. Vertices are distinct."""
    found = [Pairs(np.empty(0, np.int64), np.empty(0, np.int32))]
    rows = 0
    for begin, search in _searches(legs, vertices, low, high, width, spending):
        for level in search.run():
            rows += len(level) if isinstance(level, np.ndarray) else level.nvals
            spending.make(rows, 2)
            pairs = _pairs_of(level)
            found.append(Pairs(pairs.index + begin, pairs.neighbours))
    return Pairs(np.concatenate([p.index for p in found]), np.concatenate([p.neighbours for p in found]))


def counted_within(
    legs: Sequence[Leg], vertices: np.ndarray, low: int, high: int, width: int, spending: Spending
) -> np.ndarray:
    """How many pairs `within` has for each of the vertices (int64)."""
    counts = np.zeros(len(vertices), np.int64)
    for begin, search in _searches(legs, vertices, low, high, width, spending):
        for level in search.run():
            counts[begin : begin + len(search.sources)] += _counts_of(level, len(search.sources))
    return counts


def _searches(
    legs: Sequence[Leg], vertices: np.ndarray, low: int, high: int, width: int, spending: Spending
) -> Iterator[tuple[int, _Search]]:
    """Searches from all vertices, so many at once, each with the place of its first; none where no leg is given, for a
    wildcard that selects nothing.
    """
    for begin in range(0, len(vertices) if legs else 0, _SEARCHES_AT_ONCE):
        yield begin, _Search(legs, vertices[begin : begin + _SEARCHES_AT_ONCE], low, high, width, spending)


@dataclass(frozen=True, slots=True)
class _Search:
    """Breadth first from all sources at once: by gathered rows while steps are small, by masked products after that."""

    legs: Sequence[Leg]
    sources: np.ndarray
    low: int
    high: int
    width: int
    spending: Spending

    def run(self) -> Iterator[np.ndarray | Matrix]:
        """The pairs of each distance asked for: codes of a source's place and a vertex, or a matrix of both."""
        most = ROWS_AT_MOST[self.spending.settings.traversal]
        seen = frontier = _codes(np.arange(len(self.sources), dtype=np.int64), self.sources)
        for distance in range(1, self.high + 1):
            index, at = frontier >> 32, (frontier & 0xFFFFFFFF).astype(np.int32)
            work = _charge(self.legs, at, self.spending)
            if work > most:
                yield from self._by_products(distance, self._pattern(frontier), self._pattern(seen), work)
                return
            parts = [leg.adjacency.steps(at) for leg in self.legs]
            reached = distinct(np.concatenate([seen[:0], *(_codes(index[s.index], s.neighbours) for s in parts)]))
            # the seeds do not mask the first step: a self-loop is a step of its own
            frontier = reached if distance == 1 else reached[~_among(reached, seen)]
            if distance >= self.low:
                yield frontier
            if len(frontier) == 0 or distance == self.high:
                return
            seen = np.union1d(seen, frontier)

    def _by_products(self, distance: int, frontier: Matrix, seen: Matrix, work: int) -> Iterator[Matrix]:
        """As `run`, from a distance on."""
        while True:
            # the seeds do not mask the first step
            reached = self._product(frontier, None if distance == 1 else seen, large=work >= _THREADED_STEPS)
            if distance >= self.low:
                yield reached
            if distance == self.high:
                return
            at = sparse.places(reached)[1].astype(np.int32)
            if len(at) == 0:
                return
            sparse.add(seen, reached)
            frontier = reached
            distance += 1
            work = _charge(self.legs, at, self.spending)

    def _product(self, frontier: Matrix, seen: Matrix | None, *, large: bool) -> Matrix:
        first, *others = self.legs
        self.spending.products += 1
        reached = first.adjacency.product(frontier, self.width, large=large, seen=seen)
        for leg in others:
            sparse.add(reached, leg.adjacency.product(frontier, self.width, large=large, seen=seen))
        return reached

    def _pattern(self, codes: np.ndarray) -> Matrix:
        return sparse.pattern(codes >> 32, codes & 0xFFFFFFFF, len(self.sources), self.width)


def _pairs_of(level: np.ndarray | Matrix) -> Pairs:
    if isinstance(level, np.ndarray):
        return _pairs(level)
    index, vertices = sparse.places(level)
    return Pairs(index.astype(np.int64), vertices.astype(np.int32))


def _counts_of(level: np.ndarray | Matrix, sources: int) -> np.ndarray:
    """Pairs of each source."""
    if isinstance(level, np.ndarray):
        return np.bincount(cast("np.ndarray", level >> 32), minlength=sources)
    return sparse.row_counts(level)


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
