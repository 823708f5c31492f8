"""Syntax tree -> catalog: what a schema means (languages.md 4). Refuses with `S002` to `S011`.

The catalog that `declared_catalog` returns has no identities yet: ids are empty, columns are names. Who may give them
differs: a first schema mints all, a migration keeps those of the accepted one.

Faults are looked for in this order: names of declarations, then interfaces, then node and edge types as written, each
from top to bottom; the first one is raised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.schema import constraints
from omnigraph.lang.schema.catalog import Catalog, EdgeType, Interface, NodeType, Property, RangeRule
from omnigraph.lang.schema.constraints import Group, GroupKind
from omnigraph.lang.schema.faults import Faults, closest, one_of
from omnigraph.lang.schema.notes import EmbedNote, Notes, Place, read_notes
from omnigraph.lang.schema.parse import parse_schema
from omnigraph.lang.schema.stable_ids import Mint, minted
from omnigraph.lang.schema.syntax import (
    Declaration,
    EdgeDecl,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    SchemaSyntax,
    Word,
)
from omnigraph.lang.schema.types import resolved_type
from omnigraph.lang.types import Scalar

_EDGE_RESERVED = ("from", "to")


def compile_schema(source: str | bytes, *, mint: Mint) -> Catalog:
    """The catalog of a first schema; every type and property gets its id from `mint`.

    Raises `InvalidSchema` with the first fault, `S001` to `S011`. A `@rename_from` says nothing here: there is no
    accepted schema that could hold the old name.
    """
    return minted(declared_catalog(parse_schema(source)), mint)


def declared_catalog(syntax: SchemaSyntax) -> Catalog:
    """The catalog of a schema, without identities. Raises `InvalidSchema` at the first fault."""
    faults = Faults(syntax.text)
    _refuse_repeated_declarations(syntax.declarations, faults)
    interfaces = {d.name.text: _interface(d, faults) for d in syntax.interfaces}
    nodes: dict[str, NodeType] = {}
    edges: dict[str, EdgeType] = {}
    node_names = {d.name.text for d in syntax.nodes}
    for declaration in syntax.declarations:
        match declaration:
            case NodeDecl():
                nodes[declaration.name.text] = _node(declaration, interfaces, faults)
            case EdgeDecl():
                edges[declaration.name.text] = _edge(declaration, node_names, interfaces, faults)
            case InterfaceDecl():
                pass
    return Catalog(nodes, edges, {name: contract.interface for name, contract in interfaces.items()})


def _refuse_repeated_declarations(declarations: Iterable[Declaration], faults: Faults) -> None:
    """`S002`: nodes and interfaces share their names, edges theirs, ignoring ASCII case."""
    taken: dict[tuple[str, str], Declaration] = {}
    for declaration in declarations:
        name = declaration.name.text
        space = ("edge", name.lower()) if isinstance(declaration, EdgeDecl) else ("node", name)
        earlier = taken.setdefault(space, declaration)
        if earlier is not declaration:
            message = f"`{name}` is declared already, as {_kind(earlier)} `{earlier.name.text}`"
            raise faults.refusal("S002", declaration.name.span, message, expected="another name", type_name=name)


def _kind(declaration: Declaration) -> str:
    match declaration:
        case InterfaceDecl():
            return "interface"
        case NodeDecl():
            return "node"
        case EdgeDecl():
            return "edge"


# --- properties


@dataclass(slots=True)
class _Body:
    """The properties of one type as they gather, with what their notes ask for."""

    properties: dict[str, Property] = field(default_factory=dict[str, Property])
    groups: list[Group] = field(default_factory=list[Group])
    embeds: dict[str, EmbedNote] = field(default_factory=dict[str, EmbedNote])

    @property
    def types(self) -> constraints.Types:
        return {name: declared.type for name, declared in self.properties.items()}


@dataclass(frozen=True, slots=True)
class _Contract:
    """An interface with the places in its text that a node type's faults may have to name."""

    interface: Interface
    groups: tuple[Group, ...]
    embeds: Mapping[str, EmbedNote]


