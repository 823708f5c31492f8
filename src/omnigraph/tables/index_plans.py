"""What is to be built so that a table's search indexes cover it: decided from fragment lists and descriptions alone.

    planned(Wanted("about", "text"), indexes.get("about_terms"), {0: 5_000, 1: 9_000}, full=False)

Pure: no row and no file is looked at. An index is never extended over rows that are gone, nor one that means something
else; it is built anew then (history.md 16.2, 16.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from omnigraph.tables.coverage import ColumnIndex, Coverage, Kind, Segment, coverage, search_index_name

UNCOVERED_ROWS_MAX: Final = 8_192
_UNCOVERED_SHARE: Final = 20  # one row in so many
SEGMENTS_MAX: Final = 8
_SEGMENTS_LEFT: Final = 4
_RETRAINED_AT: Final = 4  # times the rows at training

VECTOR_BYTES_LEAST: Final = 256 << 20
"""Of the vectors of a table: below, comparing with every one is as quick as an index, and exact."""

_FLAT_ROWS_MAX: Final = 65_536
_SAMPLE: Final = 256  # vectors that the library wants to see of a partition, and of a product quantizer at least

Reason = Literal["small", "unbuildable", "few_rows"]
"""Why nothing is built: a vector index would not pay; there is no value to index; the rows that are not covered are few
and are searched without it.
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index that a schema asks for. `dimension` is that of a vector."""

    column: str
    kind: Kind
    dimension: int = 0

    @property
    def name(self) -> str:
        return search_index_name(self.column, self.kind)


@dataclass(frozen=True, slots=True)
class Work:
    """One segment to build, over these fragments. `joins`: segments of a text index that become one with it; `replaces`:
    those that go, the joined ones and those of rows that are gone among them. `exists`: the version has an index of this
    name. `rows` are those of the fragments.
    """

    wanted: Wanted
    exists: bool
    fragments: tuple[int, ...]
    rows: int
    joins: tuple[Segment, ...]
    replaces: tuple[Segment, ...]
    segments_before: int

    @property
    def segments_after(self) -> int:
        return self.segments_before - len(self.replaces) + 1


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing is built for a column, for a reason."""

    column: str
    reason: Reason


def planned(
    wanted: Wanted,
    index: ColumnIndex | None,
    live: Mapping[int, int],
    *,
    full: bool = False,
    fresh: bool = False,
    vector_bytes_least: int = VECTOR_BYTES_LEAST,
) -> Work | Waiting | None:
    """What to build of one index; None for nothing. `live`: the rows of each fragment. `full`: one segment over everything;
    `fresh`: nothing of the table has changed since the index's newest segment was built.
    """
    rows = sum(live.values())
    if rows == 0:
        return Waiting(wanted.column, "unbuildable")
    if index is None and wanted.kind == "vector" and rows * wanted.dimension * 4 < vector_bytes_least:
        return Waiting(wanted.column, "small")
    if index is None or not index.expected:
        return _whole(wanted, index, live)
    held = coverage(index, live)
    if not held.used:
        return _whole(wanted, index, live)
    if full:
        return None if fresh and len(index.segments) == 1 and not held.uncovered else _whole(wanted, index, live)
    if wanted.kind == "vector" and rows >= _RETRAINED_AT * max(held.rows_by_segment):
        return _whole(wanted, index, live)
    if held.rows_uncovered <= UNCOVERED_ROWS_MAX and held.rows_uncovered * _UNCOVERED_SHARE <= rows:
        if len(index.segments) > SEGMENTS_MAX:
            return _whole(wanted, index, live)
        return Waiting(wanted.column, "few_rows") if held.uncovered else None
    if wanted.kind == "vector" and len(held.used) + 1 > SEGMENTS_MAX:  # they can't be joined
        return _whole(wanted, index, live)
    return _further(wanted, index, held)


def _further(wanted: Wanted, index: ColumnIndex, held: Coverage) -> Work:
    """A segment over what is not covered, joined with the smallest ones where there would be too many."""
    gone = tuple(each for each in index.segments if each not in held.used)
    joins: tuple[Segment, ...] = ()
    if len(held.used) + 1 > SEGMENTS_MAX:
        sizes = sorted(zip(held.rows_by_segment, held.used, strict=True), key=lambda pair: (pair[0], pair[1].uuid))
        joins = tuple(each for _, each in sizes[: len(held.used) + 1 - _SEGMENTS_LEFT])
    return Work(wanted, True, held.uncovered, held.rows_uncovered, joins, (*gone, *joins), len(index.segments))


def _whole(wanted: Wanted, index: ColumnIndex | None, live: Mapping[int, int]) -> Work:
    """One segment over everything, in place of whatever there was."""
    former = () if index is None else index.segments
    filled = tuple(number for number in sorted(live) if live[number])
    return Work(wanted, index is not None, filled, sum(live.values()), (), former, len(former))


@dataclass(frozen=True, slots=True)
class VectorSort:
    """How a vector index is made: its sort as the library calls it, its partitions, and into how many parts a vector is cut."""

    sort: Literal["IVF_FLAT", "IVF_PQ", "IVF_SQ"]
    partitions: int
    sub_vectors: int | None = None


def vector_sort(dimension: int, vectors: int) -> VectorSort:
    """The index for so many vectors: √vectors partitions, as far as the library can train them.

    >>> vector_sort(768, 1_000_000)
    VectorSort(sort='IVF_PQ', partitions=1000, sub_vectors=96)
    >>> vector_sort(100, 1_000_000).sort, vector_sort(768, 60_000).partitions
    ('IVF_SQ', 234)
    """
    partitions = max(min(math.isqrt(vectors), vectors // _SAMPLE), 1)
    if vectors <= _FLAT_ROWS_MAX:
        return VectorSort("IVF_FLAT", partitions)
    part = 4 if dimension < 64 else 8
    if dimension % part:
        return VectorSort("IVF_SQ", partitions)
    return VectorSort("IVF_PQ", partitions, dimension // part)
