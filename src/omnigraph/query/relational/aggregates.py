"""Aggregates by group, exact as languages.md 10.2 asks, whatever the order of rows.

Integers are added exactly and rounded once. Floats are split so that each part of a sum is exact, which leaves one last
rounding. A sum out of range is infinite. Knows group numbers and Arrow arrays, no queries.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.typed import AggregateName
from omnigraph.query.relational.keys import from_order_bits, order_bits

_LOW = np.int64(0xFFFFFFFF)
_NARROW_BITS = 32
_HUGE = 2.0**900
_SCALE = 100
_LEAST_NORMAL = -1022  # below that power of two every float is a multiple of the smallest one: nothing is left over


def aggregate(func: AggregateName, values: pa.Array | None, group: np.ndarray, groups: int) -> pa.Array:
    """One value for each group. `values` None counts rows; otherwise nulls are left out. Sum and avg are F64."""
    if values is None:
        return pa.array(np.bincount(group, minlength=groups).astype(np.int64))
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    if not valid.all():
        values, group = values.drop_null(), group[valid]
    count = np.bincount(group, minlength=groups).astype(np.int64)
    match func:
        case "count":
            return pa.array(count)
        case "sum":
            return pa.array(_sum(values, group, groups), pa.float64(), mask=count == 0)
        case "avg":
            of_integers = _is_narrow(values)  # whose floats are the same
            total = _sum(values, group, groups) if of_integers else _float_sum(_floats(values), group, groups)
            return pa.array(total / np.maximum(count, 1), pa.float64(), mask=count == 0)
        case "min" | "max":
            return _extreme(func == "max", values, group, groups, count == 0)
        case _:
            assert_never(func)


def _is_narrow(values: pa.Array) -> bool:
    return pa.types.is_integer(values.type) and values.type.bit_width <= _NARROW_BITS


def _floats(values: pa.Array) -> np.ndarray:
    """Each value to the nearest F64."""
    return values.to_numpy(zero_copy_only=False).astype(np.float64)


def _sum(values: pa.Array, group: np.ndarray, groups: int) -> np.ndarray:
    if pa.types.is_floating(values.type):
        return _float_sum(_floats(values), group, groups)
    numbers = values.to_numpy(zero_copy_only=False)
    if _is_narrow(values):  # no sum of them leaves 64 bits
        return _integer_sum(numbers.astype(np.int64), group, groups).astype(np.float64)
    if numbers.dtype == np.uint64:
        high, low = (numbers >> np.uint64(32)).astype(np.int64), (numbers & np.uint64(_LOW)).astype(np.int64)
    else:
        wide = numbers.astype(np.int64)
        high, low = wide >> 32, wide & _LOW
    return _rounded_once(_integer_sum(high, group, groups), _integer_sum(low, group, groups))


def _integer_sum(numbers: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    totals = np.zeros(groups, np.int64)
    np.add.at(totals, group, numbers)
    return totals


def _rounded_once(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The F64 nearest to `high · 2**32 + low`, for any sums of at most 2**31 halves."""
    high, low = high + (low >> 32), low & _LOW
    # below 2**53 the left term is exact and the addition is the only rounding
    rounded = high.astype(np.float64) * 2.0**32 + low.astype(np.float64)
    for i in np.flatnonzero(np.abs(high) >= 2**53):  # takes two million of the largest values in one group
        rounded[i] = float(int(high[i]) * 2**32 + int(low[i]))
    return rounded


def _float_sum(numbers: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    largest = np.zeros(groups)
    np.maximum.at(largest, group, np.abs(numbers))
    shift = np.where(largest > _HUGE, -_SCALE, 0)
    if shift.any():
        numbers = np.ldexp(numbers, shift[group])
        largest = np.ldexp(largest, shift)
    _, exponent = np.frexp(largest)
    bits = len(numbers).bit_length() + 1
    parts: list[np.ndarray] = []
    while numbers.any():  # two or three rounds, unless sizes lie very far apart
        # numbers rounded to multiples of one power of two per group: their sums are exact in any order
        anchor = np.ldexp(1.0, np.maximum(exponent + bits, _LEAST_NORMAL))[group]
        rough = (anchor + numbers) - anchor
        parts.append(np.bincount(group, weights=rough, minlength=groups))
        numbers = numbers - rough
        exponent = exponent + bits - 53
    total = np.zeros(groups)
    for part in reversed(parts):
        total = total + part
    with np.errstate(over="ignore"):
        return np.ldexp(total, -shift)


def _extreme(greatest: bool, values: pa.Array, group: np.ndarray, groups: int, empty: np.ndarray) -> pa.Array:
    """The least or greatest value; of both zeros the least is −0.0, the greatest 0.0."""
    of = values.type
    if pa.types.is_string(of) or pa.types.is_large_string(of):
        coded = values.dictionary_encode()
        order = pc.sort_indices(coded.dictionary)
        rank = np.empty(len(order), np.int64)
        rank[order.to_numpy(zero_copy_only=False)] = np.arange(len(order))
        best = _best(greatest, rank[coded.indices.to_numpy(zero_copy_only=False)], group, groups)
        place = pa.array(np.where(empty, 0, best), mask=empty)
        return coded.dictionary.take(order.take(place))
    plain = values.cast(pa.int32() if pa.types.is_date32(of) else pa.int64()) if pa.types.is_temporal(of) else values
    numbers = plain.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "f":
        best = from_order_bits(_best(greatest, order_bits(numbers), group, groups))
    elif numbers.dtype.kind == "b":
        best = _best(greatest, numbers.astype(np.int8), group, groups) == 1
    else:
        best = _best(greatest, numbers, group, groups)
    return pa.array(best, plain.type, mask=empty).cast(of)


def _best(greatest: bool, numbers: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    limits = np.iinfo(numbers.dtype)
    best = np.full(groups, limits.min if greatest else limits.max, numbers.dtype)
    (np.maximum if greatest else np.minimum).at(best, group, numbers)
    return best
