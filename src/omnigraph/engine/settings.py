"""Request settings by name (languages.md 19), as far as this version has them; the environment holds their defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from omnigraph.errors import InvalidRequest
from omnigraph.query.limits import QuerySettings, variable_of

_INTEGERS: dict[str, tuple[int, int]] = {
    "traversal_work_limit": (1, 2**63 - 1),
    "query_timeout_ms": (1, 3_600_000),
    "max_result_rows": (1, 2**31 - 1),
}
_WORDS: dict[str, tuple[str, ...]] = {
    "traversal": ("auto", "indexed", "matrix"),
    "int64_json": ("number", "string"),
}
_DIGITS_MAX = 19

SETTING_VARIABLES: tuple[str, ...] = tuple(variable_of(name) for name in (*_INTEGERS, *_WORDS))


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """What a read depends on, and how its integers are spelled in JSON."""

    query: QuerySettings = field(default_factory=QuerySettings)
    int64_as_string: bool = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> RequestSettings:
        """The defaults of this process. Raises InvalidRequest (`invalid_setting`) naming the variable at fault."""
        variables = os.environ if environ is None else environ
        settings = cls()
        for name in (*_INTEGERS, *_WORDS):
            text = variables.get(variable_of(name), "")
            if text:
                try:
                    settings = request_settings({name: text}, settings)
                except InvalidRequest as refused:
                    raise _invalid(f"{variable_of(name)}: {refused.message}") from None
        return settings


def request_settings(
    given: Mapping[str, Any] | None, defaults: RequestSettings | None = None, *, capped: bool = False
) -> RequestSettings:
    """What a request asks for, on top of the defaults of the process. `capped`: its limits may be lowered, not raised.

    Raises InvalidRequest (`invalid_setting`) naming an unknown setting or what a value may be.
    """
    process = defaults or RequestSettings()
    values: dict[str, Any] = {each.name: getattr(process.query, each.name) for each in fields(QuerySettings)}
    as_string = process.int64_as_string
    for name, value in (given or {}).items():
        if name in _INTEGERS:
            values[name] = _integer(name, value)
            if capped and values[name] > getattr(process.query, name):
                raise _invalid(
                    f"{name} may be at most {getattr(process.query, name):,} here, which {variable_of(name)} of the"
                    " serving process decides."
                )
        elif name in _WORDS:
            if value not in _WORDS[name]:
                raise _invalid(f"{name} is one of {', '.join(_WORDS[name])}.")
            if name == "int64_json":
                as_string = value == "string"
            else:
                values[name] = value
        else:
            raise _invalid(f"There is no setting '{name}'; there are {', '.join(sorted((*_INTEGERS, *_WORDS)))}.")
    if capped:
        values["fixed"] = frozenset(name for name in _INTEGERS if values[name] == getattr(process.query, name))
    return RequestSettings(QuerySettings(**values), as_string)


def _integer(name: str, value: Any) -> int:
    low, high = _INTEGERS[name]
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _invalid(f"{name} is an integer from {low} to {high}.")
    return value


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_setting")
