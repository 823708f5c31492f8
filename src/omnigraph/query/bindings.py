"""Assignments as columns: for each variable of a pattern the vertex numbers, or the edge rows, of all assignments.

Immutable; knows no values and no storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from omnigraph.query.codes import numbered


@dataclass(frozen=True, slots=True)
class EdgeColumn:
    """A bound edge per assignment: `member[i]` says which of `types` it is of, `rows[i]` its row number there."""

    types: tuple[str, ...]
    member: np.ndarray  # int16
    rows: np.ndarray  # int64

    def take(self, index: np.ndarray) -> EdgeColumn:
        return EdgeColumn(self.types, self.member[index], self.rows[index])


@dataclass(frozen=True, slots=True)
class Bindings:
    length: int
    nodes: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])  # int32 vertex numbers
    edges: Mapping[str, EdgeColumn] = field(default_factory=dict[str, EdgeColumn])

    @property
    def width(self) -> int:
        """How many variables there are."""
        return len(self.nodes) + len(self.edges)

    def take(self, index: np.ndarray) -> Bindings:
        """The assignments at these places, repeats allowed."""
        return Bindings(
            len(index),
            {name: values[index] for name, values in self.nodes.items()},
            {name: values.take(index) for name, values in self.edges.items()},
        )

    def first(self, count: int) -> Bindings:
        """So many at most, from the beginning."""
        return self if self.length <= count else self.take(np.arange(count))

    def pieces(self, first: int, growth: int) -> Iterator[Bindings]:
        """All assignments in order, `first` of them and then so many times more in each piece. One piece if there are none."""
        begin, size = 0, first
        while begin == 0 or begin < self.length:
            end = min(begin + size, self.length)
            yield self if end - begin == self.length else self.take(np.arange(begin, end))
            begin, size = max(end, 1), size * growth

    def where(self, mask: np.ndarray) -> Bindings:
        return self if bool(mask.all()) else self.take(np.flatnonzero(mask))

    def with_node(self, name: str, vertices: np.ndarray) -> Bindings:
        return Bindings(self.length, {**self.nodes, name: vertices}, self.edges)

    def with_edge(self, name: str, edges: EdgeColumn) -> Bindings:
        return Bindings(self.length, self.nodes, {**self.edges, name: edges})

    def crossed(self, name: str, vertices: np.ndarray) -> Bindings:
        """Every assignment with every one of the vertices."""
        index = np.repeat(np.arange(self.length), len(vertices))
        return self.take(index).with_node(name, np.tile(vertices, self.length))

    def repeated(self, counts: np.ndarray) -> Bindings:
        """Every assignment so many times."""
        if self.width == 0:
            return Bindings(int(counts.sum()))
        return self.take(np.repeat(np.arange(self.length), counts))

    def keeping(self, names: Iterable[str]) -> Bindings:
        """Only these variables."""
        kept = set(names)
        if kept.issuperset(self.nodes) and kept.issuperset(self.edges):
            return self
        return Bindings(
            self.length,
            {name: values for name, values in self.nodes.items() if name in kept},
            {name: values for name, values in self.edges.items() if name in kept},
        )

    def distinct(self) -> tuple[Bindings, np.ndarray]:
        """Equal assignments once, and for each assignment the place of its like among them."""
        codes = self.codes()
        if codes is None:
            return self.take(np.arange(min(self.length, 1))), np.zeros(self.length, np.int64)
        place, first = numbered(codes)
        return self.take(first), place

    def codes(self) -> np.ndarray | None:
        """int64 numbers that are equal exactly where assignments are; None if there are no variables."""
        parts: list[np.ndarray] = [values.astype(np.int64) for values in self.nodes.values()]
        for edge in self.edges.values():
            if len(edge.types) > 1:
                parts.append(edge.member.astype(np.int64))
            parts.append(edge.rows)
        if not parts:
            return None
        codes = parts[0]
        for part in parts[1:]:
            codes = paired(codes, part)
        return codes


def paired(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """int64 numbers that are equal exactly where both sides are."""
    if len(left) == 0:
        return left
    low, high = int(right.min()), int(right.max())
    span = high - low + 1
    floor = int(left.min())
    if (int(left.max()) - floor + 1) * span >= 2**63:
        left, right = numbered(left)[0], numbered(right)[0]
        low, floor, span = 0, 0, int(right.max()) + 1
    return (left - floor) * span + (right - low)


def joined_together(found: Sequence[Bindings]) -> Bindings:
    """Assignments of the same variables, one after the other; there is at least one of them."""
    first = found[0]
    if len(found) == 1:
        return first
    edges = {
        name: EdgeColumn(
            column.types,
            np.concatenate([each.edges[name].member for each in found]),
            np.concatenate([each.edges[name].rows for each in found]),
        )
        for name, column in first.edges.items()
    }
    nodes = {name: np.concatenate([each.nodes[name] for each in found]) for name in first.nodes}
    return Bindings(sum(each.length for each in found), nodes, edges)
