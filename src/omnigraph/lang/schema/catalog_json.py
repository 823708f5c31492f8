"""Catalog <-> canonical JSON, and the digest of a schema.

Canonical: keys sorted, no spaces, nothing escaped that need not be, absent fields left out, lists in declaration order. The text is a
function of the catalog, so a digest over it names it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from omnigraph.errors import FormatMismatch
from omnigraph.lang.schema.catalog import (
    AnnotationArgument,
    Annotations,
    Arguments,
    BareWord,
    Catalog,
    CheckRule,
    EdgeType,
    Embed,
    Interface,
    NodeType,
    Property,
    RangeRule,
)
from omnigraph.lang.types import Scalar, ValueType

CATALOG_FORMAT = 1

Json = dict[str, Any]


def catalog_to_json(catalog: Catalog) -> str:
    """The canonical JSON of a catalog."""
    return _canonical(catalog_values(catalog))


def catalog_from_json(text: str) -> Catalog:
    """The catalog that `catalog_to_json` wrote.

    Raises `FormatMismatch` for one that another generation of the program wrote, `ValueError` for any other text.
    """
    try:
        value: object = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("a catalog is an object")
        fields = cast("Json", value)
        if "format" in fields and fields["format"] != CATALOG_FORMAT:
            raise FormatMismatch("This schema was compiled by another generation of the program.")
        return _catalog(fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("a catalog lacks a field, or one has another kind of value") from error
    except RecursionError:
        raise ValueError("a catalog is not nested so deeply") from None


def schema_digest(source: str, catalog: Catalog) -> str:
    """SHA-256 in hex over the canonical JSON array of source and catalog."""
    return hashlib.sha256(_canonical([source, catalog_values(catalog)]).encode()).hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# --- to JSON


def catalog_values(catalog: Catalog) -> Json:
    """The catalog as JSON values."""
    return {
        "format": CATALOG_FORMAT,
        "interfaces": [_interface_json(interface) for interface in catalog.interfaces.values()],
        "nodes": [_node_json(node) for node in catalog.nodes.values()],
        "edges": [_edge_json(edge) for edge in catalog.edges.values()],
    }


def annotations_json(annotations: Annotations) -> list[Json]:
    """Annotations as `{"name", "argument"}`; a bare word is `{"word"}`, several arguments `{"first", "named"}`."""
    return [
        _present({"name": name, "argument": _argument_json(argument)}) if argument is not None else {"name": name}
        for name, argument in annotations
    ]


def _argument_json(argument: AnnotationArgument) -> object:
    match argument:
        case BareWord(text):
            return {"word": text}
        case Arguments(first, named):
            return {"first": _argument_json(first), "named": [[name, value] for name, value in named]}
        case _:
            return argument


def _interface_json(interface: Interface) -> Json:
    return _present(
        {
            "id": interface.id,
            "name": interface.name,
            "properties": [_property_json(declared) for declared in interface.properties],
            **_groups_json(interface),
        }
    )


def _node_json(node: NodeType) -> Json:
    ranges = [_present({"property": rule.property, "low": rule.low, "high": rule.high}) for rule in node.ranges]
    checks = [{"property": rule.property, "pattern": rule.pattern} for rule in node.checks]
    return _present({**_entity_json(node), "implements": list(node.implements), "ranges": ranges, "checks": checks})


def _edge_json(edge: EdgeType) -> Json:
    ends = {"source": edge.source, "target": edge.target}
    return _present({**_entity_json(edge), **ends, "cardinality": list(edge.cardinality)})


def _entity_json(entity: NodeType | EdgeType) -> Json:
    return {
        "id": entity.id,
        "name": entity.name,
        "properties": [_property_json(declared) for declared in entity.properties],
        **_groups_json(entity),
        "description": entity.description,
        "instruction": entity.instruction,
        "annotations": annotations_json(entity.annotations),
        "retired": list(entity.retired),
    }


def _groups_json(of: NodeType | EdgeType | Interface) -> Json:
    return {
        "key": list(of.key),
        "uniques": [list(group) for group in of.uniques],
        "indexes": [list(group) for group in of.indexes],
    }


def _property_json(declared: Property) -> Json:
    embed = None
    if declared.embed is not None:
        embed = _present({"source": declared.embed.source, "model": declared.embed.model})
    return _present(
        {
            "id": declared.id,
            "name": declared.name,
            "type": declared.type.spelling(),
            "column": declared.column,
            "indexed": declared.indexed or None,
            "injected_by": list(declared.injected_by),
            "description": declared.description,
            "embed": embed,
            "annotations": annotations_json(declared.annotations),
        }
    )


def _present(values: Json) -> Json:
    """Without nulls and empty lists."""
    return {name: value for name, value in values.items() if value is not None and value != []}


# --- from JSON


def _catalog(value: Json) -> Catalog:
    return Catalog(
        nodes={node.name: node for node in map(_node, value["nodes"])},
        edges={edge.name: edge for edge in map(_edge, value["edges"])},
        interfaces={interface.name: interface for interface in map(_interface, value["interfaces"])},
    )


def _node(value: Json) -> NodeType:
    ranges = tuple(RangeRule(v["property"], v.get("low"), v.get("high")) for v in value.get("ranges", ()))
    checks = tuple(CheckRule(v["property"], v["pattern"]) for v in value.get("checks", ()))
    return NodeType(**_entity(value), ranges=ranges, checks=checks, implements=tuple(value.get("implements", ())))


def _edge(value: Json) -> EdgeType:
    low, high = value["cardinality"]
    return EdgeType(**_entity(value), source=value["source"], target=value["target"], cardinality=(low, high))


def _interface(value: Json) -> Interface:
    return Interface(id=value["id"], name=value["name"], properties=_properties(value), **_groups(value))


def _entity(value: Json) -> Json:
    """The arguments that node and edge types share."""
    return {
        "id": value["id"],
        "name": value["name"],
        "properties": _properties(value),
        **_groups(value),
        "description": value.get("description"),
        "instruction": value.get("instruction"),
        "annotations": _annotations(value),
        "retired": tuple(value.get("retired", ())),
    }


def _groups(value: Json) -> Json:
    return {
        "key": tuple(value.get("key", ())),
        "uniques": tuple(tuple(group) for group in value.get("uniques", ())),
        "indexes": tuple(tuple(group) for group in value.get("indexes", ())),
    }


def _properties(value: Json) -> tuple[Property, ...]:
    return tuple(_property(declared) for declared in value.get("properties", ()))


def _property(value: Json) -> Property:
    embed = value.get("embed")
    return Property(
        id=value["id"],
        name=value["name"],
        type=type_from_spelling(value["type"]),
        column=value["column"],
        indexed=value.get("indexed", False),
        injected_by=tuple(value.get("injected_by", ())),
        description=value.get("description"),
        embed=None if embed is None else Embed(embed["source"], embed.get("model")),
        annotations=_annotations(value),
    )


def _annotations(value: Json) -> Annotations:
    return tuple((note["name"], _argument(note.get("argument"))) for note in value.get("annotations", ()))


def _argument(value: object) -> AnnotationArgument:
    if not isinstance(value, Mapping):
        return cast("AnnotationArgument", value)
    fields = cast("Json", value)
    if "word" in fields:
        return BareWord(fields["word"])
    first = cast("str | int | float | bool | BareWord", _argument(fields["first"]))
    return Arguments(first, tuple((name, constant) for name, constant in fields["named"]))


_TYPE = re.compile(r"(?:Vector\(([0-9]+)\)|enum\(([^()]+)\)|\[([A-Za-z0-9]+)\]|([A-Za-z0-9]+))(\?)?")


def type_from_spelling(text: str) -> ValueType:
    """The type that `ValueType.spelling` wrote. Raises `ValueError` for any other text."""
    match = _TYPE.fullmatch(text)
    if match is None:
        raise ValueError(f"no type: {text}")
    dimension, variants, element, word, mark = match.groups()
    nullable = mark is not None
    if dimension is not None:
        return ValueType("vector", Scalar.F32, nullable, dimension=int(dimension))
    if variants is not None:
        return ValueType("enum", Scalar.STRING, nullable, variants=tuple(variants.split(", ")))
    if element is not None:
        return ValueType("list", Scalar(element), nullable)
    return ValueType("scalar", Scalar(word), nullable)
