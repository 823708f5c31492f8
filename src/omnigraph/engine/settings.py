"""Request settings by name (languages.md 19), as far as this version has them.

The defaults are those of the process, which its environment holds; what is nearer to the query wins: the handle, the call,
the lines of the file itself. Each value says where it came from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from omnigraph.engine.limits import positive_number
from omnigraph.errors import InvalidRequest
from omnigraph.lang.diagnostics import SourceText
from omnigraph.lang.query.faults import invalid_query
from omnigraph.lang.query.settings import AVAILABLE, SETTINGS, Setting, out_of_reach
from omnigraph.lang.query.syntax import SettingLine
from omnigraph.query.limits import MEMORY_VARIABLE, QUERY_MEMORY_BYTES, QuerySettings, Traversal, variable_of

Origin = Literal["default", "env", "request", "file"]

_OF_A_RUN = QuerySettings()
_SWITCH = {False: "off", True: "on"}
_DEFAULTS: dict[str, int | str] = {
    name: getattr(_OF_A_RUN, name) for name in AVAILABLE if name not in ("int64_json", "exact_nearest")
} | {"int64_json": "number", "exact_nearest": _SWITCH[_OF_A_RUN.exact_nearest]}
_LIMITS = ("traversal_work_limit", "query_timeout_ms", "max_result_rows")
_NUMBERS = (*_LIMITS, "ann_nprobes", "fts_scratch_rows")
_DIGITS_MAX = 19

SETTING_VARIABLES: tuple[str, ...] = (*(variable_of(name) for name in AVAILABLE), MEMORY_VARIABLE)


@dataclass(frozen=True, slots=True)
class Shown:
    """One row of `show`."""

    name: str
    value: str
    default: str
    source: Origin
    scope: str


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """What a read depends on, and how its integers are spelled in JSON. `origins`: where what is no default came from.

    `process`: those that `reset` goes back to; None for the process's own. `capped`: they are of someone else than the
    process, who may lower limits and not raise them, and sets nothing of scope `process`. `memory_bytes`: what one step of a
    query may make at once; no setting, but the environment's to say.
    """

    values: Mapping[str, int | str] = field(default_factory=lambda: dict(_DEFAULTS))
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    process: RequestSettings | None = None
    capped: bool = False
    memory_bytes: int = QUERY_MEMORY_BYTES

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> RequestSettings:
        """The defaults of this process. Raises InvalidRequest (`invalid_setting`) naming the variable at fault."""
        variables = os.environ if environ is None else environ
        values: dict[str, int | str] = dict(_DEFAULTS)
        origins: dict[str, Origin] = {}
        for name in AVAILABLE:
            text = variables.get(variable_of(name), "")
            if text:
                try:
                    values[name] = _value(name, text)
                except InvalidRequest as refused:
                    raise _invalid(f"{variable_of(name)}: {refused.message}") from None
                origins[name] = "env"
        return cls(values, origins, memory_bytes=positive_number(variables, MEMORY_VARIABLE, QUERY_MEMORY_BYTES))

    @property
    def query(self) -> QuerySettings:
        """What running a read depends on."""
        return QuerySettings(
            traversal=cast("Traversal", self.values["traversal"]),
            fixed=frozenset(name for name in _LIMITS if self._is_at_cap(name)),
            exact_nearest=self.values["exact_nearest"] == _SWITCH[True],
            memory_bytes=self.memory_bytes,
            **{name: cast("int", self.values[name]) for name in _NUMBERS},
        )

    @property
    def int64_as_string(self) -> bool:
        return self.values["int64_json"] == "string"

    def admitting(self, lines: Sequence[SettingLine], source: str) -> RequestSettings:
        """Itself, if whoever sent the settings lines of a text may write them; whether they are right is not looked at.

        Raises InvalidQuery (`Q003`).
        """
        for line in lines if self.capped else ():
            fault = out_of_reach(line)
            if fault is not None:
                raise invalid_query(fault, SourceText(source), None)
        return self

    def with_lines(self, lines: Sequence[SettingLine]) -> RequestSettings:
        """What holds after the settings lines of a file, which are checked. Raises InvalidRequest for a limit that the
        serving process does not let anyone raise.
        """
        settings = self
        for line in lines:
            if line.kind == "reset":
                settings = settings.reset(AVAILABLE if line.name.text == "all" else (line.name.text,))
            else:
                settings = settings.having({line.name.text: line.value}, "file")
        return settings

    def having(self, given: Mapping[str, Any], origin: Origin) -> RequestSettings:
        """With these values. Raises InvalidRequest (`invalid_setting`) naming an unknown setting or what a value may be."""
        values, origins = dict(self.values), dict(self.origins)
        for name, value in given.items():
            if name not in AVAILABLE:
                raise _invalid(_unknown(name))
            if self.capped and SETTINGS[name].scope == "process":
                raise _invalid(f"{name} is for the process that hosts the graph to set, by {variable_of(name)}.")
            values[name], origins[name] = _value(name, value), origin
            if self.capped and name in _LIMITS and cast("int", values[name]) > self._cap(name):
                raise _invalid(
                    f"{name} may be at most {self._cap(name):,} here, which {variable_of(name)} of the serving process"
                    " decides."
                )
        return replace(self, values=values, origins=origins)

    def reset(self, names: Sequence[str]) -> RequestSettings:
        """With these as the process has them."""
        process = self.process or self
        values = {**self.values, **{name: process.values[name] for name in names}}
        kept = {name: origin for name, origin in self.origins.items() if name not in names}
        again = {name: process.origins[name] for name in names if name in process.origins}
        return replace(self, values=values, origins={**kept, **again})

    def shown(self, name: str) -> list[Shown]:
        """What `show name` answers; of "all" every setting, by name."""
        process = self.process or self
        return [
            Shown(
                each,
                str(self.values[each]),
                str(process.values[each]),
                self.origins.get(each, "default"),
                SETTINGS[each].scope,
            )
            for each in (sorted(AVAILABLE) if name == "all" else (name,))
        ]

    def _cap(self, name: str) -> int:
        return cast("int", (self.process or self).values[name])

    def _is_at_cap(self, name: str) -> bool:
        return self.capped and self.values[name] == self._cap(name)


def request_settings(
    given: Mapping[str, Any] | None, defaults: RequestSettings | None = None, *, capped: bool = False
) -> RequestSettings:
    """What a request asks for, on top of the defaults of the process. `capped`: its limits may be lowered, not raised, and
    what is of scope `process` stays.

    Raises InvalidRequest (`invalid_setting`) naming an unknown setting or what a value may be.
    """
    process = defaults or RequestSettings()
    begun = RequestSettings(process.values, process.origins, process, capped, process.memory_bytes)
    return begun.having(given or {}, "request")


def _value(name: str, value: Any) -> int | str:
    setting = SETTINGS[name]
    if setting.choices:
        if value not in setting.choices:
            raise _invalid(f"{name} is one of {', '.join(setting.choices)}.")
        return cast("str", value)
    return _integer(setting, value)


def _integer(setting: Setting, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not setting.low <= value <= setting.high:
        raise _invalid(f"{setting.name} is an integer from {setting.low} to {setting.high}.")
    return value


def _unknown(name: str) -> str:
    known = ", ".join(sorted(AVAILABLE))
    if name in SETTINGS:
        return f"The setting '{name}' is not part of this version; there are {known}."
    return f"There is no setting '{name}'; there are {known}."


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_setting")
