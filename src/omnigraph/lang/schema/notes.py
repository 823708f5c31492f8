"""Annotations of declarations and properties (languages.md 4.5): which are known, where they may stand, what they say.

A known annotation that is misplaced, repeated, empty or of the wrong form is refused with `S011`; an unknown one is
kept as written. What `@key`, `@unique` and `@index` require of a property is for `constraints`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.lexical import string_literal
from omnigraph.lang.schema.catalog import Annotations, Arguments, BareWord, Embed
from omnigraph.lang.schema.faults import Faults
from omnigraph.lang.schema.syntax import Note, Value, Word
from omnigraph.lang.types import ValueType

Place = Literal["node", "edge", "property", "edge property"]

GROUP_NOTES = ("key", "unique", "index")

_ALLOWED: dict[Place, frozenset[str]] = {
    "node": frozenset({"description", "instruction", "rename_from"}),
    "edge": frozenset({"description", "instruction", "rename_from"}),
    "property": frozenset({"description", "rename_from", "embed", *GROUP_NOTES}),
    "edge property": frozenset({"description", "rename_from", "unique", "index"}),
}
_KNOWN = frozenset(name for names in _ALLOWED.values() for name in names)


@dataclass(frozen=True, slots=True)
class EmbedNote:
    embed: Embed
    source_span: Span


@dataclass(frozen=True, slots=True)
class RenameNote:
    old: str
    span: Span


@dataclass(slots=True)
class Notes:
    """What the annotations of one declaration or property say. `groups` holds the places of @key, @unique, @index."""

    description: str | None = None
    instruction: str | None = None
    rename: RenameNote | None = None
    embed: EmbedNote | None = None
    groups: dict[str, Span] = field(default_factory=dict[str, Span])
    annotations: Annotations = ()


def read_notes(written: tuple[Note, ...], place: Place, faults: Faults, *, of_type: ValueType | None = None) -> Notes:
    """The notes at a place; `of_type` is the property's type. Raises `InvalidSchema` (`S011`)."""
    notes = Notes()
    seen: set[str] = set()
    for note in written:
        _refuse_repeated_arguments(note, faults)
        if note.name not in _KNOWN:
            notes.annotations = (*notes.annotations, (note.name, _kept_argument(note)))
            continue
        if note.name not in _ALLOWED[place]:
            fitting = ", ".join(f"@{name}" for name in sorted(_ALLOWED[place]))
            message = f"`@{note.name}` can't annotate {_with_article(place)}"
            raise faults.refusal("S011", note.span, message, expected=fitting)
        if note.name in seen:
            raise faults.refusal("S011", note.span, f"`@{note.name}` twice", expected=f"one `@{note.name}`")
        seen.add(note.name)
        match note.name:
            case "description":
                notes.description = _text(note, faults)
            case "instruction":
                notes.instruction = _text(note, faults)
            case "rename_from":
                notes.rename = RenameNote(_text(note, faults), note.span)
            case "embed":
                notes.embed = _embed(note, of_type, faults)
            case _:
                notes.groups[note.name] = note.span
    return notes


def _text(note: Note, faults: Faults) -> str:
    """The one argument of a note that takes one non-empty string."""
    value = note.argument.value if isinstance(note.argument, Value) else None
    if not isinstance(value, str) or not value or note.named:
        expected = f'`@{note.name}("…")` with a text that is not empty'
        raise faults.refusal("S011", note.span, f"`@{note.name}` takes one string", expected=expected)
    return value


def _embed(note: Note, of_type: ValueType | None, faults: Faults) -> EmbedNote:
    if of_type is None or of_type.kind != "vector":
        raise faults.refusal(
            "S011", note.span, "`@embed` on a property that is no vector", expected="a Vector property"
        )
    form = '`@embed("source")` or `@embed("source", model="m")`'
    if isinstance(note.argument, Word):
        fix = string_literal(note.argument.text)
        raise faults.refusal("S011", note.argument.span, "the source is named by a string", expected=form, fix=fix)
    source = note.argument.value if note.argument is not None else None
    if note.argument is None or not isinstance(source, str) or not source:
        raise faults.refusal("S011", note.span, "`@embed` names a String property", expected=form)
    model: str | None = None
    for named in note.named:
        if named.name.text != "model":
            raise faults.refusal("S011", named.name.span, f"`@embed` has no `{named.name.text}`", expected=form)
        if not isinstance(named.value.value, str) or not named.value.value:
            raise faults.refusal("S011", named.value.span, "a model is named by a string", expected=form)
        model = named.value.value
    return EmbedNote(Embed(source, model), note.argument.span)


def _refuse_repeated_arguments(note: Note, faults: Faults) -> None:
    seen: set[str] = set()
    for named in note.named:
        if named.name.text in seen:
            raise faults.refusal("S011", named.name.span, f"argument `{named.name.text}` twice", expected="it once")
        seen.add(named.name.text)


def _kept_argument(note: Note) -> str | int | float | bool | BareWord | Arguments | None:
    if note.argument is None:
        return None
    first = BareWord(note.argument.text) if isinstance(note.argument, Word) else note.argument.value
    if not note.named:
        return first
    return Arguments(first, tuple((named.name.text, named.value.value) for named in note.named))


def _with_article(place: Place) -> str:
    return f"an {place}" if place.startswith("edge") else f"a {place}"
