"""Catalog -> `.pg` text: the shortest way to write it, without identities.

Reading the text back gives the same catalog but for ids, columns and what only history knows (the order of an old key,
retired columns). Comments, order of declarations between the kinds and `@rename_from` notes are not in a catalog and
so not in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.lang.lexical import string_literal
from omnigraph.lang.schema.catalog import (
    AnnotationArgument,
    Annotations,
    Arguments,
    BareWord,
    Catalog,
    EdgeType,
    Embed,
    Interface,
    NodeType,
    Property,
    RangeRule,
)

Groups = tuple[tuple[str, ...], ...]


def schema_text(catalog: Catalog) -> str:
    """The schema text of a catalog; "" for one without types."""
    parts = [_interface(interface) for interface in catalog.interfaces.values()]
    parts += [_node(node, catalog) for node in catalog.nodes.values()]
    parts += [_edge(edge) for edge in catalog.edges.values()]
    return "\n\n".join(parts) + "\n" if parts else ""


def _interface(interface: Interface) -> str:
    lines = [_property(declared, _group_notes(declared.name, interface)) for declared in interface.properties]
    return _block(f"interface {interface.name}", lines)


def _node(node: NodeType, catalog: Catalog) -> str:
    lines = [_property(declared) for declared in node.properties if not declared.injected_by]
    lines += _group_rules(node, brought=_brought(node, catalog))
    lines += [f"@range({rule.property}, {_bounds(rule)})" for rule in node.ranges]
    lines += [f"@check({rule.property}, {string_literal(rule.pattern)})" for rule in node.checks]
    implements = f" implements {', '.join(node.implements)}" if node.implements else ""
    return _block(f"node {node.name}{_notes(_type_notes(node))}{implements}", lines)


def _edge(edge: EdgeType) -> str:
    low, high = edge.cardinality
    card = "" if edge.cardinality == (0, None) else f" @card({low}..{'' if high is None else high})"
    lines = [_property(declared) for declared in edge.properties]
    lines += _group_rules(edge, brought=frozenset())
    head = f"edge {edge.name}: {edge.source} -> {edge.target}{card}{_notes(_type_notes(edge))}"
    return _block(head, lines) if lines else head


def _block(head: str, lines: list[str]) -> str:
    return "\n".join([f"{head} {{", *(f"  {line}" for line in lines), "}"]) if lines else f"{head} {{}}"


def _property(declared: Property, groups: Iterable[str] = ()) -> str:
    notes = [*groups, *_texts(declared.description, None), *_embed(declared.embed), *_others(declared.annotations)]
    return f"{declared.name}: {declared.type.spelling()}{_notes(notes)}"


def _group_notes(name: str, interface: Interface) -> Iterator[str]:
    if interface.key == (name,):
        yield "@key"
    if (name,) in interface.uniques:
        yield "@unique"
    if (name,) in interface.indexes:
        yield "@index"


def _brought(node: NodeType, catalog: Catalog) -> frozenset[str]:
    """The rules that a node type has from its interfaces, which its own text must not repeat."""
    injected = {declared.name: declared.injected_by for declared in node.properties}
    return frozenset(
        f"{note}({name})"
        for name, interfaces in injected.items()
        for interface in interfaces
        for note in _group_notes(name, catalog.interfaces[interface])
    )


def _group_rules(of: NodeType | EdgeType, *, brought: frozenset[str]) -> list[str]:
    rules = [f"@key({', '.join(of.key)})"] if of.key else []
    rules += [f"@unique({', '.join(group)})" for group in of.uniques]
    rules += [f"@index({', '.join(group)})" for group in of.indexes]
    return [rule for rule in rules if rule not in brought]


def _type_notes(of: NodeType | EdgeType) -> list[str]:
    return [*_texts(of.description, of.instruction), *_others(of.annotations)]


def _texts(description: str | None, instruction: str | None) -> Iterator[str]:
    if description is not None:
        yield f"@description({string_literal(description)})"
    if instruction is not None:
        yield f"@instruction({string_literal(instruction)})"


def _embed(embed: Embed | None) -> Iterator[str]:
    if embed is not None:
        model = "" if embed.model is None else f", model={string_literal(embed.model)}"
        yield f"@embed({string_literal(embed.source)}{model})"


def _others(annotations: Annotations) -> Iterator[str]:
    for name, argument in annotations:
        yield f"@{name}" if argument is None else f"@{name}({_argument(argument)})"


def _argument(argument: AnnotationArgument) -> str:
    match argument:
        case BareWord(text):
            return text
        case Arguments(first, named):
            return ", ".join([_argument(first), *(f"{name}={_argument(value)}" for name, value in named)])
        case bool():
            return "true" if argument else "false"
        case str():
            return string_literal(argument)
        case _:
            return _number(argument)


def _notes(notes: Iterable[str]) -> str:
    return "".join(f" {note}" for note in notes)


def _bounds(rule: RangeRule) -> str:
    low, high = ("" if bound is None else _number(bound) for bound in (rule.low, rule.high))
    return f"{low}..{high}"


def _number(value: float | None) -> str:
    """An INT or a DEC that reads back as the same number."""
    return repr(value)
