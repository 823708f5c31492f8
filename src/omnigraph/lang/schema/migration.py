"""Accepted schema and desired text -> migration plan (languages.md 5).

Looks at no rows: what a drop would cost is added by `steps.with_row_warnings`.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import declared_catalog
from omnigraph.lang.schema.differences import type_differences
from omnigraph.lang.schema.parse import parse_schema
from omnigraph.lang.schema.renames import Pairing, paired
from omnigraph.lang.schema.stable_ids import (
    Mint,
    carried_edge,
    carried_interface,
    carried_node,
    minted_edge,
    minted_interface,
    minted_node,
)
from omnigraph.lang.schema.steps import Drop, MigrationPlan, Step


def plan_migration(accepted: Catalog, accepted_source: str, desired_source: str, *, mint: Mint) -> MigrationPlan:
    """The steps from the accepted schema to the desired text, and the catalog to apply if none is refused.

    Nothing is applied. `mint` is asked for an id per new type and property. Raises `InvalidSchema` if the text itself
    is at fault, `S001` to `S012`; a change that is not possible is a refused step and no error.
    """
    if desired_source == accepted_source:
        return MigrationPlan((), desired_source, accepted, text_changed=False)
    syntax = parse_schema(desired_source)
    declared = declared_catalog(syntax)
    pairing = paired(accepted, declared, syntax)
    desired = _carried(accepted, declared, pairing, mint)
    steps = tuple(_steps(accepted, desired, pairing))
    supported = all(step.supported for step in steps)
    return MigrationPlan(steps, desired_source, desired if supported else None, text_changed=True)


def _carried(accepted: Catalog, declared: Catalog, pairing: Pairing, mint: Mint) -> Catalog:
    """The declared catalog with the identities of what it continues."""
    return Catalog(
        nodes={
            name: carried_node(accepted.nodes[pairing.nodes[name]], node, pairing.node_properties[name], mint)
            if name in pairing.nodes
            else minted_node(node, mint)
            for name, node in declared.nodes.items()
        },
        edges={
            name: carried_edge(accepted.edges[pairing.edges[name]], edge, pairing.edge_properties[name], mint)
            if name in pairing.edges
            else minted_edge(edge, mint)
            for name, edge in declared.edges.items()
        },
        interfaces={
            name: carried_interface(accepted.interfaces[name], interface, pairing.interface_properties[name], mint)
            if name in pairing.interfaces
            else minted_interface(interface, mint)
            for name, interface in declared.interfaces.items()
        },
    )


def _steps(accepted: Catalog, desired: Catalog, pairing: Pairing) -> Iterator[Step]:
    ends = {old: new for new, old in pairing.nodes.items()}
    for name, interface in desired.interfaces.items():
        if name in pairing.interfaces:
            yield from type_differences(accepted.interfaces[name], interface, ends)
        else:
            yield Step(f"interface:{name}", "add_interface", "an interface is added")
    for name in accepted.interfaces:
        if name not in desired.interfaces:
            reason = "an interface can be neither removed nor renamed"
            yield Step(f"interface:{name}", "drop_interface", reason, code="OG-BC-201", severity="refused")
    for name, node in desired.nodes.items():
        if name in pairing.nodes:
            yield from type_differences(accepted.nodes[pairing.nodes[name]], node, ends)
        else:
            yield Step(f"node:{name}", "add_node", "a node type is added")
    kept_nodes = set(pairing.nodes.values())
    for name, node in accepted.nodes.items():
        if name not in kept_nodes:
            yield Step(f"node:{name}", "drop_node", "the node type is dropped", drop=Drop("node", node.id))
    for name, edge in desired.edges.items():
        if name in pairing.edges:
            yield from type_differences(accepted.edges[pairing.edges[name]], edge, ends)
        else:
            yield Step(f"edge:{name}", "add_edge", "an edge type is added")
    kept_edges = set(pairing.edges.values())
    for name, edge in accepted.edges.items():
        if name not in kept_edges:
            yield Step(f"edge:{name}", "drop_edge", "the edge type is dropped", drop=Drop("edge", edge.id))
