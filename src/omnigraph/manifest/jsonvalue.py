"""Canonical JSON bytes, and reading JSON that may be damaged.

`Malformed` is the only thing that reading a bad value raises, whatever is wrong with it; who reads an object knows
its name and turns that into an error for people. Knows nothing of what the values mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn, cast

JsonObject = Mapping[str, Any]


class Malformed(ValueError):
    """The bytes or a value in them are not what they should be; the text says what was expected."""


def canonical(value: Any) -> bytes:
    r"""JSON in UTF-8 with sorted keys and no white space: equal values give equal bytes.

    >>> canonical({"b": 1, "a": "é"})
    b'{"a":"\xc3\xa9","b":1}'

    Raises ValueError for what JSON can't hold (NaN, a lone surrogate).
    """
    return _ENCODER.encode(value).encode()


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_object(members: Mapping[str, bytes]) -> bytes:
    """The canonical JSON object whose values are these canonical texts.

    >>> canonical_object({"b": b"1", "a": b"[]"})
    b'{"a":[],"b":1}'
    """
    return b"{" + b",".join([_member_name(name) + members[name] for name in sorted(members)]) + b"}"


@cache
def _member_name(name: str) -> bytes:
    """Of the few fields that objects here have."""
    return canonical(name) + b":"


def canonical_list(items: Iterable[bytes]) -> bytes:
    """The canonical JSON list of these canonical texts."""
    return b"[" + b",".join(items) + b"]"


def parsed(data: bytes) -> JsonObject:
    """The JSON object in these bytes. Raises Malformed."""
    if not data.strip(b"\0 \t\r\n"):
        raise Malformed("it is empty" if not data else "it holds nothing but blanks or zero bytes")
    try:
        value = json.loads(data.decode(), parse_constant=_refused_constant)
    except UnicodeDecodeError:
        raise Malformed("it is no UTF-8 text") from None
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    except ValueError:  # JSONDecodeError, or a number of more digits than Python reads
        raise Malformed("it is no complete JSON text") from None
    return as_object(value, "the object")


def as_object(value: Any, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise Malformed(f"{what} is no JSON object")
    return cast(JsonObject, value)


def as_list(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise Malformed(f"{what} is no list")
    return cast(Sequence[Any], value)


def as_text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{what} is no text")
    return value


def as_int(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(f"{what} is no integer")
    return value


def optional_text(value: Any, what: str) -> str | None:
    return None if value is None else as_text(value, what)


def optional_int(value: Any, what: str) -> int | None:
    return None if value is None else as_int(value, what)


def texts(value: Any, what: str) -> tuple[str, ...]:
    return tuple([as_text(item, what) for item in as_list(value, what)])


def int_pair(value: Any, what: str) -> tuple[int, int]:
    items = as_list(value, what)
    if len(items) != 2:
        raise Malformed(f"{what} has {len(items)} parts, not 2")
    return as_int(items[0], what), as_int(items[1], what)


def _refused_constant(name: str) -> NoReturn:
    raise ValueError(name)
