"""What the language has and this version does not run yet: one line per door that is shut. Removing a line opens it.

Everything else of the check takes no notice: what is shut is typed first, as far as the typed tree has a form for it,
so a fault in it is reported as such.
"""

from __future__ import annotations

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.query.faults import NOT_AVAILABLE, Fault, type_fault
from omnigraph.lang.query.settings import AVAILABLE, SETTINGS
from omnigraph.lang.query.syntax import (
    Call,
    QueryFile,
    ShowStatement,
    Word,
)

_SHUT: dict[str, str] = {
    "search": "the call `search`",
    "match_text": "the call `match_text`",
    "fuzzy": "the call `fuzzy`",
    "nearest": "the call `nearest`",
    "bm25": "the call `bm25`",
    "rrf": "the call `rrf`",
}


_SETTINGS_TO_COME = frozenset(SETTINGS) - frozenset(AVAILABLE)


def call_refusal(call: Call) -> Fault | None:
    """`N001` for a search or ranking call, None once it can be typed and run."""
    return _refusal(call.name, call.span)


def file_refusal(file: QueryFile) -> Fault | None:
    """`N001` for what stands beside or around the queries of a checked file."""
    for line in file.settings:
        if line.name.text in _SETTINGS_TO_COME:
            return _setting_refusal(line.name)
    match file.statement:
        case ShowStatement(name=name) if name.text in _SETTINGS_TO_COME:
            return _setting_refusal(name)
        case _:
            return None


def _setting_refusal(name: Word) -> Fault:
    return type_fault(NOT_AVAILABLE, f"the setting `{name.text}` is not part of this version", name.span)


def _refusal(door: str, span: Span) -> Fault | None:
    what = _SHUT.get(door)
    return None if what is None else type_fault(NOT_AVAILABLE, f"{what} is not part of this version", span)
