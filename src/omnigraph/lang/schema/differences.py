"""One accepted type against its successor -> steps, in the order of languages.md 5.1.

Pure comparison of two values. Properties pair by id, so a rename is no difference here except for its own step. What
no rule explains is a refused step as well (`OG-XX-999`): a field of the catalog that this module does not know must
not slip through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from omnigraph.lang.schema.catalog import Annotations, EdgeType, Embed, Interface, NodeType, Property
from omnigraph.lang.schema.catalog_json import annotations_json
from omnigraph.lang.schema.steps import Drop, Step, StepKind
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.lang.values import number_text

Declared = Interface | NodeType | EdgeType

# Fields whose differences the steps below report, and those that follow from others.
_PROPERTY_FIELDS = {"id", "name", "type", "column", "indexed", "injected_by", "description", "embed", "annotations"}
_TYPE_FIELDS = (
    {"id", "name", "kind", "properties", "implements", "source", "target", "cardinality", "retired"}
    | {"key", "uniques", "indexes", "ranges", "checks"}
    | {"description", "instruction", "annotations"}
)


def type_differences(old: Declared, new: Declared, ends: dict[str, str]) -> Iterator[Step]:
    """The steps from `old` to `new`, which continue one type. `ends` maps accepted node type names to present ones."""
    change = _Change(old, new)
    if old.name != new.name and not isinstance(new, Interface):
        kind: StepKind = "rename_node" if isinstance(new, NodeType) else "rename_edge"
        yield Step(change.entity, kind, f"renamed from {old.name}", renamed_from=old.name)
    for declared in new.properties:
        yield from _property_steps(change, declared)
    yield from _structure_steps(old, new, change.entity, ends)
    yield from _constraint_steps(change)
    yield from _metadata_steps(change)
    yield from _drop_steps(change)
    yield from _unclassified(change)


class _Change:
    """Two states of one type, with its properties by id."""

    def __init__(self, old: Declared, new: Declared) -> None:
        self.old = old
        self.new = new
        kind = "interface" if isinstance(new, Interface) else new.kind
        self.entity = f"{kind}:{new.name}"
        self.before = {declared.id: declared for declared in old.properties}
        self.after = {declared.id: declared for declared in new.properties}

    def pairs(self) -> Iterator[tuple[Property, Property]]:
        for declared in self.new.properties:
            if declared.id in self.before:
                yield self.before[declared.id], declared

    def dropped(self) -> list[Property]:
        return [declared for declared in self.old.properties if declared.id not in self.after]

    def at(self, name: str) -> str:
        return f"{self.entity}.{name}"


def _refused(entity: str, kind: StepKind, code: str, reason: str) -> Step:
    return Step(entity, kind, reason, code=code, severity="refused")


# --- properties


def _property_steps(change: _Change, new: Property) -> Iterator[Step]:
    entity, old = change.at(new.name), change.before.get(new.id)
    if old is None:
        if isinstance(change.new, Interface) or new.type.nullable:
            yield Step(entity, "add_property", f"{new.type.spelling()} is added")
        else:
            reason = f"{new.type.spelling()} is required, and an existing type can gain nullable properties only"
            yield _refused(entity, "add_property", "OG-MF-103", reason)
        return
    if old.name != new.name:
        yield Step(entity, "rename_property", f"renamed from {old.name}", renamed_from=old.name)
    if old.type != new.type:
        reason = f"{old.type.spelling()} becomes {new.type.spelling()}"
        if _widens(old.type, new.type):
            yield Step(entity, "widen_enum", reason)
        else:
            yield _refused(entity, "change_type", "OG-MF-106", reason)
    if bool(old.injected_by) != bool(new.injected_by):
        reason = "declared by the type itself" if old.injected_by else "brought by an interface"
        yield _refused(entity, "change_origin", "OG-BC-202", f"is now {reason}")


def _widens(old: ValueType, new: ValueType) -> bool:
    return old.kind == new.kind == "enum" and old.nullable == new.nullable and set(old.variants) < set(new.variants)


# --- structure and constraints


def _structure_steps(old: Declared, new: Declared, entity: str, ends: dict[str, str]) -> Iterator[Step]:
    if isinstance(old, NodeType) and isinstance(new, NodeType) and set(old.implements) != set(new.implements):
        reason = f"implements {_listed(old.implements)} becomes {_listed(new.implements)}"
        yield _refused(entity, "change_implements", "OG-BC-202", reason)
    if isinstance(old, EdgeType) and isinstance(new, EdgeType):
        if (ends.get(old.source), ends.get(old.target)) != (new.source, new.target):
            reason = f"{old.source} -> {old.target} becomes {new.source} -> {new.target}"
            yield _refused(entity, "change_endpoints", "OG-ED-201", reason)
        if old.cardinality != new.cardinality:
            reason = f"@card({_bounds(*old.cardinality)}) becomes @card({_bounds(*new.cardinality)})"
            yield _refused(entity, "change_cardinality", "OG-ED-202", reason)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A constraint by property ids: equal if it means the same, whatever its members are called."""

    kind: str
    members: frozenset[str]
    detail: str = ""


