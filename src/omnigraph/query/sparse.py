"""Products of sparse Boolean matrices on GraphBLAS, all that traversal asks of it.

The library is loaded with the first product: with it come pandas and numba, more than half a second that a process
which never multiplies need not spend. Every matrix is waited for before another thread can see it: with work pending,
readers get wrong counts. Knows matrices; neither graphs nor limits.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from graphblas import Matrix

_THREADS = os.cpu_count() or 1


@cache
def _graphblas() -> Any:
    import graphblas

    # a busy machine runs one query a core: two threads in one product were five times slower
    graphblas.ss.config["nthreads"] = 1
    return graphblas


def counts(indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int) -> Matrix:
    """A matrix (UINT32) of compressed rows whose columns ascend. At least 1 × 1. Safe to share."""
    height = len(indptr) - 1
    matrix = _graphblas().Matrix.ss.import_csr(
        nrows=max(height, 1),
        ncols=max(width, 1),
        indptr=(indptr if height else np.zeros(2, np.int64)).astype(np.uint64),
        col_indices=columns.astype(np.uint64),
        values=values,
        sorted_cols=True,
    )
    matrix.wait()
    return matrix


def pattern(rows: np.ndarray, columns: np.ndarray, height: int, width: int) -> Matrix:
    """True at these distinct places."""
    return _graphblas().Matrix.from_coo(rows, columns, True, dtype=bool, nrows=height, ncols=width)


def step(frontier: Matrix, edges: Matrix, *, threaded: bool, seen: Matrix | None = None) -> Matrix:
    """Where the product of the two has entries and `seen` has none, as Booleans. `threaded`: the work is worth more than
    one thread.
    """
    options = {"nthreads": _THREADS} if threaded else {}
    product = frontier.mxm(edges, _graphblas().semiring.any_pair[bool])
    return product.new(**options) if seen is None else product.new(mask=~seen.S, **options)


def widened(matrix: Matrix, width: int) -> Matrix:
    """The same matrix, in place, with this many columns."""
    matrix.resize(matrix.nrows, width)
    return matrix


def add(onto: Matrix, more: Matrix) -> None:
    """Set, in place, what the other has too. Both of one shape."""
    onto.update(onto.ewise_add(more, _graphblas().binary.any))  # a third of the time of an update with an accumulator


def without(matrix: Matrix, seen: Matrix) -> Matrix:
    """The entries of the first where the second has none, as a new matrix."""
    return matrix.apply(_graphblas().unary.identity).new(mask=~seen.S)


def places(matrix: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of all entries (uint64), by row."""
    rows, columns, _ = matrix.to_coo(values=False)
    return rows, columns


def row_counts(matrix: Matrix) -> np.ndarray:
    """How many entries each row has (int64)."""
    return matrix.reduce_rowwise(_graphblas().agg.count).new().to_dense(0)
