"""The settings that a `set` line may name (languages.md 19) and the values they take. Knows no process and no default:
what a setting is at the moment is the engine's to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.query.faults import Fault, Replacement, listing, nearest_name
from omnigraph.lang.query.syntax import QueryFile, SettingLine, ShowStatement, Word

_INTEGER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """`choices` are the words it takes; without any it takes integers from `low` to `high`. `scope`: who may set it,
    anyone with a request, or only the process that hosts the engine.
    """

    name: str
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = _INTEGER_MAX
    scope: Literal["request", "process"] = "request"

    def wanted(self) -> str:
        """The values it takes, in words."""
        if self.choices:
            return ", ".join(self.choices[:-1]) + f" or {self.choices[-1]}"
        return f"an integer from {self.low} to {self.high}"


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("ann_nprobes"),
        Setting("exact_nearest", ("off", "on")),
        Setting("traversal", ("auto", "indexed", "matrix")),
        Setting("traversal_work_limit", low=1),
        Setting("query_timeout_ms", low=1, high=3_600_000),
        Setting("max_result_rows", low=1, high=2**31 - 1),
        Setting("int64_json", ("number", "string")),
        Setting("merge_lineage", ("off", "on", "verify")),
        Setting("embed", ("fill", "defer", "off")),
        Setting("fts_scratch_rows", high=2**31 - 1, scope="process"),
        Setting("stage_write_concurrency", low=1, high=64, scope="process"),
    )
}

AVAILABLE = (
    "ann_nprobes",
    "exact_nearest",
    "traversal",
    "traversal_work_limit",
    "query_timeout_ms",
    "max_result_rows",
    "int64_json",
    "fts_scratch_rows",
)
"""The settings that this version has."""


def settings_fault(file: QueryFile) -> Fault | None:
    """`Q003` for the first settings line, or `show`, that names no setting or gives one a value it does not take."""
    for line in file.settings:
        fault = _line_fault(line)
        if fault is not None:
            return fault
    if isinstance(file.statement, ShowStatement):
        return _name_fault(file.statement.name, or_all=True)
    return None


def _line_fault(line: SettingLine) -> Fault | None:
    fault = _name_fault(line.name, or_all=line.kind == "reset")
    if fault is not None or line.kind == "reset":
        return fault
    setting = SETTINGS[line.name.text]
    if setting.choices:
        fits = line.kind in ("word", "string") and line.value in setting.choices
    else:
        fits = isinstance(line.value, int) and setting.low <= line.value <= setting.high
    return None if fits else _settings_fault(f"`{setting.name}` takes no such value", line.value_span, setting.wanted())


def _name_fault(name: Word, *, or_all: bool) -> Fault | None:
    if name.text in SETTINGS or (or_all and name.text == "all"):
        return None
    near = nearest_name(name.text, AVAILABLE)
    edits = (Replacement(name.span, near),) if near else ()
    expected = f"one of the settings {listing(AVAILABLE)}"
    return _settings_fault(f"there is no setting `{name.text}`", name.span, expected, near, edits)


def out_of_reach(line: SettingLine) -> Fault | None:
    """`Q003` for a line that sets what only the process that hosts the engine decides, written by someone else."""
    setting = SETTINGS.get(line.name.text)
    if setting is None or setting.scope == "request" or line.kind == "reset":
        return None
    message = f"`{setting.name}` is for the process that hosts the graph to set"
    return _settings_fault(message, line.name.span, "a setting of scope `request`")


def _settings_fault(
    message: str, span: Span, expected: str, fix: str | None = None, edits: tuple[Replacement, ...] = ()
) -> Fault:
    return Fault("Q003", message, span, expected, fix, edits, stage="settings")
