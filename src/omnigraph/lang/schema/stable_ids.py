"""What a name keeps when it changes: ids of types and properties, stored column names, the order of a key.

`minted` gives them to a first schema; `carried_*` hand those of an accepted type to its successor. Ids come from the
caller (`mint`), 16 hex digits that never repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType, Interface, NodeType, Property

Mint = Callable[[], str]


def minted(catalog: Catalog, mint: Mint) -> Catalog:
    """A declared catalog with fresh ids; columns are the properties' names."""
    return Catalog(
        nodes={name: minted_node(node, mint) for name, node in catalog.nodes.items()},
        edges={name: minted_edge(edge, mint) for name, edge in catalog.edges.items()},
        interfaces={name: minted_interface(interface, mint) for name, interface in catalog.interfaces.items()},
    )


def minted_node(node: NodeType, mint: Mint) -> NodeType:
    return replace(node, id=mint(), properties=_minted_properties(node.properties, mint))


def minted_edge(edge: EdgeType, mint: Mint) -> EdgeType:
    return replace(edge, id=mint(), properties=_minted_properties(edge.properties, mint))


def minted_interface(interface: Interface, mint: Mint) -> Interface:
    return replace(interface, id=mint(), properties=_minted_properties(interface.properties, mint))


def _minted_properties(properties: Iterable[Property], mint: Mint) -> tuple[Property, ...]:
    return tuple(replace(declared, id=mint()) for declared in properties)


def carried_node(accepted: NodeType, desired: NodeType, before: Mapping[str, str], mint: Mint) -> NodeType:
    """The desired type as successor of the accepted one; `before` maps property names to their accepted names."""
    return replace(
        desired,
        id=accepted.id,
        properties=_carried_properties(accepted, desired, before, mint),
        key=_carried_key(accepted.key, desired.key, before),
        retired=_retired(accepted, before),
    )


def carried_edge(accepted: EdgeType, desired: EdgeType, before: Mapping[str, str], mint: Mint) -> EdgeType:
    """As `carried_node`."""
    return replace(
        desired,
        id=accepted.id,
        properties=_carried_properties(accepted, desired, before, mint),
        key=_carried_key(accepted.key, desired.key, before),
        retired=_retired(accepted, before),
    )


def carried_interface(accepted: Interface, desired: Interface, before: Mapping[str, str], mint: Mint) -> Interface:
    """As `carried_node`; an interface stores nothing, so its columns are always the present names."""
    ids = {declared.name: declared.id for declared in accepted.properties}
    properties = tuple(
        replace(declared, id=ids[before[declared.name]] if declared.name in before else mint())
        for declared in desired.properties
    )
    return replace(desired, id=accepted.id, properties=properties)


def _carried_properties(
    accepted: EntityType, desired: EntityType, before: Mapping[str, str], mint: Mint
) -> tuple[Property, ...]:
    known = {declared.name: declared for declared in accepted.properties}
    taken = {declared.column for declared in accepted.properties} | set(accepted.retired)
    carried: list[Property] = []
    for declared in desired.properties:
        if declared.name in before:
            old = known[before[declared.name]]
            carried.append(replace(declared, id=old.id, column=old.column))
        else:
            column = free_column(declared.name, taken)
            taken.add(column)
            carried.append(replace(declared, id=mint(), column=column))
    return tuple(carried)


def free_column(name: str, taken: set[str]) -> str:
    """The column of a new property: its name, or `name__2` and so on if any property ever used that.

    >>> free_column("note", {"note", "note__2"})
    'note__3'
    """
    column, count = name, 1
    while column in taken:
        count += 1
        column = f"{name}__{count}"
    return column


def _carried_key(accepted: tuple[str, ...], desired: tuple[str, ...], before: Mapping[str, str]) -> tuple[str, ...]:
    """The order of an id's components is fixed when the type is created; only the names in it may change."""
    after = {old: new for new, old in before.items()}
    kept = tuple(name if name.startswith("@") else after.get(name, "") for name in accepted)
    return kept if set(kept) == set(desired) else desired


def _retired(accepted: EntityType, before: Mapping[str, str]) -> tuple[str, ...]:
    kept = set(before.values())
    return (*accepted.retired, *(declared.column for declared in accepted.properties if declared.name not in kept))
