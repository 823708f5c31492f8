"""Squared L2 distances of the vectors of rows to one vector, in 32-bit floats, exactly (languages.md 12.2).

An index, where one is built, only says which rows to look at: it is asked for more than are wanted, those that were not
asked of fall out, and more are fetched until enough are left, or until every row may as well be compared. What is found is
scored from its vectors like anything else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query.residency.nodes import NodeRows

_AT_ONCE = 1 << 20  # numbers that are compared in one go
_EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The vectors of some rows. `valid`: which rows have one; `squares`: the squared length of each."""

    values: np.ndarray  # float32, rows × N, of the column itself
    valid: np.ndarray
    squares: np.ndarray  # float32

    @property
    def nbytes(self) -> int:
        return self.valid.nbytes + self.squares.nbytes


def matrix(column: pa.Array) -> Matrix:
    size = column.type.list_size
    values = column.values.slice(column.offset * size, len(column) * size).fill_null(0)
    numbers = values.to_numpy(zero_copy_only=False).reshape(-1, size)
    return Matrix(numbers, column.is_valid().to_numpy(zero_copy_only=False), np.einsum("ij,ij->i", numbers, numbers))


@dataclass(frozen=True, slots=True)
class Effort:
    """When an index is asked. `numbers`: so many of the rows asked of are compared in no time. `rows_left`: fetching more
    than one row in so many is no better than to compare all. `surplus`: so many more rows are fetched than are expected to
    be enough.
    """

    numbers: int = 1 << 22
    rows_left: int = 4
    surplus: int = 16


EFFORT = Effort()


def nearest_rows(
    nodes: NodeRows,
    field: pa.Field,
    rows: np.ndarray,
    query: np.ndarray,
    wanted: int | None,
    probes: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Those of the rows (live, each once) that have a vector, and their distances; with `wanted` at least the so many
    nearest, those that tie with the last included. With `probes` an index is asked if one is built, and may miss some of
    these, but finds as many; 0: it looks everywhere. Raises StorageFailure if the column has to be read and can't be.
    """
    if wanted and probes is not None and _is_indexed(nodes, field, len(query)):
        few = len(rows) * len(query) <= EFFORT.numbers and field.name not in nodes.columns
        found = rows if few else _candidates(nodes, field, rows, query, wanted, probes)
        if found is not None:
            return _apart(nodes, field, found, query)
    base, tail = nodes.columns.derived(field, "vectors", matrix)
    size = len(nodes.columns.space.base)
    late = rows >= size
    found_rows: list[np.ndarray] = []
    distances: list[np.ndarray] = []
    for part, first, asked in ((base, 0, rows[~late]), (tail, size, rows[late])):
        at = asked - first
        at = at[part.valid[at]]
        if wanted is not None and len(at) > max(wanted, 1) and at.size * len(query) > _AT_ONCE:
            at = _contenders(part, at, query, wanted)
        found_rows.append(at + first)
        distances.append(_distances(part.values, at, query))
    return np.concatenate(found_rows), np.concatenate(distances)


def uses_index(nodes: int, asked: int, dimension: int, wanted: int) -> bool:
    """Whether an index, if there is one, is asked for so many nearest of these rows of a table of so many."""
    if asked * dimension <= EFFORT.numbers:
        return False
    return first_fetch(nodes, asked, wanted) * EFFORT.rows_left <= nodes


def first_fetch(nodes: int, asked: int, wanted: int) -> int:
    """How many rows are fetched so that the wanted number of those asked of is among them, if these lie anywhere."""
    return -(-wanted * nodes // asked) + EFFORT.surplus


def _candidates(
    nodes: NodeRows, field: pa.Field, rows: np.ndarray, query: np.ndarray, wanted: int, probes: int
) -> np.ndarray | None:
    """Rows that an index finds, the wanted number and those that tie with the last of them, or more; None where every row
    has to be compared.
    """
    source = nodes.columns.source
    if source is None or not uses_index(len(nodes), len(rows), len(query), wanted):
        return None
    asked = np.zeros(len(nodes.columns.space), bool)
    asked[rows] = True
    count = first_fetch(len(nodes), len(rows), wanted)
    while count * EFFORT.rows_left <= len(nodes):
        addresses, distances = source.search_indexes.nearest(field.name, query, count, probes)
        found = nodes.columns.space.find(addresses)
        inside = asked[found]
        if np.count_nonzero(inside) >= wanted and distances[-1] > distances[inside][wanted - 1]:
            return found[inside]
        if len(addresses) < count and probes:
            probes = 0  # the partitions that were looked at hold no more
        else:
            count *= 4
    return None


def _is_indexed(nodes: NodeRows, field: pa.Field, dimension: int) -> bool:
    """Whether an index is built; not asked of a table that is compared with in no time."""
    source = nodes.columns.source
    if source is None or len(nodes) * dimension <= EFFORT.numbers:
        return False
    return source.search_indexes.usable(field.name, "vector")


def _apart(nodes: NodeRows, field: pa.Field, rows: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of a few rows that have a vector, looked up where they lie, and their distances."""
    looked_up = matrix(nodes.columns.peek(field, rows))
    at = np.flatnonzero(looked_up.valid)
    return rows[at], _distances(looked_up.values, at, query)


def _distances(values: np.ndarray, at: np.ndarray, query: np.ndarray) -> np.ndarray:
    step = max(_AT_ONCE // max(len(query), 1), 1)
    out = np.empty(len(at), np.float32)
    with np.errstate(over="ignore"):
        for start in range(0, len(at), step):
            apart = values[at[start : start + step]] - query
            out[start : start + step] = np.einsum("ij,ij->i", apart, apart)
    return out


def _contenders(part: Matrix, at: np.ndarray, query: np.ndarray, wanted: int) -> np.ndarray:
    """Rows among which the so many nearest must be: ‖p‖² − 2 p·q + ‖q‖² by one product, with what it may be off by.

    The bound is that of a sum of N rounded products (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), twice:
    for this form and for the exact one that decides.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        dots = part.values @ query if len(at) * 4 > len(part.values) else None
        dots = part.values[at] @ query if dots is None else dots[at]
        lengths = part.squares[at].astype(np.float64) + float(query.astype(np.float64) @ query.astype(np.float64))
        about = lengths - 2 * dots.astype(np.float64)
        off = 2 * (len(query) + 8) * _EPSILON * lengths
    if not (np.isfinite(about).all() and np.isfinite(off).all()):
        return at  # so great that squares overflow: every one is computed
    worst = np.partition(about + off, wanted - 1)[wanted - 1] if wanted else -np.inf
    return at[about - off <= worst]
