"""What a read means, as a tree in the order in which it is written: no table, no number, no choice.

Its hash is the same for two texts that differ in layout and redundant parentheses alone.
"""

from __future__ import annotations

from omnigraph.lang.query.typed import Pattern, ReadQuery
from omnigraph.lang.query.typed_text import typed_text
from omnigraph.query.explain.nodes import Node
from omnigraph.query.explain.shared import argument_node, block_node, hop_detail, tail_nodes


def logical_tree(query: ReadQuery) -> Node:
    """The meaning of a checked read."""
    return tail_nodes(query, _pattern(query.pattern, None))


def _pattern(pattern: Pattern, outer: Node | None) -> Node:
    """Variables as they are bound, then hops, then what is asked of all of them. `outer`: what a block begins with."""
    types = {node.name: node.type_name for node in pattern.nodes}
    root = outer
    bound: set[str] = set()

    def scanned(name: str, root: Node | None) -> Node:
        scan = Node("Scan", {"binding": f"${name}", "type": types[name]})
        bound.add(name)
        return scan if root is None else Node("Join", {"kind": "cross", "on": []}, (root, scan))

    for hop in pattern.hops:
        near = next((end for end in (hop.left, hop.right) if end in bound or end not in types), None)
        if near is None:
            root = scanned(hop.left, root)
        assert root is not None
        root = Node("Expand", hop_detail(hop), (root,))
        bound.update((hop.left, hop.right))
    for name in types:
        if name not in bound:
            root = scanned(name, root)
    if root is None:  # no variable: one assignment of nothing
        root = Node("Unit", {})
    if pattern.filters:
        root = Node("Filter", {"conjuncts": [typed_text(each) for each in pattern.filters]}, (root,))
    for block in pattern.blocks:
        root = block_node(block, root, _pattern(block.pattern, argument_node(block)))
    return root
