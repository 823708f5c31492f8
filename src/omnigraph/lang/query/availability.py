"""What the language has and this version does not run yet: the settings of what is to come."""

from __future__ import annotations

from omnigraph.lang.query.faults import NOT_AVAILABLE, Fault, type_fault
from omnigraph.lang.query.settings import AVAILABLE, SETTINGS
from omnigraph.lang.query.syntax import QueryFile, ShowStatement, Word

_SETTINGS_TO_COME = frozenset(SETTINGS) - frozenset(AVAILABLE)


def file_refusal(file: QueryFile) -> Fault | None:
    """`N001` for the first settings line, or `show`, of a checked file that names a setting to come."""
    names = [line.name for line in file.settings]
    if isinstance(file.statement, ShowStatement):
        names.append(file.statement.name)
    return next((_refusal(name) for name in names if name.text in _SETTINGS_TO_COME), None)


def _refusal(name: Word) -> Fault:
    return type_fault(NOT_AVAILABLE, f"the setting `{name.text}` is not part of this version", name.span)
