"""Native Python values as the JSON that stands for them (languages.md 20.4): dates, datetimes, bytes, numbers of libraries.

What a value becomes depends on the type that it is meant for, so that bytes are no text and a date is no instant. One
function serves the parameters and the load records of Python callers. Arrays and scalars of numerical libraries are known
by their shape, not by their class, so none of these libraries is loaded here.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Sequence
from typing import Any, cast

from omnigraph.lang.types import Scalar, ValueType, scalar
from omnigraph.lang.values import BASE64_PREFIX, Refused, date_text, datetime_text

PLAIN = frozenset({str, int, float, bool})
"""Native values that are their own JSON spelling; a list of ten thousand keys is made of these."""


def from_python(of: ValueType, raw: object) -> object:
    """The JSON spelling of a native value, `Refused`, or the value itself if it has none for this type: `value_from_json`
    refuses it then.
    """
    raw = from_array(raw)
    if of.kind in ("list", "vector") and isinstance(raw, (list, tuple)):
        return _elements(of, cast("Sequence[object]", raw))
    match raw:
        case dt.datetime() if of.scalar is not Scalar.DATETIME:
            return raw
        case dt.date() if of.scalar is not Scalar.DATE and not isinstance(raw, dt.datetime):
            return raw
        case bytes() | bytearray() if of.scalar is not Scalar.BLOB:
            return raw
        case _:
            return spelled(raw)


def spelled(raw: object) -> object:
    """The JSON spelling of a value that is no array, whatever type it is for: `Refused` for an instant that no DateTime
    holds, the value itself if JSON has nothing for it.
    """
    match raw:
        case dt.datetime():
            return _from_datetime(raw)
        case dt.date():
            return date_text(raw)
        case bytes() | bytearray():
            return BASE64_PREFIX + base64.b64encode(raw).decode("ascii")
        case bool():
            return raw
        # Subclasses (members of an Enum, say) become the plain value.
        case int():
            return int.__int__(raw)
        case float():
            return float.__float__(raw)
        case str():
            return str.__str__(raw)
        case _:
            return raw


def from_array(raw: object) -> object:
    """The Python values of a numerical scalar or array; anything else as it is. Times finer than a microsecond would come
    out as bare integers, so these are made coarser first, if nothing is lost. A span of time is no number.
    """
    if not (hasattr(raw, "dtype") and hasattr(raw, "tolist")):
        return raw
    array = cast(Any, raw)
    kind = getattr(array.dtype, "kind", None)
    if kind == "m":
        return Refused("shape", "there is no type for a span of time")
    values = cast("object", array.tolist())
    if kind != "M":
        return values
    items = cast("list[object]", values if isinstance(values, list) else [values])
    if not any(isinstance(item, int) for item in items):
        return cast("object", values)
    coarse = array.astype("datetime64[us]")
    return cast("object", coarse.tolist()) if bool((coarse == array).all()) else _finer_than_milliseconds()


def _elements(of: ValueType, raw: Sequence[object]) -> list[object] | Refused:
    one = scalar(of.scalar)
    elements = [item if type(item) in PLAIN else from_python(one, item) for item in raw]
    return next((item for item in elements if isinstance(item, Refused)), elements)


def _from_datetime(raw: dt.datetime) -> str | Refused:
    if raw.microsecond % 1000 or getattr(raw, "nanosecond", 0):
        return _finer_than_milliseconds()
    try:
        return datetime_text(raw.replace(tzinfo=dt.UTC) if raw.tzinfo is None else raw.astimezone(dt.UTC))
    except OverflowError:  # an offset that leads out of the years 1 to 9999
        return Refused("value", "the instant is outside the years 1 to 9999")


def _finer_than_milliseconds() -> Refused:
    return Refused("value", "a DateTime holds whole milliseconds")
