"""The tail by Arrow kernels and NumPy: no statement, no copy of its input, nothing on disk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.bindings import paired
from omnigraph.query.codes import numbered
from omnigraph.query.relational.keys import ordinals
from omnigraph.query.relational.tail import Groups, SortKey

_NARROW_SHARE = 4


class KernelTail:
    def groups(self, keys: Sequence[pa.Array]) -> Groups:
        codes = _codes(keys[0])
        for key in keys[1:]:
            codes = paired(codes, _codes(key))
        numbers, rows = numbered(codes)
        return Groups(numbers, rows, len(rows))

    def order(self, rows: int, keys: Sequence[SortKey], limit: int | None) -> np.ndarray:
        if limit is not None and limit * _NARROW_SHARE <= rows:
            chosen = _first_rows(rows, keys, limit)
            return chosen[_sorted(keys, chosen)]
        order = _sorted(keys, None)
        return order if limit is None else order[:limit]


KERNEL_TAIL = KernelTail()


def _codes(key: pa.Array) -> np.ndarray:
    """int64 numbers that are equal where the values are, null among them."""
    if key.null_count == 0 and pa.types.is_signed_integer(key.type):
        return key.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    coded = key.dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _sorted(keys: Sequence[SortKey], rows: np.ndarray | None) -> np.ndarray:
    """What sorts these rows."""
    columns: list[np.ndarray] = []
    for key in keys:
        values = key.fetch(rows)
        if values.null_count:
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            columns.append(~valid if key.descending else valid)
        columns.append(_directed(ordinals(values), key.descending))
    return np.lexsort(columns[::-1])


def _directed(numbers: np.ndarray, descending: bool) -> np.ndarray:
    if not descending:
        return numbers
    return -numbers if numbers.dtype.kind == "f" else ~numbers


def _first_rows(rows: int, keys: Sequence[SortKey], limit: int) -> np.ndarray:
    """The rows among the first `limit`, unordered: each key decides what it can and leaves the ties to the next."""
    if limit == 0:
        return np.empty(0, np.int64)
    sure: list[np.ndarray] = []
    tied: np.ndarray | None = None
    need = limit
    for key in keys:
        values = key.fetch(tied)
        inside, equal = _cut(values, key.descending, need)
        every = np.arange(rows) if tied is None else tied
        sure.append(every[inside])
        tied = every[equal]
        need -= len(sure[-1])
        if len(tied) <= need:
            break
    assert tied is not None
    return np.concatenate([*sure, tied[:need]])


def _cut(values: pa.Array, descending: bool, need: int) -> tuple[np.ndarray, np.ndarray]:
    """Which values are surely among the first `need`, and which are equal to the last of them."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    present = int(valid.sum())
    nothing = np.zeros(len(values), bool)
    if descending and need > present:  # all values, then some of the nulls
        return valid, ~valid
    sure = nothing if descending else ~valid
    if not descending:
        if len(values) - present >= need:
            return nothing, ~valid
        need -= len(values) - present
    if need >= present:
        return valid | sure, nothing
    before, equal = _cut_values(values, descending, need)
    return before | sure, equal


def _cut_values(values: pa.Array, descending: bool, need: int) -> tuple[np.ndarray, np.ndarray]:
    """As `_cut` for the non-null values, of which there are more than `need`."""
    of = values.type
    if pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_large_binary(of):
        order = "descending" if descending else "ascending"
        table = pa.table({"v": values.drop_null()})
        last = table["v"][pc.select_k_unstable(table, need, sort_keys=[("v", order)])[need - 1].as_py()]
        before = (pc.greater if descending else pc.less)(values, last)
        return (
            before.fill_null(False).to_numpy(zero_copy_only=False),
            pc.equal(values, last).fill_null(False).to_numpy(zero_copy_only=False),
        )
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = _directed(ordinals(values), descending)
    last = np.partition(numbers[valid], need - 1)[need - 1]
    return valid & (numbers < last), valid & (numbers == last)
