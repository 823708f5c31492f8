"""Rules about a schema: what its names will cost those who write queries."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.query.hops import edge_word
from omnigraph.lang.query.lint.findings import Found
from omnigraph.lang.query.syntax import RESERVED
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.syntax import SchemaSyntax

_BARE_ENDS = ("src", "dst")


def bare_ends(schema: SchemaSyntax) -> Iterator[Found]:
    """`L204`: `src` or `dst` for an end of an edge, in a rule of an edge type that has no property of that name."""
    for edge in schema.edges:
        properties = {prop.name.text for prop in edge.properties}
        for member in (member for group in edge.groups for member in group.members):
            if member.text in _BARE_ENDS and member.text not in properties:
                message = f"an end of {edge.name.text} is written @{member.text}, not {member.text}"
                yield Found("L204", message, member.span, f"@{member.text}", sure=True, type_name=edge.name.text)


def reserved_names(catalog: Catalog) -> Iterator[Found]:
    """`L208`: a property or edge whose name is a reserved word of queries."""
    for of in (*catalog.nodes.values(), *catalog.edges.values()):
        for prop in of.properties:
            if prop.name in RESERVED:
                message = f"{of.name}.{prop.name} is named like a reserved word: it stands behind a dot or before a colon only"
                yield Found("L208", message, type_name=of.name, property_name=prop.name)
    for edge in catalog.edges.values():
        if edge.name[:1].lower() + edge.name[1:] in RESERVED:
            message = f"the edge {edge.name} is named like a reserved word: queries write {edge_word(edge.name)}"
            yield Found("L208", message, type_name=edge.name)


def shared_names(catalog: Catalog) -> Iterator[Found]:
    """`L209`: a node type and an edge type of one name, which in a mutation means the node type."""
    for name in catalog.nodes:
        if name in catalog.edges:
            message = f"{name} is a node type and an edge type: in a mutation it is the node type"
            yield Found("L209", message, type_name=name)
