"""How a query's faults become diagnostics (languages.md 16.3): one place for their wording and their byte offsets."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic, Edit, Sought, SourceText, Span, Stage, Suggestion

_STAGE_WORDS: dict[str, str] = {"parse": "parse error", "settings": "settings error", "typecheck": "type error"}
NOT_AVAILABLE = "N001"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Write `text` instead of what stands at `span`."""

    span: Span
    text: str


@dataclass(eq=False)
class Fault(Exception):
    """A fault found where the source text is not at hand. `message` is one line without code and place.

    `edits` are offered for review unless `sure`.
    """

    code: str
    message: str
    span: Span
    expected: str | None = None
    fix: str | None = None
    edits: tuple[Replacement, ...] = ()
    sure: bool = False
    stage: Stage = "parse"
    expression: str | None = None
    type_name: str | None = None
    property_name: str | None = None
    sought: Sought | None = None


def type_fault(
    code: str,
    message: str,
    span: Span,
    *,
    expression: str | None = None,
    expected: str | None = None,
    fix: str | None = None,
    edits: tuple[Replacement, ...] = (),
    type_name: str | None = None,
    property_name: str | None = None,
    sought: Sought | None = None,
) -> Fault:
    """A fault of the check pass."""
    return Fault(
        code,
        message,
        span,
        expected,
        fix,
        edits,
        stage="typecheck",
        expression=expression,
        type_name=type_name,
        property_name=property_name,
        sought=sought,
    )


def without_plan(what: str, span: Span, expected: str) -> Fault:
    """`what` was to be explained is no read."""
    return Fault("Q004", f"`explain` shows the plan of a read, and this {what}", span, expected)


def invalid_query(fault: Fault, source: SourceText, query: str | None) -> InvalidQuery:
    """The error of a fault in a source, to be raised. `query` is the name of the query it is in, if in any."""
    position, end = source.positions(fault.span)
    opening = "not available yet" if fault.code == NOT_AVAILABLE else _STAGE_WORDS[fault.stage]
    suggestion = None
    if fault.edits:
        edits = tuple(_edit(replacement, source) for replacement in fault.edits)
        suggestion = Suggestion("machine_applicable" if fault.sure else "needs_review", edits)
    return InvalidQuery(
        Diagnostic(
            code=fault.code,
            stage=fault.stage,
            message=f"{opening}: {fault.code}: {fault.message}",
            position=position,
            end=end,
            query=query,
            expression=fault.expression,
            expected=fault.expected,
            fix=fault.fix,
            suggestion=suggestion,
            type=fault.type_name,
            property=fault.property_name,
            sought=fault.sought,
            line=source.line(position),
        )
    )


def _edit(replacement: Replacement, source: SourceText) -> Edit:
    start, end = source.positions(replacement.span)
    return Edit(start.byte, end.byte, replacement.text)


def nearest_name(written: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one most likely means; None if none is near.

    >>> nearest_name("tonnes", ["title", "tonnage", "tags"])
    'tonnage'
    """
    names = sorted(known)
    for name in names:
        if name.lower() == written.lower():
            return name
    return next(iter(difflib.get_close_matches(written, names, n=1, cutoff=0.7)), None)


def listing(names: Iterable[str]) -> str:
    """Names for an `expected` text: sorted, with commas; "none" if there are none."""
    return ", ".join(sorted(names)) or "none"


def quoted(words: Sequence[str]) -> str:
    """
    >>> quoted(["@src", "@dst", "@id"])
    '`@src`, `@dst` or `@id`'
    """
    ticked = [f"`{word}`" for word in words]
    return ticked[0] if len(ticked) == 1 else f"{', '.join(ticked[:-1])} or {ticked[-1]}"