def _own_properties(
    declarations: tuple[PropertyDecl, ...], place: Place, type_name: str, reserved: tuple[str, ...], faults: Faults
) -> _Body:
    body = _Body()
    for declaration in declarations:
        name = declaration.name.text
        if name in body.properties:
            message = f"`{type_name}` has a property `{name}` already"
            raise _at(declaration.name, faults, "S002", message, "another name", type_name)
        if name.startswith("_") or name in reserved:
            expected = (
                "a name that does not begin with `_`" if name.startswith("_") else "a name other than `from`, `to`"
            )
            raise _at(declaration.name, faults, "S004", f"`{name}` is reserved", expected, type_name)
        of_type = resolved_type(declaration.type, faults)
        notes = read_notes(declaration.notes, place, faults, of_type=of_type)
        for kind, span in notes.groups.items():
            body.groups.append(constraints.note_group(cast("GroupKind", kind), name, of_type, span, faults))
        if notes.embed is not None:
            body.embeds[name] = notes.embed
        body.properties[name] = _property(name, notes, resolved=of_type)
    return body


def _property(name: str, notes: Notes, *, resolved: constraints.ValueType) -> Property:
    return Property(
        id="",
        name=name,
        type=resolved,
        column=name,
        description=notes.description,
        embed=None if notes.embed is None else notes.embed.embed,
        annotations=notes.annotations,
    )


def _at(word: Word, faults: Faults, code: str, message: str, expected: str, type_name: str) -> Exception:
    return faults.refusal(code, word.span, message, expected=expected, type_name=type_name, property_name=word.text)


def _indexed(
    properties: Iterable[Property], key: tuple[str, ...], indexes: tuple[tuple[str, ...], ...]
) -> tuple[Property, ...]:
    """Properties with `indexed` set: a one-property `@index`, or the only member of the key."""
    alone = {*indexes, key}
    return tuple(replace(declared, indexed=(declared.name,) in alone) for declared in properties)


# --- interfaces


def _interface(declaration: InterfaceDecl, faults: Faults) -> _Contract:
    name = declaration.name.text
    body = _own_properties(declaration.properties, "property", name, (), faults)
    key = constraints.key_members(body.groups, faults)
    indexes = constraints.groups_of("index", body.groups)
    interface = Interface(
        id="",
        name=name,
        properties=_indexed(body.properties.values(), key, indexes),
        key=key,
        uniques=constraints.groups_of("unique", body.groups),
        indexes=indexes,
    )
    return _Contract(interface, tuple(body.groups), body.embeds)


def _inject(word: Word, contract: _Contract, own: Mapping[str, PropertyDecl], body: _Body, faults: Faults) -> None:
    """Give a node type what an interface brings; `word` is the interface's name after `implements`."""
    for brought in contract.interface.properties:
        name = brought.name
        present = body.properties.get(name)
        if present is not None and present.type != brought.type:
            raise _broken(word, contract.interface, brought, present, own.get(name), faults)
        if name in own:
            continue
        if present is None:
            body.properties[name] = replace(brought, injected_by=(word.text,))
        else:
            body.properties[name] = _united(present, brought, word.text)
        if name in contract.embeds:
            body.embeds.setdefault(name, EmbedNote(contract.embeds[name].embed, word.span))
        present_groups = {(group.kind, group.members) for group in body.groups}
        body.groups.extend(
            Group(group.kind, group.members, word.span)
            for group in contract.groups
            if group.members == (name,) and (group.kind, group.members) not in present_groups
        )


def _broken(
    word: Word, interface: Interface, brought: Property, present: Property, own: PropertyDecl | None, faults: Faults
) -> Exception:
    name, wanted, found = brought.name, brought.type.spelling(), present.type.spelling()
    if own is not None:
        message = f"`{name}` is {found} here and {wanted} in `{interface.name}`"
        span, fix = own.type.span, wanted
    else:
        message = f"`{name}` is {wanted} in `{interface.name}` and {found} in `{present.injected_by[0]}`"
        span, fix = word.span, None
    expected = f"{wanted}, as in `{interface.name}`"
    return faults.refusal("S005", span, message, expected=expected, fix=fix, property_name=name)


def _united(first: Property, second: Property, interface: str) -> Property:
    """A property that two interfaces bring: the first's texts and annotations, completed by the second's."""
    named = {name for name, _ in first.annotations}
    return replace(
        first,
        injected_by=(*first.injected_by, interface),
        description=first.description if first.description is not None else second.description,
        embed=first.embed if first.embed is not None else second.embed,
        annotations=first.annotations + tuple(note for note in second.annotations if note[0] not in named),
    )


