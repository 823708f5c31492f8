"""Places in a source text and what is wrong there (languages.md 16.3).

A diagnostic is data: code, stage, message, place, what was expected, one fix to write. `render` is the text that all fronts
show: the command line without the source line, Python with it and a caret under the fault.
"""

from __future__ import annotations

import bisect
import html
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from omnigraph.escaping import one_line, safe_text

Stage = Literal["parse", "settings", "schema", "typecheck", "migration", "params", "load", "execute"]

_LINE_SHOWN: Final = 120  # characters of the source line, from
_BEFORE_SHOWN: Final = 50  # so many before the fault
_TAB: Final = "    "


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
    """One fault. `message` is one line that begins `parse error: Q001: …` or `type error: T6: …`; so is `expected`."""

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
    # no part of the wire: what was sought in vain, and the text of the line at `position`
    sought: Sought | None = field(default=None, repr=False, compare=False)
    line: str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Names in quotes and texts of dates may hold line ends, and what quotes them is one line all the same.
        object.__setattr__(self, "message", one_line(self.message))
        if self.expected is not None:
            object.__setattr__(self, "expected", one_line(self.expected))

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

    def render(self, source: str | None = None, *, caret: bool = True) -> str:
        """As text: `error[Q002]: …`, the place (in `source`, the name of a file), the line with a caret below, the fix.

        Controls in what was written are spelled out.
        """
        text = self.message.split(f"{self.code}: ", 1)[-1]
        if self.expected and self.expected not in text:
            text = f"{text}: expected {self.expected}"
        lines = [f"error[{self.code}]: {safe_text(text)}"]
        if self.position is not None:
            name = "" if source is None else f"{safe_text(source)}:"
            lines.append(f"  --> {name}{self.position.line}:{self.position.column}")
            if caret and self.line is not None:
                lines += _pointed_out(self.line, self.position, self.end or self.position)
        if self.fix is not None:
            lines.append(f"  fix: {safe_text(self.fix)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.render())}</pre>"


def _pointed_out(line: str, position: Position, end: Position) -> list[str]:
    """The part of a line around a fault, and carets under the fault as far as it stands in that line."""
    start = position.column - 1
    stop = end.column - 1 if end.line == position.line else len(line)
    first = max(0, start - _BEFORE_SHOWN) if len(line) > _LINE_SHOWN else 0
    last = first + _LINE_SHOWN
    before = ("… " if first else "") + _visible(line[first:start])
    fault = _visible(line[start : min(stop, last)])
    after = _visible(line[max(stop, start) : last]) + (" …" if last < len(line) else "")
    number = str(position.line)
    gutter = " " * len(number)
    carets = " " * _width(before) + "^" * max(1, _width(fault))
    return [f" {gutter} |", f" {number} | {before}{fault}{after}", f" {gutter} | {carets}"]


def _visible(text: str) -> str:
    return safe_text(text.replace("\t", _TAB))


def _width(text: str) -> int:
    """Columns of a terminal that the text takes: none for what is put onto a letter, two for a wide one."""
    return sum(
        0 if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf") else _columns(c) for c in text
    )


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


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

    def line(self, position: Position) -> str:
        """The text of the line that a position is in, without its end."""
        start = self._starts[position.line - 1]
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end].removesuffix("\r")
