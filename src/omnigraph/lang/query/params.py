"""Parameters of an invocation: what a caller gives -> values in their normal form (languages.md 7, 20.4).

The normal form is what the engine computes with: int, float (of `F32` rounded to 32 bits), str, bool, date, datetime in
UTC and whole milliseconds, a tuple for a list or vector, None for null; a Blob is its text. Native Python values come
in by the door "python" only; arrays and scalars of numerical libraries are known by their shape, not by their class, so
none of these libraries is loaded here.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from omnigraph.errors import InvalidParams, InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.faults import listing, nearest_name
from omnigraph.lang.query.typed import Param, ParamDecl, ReadQuery, TypedQuery
from omnigraph.lang.types import Scalar, ValueType, scalar
from omnigraph.lang.values import BASE64_PREFIX, Refused, Value, date_text, datetime_text, value_from_json

Door = Literal["json", "python"]


def choose_query(queries: Sequence[TypedQuery], name: str | None) -> TypedQuery:
    """The query of a file that is to run: the one of that name, or without a name the only one.

    Raises `InvalidQuery` (`Q004`) if the file holds no query at all, `InvalidParams` (`P006`) if there is none of the
    name, or several and no name.
    """
    if not queries:
        message = "parse error: Q004: the text holds no query to run"
        raise InvalidQuery(Diagnostic("Q004", "parse", message, expected="`query`"))
    names = [query.name for query in queries]
    if name is None:
        if len(queries) == 1:
            return queries[0]
        message = "the text holds several queries: which one?"
        raise InvalidParams(_diagnostic("P006", message, None, expected=f"one of {listing(names)}"))
    for query in queries:
        if query.name == name:
            return query
    near = nearest_name(name, names)
    raise InvalidParams(
        _diagnostic("P006", f"there is no query `{name}`", None, expected=f"one of {listing(names)}", fix=near)
    )


def bind_params(query: TypedQuery, given: Mapping[str, object], *, door: Door) -> dict[str, Value | None]:
    """A value for every declared parameter, in order of declaration; absent nullable ones are None.

    Raises `InvalidParams`: `P004` for a name that the query does not declare, then for the first parameter at fault
    `P001` if it is missing, `P002` if it has the wrong shape, `P003` if its value does not fit.
    """
    declared = [param.name for param in query.params]
    for name in given:
        if name not in declared:
            near = nearest_name(name, declared)
            expected = f"a parameter of `{query.name}`: {listing(declared)}"
            message = f"`{query.name}` declares no parameter `{name}`"
            raise InvalidParams(_diagnostic("P004", message, query.name, expected=expected, fix=near))
    bound = {param.name: _bound(param, given, query, door) for param in query.params}
    limit = query.limit if isinstance(query, ReadQuery) else None
    if isinstance(limit, Param):
        count = bound[limit.name]
        if isinstance(count, int) and count < 0:
            message = f"the parameter `{limit.name}` is a limit and is negative"
            raise InvalidParams(_diagnostic("P003", message, query.name, expected="an integer of at least 0"))
    return bound


def _bound(param: ParamDecl, given: Mapping[str, object], query: TypedQuery, door: Door) -> Value | None:
    spelled = param.type.spelling()
    if param.name not in given:
        if param.type.nullable:
            return None
        message = f"the parameter `{param.name}` is missing"
        raise InvalidParams(_diagnostic("P001", message, query.name, expected=f"a value of type `{spelled}`"))
    raw = given[param.name]
    value = raw if door == "json" else _from_python(param.type, raw)
    if value is None:
        if param.type.nullable:
            return None
        message = f"the parameter `{param.name}` is null"
        raise InvalidParams(_diagnostic("P003", message, query.name, expected=f"a value of type `{spelled}`"))
    accepted = value if isinstance(value, Refused) else value_from_json(param.type, value)
    if isinstance(accepted, Refused):
        code = "P002" if accepted.problem == "shape" else "P003"
        message = f"the parameter `{param.name}` is refused: {accepted.reason}"
        raise InvalidParams(_diagnostic(code, message, query.name, expected=f"a value of type `{spelled}`"))
    return accepted


# --- native values: each becomes what JSON would have said, so that one table judges both doors


def _from_python(of: ValueType, raw: object) -> object:
    """The JSON spelling of a native value, `Refused`, or the value itself if it has none: then the table refuses it."""
    if hasattr(raw, "dtype") and hasattr(raw, "tolist"):
        raw = _from_array(raw)
    if of.kind in ("list", "vector") and isinstance(raw, (list, tuple)):
        return _elements_from_python(of, cast("Sequence[object]", raw))
    match raw:
        case dt.datetime() if of.scalar is Scalar.DATETIME:
            return _from_datetime(raw)
        case dt.date() if of.scalar is Scalar.DATE and not isinstance(raw, dt.datetime):
            return date_text(raw)
        case bytes() | bytearray() if of.scalar is Scalar.BLOB:
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


def _elements_from_python(of: ValueType, raw: Sequence[object]) -> list[object] | Refused:
    one = scalar(of.scalar)
    elements = [item if type(item) in _PLAIN else _from_python(one, item) for item in raw]
    return next((item for item in elements if isinstance(item, Refused)), elements)


_PLAIN = frozenset({str, int, float, bool})
"""Native values that are their own JSON spelling; a list of ten thousand keys is made of these."""


def _from_array(raw: Any) -> object:
    """The Python values of a numerical scalar or array. Times finer than a microsecond would come out as bare integers,
    so these are made coarser first, if nothing is lost.
    """
    values = cast("object", raw.tolist())
    if raw.dtype.kind != "M":
        return values
    items = cast("list[object]", values if isinstance(values, list) else [values])
    if not any(isinstance(item, int) for item in items):
        return cast("object", values)
    coarse = raw.astype("datetime64[us]")
    return coarse.tolist() if bool((coarse == raw).all()) else _finer_than_milliseconds()


def _from_datetime(raw: dt.datetime) -> str | Refused:
    if raw.microsecond % 1000 or getattr(raw, "nanosecond", 0):
        return _finer_than_milliseconds()
    try:
        return datetime_text(raw.replace(tzinfo=dt.UTC) if raw.tzinfo is None else raw.astimezone(dt.UTC))
    except OverflowError:  # an offset that leads out of the years 1 to 9999
        return Refused("value", "the instant is outside the years 1 to 9999")


def _finer_than_milliseconds() -> Refused:
    return Refused("value", "a DateTime holds whole milliseconds")


def _diagnostic(
    code: str, message: str, query: str | None, *, expected: str | None = None, fix: str | None = None
) -> Diagnostic:
    text = f"parameter error: {code}: {message}"
    return Diagnostic(code, "params", text, query=query, expected=expected, fix=fix)
