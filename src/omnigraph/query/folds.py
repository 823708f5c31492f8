"""Correlated aggregate blocks: `count { … } > 2` and its kin, for all outer assignments at once (languages.md 8.6)."""

from __future__ import annotations

import numpy as np

from omnigraph.lang.query.typed import Block, NodeRef
from omnigraph.query.expressions import NoColumns, RowColumns, Scope, compare, evaluate, evaluated_array
from omnigraph.query.relational.aggregates import aggregate


def fold_holds(block: Block, owners: np.ndarray, count: int, inner: RowColumns, scope: Scope) -> np.ndarray:
    """For each of `count` outer assignments, whether the fold of its inner ones compares as the block asks.

    `owners[i]` says which outer assignment the inner assignment i belongs to. A null fold, or a null right side, keeps
    nothing.
    """
    assert block.func is not None
    assert block.op is not None
    assert block.right is not None
    counts_rows = block.argument is None or isinstance(block.argument, NodeRef)
    values = None if counts_rows else evaluated_array(block.argument, inner, scope)  # pyright: ignore[reportArgumentType]
    folded = aggregate(block.func, values, owners, count)
    right = evaluate(block.right, NoColumns(), scope)
    return compare(block.op, folded, right).fill_null(False).to_numpy(zero_copy_only=False)
