"""Request settings by name (languages.md 19), as far as this version has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import InvalidRequest
from omnigraph.query.limits import QuerySettings

_INTEGERS: dict[str, tuple[int, int]] = {
    "traversal_work_limit": (1, 2**63 - 1),
    "query_timeout_ms": (1, 3_600_000),
    "max_result_rows": (1, 2**31 - 1),
}
_WORDS: dict[str, tuple[str, ...]] = {
    "traversal": ("auto", "indexed", "matrix"),
    "int64_json": ("number", "string"),
}


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """What a read depends on, and how its integers are spelled in JSON."""

    query: QuerySettings
    int64_as_string: bool = False


def request_settings(given: Mapping[str, Any] | None) -> RequestSettings:
    """Raises InvalidRequest (`invalid_setting`) naming an unknown setting or what a value may be."""
    values: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if name in _INTEGERS:
            values[name] = _integer(name, value)
        elif name in _WORDS:
            if value not in _WORDS[name]:
                raise _invalid(f"{name} is one of {', '.join(_WORDS[name])}.")
            values[name] = value
        else:
            raise _invalid(f"There is no setting '{name}'; there are {', '.join(sorted((*_INTEGERS, *_WORDS)))}.")
    as_string = values.pop("int64_json", "number") == "string"
    return RequestSettings(QuerySettings(**values), as_string)


def query_settings(given: Mapping[str, Any] | None) -> QuerySettings:
    return request_settings(given).query


def _integer(name: str, value: Any) -> int:
    low, high = _INTEGERS[name]
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _invalid(f"{name} is an integer from {low} to {high}.")
    return value


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_setting")
