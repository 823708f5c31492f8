"""Values as people and programs spell them: texts of dates, integers, floats and blobs, and the JSON that comes in.

One table serves parameters, load records and literals (languages.md 7), so that a value reads alike at every door.
Everything here is pure and speaks of one value; it knows neither codes nor records: a value that does not fit is
`Refused`, and the caller says what that means at its door. Doors that carry many values use columns and come here only
to say exactly what was wrong with one.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
import re
import struct
from dataclasses import dataclass
from typing import Literal, assert_never

from omnigraph.lang.types import FLOATS, INTEGER_RANGE, Scalar, ValueType

ScalarValue = int | float | str | bool | dt.date | dt.datetime
Value = ScalarValue | tuple[object, ...]  # a tuple for lists and vectors; its elements are scalar values or None

BASE64_PREFIX = "base64:"

_DAYS_TO_1970 = dt.date(1970, 1, 1).toordinal()
_DAYS_MIN = dt.date.min.toordinal() - _DAYS_TO_1970
_DAYS_MAX = dt.date.max.toordinal() - _DAYS_TO_1970
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_DATETIME_MIN = dt.datetime.min.replace(tzinfo=dt.UTC)
_DATETIME_MAX = dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)
_MILLIS_MIN = (_DATETIME_MIN - _EPOCH) // _MILLISECOND
_MILLIS_MAX = (_DATETIME_MAX - _EPOCH) // _MILLISECOND

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DATETIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))?"
)
_INTEGER = re.compile(r"(-?)([0-9]+)")
_INTEGER_DIGITS_MAX = 20  # more significant digits than any integer type holds


@dataclass(frozen=True, slots=True)
class Refused:
    """A value that does not fit. `problem`: "shape" if it is the wrong kind of JSON, "variant" if an enum lacks it, else
    "value". `reason` is one line that continues "… is refused: ".
    """

    problem: Literal["shape", "value", "variant"]
    reason: str


# --- texts


def date_from_text(text: str) -> dt.date | None:
    """The date of `YYYY-MM-DD`; None for any other text and for days that no calendar has.

    >>> date_from_text("2024-02-29")
    datetime.date(2024, 2, 29)
    >>> date_from_text("2023-02-29") is None
    True
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return dt.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


def datetime_from_text(text: str) -> dt.datetime | None:
    """The instant, in UTC and whole milliseconds, of an ISO 8601 text as languages.md 7 allows it; None for others.

    >>> datetime_from_text("2024-03-01T00:30:00+02:00").isoformat()
    '2024-02-29T22:30:00+00:00'
    >>> datetime_from_text("2024-01-01T24:00") is None
    True
    """
    match = _DATETIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    fraction = fraction or ""
    if fraction[3:].strip("0"):
        return None
    try:
        local = dt.datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int(fraction[:3].ljust(3, "0")) * 1000,
            tzinfo=dt.UTC,
        )
        if sign is None:
            return local
        if int(offset_hours) > 23 or int(offset_minutes) > 59:
            return None
        offset = dt.timedelta(hours=int(offset_hours), minutes=int(offset_minutes))
        return local - offset if sign == "+" else local + offset
    except (ValueError, OverflowError):  # a field out of range, or UTC lies outside the years 1 to 9999
        return None


def date_from_days(days: int) -> dt.date | None:
    """The date of a count of days since 1970-01-01; None outside the years 1 to 9999."""
    return dt.date.fromordinal(days + _DAYS_TO_1970) if _DAYS_MIN <= days <= _DAYS_MAX else None


def datetime_from_milliseconds(milliseconds: int) -> dt.datetime | None:
    """The instant of a count of milliseconds since 1970 UTC; None outside the years 1 to 9999."""
    if not _MILLIS_MIN <= milliseconds <= _MILLIS_MAX:
        return None
    return _EPOCH + milliseconds * _MILLISECOND


def integer_from_text(text: str) -> int | None:
    """The integer of an optional `-` and digits, None for any other text. A number of more than 20 digits reads as
    ±10**20, which no type holds.
    """
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    digits = match[2].lstrip("0") or "0"
    magnitude = int(digits) if len(digits) <= _INTEGER_DIGITS_MAX else 10**_INTEGER_DIGITS_MAX
    return -magnitude if match[1] else magnitude


def blob_bytes(text: str) -> bytes | None:
    """The bytes of standard base64 with padding (the part after `base64:`); None if it is anything else."""
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None


def date_text(value: dt.date) -> str:
    """`2024-01-05`"""
    return f"{value.year:04}-{value.month:02}-{value.day:02}"


def datetime_text(value: dt.datetime) -> str:
    """`2024-01-05T06:07:08`, or with three digits of fraction if they are not zero; UTC, no `Z`."""
    millisecond = value.microsecond // 1000
    fraction = f".{millisecond:03}" if millisecond else ""
    return f"{date_text(value)}T{value.hour:02}:{value.minute:02}:{value.second:02}{fraction}"


def float_text(value: float) -> str:
    """A finite F64 as languages.md 20.2 spells it: the fewest digits that read back, `1.0e10` from 1e10 on.

    >>> [float_text(x) for x in (1.0, 0.1, 9999999999.0, 1e10, 1.25e20, 1e-5, 1e-7, -0.0)]
    ['1.0', '0.1', '9999999999.0', '1.0e10', '1.25e20', '0.00001', '1.0e-7', '-0.0']
    """
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))  # digits before the point
    digits = digits.rstrip("0") or "0"
    if digits == "0":
        return f"{sign}0.0"
    if abs(value) >= 1e10 or abs(value) < 1e-6:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def number_text(value: float, of: Scalar) -> str:
    """A number of a type as a result or a schema spells it.

    >>> number_text(3, Scalar.U32), number_text(0.10000000149011612, Scalar.F32), number_text(1e22, Scalar.F64)
    ('3', '0.1', '1.0e22')
    """
    if of is Scalar.F32:
        shorter = (float(f"{value:.{digits}g}") for digits in range(1, 10))  # nine always read back
        value = next(each for each in shorter if rounded_to_f32(each) == value)
    return float_text(value) if of in FLOATS else str(value)


