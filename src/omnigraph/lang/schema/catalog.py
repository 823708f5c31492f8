"""The compiled schema: what every other room knows of a graph's types.

A catalog is immutable. Types and properties have stable ids (16 hex digits, random, minted when first declared) that
survive renames; `column` is the name a property's values are stored under, which never changes either.
Node types, edge types and interfaces have a namespace each. Names in constraints are the present property names
(`@src` and `@dst` for edge ends).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.lang.types import ValueType

EntityKind = Literal["node", "edge"]


@dataclass(frozen=True, slots=True)
class BareWord:
    """A name as argument of an annotation: `@shown(always)`."""

    text: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """Several arguments of an annotation: `@shown("always", order=3)`."""

    first: str | int | float | bool | BareWord
    named: tuple[tuple[str, str | int | float | bool], ...]


AnnotationArgument = str | int | float | bool | BareWord | Arguments | None

# The annotations that have no field of their own, in the order written: (name without `@`, argument). They mean
# nothing here; clients get them.
Annotations = tuple[tuple[str, AnnotationArgument], ...]


@dataclass(frozen=True, slots=True)
class Embed:
    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Property:
    id: str
    name: str
    type: ValueType
    column: str
    indexed: bool = False  # has a one-property @index, or is the only member of the key
    injected_by: tuple[str, ...] = ()  # interfaces that brought it; empty for own properties
    description: str | None = None
    embed: Embed | None = None
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True)
class RangeRule:
    """Both ends inclusive, already converted to the property's type; None is open."""

    property: str
    low: int | float | None
    high: int | float | None


@dataclass(frozen=True, slots=True)
class CheckRule:
    """`pattern` is an RE2 expression that must match somewhere in the value."""

    property: str
    pattern: str


@dataclass(frozen=True, slots=True)
class NodeType:
    id: str
    name: str
    properties: tuple[Property, ...]  # column order: own as written, then injected
    key: tuple[str, ...] = ()  # members in the order of the id's components (languages.md 4.6); empty: no key
    uniques: tuple[tuple[str, ...], ...] = ()  # groups as written, sorted; no two of the same members
    indexes: tuple[tuple[str, ...], ...] = ()  # likewise
    ranges: tuple[RangeRule, ...] = ()
    checks: tuple[CheckRule, ...] = ()
    implements: tuple[str, ...] = ()
    description: str | None = None
    instruction: str | None = None
    annotations: Annotations = ()
    retired: tuple[str, ...] = ()  # columns of dropped properties, never used again
    kind: Literal["node"] = field(default="node", init=False)

    def property(self, name: str) -> Property | None:
        return next((p for p in self.properties if p.name == name), None)


@dataclass(frozen=True, slots=True)
class EdgeType:
    id: str
    name: str
    source: str  # name of the node type that edges start at
    target: str
    properties: tuple[Property, ...] = ()
    key: tuple[str, ...] = ()  # "@src", "@dst", then properties in id order; empty: no key
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    cardinality: tuple[int, int | None] = (0, None)
    description: str | None = None
    instruction: str | None = None
    annotations: Annotations = ()
    retired: tuple[str, ...] = ()
    kind: Literal["edge"] = field(default="edge", init=False)

    def property(self, name: str) -> Property | None:
        return next((p for p in self.properties if p.name == name), None)


@dataclass(frozen=True, slots=True)
class Interface:
    """A contract for node types. It holds no rows; its properties' columns are their names."""

    id: str
    name: str
    properties: tuple[Property, ...]
    key: tuple[str, ...] = ()  # what its properties' @key, @unique and @index notes give to each node type
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()


EntityType = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Catalog:
    """All types of one schema. Mappings are by name and keep declaration order; treat them as read-only."""

    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    interfaces: Mapping[str, Interface]

    def by_id(self, type_id: str) -> EntityType | None:
        for kind in (self.nodes, self.edges):
            for entity_type in kind.values():
                if entity_type.id == type_id:
                    return entity_type
        return None

    def edge_by_word(self, word: str) -> EdgeType | None:
        """The edge type that a query or record names: the exact name first, then ignoring ASCII case."""
        exact = self.edges.get(word)
        if exact is not None:
            return exact
        lowered = word.lower() if word.isascii() else word
        return next((e for e in self.edges.values() if e.name.lower() == lowered), None)

    def incident_edges(self, node_type: str) -> list[EdgeType]:
        """Edge types that start or end at a node type, in declaration order."""
        return [e for e in self.edges.values() if node_type in (e.source, e.target)]
