"""Values of the command line as text -> what the engine takes: durations, `KEY=VALUE` pairs, JSON objects, times.

Pure. A parameter's text is read by the type that its query declares:

    String, Date, DateTime, Blob   the text as it is
    I32 I64 U32 U64                an integer; F32 F64 a number; Bool `true` or `false`
    lists and vectors              a JSON array
    null                           for every nullable type that is no String

Text that does not fit is handed on as it is, so that the engine's own diagnostic says what was expected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from omnigraph.cli.errors import UsageRefused
from omnigraph.errors import InvalidQuery

if TYPE_CHECKING:
    from omnigraph.lang.query.syntax import ParamType

_DURATION = re.compile(r"([0-9]{1,9})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_AS_WRITTEN = {"String", "Date", "DateTime", "Blob"}


def duration_seconds(text: str) -> int:
    """`90s`, `15m`, `24h`, `7d`, `4w` as seconds. Raises ValueError.

    >>> duration_seconds("15m")
    900
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("a duration is a whole number and one of s, m, h, d, w, such as 90s or 24h")
    return int(match[1]) * _SECONDS[match[2]]


def pairs(given: Iterable[str], option: str) -> dict[str, str]:
    """`KEY=VALUE` texts. Raises UsageRefused for one without `=` or a repeated key."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageRefused(f"{option} takes KEY=VALUE.")
        if key in found:
            raise UsageRefused(f"{option} gives '{key}' twice.")
        found[key] = value
    return found


def json_object(text: str, option: str) -> dict[str, Any]:
    """Raises UsageRefused for anything but one strict JSON object."""
    try:
        value: Any = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise UsageRefused(f"{option} takes one JSON object, each key once.") from None
    if not isinstance(value, dict):
        raise UsageRefused(f"{option} takes one JSON object.")
    return cast("dict[str, Any]", value)


def _unrepeated(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if len(found) != len(fields):
        raise ValueError("repeated key")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def typed_params(source: str, query_name: str | None, given: Mapping[str, str]) -> dict[str, Any]:
    """Each text by the type that the chosen query declares for its name. A source that can't be read decides nothing:
    the engine will say what is wrong with it.
    """
    if not given:
        return {}
    from omnigraph.lang.query.parse import parse_file

    try:
        queries = parse_file(source).declared
    except InvalidQuery:
        return dict(given)
    chosen = [query for query in queries if query_name in (None, query.name.text)]
    if len(chosen) != 1:
        return dict(given)
    types = {param.name.text: param.type for param in chosen[0].params}
    return {name: _typed(types[name], text) if name in types else text for name, text in given.items()}


def _typed(of: ParamType, text: str) -> Any:
    if of.form == "scalar" and of.word in _AS_WRITTEN:
        return None if text == "null" and of.nullable and of.word != "String" else text
    if text == "null":
        return None
    if of.form != "scalar":
        return _json_or_text(text)
    if of.word == "Bool":
        return {"true": True, "false": False}.get(text, text)
    if of.word in ("F32", "F64"):
        return float(text) if _NUMBER.fullmatch(text) else text
    return int(text) if _INTEGER.fullmatch(text) else text


def _json_or_text(text: str) -> Any:
    try:
        value: Any = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    return value


def moment(text: str) -> str | int:
    """A time as the engine takes it: microseconds if the text is an integer, else the text itself."""
    return int(text) if _INTEGER.fullmatch(text) else text


def shell_line(words: Sequence[str]) -> str:
    """The words as one line that a POSIX shell reads back."""
    import shlex

    return shlex.join(words)
