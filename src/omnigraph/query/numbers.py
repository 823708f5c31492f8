"""Comparison of numbers by exact mathematical value, across widths and between integers and floats (languages.md 9.4).

Neither side is ever rounded. The one place in the query room that knows how 64-bit integers and floats relate; it takes
Arrow arrays or scalars of number types and knows no expressions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.typed import CompareOp

KERNELS: dict[CompareOp, Any] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_WIDE = (pa.int64(), pa.uint64())


def compare_numbers(op: CompareOp, left: Any, right: Any) -> Any:
    """`left op right`: a Boolean array, or a scalar if both sides are scalars; null where either side is."""
    common = _exact_common_type(left.type, right.type)
    if common is not None:
        return KERNELS[op](left.cast(common), right.cast(common))
    narrowed = _narrowed(left, right)
    if narrowed is not None:
        return KERNELS[op](*narrowed)
    signs, valid = _three_way(left, right)
    truth = _SIGN_TESTS[op](signs, 0)
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return pa.scalar(bool(truth[0]) if valid[0] else None, pa.bool_())
    return pa.array(truth, pa.bool_(), mask=~valid)


_SIGN_TESTS: dict[CompareOp, Any] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _exact_common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """A type that holds every value of both exactly; None if there is none."""
    if left == right:
        return left
    left_float, right_float = pa.types.is_floating(left), pa.types.is_floating(right)
    if not left_float and not right_float:
        return None if pa.uint64() in (left, right) and not _both_unsigned(left, right) else _wider(left, right)
    if (left in _WIDE and right_float) or (right in _WIDE and left_float):
        return None
    return pa.float64()


def _both_unsigned(left: pa.DataType, right: pa.DataType) -> bool:
    return pa.types.is_unsigned_integer(left) and pa.types.is_unsigned_integer(right)


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return pa.uint64() if _both_unsigned(left, right) else pa.int64()


def _narrowed(left: Any, right: Any) -> tuple[Any, Any] | None:
    """The two sides in one type, if one is a scalar whose value the other's type holds exactly."""
    for scalar, other, swapped in ((right, left, False), (left, right, True)):
        if not isinstance(scalar, pa.Scalar) or not scalar.is_valid:
            continue
        value = exact_value(other.type, scalar.as_py())
        if value is not None:
            cast = pa.scalar(value, other.type)
            return (cast, other) if swapped else (other, cast)
    return None


def exact_value(to: pa.DataType, value: float | int) -> float | int | None:
    """The value as a number of the type, if the type holds exactly it; else None."""
    if pa.types.is_floating(to):
        try:
            with np.errstate(over="ignore"):  # what is too great becomes infinite, and is no such number
                rounded = float(np.float32(value)) if to == pa.float32() else float(value)
        except OverflowError:
            return None
        return rounded if rounded == value and math.isfinite(rounded) else None
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    low, high = _INTEGER_BOUNDS[to]
    return value if low <= value <= high else None


_INTEGER_BOUNDS: dict[pa.DataType, tuple[int, int]] = {
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint32(): (0, 2**32 - 1),
    pa.uint64(): (0, 2**64 - 1),
}


def exact_values(to: pa.DataType, values: Iterable[float | int]) -> list[float | int]:
    """Those of the values that the type holds exactly, as its numbers; both zeros for a zero of a float type."""
    kept: list[float | int] = []
    for value in values:
        exact = exact_value(to, value)
        if exact is None:
            continue
        kept.append(exact)
        if exact == 0 and pa.types.is_floating(to):
            kept += [0.0, -0.0]
    return kept


def _three_way(left: Any, right: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sign of left − right, and where both are valid. Sides are int64 or uint64 against anything."""
    x, x_valid = _plain(left)
    y, y_valid = _plain(right)
    if x.dtype.kind == "f":
        signs = -_integer_against_float(y, x)
    elif y.dtype.kind == "f":
        signs = _integer_against_float(x, y)
    elif x.dtype.kind == "u":
        signs = -_signed_against_unsigned(y, x)
    else:
        signs = _signed_against_unsigned(x, y)
    return signs, np.broadcast_to(x_valid & y_valid, signs.shape)


def _plain(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers in 64 bits with nulls as 0, and the validity."""
    array = pa.array([values.as_py()], values.type) if isinstance(values, pa.Scalar) else values
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
    wide = {"f": np.float64, "u": np.uint64, "i": np.int64}[numbers.dtype.kind]
    return numbers.astype(wide, copy=False), valid


def _signed_against_unsigned(signed: np.ndarray, unsigned: np.ndarray) -> np.ndarray:
    positive = signed.astype(np.uint64)
    signs = (positive > unsigned).astype(np.int8) - (positive < unsigned).astype(np.int8)
    return np.where(signed < 0, np.int8(-1), signs)


def _integer_against_float(integers: np.ndarray, floats: np.ndarray) -> np.ndarray:
    """An integer compares with a float as with its floor, and is less if it equals the floor of a broken number."""
    unsigned = integers.dtype.kind == "u"
    low, high = (0.0, 2.0**64) if unsigned else (-(2.0**63), 2.0**63)
    floors = np.floor(floats)
    inside = (floors >= low) & (floors < high)
    whole = np.where(inside, floors, 0.0).astype(integers.dtype)
    signs = (integers > whole).astype(np.int8) - (integers < whole).astype(np.int8)
    signs = np.where((signs == 0) & (floats > floors), np.int8(-1), signs)
    outside = np.where(floors >= high, np.int8(-1), np.int8(1))
    return np.where(inside, signs, outside)
