"""JSON columns as stored columns: what Arrow's JSON reader gave, made into the types of `table_schema`.

The rules are those of languages.md 7, as `lang/values` states them for one value. A column in which anything is less
than certain is `None`: then the exact reader looks at the records one by one and says what is wrong, if anything is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.types import FLOATS, INTEGERS, Scalar, ValueType
from omnigraph.tables.columns import arrow_type

Spelling = Literal["usual", "other"]
"""How a chunk's records spell a type's values: integers as numbers, times as texts; or the other way round."""

_INTEGER_TEXT = r"^-?[0-9]+$"
_DATETIME_TEXT = (
    r"^(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?P<fraction>(?:\.[0-9]+)?))?"
    r"(?P<zone>(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)$"
)
_PLAIN_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,3})?)?)?$"
_MOMENT = pa.timestamp("ms", tz="UTC")
_DAYS = (-719_162, 2_932_896)  # 0001-01-01, 9999-12-31
_MILLISECONDS = (-62_135_596_800_000, 253_402_300_799_999)


def json_type(of: ValueType, spelling: Spelling) -> pa.DataType:
    """What Arrow's JSON reader is told to expect for values of a type."""
    item = _scalar_json_type(of.scalar, spelling)
    return pa.list_(item) if of.kind in ("list", "vector") else item


def has_two_spellings(scalar: Scalar) -> bool:
    """Whether a value may come as a number or as a string."""
    return scalar in INTEGERS or scalar in (Scalar.DATE, Scalar.DATETIME)


def spelling_of(scalar: Scalar, value: object) -> Spelling:
    """How one JSON value of such a type is spelled."""
    return "usual" if isinstance(value, str) == (scalar not in INTEGERS) else "other"


def stored_column(of: ValueType, column: pa.Array) -> pa.Array | None:
    """The column in the type's stored form; None if some value may not fit."""
    if column.null_count == len(column):
        return pa.nulls(len(column), arrow_type(of))
    match of.kind:
        case "scalar" | "enum":
            return _scalars(of.scalar, column)
        case "list":
            return _mapped_items(column, lambda items: _scalars(of.scalar, items))
        case "vector":
            return _vectors(of, column)
        case _:
            assert_never(of.kind)


def _scalar_json_type(scalar: Scalar, spelling: Spelling) -> pa.DataType:
    usual = spelling == "usual"
    match scalar:
        case Scalar.STRING | Scalar.BLOB:
            return pa.string()
        case Scalar.BOOL:
            return pa.bool_()
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return arrow_type(ValueType("scalar", scalar)) if usual else pa.string()
        case Scalar.F32 | Scalar.F64:
            return pa.float64()
        case Scalar.DATE | Scalar.DATETIME:
            return pa.string() if usual else pa.int64()
        case _:
            assert_never(scalar)


def _scalars(scalar: Scalar, column: pa.Array) -> pa.Array | None:
    if scalar is Scalar.BLOB:  # texts become bytes one by one
        return None
    if scalar in FLOATS:
        return _floats(scalar, column)
    if not has_two_spellings(scalar):
        return column
    from_text = pa.types.is_string(column.type)
    if scalar is Scalar.DATE:
        return _dates(column) if from_text else _counted(column, _DAYS, pa.int32(), pa.date32())
    if scalar is Scalar.DATETIME:
        return _datetimes(column) if from_text else _counted(column, _MILLISECONDS, pa.int64(), _MOMENT)
    if not from_text:
        return column
    return _cast(column, arrow_type(ValueType("scalar", scalar))) if _all_match(column, _INTEGER_TEXT) else None


def _floats(scalar: Scalar, column: pa.Array) -> pa.Array | None:
    """Nearest F64 first, then for F32 nearest of that."""
    floats = pc.cast(column, pa.float32(), safe=False) if scalar is Scalar.F32 else column
    return floats if pc.all(pc.is_finite(floats), min_count=0).as_py() else None


def _vectors(of: ValueType, column: pa.Array) -> pa.Array | None:
    lengths = pc.equal(pc.list_value_length(column), of.dimension)
    if not pc.all(lengths, min_count=0).as_py() or pc.list_flatten(column).null_count:
        return None
    floats = _mapped_items(column, lambda items: _floats(Scalar.F32, items))
    return None if floats is None else floats.cast(arrow_type(of))


def _mapped_items(lists: pa.Array, convert: Callable[[pa.Array], pa.Array | None]) -> pa.Array | None:
    """The lists with their items converted."""
    items = convert(pc.list_flatten(lists))
    return None if items is None else list_array(lists, items)


def list_array(lists: pa.Array, items: pa.Array) -> pa.Array:
    """The lists with other items, one for each that flattening gives."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = pc.is_null(lists) if lists.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), items, mask=mask)


def _counted(column: pa.Array, span: tuple[int, int], width: pa.DataType, kind: pa.DataType) -> pa.Array | None:
    """Integer counts within a span as dates or datetimes."""
    inside = pc.and_(pc.greater_equal(column, span[0]), pc.less_equal(column, span[1]))
    if not pc.all(inside, min_count=0).as_py():
        return None
    return pc.cast(column, width).cast(kind)


def _dates(column: pa.Array) -> pa.Array | None:
    dates = _cast(column, pa.date32())  # takes the year 0 too
    return None if dates is None else _counted(pc.cast(dates, pa.int32()), _DAYS, pa.int32(), pa.date32())


def _datetimes(column: pa.Array) -> pa.Array | None:
    if _all_match(column, _PLAIN_DATETIME):
        plain = _cast(column, pa.timestamp("ms"))
        return None if plain is None else _counted(pc.cast(plain, pa.int64()), _MILLISECONDS, pa.int64(), _MOMENT)
    if not _all_match(column, _DATETIME_TEXT):
        return None
    date, time, fraction, zone = pc.extract_regex(column, pattern=_DATETIME_TEXT).flatten()
    time = pc.if_else(pc.equal(time, ""), "00:00", time)
    local = _cast(pc.binary_join_element_wise(date, time, "T"), pa.timestamp("ms"))
    if local is None or not _all_match(fraction, r"^(?:\.[0-9]{1,3}0*)?$"):
        return None
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, 1, 4), 3, padding="0")
    shifts = pc.if_else(pc.equal(pc.utf8_length(zone), 6), zone, "+00:00")
    minutes = pc.add(pc.multiply(_number(shifts, 1, 3), 60), _number(shifts, 4, 6))
    east = pc.if_else(pc.starts_with(shifts, "-"), pc.negate(minutes), minutes)
    moment = pc.add(pc.cast(local, pa.int64()), pc.cast(digits, pa.int64()))
    moment = pc.subtract(moment, pc.multiply(east, 60_000))
    return _counted(moment, _MILLISECONDS, pa.int64(), _MOMENT)


def _number(text: pa.Array, start: int, stop: int) -> pa.Array:
    return pc.cast(pc.utf8_slice_codeunits(text, start, stop), pa.int64())


def _all_match(column: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern=pattern), min_count=0).as_py()


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return pc.cast(column, kind)
    except pa.ArrowInvalid:  # some text is none of that type; which one, the exact reader finds
        return None
