"""The syntax tree of a `.pg` text: what is written, where, and nothing of what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.diagnostics import Span

Constant = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Word:
    """A name as written, `@src` and `@dst` with their sign."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Value:
    """A constant. Numbers keep their kind: an INT is an `int`, a DEC a `float`."""

    value: Constant
    span: Span


@dataclass(frozen=True, slots=True)
class NamedValue:
    name: Word
    value: Value


@dataclass(frozen=True, slots=True)
class Note:
    """An annotation; `name` without `@`. `argument` is a Word for a bare name."""

    name: str
    argument: Value | Word | None
    named: tuple[NamedValue, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ScalarSyntax:
    word: Word


@dataclass(frozen=True, slots=True)
class ListSyntax:
    element: TypeForm


@dataclass(frozen=True, slots=True)
class VectorSyntax:
    dimension: Value


@dataclass(frozen=True, slots=True)
class EnumSyntax:
    variants: tuple[Word, ...]


TypeForm = ScalarSyntax | ListSyntax | VectorSyntax | EnumSyntax


@dataclass(frozen=True, slots=True)
class TypeSyntax:
    form: TypeForm
    nullable: bool
    span: Span


@dataclass(frozen=True, slots=True)
class PropertyDecl:
    name: Word
    type: TypeSyntax
    notes: tuple[Note, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class GroupDecl:
    """`@key(a, b)`, `@unique(…)`, `@index(…)`."""

    kind: Literal["key", "unique", "index"]
    members: tuple[Word, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RangeDecl:
    property: Word
    low: Value | None
    high: Value | None
    span: Span


@dataclass(frozen=True, slots=True)
class CheckDecl:
    property: Word
    pattern: Value
    span: Span


@dataclass(frozen=True, slots=True)
class CardDecl:
    low: int
    high: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class InterfaceDecl:
    name: Word
    properties: tuple[PropertyDecl, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class NodeDecl:
    name: Word
    notes: tuple[Note, ...]
    implements: tuple[Word, ...]
    properties: tuple[PropertyDecl, ...]
    groups: tuple[GroupDecl, ...]
    ranges: tuple[RangeDecl, ...]
    checks: tuple[CheckDecl, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EdgeDecl:
    name: Word
    source: Word
    target: Word
    notes: tuple[Note, ...]
    cards: tuple[CardDecl, ...]
    properties: tuple[PropertyDecl, ...]
    groups: tuple[GroupDecl, ...]
    span: Span


Declaration = InterfaceDecl | NodeDecl | EdgeDecl


@dataclass(frozen=True, slots=True)
class SchemaSyntax:
    """All declarations in the order of the text, which is kept for messages that point into it."""

    text: str
    declarations: tuple[Declaration, ...]

    @property
    def interfaces(self) -> tuple[InterfaceDecl, ...]:
        return tuple(d for d in self.declarations if isinstance(d, InterfaceDecl))

    @property
    def nodes(self) -> tuple[NodeDecl, ...]:
        return tuple(d for d in self.declarations if isinstance(d, NodeDecl))

    @property
    def edges(self) -> tuple[EdgeDecl, ...]:
        return tuple(d for d in self.declarations if isinstance(d, EdgeDecl))
