"""Places in a source text and what is wrong there (languages.md 16.3).

A diagnostic is data: code, stage, message, place, what was expected, one fix to write. How it is shown is a matter of
the front; `render` is the plain form that the command line prints.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any, Literal

Stage = Literal["parse", "settings", "schema", "typecheck", "migration", "params", "load", "execute"]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text: `line` and `column` from 1, the column in code points, `byte` from 0 in UTF-8."""

    line: int
    column: int
    byte: int

    def to_dict(self) -> dict[str, int]:
        return {"line": self.line, "column": self.column, "byte": self.byte}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text, as offsets in code points; `end` is exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes `start` to `end` (exclusive) of the exact source by `replacement`."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    applicability: Literal["machine_applicable", "needs_review"]
    edits: tuple[Edit, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "applicability": self.applicability,
            "edits": [{"start": e.start, "end": e.end, "replacement": e.replacement} for e in self.edits],
        }


@dataclass(frozen=True, slots=True)
class Sought:
    """A name that a schema was asked for in vain. `prefix` (`$v.`) stands before it in the fix; `type_id` is that of the
    type whose property it would be.
    """

    kind: Literal["node", "edge", "property"]
    name: str
    span: Span
    type_id: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault. `message` is one line that begins `parse error: Q001: …` or `type error: T6: …`."""

    code: str
    stage: Stage
    message: str
    position: Position | None = None
    end: Position | None = None
    query: str | None = None
    expression: str | None = None
    expected: str | None = None
    fix: str | None = None
    suggestion: Suggestion | None = None
    type: str | None = None
    property: str | None = None
    id: str | None = None
    line_number: int | None = None
    sought: Sought | None = field(default=None, repr=False, compare=False)  # no part of the wire

    def to_dict(self) -> dict[str, Any]:
        """The diagnostic object of the wire; fields that are not known are left out."""
        fields: dict[str, Any] = {"code": self.code, "stage": self.stage}
        if self.query is not None:
            fields["query"] = self.query
        if self.position is not None:
            fields["position"] = self.position.to_dict()
        if self.end is not None:
            fields["end"] = self.end.to_dict()
        fields["message"] = self.message
        for name in ("expression", "expected", "fix"):
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        if self.suggestion is not None:
            fields["suggestion"] = self.suggestion.to_dict()
        for name in ("type", "property", "id", "line_number"):
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        return fields

    def render(self, source_name: str) -> str:
        """The plain text form: `error[Q002]: …`, the place, the fix."""
        text = self.message.split(f"{self.code}: ", 1)[-1]
        if self.expected and self.expected not in text:
            text = f"{text}: expected {self.expected}"
        lines = [f"error[{self.code}]: {text}"]
        if self.position is not None:
            lines.append(f"  --> {source_name}:{self.position.line}:{self.position.column}")
        if self.fix is not None:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class SourceText:
    r"""A text with its line starts, to turn code-point offsets into positions.

    >>> SourceText("a\nbé c").position(4)
    Position(line=2, column=3, byte=5)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # A byte order mark counts as bytes and not as a column.
        self._starts = [1 if text.startswith("\ufeff") else 0]
        self._starts += [i + 1 for i, c in enumerate(text) if c == "\n"]

    def position(self, offset: int) -> Position:
        """The position of a code-point offset. LF ends a line; CRLF counts as one end; a tab is one column."""
        line = max(bisect.bisect_right(self._starts, offset), 1)
        start = self._starts[line - 1]
        return Position(line=line, column=offset - start + 1, byte=len(self.text[:offset].encode("utf-8")))

    def positions(self, span: Span) -> tuple[Position, Position]:
        return self.position(span.start), self.position(span.end)
