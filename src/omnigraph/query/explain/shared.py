"""What logical and physical trees say alike: hops, order, groups, columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.lang.query.typed import (
    Aggregate,
    Block,
    Constant,
    Fused,
    Hop,
    HopMember,
    OrderKey,
    Param,
    ReadQuery,
)
from omnigraph.lang.query.typed_text import typed_text
from omnigraph.query.explain.nodes import Measured, Node
from omnigraph.query.measures import Part, place_of, tail_place
from omnigraph.query.plan import shown_ties

_TURNED = {"out": "in", "in": "out", "both": "both"}


def hop_detail(hop: Hop, *, from_left: bool = True) -> dict[str, Any]:
    """A hop, read from one of its ends."""
    near, far = (hop.left, hop.right) if from_left else (hop.right, hop.left)
    return {
        "src": f"${near}",
        "dst": f"${far}",
        "edge_binding": None if hop.edge_var is None else f"${hop.edge_var}",
        "edges": {"kind": hop.kind, "members": [_member(each, from_left) for each in hop.members]},
        "hops": [hop.low, hop.high],
    }


def _member(member: HopMember, from_left: bool) -> dict[str, str]:
    direction = member.direction if from_left else _TURNED[member.direction]
    return {"edge_type": member.edge_type, "direction": direction}


def argument_node(block: Block) -> Node:
    """What a correlated block begins with: the assignments of the block around it."""
    given = Measured(place_of(block, "argument"))
    return Node("Argument", {"bindings": [f"${name}" for name in block.outer]}, measured=given)


def block_node(block: Block, outer: Node, inner: Node, measured: Measured | None = None) -> Node:
    """A correlated block: what it is fed from, and what it asks of each assignment."""
    on = [f"${name}" for name in block.outer]
    if block.func is None:
        return Node("Join", {"kind": "anti" if block.negated else "semi", "on": on}, (outer, inner), measured)
    assert block.right is not None
    argument = None if block.argument is None else typed_text(block.argument)
    compare = {"op": block.op, "right": typed_text(block.right)}
    detail = {"func": block.func, "argument": argument, "compare": compare, "on": on}
    return Node("Fold", detail, (outer, inner), measured)


def tail_nodes(query: ReadQuery, matched: Node) -> Node:
    """From assignments to rows: grouped or not, ordered, limited, shown."""
    root = matched
    if query.aggregated:
        groups = [typed_text(item.expr) for item in query.items if not isinstance(item.expr, Aggregate)]
        calls = [typed_text(item.expr) for item in query.items if isinstance(item.expr, Aggregate)]
        root = Node("Aggregate", {"groups": groups, "calls": calls}, (root,), _stage("groups"))
    if query.order and isinstance(query.order[0].expr, Fused):
        root = _fused_node(query, query.order[0].expr, root)
    if query.order:
        keys = [_key_text(query, key) for key in query.order]
        ranked = () if isinstance(query.order[0].expr, Fused) else (tail_place("rank"),)
        measured = Measured(tail_place("order"), (tail_place("order"), *ranked))
        root = Node("Sort", {"keys": keys, "tiebreak": _ties(query)}, (root,), measured)
    if query.limit is not None:
        root = Node("Limit", {"n": _number(query.limit)}, (root,), _stage("limit"))
    return Node("Project", {"columns": [item.name for item in query.items]}, (root,), _stage("columns"))


def _stage(part: Part) -> Measured:
    return Measured(tail_place(part), (tail_place(part),))


def _fused_node(query: ReadQuery, rank: Fused, root: Node) -> Node:
    """The ranks of one variable, arm by arm, and the rank that is made of them."""
    k = rank.k.value if isinstance(rank.k, Constant) else typed_text(rank.k)
    arms = [typed_text(rank.first), typed_text(rank.second)]
    return Node("RankFuse", {"arms": arms, "k": k, "limit": _number(query.limit)}, (root,), _stage("rank"))


def _number(limit: int | Param | None) -> int | str | None:
    return f"${limit.name}" if isinstance(limit, Param) else limit


def _key_text(query: ReadQuery, key: OrderKey) -> str:
    return f"{typed_text(key.expr)} {'desc' if key.descending else 'asc'}"


def _ties(query: ReadQuery) -> Sequence[str]:
    return [f"{typed_text(each)} asc" for each in shown_ties(query)]
