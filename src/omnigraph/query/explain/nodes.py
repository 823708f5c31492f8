"""A tree of plan nodes, and its rows in pre-order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.query.measures import Place

Kind = Literal[
    "Argument", "Unit", "Scan", "Expand", "Filter", "Join", "Fold", "RankFuse", "Aggregate", "Sort", "Limit", "Project"
]
"""`Argument`: the assignments of the enclosing block, where a correlated one begins. `Unit`: one assignment of no variable."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Where a profile finds what a node did: the rows that came out of it, what it cost, how it walked a hop."""

    rows: Place
    costs: tuple[Place, ...] = ()
    way: Place | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One step. `detail` holds JSON values; children are what it is fed from."""

    kind: Kind
    detail: dict[str, Any]
    children: tuple[Node, ...] = field(default=())
    measured: Measured | None = None


Tree = Literal["logical", "physical", "plan", "profile"]


@dataclass(frozen=True, slots=True)
class Row:
    tree: Tree
    depth: int | None
    node: str
    detail: str


def tree_rows(tree: Tree, root: Node) -> Iterator[Row]:
    """The nodes in pre-order, each with its depth."""
    return (Row(tree, depth, node.kind, compact(node.detail)) for node, depth in in_pre_order(root))


def in_pre_order(root: Node) -> Iterator[tuple[Node, int]]:
    """The nodes of a tree, each with its depth."""
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        pending.extend((child, depth + 1) for child in reversed(node.children))


def tree_hash(root: Node) -> str:
    """SHA-256, hex: equal for equal trees."""
    digest = hashlib.sha256()
    for row in tree_rows("logical", root):
        digest.update(f"{row.depth} {row.node} {row.detail}\n".encode())
    return digest.hexdigest()


def compact(value: object) -> str:
    """JSON on one line, in the order of the fields."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
