"""What lint has to say: a finding with its code, its place and what to write instead; and in which order findings come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.escaping import safe_text
from omnigraph.lang.diagnostics import Edit, Position, SourceText, Span, Suggestion

Severity = Literal["error", "warning", "info"]

SEVERITIES: dict[str, Severity] = {
    "L201": "warning",
    "L202": "warning",
    "L203": "warning",
    "L204": "warning",
    "L205": "warning",
    "L206": "info",
    "L207": "info",
    "L208": "info",
    "L209": "warning",
    "L210": "warning",
}
"""The codes of lint."""

_ORDER: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule found, where the source text is not at hand. `message` is one line; `fix` what to write at `span`, an
    equivalent of what stands there if `sure`.
    """

    code: str
    message: str
    span: Span | None = None
    fix: str | None = None
    sure: bool = False
    queries: tuple[str, ...] = ()
    type_name: str | None = None
    property_name: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a report. `in_schema`: its place is one in the schema text, not in the query file."""

    code: str
    message: str
    queries: tuple[str, ...] = ()
    type_name: str | None = None
    property_name: str | None = None
    position: Position | None = None
    end: Position | None = None
    fix: str | None = None
    suggestion: Suggestion | None = None
    in_schema: bool = False

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.code]

    def to_dict(self) -> dict[str, Any]:
        """The finding of the wire; what is not known is left out."""
        fields: dict[str, Any] = {"severity": self.severity, "code": self.code, "message": self.message}
        fields |= {"type_name": self.type_name, "property": self.property_name}
        fields["query_names"] = list(self.queries) or None
        fields["source"] = "schema" if self.in_schema and self.position is not None else None
        fields["position"] = None if self.position is None else self.position.to_dict()
        fields["end"] = None if self.end is None else self.end.to_dict()
        fields["fix"] = self.fix
        fields["suggestion"] = None if self.suggestion is None else self.suggestion.to_dict()
        return {name: value for name, value in fields.items() if value is not None}

    def render(self, source: str | None) -> str:
        """As text: `warning[L202]: …`, the place in the file of that name, the fix."""
        lines = [f"{self.severity}[{self.code}]: {safe_text(self.message)}"]
        if self.position is not None:
            name = "" if source is None else f"{safe_text(source)}:"
            lines.append(f"  --> {name}{self.position.line}:{self.position.column}")
        if self.fix is not None:
            lines.append(f"  fix: {safe_text(self.fix)}")
        return "\n".join(lines)


def placed(found: Iterable[Found], source: SourceText, *, in_schema: bool = False) -> list[Finding]:
    """Findings with their places in a source."""
    return [_placed(each, source, in_schema) for each in found]


def _placed(found: Found, source: SourceText, in_schema: bool) -> Finding:
    position = end = suggestion = None
    if found.span is not None:
        position, end = source.positions(found.span)
        if found.fix is not None:
            edit = Edit(position.byte, end.byte, found.fix)
            suggestion = Suggestion("machine_applicable" if found.sure else "needs_review", (edit,))
    return Finding(
        found.code,
        found.message,
        found.queries,
        found.type_name,
        found.property_name,
        position,
        end,
        found.fix,
        suggestion,
        in_schema,
    )


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors, warnings, infos; among them by type and property, what has none first, then by code, message and place."""
    return tuple(sorted(findings, key=_rank))


def _rank(finding: Finding) -> tuple[int, str, str, str, str, int]:
    place = -1 if finding.position is None else finding.position.byte
    names = (finding.type_name or "", finding.property_name or "")
    return _ORDER.index(finding.severity), *names, finding.code, finding.message, place
