"""The checked form of a query: what the checker hands to the planner and to the mutation engine.

Everything is resolved: names are catalog names, binding matches have become filters, anonymous variables have fresh
names that begin with `__`, implied node declarations are spelled out. Trees are immutable and compare by value.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.types import ValueType

CompareOp = Literal["=", "!=", "<", "<=", ">", ">="]
AggregateName = Literal["count", "sum", "avg", "min", "max"]
Direction = Literal["out", "in", "both"]

# --- expressions. `type` is that of the value; a Bool that can be null has a nullable type.


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant. `value`: int, float, str, bool, date, datetime (UTC), or a tuple of these for a list."""

    value: int | float | str | bool | dt.date | dt.datetime | tuple[object, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list literal with an element that is not known before the query runs (`[1, $n]`); otherwise it is a Constant.

    Elements are constants in the sense of languages.md 9.6 (no properties); one that is null matches nothing.
    """

    items: tuple[Expr, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class Param:
    name: str  # without `$`
    type: ValueType


@dataclass(frozen=True, slots=True)
class Now:
    type: ValueType


@dataclass(frozen=True, slots=True)
class PropertyRef:
    """`$v.name`; in a mutation's `where` the target's row has the variable name "" ."""

    var: str
    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class SystemRef:
    """`$v.@id`, and for edges `@src`, `@dst`, `@type`: a non-null String."""

    var: str
    field: Literal["id", "src", "dst", "type"]
    type: ValueType


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node variable as a value: the object of 10.1 in `return`, the node itself in `count`."""

    var: str
    type_name: str


@dataclass(frozen=True, slots=True)
class Compare:
    op: CompareOp
    left: Expr
    right: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class And:
    left: Expr
    right: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class Or:
    left: Expr
    right: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expr
    negated: bool
    type: ValueType


@dataclass(frozen=True, slots=True)
class InList:
    item: Expr
    items: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class TextTest:
    kind: Literal["contains", "starts_with"]
    text: Expr
    part: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class Aggregate:
    func: AggregateName
    argument: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class TextSearch:
    """A predicate over the words of a node's text (languages.md 12.1); only a conjunct of a pattern's filters.

    `query` and `edits` are a Constant or a Param; `edits` is of `fuzzy` alone, None for the default.
    """

    call: Literal["search", "match_text", "fuzzy"]
    text: PropertyRef
    query: Expr
    type: ValueType
    edits: Expr | None = None


@dataclass(frozen=True, slots=True)
class Nearest:
    """Squared L2 distance of a node's vector to `query`: a Constant list of numbers, a Param that is a vector, or a String
    Constant or Param, which is embedded. Smaller is better.
    """

    vector: PropertyRef
    query: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class Bm25:
    """Relevance of a node's text to `query`, a String Constant or Param. Greater is better."""

    text: PropertyRef
    query: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class Fused:
    """`rrf`: reciprocal ranks of two arms over one variable; only the first order key. `k` is a Constant or a Param."""

    first: Nearest | Bm25
    second: Nearest | Bm25
    k: Expr
    type: ValueType


Rank = Nearest | Bm25 | Fused

Expr = (
    Constant
    | ListOf
    | Param
    | Now
    | PropertyRef
    | SystemRef
    | NodeRef
    | Compare
    | And
    | Or
    | Not
    | IsNull
    | InList
    | TextTest
    | TextSearch
    | Nearest
    | Bm25
    | Fused
    | Aggregate
)

# --- patterns


@dataclass(frozen=True, slots=True)
class NodeVar:
    name: str  # without `$`; "__1" and the like for `$_`
    type_name: str


@dataclass(frozen=True, slots=True)
class HopMember:
    """One edge type of a hop's selection and the way it is crossed when read from the left variable."""

    edge_type: str
    direction: Direction


@dataclass(frozen=True, slots=True)
class Hop:
    """`$left e{low,high} $right`: low ≤ dist(left, right) ≤ high over the union of the members' steps (8.4).

    `edge_var` names the bound edge (8.5), then low = high = 1 and every matching row is an assignment of its own.
    """

    left: str
    right: str
    members: tuple[HopMember, ...]
    low: int = 1
    high: int = 1
    edge_var: str | None = None
    kind: Literal["named", "alternation", "wildcard"] = "named"


@dataclass(frozen=True, slots=True)
class Block:
    """A correlated block (8.6). `func` None: `not` (negated) or `exists`; otherwise a fold compared with `right`."""

    pattern: Pattern
    outer: tuple[str, ...]  # variables of the enclosing blocks that it uses
    negated: bool = False
    func: AggregateName | None = None
    argument: Expr | None = None
    op: CompareOp | None = None
    right: Expr | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A match block. `nodes` are the variables bound here, in order of appearance (inner blocks: only their own).

    A filter is one conjunct; it holds if it is true. Re-declaring an outer variable is `nodes`-free: its pairs are filters.
    """

    nodes: tuple[NodeVar, ...]
    hops: tuple[Hop, ...] = ()
    filters: tuple[Expr, ...] = ()
    blocks: tuple[Block, ...] = ()


# --- statements


@dataclass(frozen=True, slots=True)
class ParamDecl:
    name: str
    type: ValueType
    span: Span
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a query asks of whoever calls it: known from its text alone, whatever the schema."""

    name: str
    params: tuple[ParamDecl, ...]


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """`name` is the column name: the alias, else the canonical text without `$`."""

    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class OrderKey:
    """`expr` is a property, a system field, a node, tree-equal to a return item, or as the first key a rank; `item` is the
    index of the item that it is equal to, if any. A rank has its best first: only that of `nearest` ascends.
    """

    expr: Expr
    descending: bool
    item: int | None = None


@dataclass(frozen=True, slots=True)
class ReadQuery:
    name: str
    params: tuple[ParamDecl, ...]
    pattern: Pattern
    items: tuple[ReturnItem, ...]
    aggregated: bool  # at least one item is an aggregate: the other items are the group keys
    order: tuple[OrderKey, ...] = ()
    limit: int | Param | None = None
    description: str | None = None
    instruction: str | None = None
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property` is a property name, or "from"/"to" of an edge insert. `value` is a constant (9.6)."""

    property: str
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Insert:
    kind: Literal["node", "edge"]
    type_name: str
    assignments: tuple[Assignment, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Update:
    type_name: str
    assignments: tuple[Assignment, ...]
    where: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Delete:
    kind: Literal["node", "edge"]
    type_name: str
    where: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class MutationQuery:
    """Statements of one kind: inserts and updates, or deletes."""

    name: str
    params: tuple[ParamDecl, ...]
    statements: tuple[Insert | Update | Delete, ...]
    description: str | None = None
    instruction: str | None = None
    text: str = field(default="", compare=False)


TypedQuery = ReadQuery | MutationQuery
