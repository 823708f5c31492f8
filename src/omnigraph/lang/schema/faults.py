"""How a schema is refused: a fault with its code, place, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from omnigraph.errors import InvalidSchema
from omnigraph.lang.diagnostics import Diagnostic, Edit, SourceText, Span, Stage, Suggestion

_EXPRESSION_LENGTH_MAX = 200


class Faults:
    """Makes the errors of one schema text."""

    def __init__(self, text: str) -> None:
        self._source = SourceText(text)

    def refusal(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        expected: str | None = None,
        fix: str | None = None,
        stage: Stage = "schema",
        type_name: str | None = None,
        property_name: str | None = None,
    ) -> InvalidSchema:
        """The error to raise. `fix` is a text that could stand in place of the span; None if there is no single one."""
        position, end = self._source.positions(span)
        written = self._source.text[span.start : span.end]
        edit = None if fix is None else Suggestion("needs_review", (Edit(position.byte, end.byte, fix),))
        diagnostic = Diagnostic(
            code,
            stage,
            f"{stage} error: {code}: {message}",
            position=position,
            end=end,
            expression=written if written.isprintable() and len(written) <= _EXPRESSION_LENGTH_MAX else None,
            expected=expected,
            fix=fix,
            suggestion=edit,
            type=type_name,
            property=property_name,
            line=self._source.line(position),
        )
        return InvalidSchema(diagnostic)


def closest(word: str, names: Iterable[str]) -> str | None:
    """The one name that `word` was probably meant to be, ignoring case first."""
    candidates = list(names)
    same = [name for name in candidates if name.lower() == word.lower()]
    near = same or difflib.get_close_matches(word, candidates, n=1, cutoff=0.7)
    return near[0] if near else None


def one_of(names: Iterable[str]) -> str | None:
    """Names to choose from, for `expected`, in code-point order; None if there are none."""
    return ", ".join(sorted(names)) or None