# --- nodes and edges


def _node(declaration: NodeDecl, contracts: Mapping[str, _Contract], faults: Faults) -> NodeType:
    name = declaration.name.text
    notes = read_notes(declaration.notes, "node", faults)
    implements: list[str] = []
    for word in declaration.implements:
        if word.text not in contracts:
            fix = closest(word.text, contracts)
            message = f"no interface `{word.text}`"
            raise faults.refusal("S003", word.span, message, expected=one_of(contracts), fix=fix, type_name=name)
        if word.text in implements:
            raise faults.refusal("S002", word.span, f"`{word.text}` twice", expected="every interface once")
        implements.append(word.text)
    body = _own_properties(declaration.properties, "property", name, (), faults)
    own = {decl.name.text: decl for decl in declaration.properties}
    for word in declaration.implements:
        _inject(word, contracts[word.text], own, body, faults)
    _refuse_lost_sources(body, faults)
    types = body.types
    groups = [*body.groups, *(constraints.body_group(g, types, faults, on_edge=False) for g in declaration.groups)]
    key, indexes = constraints.key_members(groups, faults), constraints.groups_of("index", groups)
    ranges = {constraints.range_rule(rule, types, faults) for rule in declaration.ranges}
    checks = {constraints.check_rule(rule, types, faults) for rule in declaration.checks}
    return NodeType(
        id="",
        name=name,
        properties=_indexed(body.properties.values(), key, indexes),
        key=key,
        uniques=constraints.groups_of("unique", groups),
        indexes=indexes,
        ranges=tuple(sorted(ranges, key=_range_order)),
        checks=tuple(sorted(checks, key=lambda rule: (rule.property, rule.pattern))),
        implements=tuple(implements),
        description=notes.description,
        instruction=notes.instruction,
        annotations=notes.annotations,
    )


def _range_order(rule: RangeRule) -> tuple[str, float, float]:
    low = -math.inf if rule.low is None else rule.low
    return rule.property, low, math.inf if rule.high is None else rule.high


def _refuse_lost_sources(body: _Body, faults: Faults) -> None:
    """`S011`: an `@embed` whose source is no String property of the type."""
    texts = {n for n, p in body.properties.items() if p.type.kind == "scalar" and p.type.scalar is Scalar.STRING}
    for name, note in body.embeds.items():
        source = note.embed.source
        if source not in texts:
            near = closest(source, texts)
            fix = None if near is None else f'"{near}"'
            message = f"`@embed` of `{name}` names `{source}`, which is no String property here"
            span: Span = note.source_span
            raise faults.refusal("S011", span, message, expected=one_of(texts), fix=fix, property_name=name)


def _edge(declaration: EdgeDecl, nodes: set[str], contracts: Mapping[str, _Contract], faults: Faults) -> EdgeType:
    name = declaration.name.text
    for end in (declaration.source, declaration.target):
        if end.text not in nodes:
            what = "an interface, which has no nodes" if end.text in contracts else "no node type"
            fix = closest(end.text, nodes)
            message = f"`{end.text}` is {what}"
            raise faults.refusal("S003", end.span, message, expected=one_of(nodes), fix=fix, type_name=name)
    notes = read_notes(declaration.notes, "edge", faults)
    bounds = constraints.cardinality(declaration.cards, faults)
    body = _own_properties(declaration.properties, "edge property", name, _EDGE_RESERVED, faults)
    types = body.types
    groups = [*body.groups, *(constraints.body_group(g, types, faults, on_edge=True) for g in declaration.groups)]
    key, indexes = constraints.key_members(groups, faults), constraints.groups_of("index", groups)
    return EdgeType(
        id="",
        name=name,
        source=declaration.source.text,
        target=declaration.target.text,
        properties=_indexed(body.properties.values(), key, indexes),
        key=key,
        uniques=constraints.groups_of("unique", groups),
        indexes=indexes,
        cardinality=bounds,
        description=notes.description,
        instruction=notes.instruction,
        annotations=notes.annotations,
    )