def _constraint_steps(change: _Change) -> Iterator[Step]:
    old, new = _rules(change.old), _rules(change.new)
    gone = {declared.id for declared in change.dropped()}
    for rule, text in old.items():
        # A rule about nothing but dropped properties goes with them; a key never goes.
        if rule not in new and (rule.kind == "key" or not rule.members <= gone):
            yield _refused(_place(change, rule), "remove_constraint", "OG-CD-201", f"{text} is removed")
    for rule, text in new.items():
        if rule in old:
            continue
        if rule.kind == "index":
            yield Step(_place(change, rule), "add_index", f"{text} is added")
        else:
            yield _refused(_place(change, rule), "add_constraint", "OG-MF-201", f"{text} is added to an existing type")
    for before, after in change.pairs():
        if _embed_by_id(before, change.old) != _embed_by_id(after, change.new):
            reason = f"{_embed_text(before.embed)} becomes {_embed_text(after.embed)}"
            yield _refused(change.at(after.name), "change_embed", "OG-VE-201", reason)


def _rules(of: Declared) -> dict[_Rule, str]:
    """The constraints of a type with their texts."""
    ids = {declared.name: declared.id for declared in of.properties}
    scalars = {declared.name: declared.type.scalar for declared in of.properties}
    rules: dict[_Rule, str] = {}

    def add(kind: str, members: Iterable[str], text: str, detail: str = "") -> None:
        rules[_Rule(kind, frozenset(ids.get(name, name) for name in members), detail)] = text

    if of.key:
        add("key", of.key, f"@key({', '.join(of.key)})")
    for group in of.uniques:
        add("unique", group, f"@unique({', '.join(group)})")
    for group in of.indexes:
        add("index", group, f"@index({', '.join(group)})")
    if isinstance(of, NodeType):
        for rule in of.ranges:
            bounds = _bounds(rule.low, rule.high, scalars[rule.property])
            add("range", (rule.property,), f"@range({rule.property}, {bounds})", bounds)
        for rule in of.checks:
            add("check", (rule.property,), f"@check({rule.property}, …)", rule.pattern)
    return rules


def _place(change: _Change, rule: _Rule) -> str:
    """The property that a rule is about, or the type if it is about several or about ends."""
    names = [declared.name for declared in change.new.properties if declared.id in rule.members]
    return change.at(names[0]) if len(names) == len(rule.members) == 1 else change.entity


def _embed_by_id(declared: Property, of: Declared) -> Embed | None:
    """`@embed` with the source's id in place of its name."""
    if declared.embed is None:
        return None
    ids = {other.name: other.id for other in of.properties}
    return Embed(ids.get(declared.embed.source, declared.embed.source), declared.embed.model)


def _embed_text(embed: Embed | None) -> str:
    if embed is None:
        return "no @embed"
    model = "" if embed.model is None else f', model="{embed.model}"'
    return f'@embed("{embed.source}"{model})'


# --- metadata and drops


def _metadata_steps(change: _Change) -> Iterator[Step]:
    old, new = change.old, change.new
    if not isinstance(old, Interface) and not isinstance(new, Interface):
        if old.description != new.description:
            yield Step(change.entity, "describe", "@description is changed")
        if old.instruction != new.instruction:
            yield Step(change.entity, "describe", "@instruction is changed")
        yield from _annotation_steps(change.entity, old.annotations, new.annotations)
    for before, after in change.pairs():
        if before.description != after.description:
            yield Step(change.at(after.name), "describe", "@description is changed")
        yield from _annotation_steps(change.at(after.name), before.annotations, after.annotations)


def _annotation_steps(entity: str, old: Annotations, new: Annotations) -> Iterator[Step]:
    """Compared as JSON, in which 1, 1.0 and true differ; order means nothing."""
    before, after = (sorted(json.dumps(note) for note in annotations_json(notes)) for notes in (old, new))
    if before != after:
        names = sorted({f"@{name}" for name, _ in (*old, *new)})
        yield _refused(entity, "change_annotation", "OG-BC-203", f"annotations changed among {', '.join(names)}")


def _drop_steps(change: _Change) -> Iterator[Step]:
    for declared in change.dropped():
        drop = None
        if not isinstance(change.old, Interface):
            vector = declared.type.kind == "vector" or declared.embed is not None
            drop = Drop(change.old.kind, change.old.id, declared.id, declared.column, vector)
        yield Step(change.at(declared.name), "drop_property", f"{declared.type.spelling()} is dropped", drop=drop)


def _unclassified(change: _Change) -> Iterator[Step]:
    yield from _unknown_fields(change.entity, change.old, change.new, _TYPE_FIELDS)
    for before, after in change.pairs():
        yield from _unknown_fields(change.at(after.name), before, after, _PROPERTY_FIELDS)


def _unknown_fields(entity: str, old: Declared | Property, new: Declared | Property, known: set[str]) -> Iterator[Step]:
    names = {declared.name for state in (old, new) for declared in fields(state)} - known
    for name in sorted(names):
        if getattr(old, name, None) != getattr(new, name, None):
            yield _refused(entity, "unclassified", "OG-XX-999", f"a difference in `{name}` that no rule explains")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def _bounds(low: float | None, high: float | None, of: Scalar = Scalar.I64) -> str:
    return "..".join("" if bound is None else number_text(bound, of) for bound in (low, high))