def rounded_to_f32(value: float) -> float | None:
    """The nearest 32-bit float, as a Python float; None if that is not finite."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return None
    return rounded if math.isfinite(rounded) else None


# --- JSON


def value_from_json(of: ValueType, raw: object, *, null_elements: bool = False) -> Value | Refused:
    """The value of a type that decoded JSON stands for (languages.md 7). `raw` is not null: whether null is admitted
    is for the caller to say. `null_elements` admits nulls in a list, as load records do.

    Floats of `F32` are rounded to 32 bits; lists and vectors become tuples; blobs stay text.
    """
    match of.kind:
        case "scalar":
            return _scalar_from_json(of.scalar, raw)
        case "enum":
            text = _text(raw)
            if isinstance(text, Refused) or text in of.variants:
                return text
            return Refused("variant", f'"{text}" is not one of {", ".join(of.variants)}')
        case "list" | "vector":
            if not isinstance(raw, (list, tuple)):
                return _wrong_shape("an array", raw)
            return _elements_from_json(of, list(raw), null_elements)  # pyright: ignore[reportUnknownArgumentType]


def _elements_from_json(of: ValueType, raw: list[object], null_elements: bool) -> Value | Refused:
    if of.kind == "vector" and len(raw) != of.dimension:
        return Refused("value", f"it has {len(raw)} elements, not {of.dimension}")
    elements: list[object] = []
    for index, item in enumerate(raw):
        if item is None and null_elements and of.kind == "list":
            elements.append(None)
            continue
        element = Refused("value", "null") if item is None else _scalar_from_json(of.scalar, item)
        if isinstance(element, Refused):
            return Refused(element.problem, f"element {index + 1}: {element.reason}")
        elements.append(element)
    return tuple(elements)


def _scalar_from_json(of: Scalar, raw: object) -> ScalarValue | Refused:
    match of:
        case Scalar.STRING:
            return _text(raw)
        case Scalar.BOOL:
            return raw if isinstance(raw, bool) else _wrong_shape("true or false", raw)
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return _integer(of, raw)
        case Scalar.F32 | Scalar.F64:
            return _float(of, raw)
        case Scalar.DATE:
            return _date(raw)
        case Scalar.DATETIME:
            return _datetime(raw)
        case Scalar.BLOB:
            return _blob(raw)
        case _:
            assert_never(of)


def _text(raw: object) -> str | Refused:
    if not isinstance(raw, str):
        return _wrong_shape("a string", raw)
    if not raw.isascii():
        try:
            raw.encode("utf-8")
        except UnicodeEncodeError:  # JSON can spell half of a surrogate pair; no stored text can
            return Refused("value", "it holds half of a surrogate pair, which is no text")
    return raw


def _integer(of: Scalar, raw: object) -> int | Refused:
    if isinstance(raw, str):
        number = integer_from_text(raw)
        if number is None:
            return Refused("value", "a string for an integer holds an optional `-` and digits, nothing else")
    elif isinstance(raw, int) and not isinstance(raw, bool):
        number = raw
    else:
        return _wrong_shape("a number written as an integer", raw)
    low, high = INTEGER_RANGE[of]
    return number if low <= number <= high else Refused("value", f"it is outside {low} to {high}")


def _float(of: Scalar, raw: object) -> float | Refused:
    assert of in FLOATS
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return _wrong_shape("a number", raw)
    try:
        number = float(raw)
    except OverflowError:  # an integer beyond F64
        number = math.inf
    rounded = rounded_to_f32(number) if of is Scalar.F32 else number
    if rounded is None or not math.isfinite(rounded):
        return Refused("value", f"it is not a finite {of}")
    return rounded


def _date(raw: object) -> dt.date | Refused:
    if isinstance(raw, str):
        date = date_from_text(raw)
        return Refused("value", "a Date is written YYYY-MM-DD") if date is None else date
    if isinstance(raw, int) and not isinstance(raw, bool):
        date = date_from_days(raw)
        return Refused("value", "the day is outside the years 1 to 9999") if date is None else date
    return _wrong_shape("a string or an integer count of days", raw)


def _datetime(raw: object) -> dt.datetime | Refused:
    if isinstance(raw, str):
        instant = datetime_from_text(raw)
        reason = "a DateTime is written YYYY-MM-DDTHH:MM:SS.mmm, with an optional offset"
        return Refused("value", reason) if instant is None else instant
    if isinstance(raw, int) and not isinstance(raw, bool):
        instant = datetime_from_milliseconds(raw)
        return Refused("value", "the instant is outside the years 1 to 9999") if instant is None else instant
    return _wrong_shape("a string or an integer count of milliseconds", raw)


def _blob(raw: object) -> str | Refused:
    text = _text(raw)
    if isinstance(text, str) and text.startswith(BASE64_PREFIX) and blob_bytes(text[len(BASE64_PREFIX) :]) is None:
        return Refused("value", "the text after `base64:` is not standard base64 with padding")
    return text


def _wrong_shape(wanted: str, raw: object) -> Refused:
    return Refused("shape", f"{wanted} is wanted, not {_kind(raw)}")


def _kind(raw: object) -> str:
    """What a decoded value is, in the words of JSON where it has them."""
    match raw:
        case None:
            return "null"
        case bool():
            return "a Boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal number"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
        case _:
            return f"a value of type {type(raw).__name__}"
