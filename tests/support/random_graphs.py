"""Hypothesis strategies for small graphs and well-typed reads over one schema that has every kind of property."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hypothesis import strategies as st

from omnigraph.lang.query import typed as q
from omnigraph.lang.schema.catalog import EntityType, Property
from omnigraph.lang.types import BOOL, DATETIME, F64, I64, NUMBERS, STRING, Scalar, ValueType, scalar
from support.memory_graphs import catalog_of
from support.oracle import Graph, Oracle, f32

SCHEMA = """
node Aa {
  k: I32 @key
  n: I64?  u: U64?  f: F32?  g: F64?  s: String?  b: Bool?  d: Date?  t: DateTime?
  e: enum(x, y, a-b)?  l: [I64]?  w: [String]?  fl: [F32]?  h: Vector(2)?  p: Blob?
}
node Bb { i: U32  c: String  s: String?  g: F64?  @key(i, c) }
node Cc { s: String?  n: I32?  u: U32? }
edge Rr: Aa -> Aa { n: I32?  s: String? }
edge Qq: Aa -> Aa { n: I32?  w: [String]? }
edge Tt: Aa -> Bb { n: I32?  s: String? }
edge Uu: Bb -> Aa { n: I32?  g: F64? }
edge Vv: Cc -> Cc
"""
CATALOG = catalog_of(SCHEMA)
NOW = dt.datetime(2024, 2, 29, 12, 30, 0, 250_000, tzinfo=dt.UTC)

INTEGERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    2**24 + 1,
    2**31 - 1,
    -(2**31),
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
)
FLOATS = (
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.5,
    0.1,
    f32(0.1),
    16777216.0,
    16777217.0,
    2.0**53,
    2.0**63,
    2.0**64,
    -(2.0**63),
    1e300,
    5e-324,
)
TEXTS = ("", "a", "b", "ab", "x", "a-b", "é", "A", "\U0001f600", "\uffff", "a\0b", "a%b", "_", "'", '"\\', "a b")
DATES = (dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31))
TIMES = (
    dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC),
    NOW,
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC),
)
_RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


def scalars(of: Scalar) -> st.SearchStrategy[Any]:
    """Stored values of a scalar type, edge cases and collisions preferred."""
    match of:
        case Scalar.STRING:
            return st.sampled_from(TEXTS)
        case Scalar.BOOL:
            return st.booleans()
        case Scalar.DATE:
            return st.sampled_from(DATES)
        case Scalar.DATETIME:
            return st.sampled_from(TIMES)
        case Scalar.F32:
            return st.sampled_from([x for x in FLOATS if abs(x) < 1e38]).map(f32)
        case Scalar.F64:
            return st.sampled_from(FLOATS)
        case Scalar.BLOB:
            return st.none()
        case _:
            low, high = _RANGES[of]
            return st.sampled_from([x for x in INTEGERS if low <= x <= high])


def values(of: ValueType) -> st.SearchStrategy[Any]:
    """Stored values of a property's type, null if it may be."""
    match of.kind:
        case "enum":
            plain: st.SearchStrategy[Any] = st.sampled_from(of.variants)
        case "list":
            plain = st.lists(st.none() | scalars(of.scalar), max_size=3)
        case "vector":
            plain = st.lists(scalars(Scalar.F32), min_size=of.dimension, max_size=of.dimension)
        case "scalar":
            plain = scalars(of.scalar)
    return st.none() | plain if of.nullable else plain


@st.composite
def properties(draw: st.DrawFn, entity: EntityType, skip: Sequence[str] = ()) -> dict[str, Any]:
    found = {p.name: draw(values(p.type)) for p in entity.properties if p.name not in skip}
    return {name: value for name, value in found.items() if value is not None}


@st.composite
def nodes(draw: st.DrawFn, most: int = 4) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {"Aa": {}, "Bb": {}, "Cc": {}}
    least = min(most, draw(st.sampled_from([0, 1, 2])))
    for k in draw(st.lists(st.sampled_from([-1, 0, 1, 2, 10, 2**31 - 1]), min_size=least, max_size=most, unique=True)):
        found["Aa"][str(k)] = {"k": k, **draw(properties(CATALOG.nodes["Aa"], ("k",)))}
    pairs = st.tuples(st.sampled_from([0, 1, 10]), st.sampled_from(["x", 'q"', "é"]))
    for i, c in draw(st.lists(pairs, min_size=least, max_size=most, unique=True)):
        text = c.replace('"', '\\"')
        found["Bb"][f'["{text}","{i}"]'] = {"i": i, "c": c, **draw(properties(CATALOG.nodes["Bb"], ("i", "c")))}
    for key in draw(st.lists(st.sampled_from(["c1", "c2", "c3", "c4"]), min_size=least, max_size=most, unique=True)):
        found["Cc"][key] = draw(properties(CATALOG.nodes["Cc"]))
    return found


@st.composite
def edges(
    draw: st.DrawFn, of: dict[str, dict[str, dict[str, Any]]], most: int = 7
) -> dict[str, dict[str, tuple[str, str, dict[str, Any]]]]:
    found: dict[str, dict[str, tuple[str, str, dict[str, Any]]]] = {}
    for name, entity in CATALOG.edges.items():
        sources, targets = list(of[entity.source]), list(of[entity.target])
        found[name] = {}
        if not sources or not targets:
            continue
        for number in draw(
            st.lists(st.integers(0, 9), min_size=draw(st.integers(0, min(4, most))), max_size=most, unique=True)
        ):
            ends = draw(st.sampled_from(sources)), draw(st.sampled_from(targets))
            found[name][f"{name}{number}"] = (*ends, draw(properties(entity)))
    return found


# --- queries


@dataclass
class Scope:
    """Variables in sight while a query is drawn, and the parameters drawn so far."""

    nodes: dict[str, str] = field(default_factory=dict[str, str])
    edges: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    names: list[int] = field(default_factory=lambda: [0])

    def fresh(self, anonymous: bool = False) -> str:
        self.names[0] += 1
        return f"{'__' if anonymous else 'v'}{self.names[0]}"


def _references(scope: Scope, only: set[str] | None = None) -> list[q.Expr]:
    """Every property and system field in sight."""
    found: list[q.Expr] = []
    for var, type_name in scope.nodes.items():
        if var.startswith("__") or (only is not None and var not in only):  # nothing can name an anonymous variable
            continue
        found.append(q.SystemRef(var, "id", STRING))
        found += [q.PropertyRef(var, p.name, p.type) for p in CATALOG.nodes[type_name].properties if _usable(p)]
    for var, types in scope.edges.items():
        if only is not None and var not in only:
            continue
        found += [q.SystemRef(var, cast("Any", f), STRING) for f in ("id", "src", "dst", "type")]
        first = CATALOG.edges[types[0]]
        for each in first.properties:
            others = [CATALOG.edges[name].property(each.name) for name in types]
            if all(other is not None and other.type == each.type for other in others):
                found.append(q.PropertyRef(var, each.name, each.type))
    return found


def _named_nodes(scope: Scope) -> list[q.NodeRef]:
    return [q.NodeRef(name, of) for name, of in scope.nodes.items() if not name.startswith("__")]


def _usable(each: Property) -> bool:
    return each.type.scalar is not Scalar.BLOB


def _kind(of: ValueType) -> str:
    """What compares with what."""
    if of.kind in ("list", "vector"):
        return of.kind
    if of.scalar in NUMBERS:
        return "number"
    return str(of.scalar)


def _literal_type(value: Any) -> ValueType:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return I64 if value < 2**63 else scalar(Scalar.U64)
    if isinstance(value, float):
        return F64
    if isinstance(value, str):
        return STRING
    return DATETIME if isinstance(value, dt.datetime) else scalar(Scalar.DATE)


_KINDS: dict[str, tuple[Scalar, ...]] = {
    "number": (Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.F32, Scalar.F64),
    "String": (Scalar.STRING,),
    "Bool": (Scalar.BOOL,),
    "Date": (Scalar.DATE,),
    "DateTime": (Scalar.DATETIME,),
}


@st.composite
def constants(draw: st.DrawFn, scope: Scope, kind: str) -> q.Expr:
    """A literal, a parameter (maybe null) or `now()`."""
    of = draw(st.sampled_from(_KINDS[kind]))
    value = draw(scalars(of))
    how = draw(st.sampled_from(["literal", "param", "null", "now"]))
    if how == "now" and kind == "DateTime":
        return q.Now(DATETIME)
    if how in ("param", "null"):
        name = f"p{len(scope.params)}"
        scope.params[name] = value if how == "param" else None
        return q.Param(name, scalar(of, nullable=True))
    if isinstance(value, float) or not isinstance(value, int):
        return q.Constant(value, _literal_type(value))
    return q.Constant(value, _literal_type(value))


@st.composite
def operands(draw: st.DrawFn, scope: Scope, kind: str, only: set[str] | None) -> q.Expr:
    fitting = [r for r in _references(scope, only) if _kind(cast("Any", r).type) == kind]
    if fitting and draw(st.integers(0, 3)):
        return draw(st.sampled_from(fitting))
    return draw(constants(scope, kind))


@st.composite
def lists(draw: st.DrawFn, scope: Scope, kind: str, only: set[str] | None) -> q.Expr:
    fitting = [
        r
        for r in _references(scope, only)
        if cast("Any", r).type.kind == "list" and _kind(scalar(cast("Any", r).type.scalar)) == kind
    ]
    if fitting and draw(st.booleans()):
        return draw(st.sampled_from(fitting))
    of = draw(st.sampled_from(_KINDS[kind]))
    elements = tuple(draw(st.lists(scalars(of), max_size=3)))
    how = draw(st.sampled_from(["literal", "param", "null", "listof"]))
    list_type = ValueType("list", of)
    if how == "listof":
        return q.ListOf(tuple(draw(st.lists(constants(scope, kind), min_size=1, max_size=3))), list_type)
    if how == "literal":
        if kind == "number":  # integers and decimals may be mixed; the list is then one of F64
            elements = tuple(draw(st.lists(scalars(Scalar.I64) | scalars(Scalar.F64), max_size=3)))
            of = Scalar.I64 if all(isinstance(e, int) for e in elements) else Scalar.F64
        return q.Constant(elements, ValueType("list", of))
    name = f"p{len(scope.params)}"
    scope.params[name] = elements if how == "param" else None
    return q.Param(name, ValueType("list", of, nullable=True))


@st.composite
def conditions(draw: st.DrawFn, scope: Scope, depth: int = 2, only: set[str] | None = None) -> q.Expr:
    """A Boolean expression over what is in sight."""
    maybe = scalar(Scalar.BOOL, nullable=True)
    forms = ["compare", "compare", "null", "in", "text", "property"] + (["and", "or", "not"] if depth else [])
    match draw(st.sampled_from(forms)):
        case "and":
            return q.And(draw(conditions(scope, depth - 1, only)), draw(conditions(scope, depth - 1, only)), maybe)
        case "or":
            return q.Or(draw(conditions(scope, depth - 1, only)), draw(conditions(scope, depth - 1, only)), maybe)
        case "not":
            return q.Not(draw(conditions(scope, depth - 1, only)), maybe)
        case "null":
            found = _references(scope, only) or [q.Constant(1, I64)]
            return q.IsNull(draw(st.sampled_from(found)), draw(st.booleans()), BOOL)
        case "in":
            kind = draw(st.sampled_from(sorted(_KINDS)))
            return q.InList(draw(operands(scope, kind, only)), draw(lists(scope, kind, only)), maybe)
        case "text":
            kind = cast("Any", draw(st.sampled_from(["contains", "starts_with"])))
            return q.TextTest(kind, draw(operands(scope, "String", only)), draw(operands(scope, "String", only)), maybe)
        case "property":
            return draw(operands(scope, "Bool", only))
        case _:
            kind = draw(st.sampled_from(["number", "number", *sorted(_KINDS)]))
            op = cast("q.CompareOp", draw(st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">="])))
            return q.Compare(op, draw(operands(scope, kind, only)), draw(operands(scope, kind, only)), maybe)


def _fitting_members(left: str, right: str) -> list[q.HopMember]:
    found: list[q.HopMember] = []
    for edge in CATALOG.edges.values():
        if (edge.source, edge.target) == (left, right):
            found.append(q.HopMember(edge.name, "out"))
        elif (edge.target, edge.source) == (left, right):
            found.append(q.HopMember(edge.name, "in"))
    return found


@st.composite
def hops(draw: st.DrawFn, scope: Scope, inside: dict[str, str]) -> q.Hop | None:
    """A hop between variables in sight, at least one of them of this block; None if no edge type fits."""
    ends = [
        (a, b)
        for a in sorted(scope.nodes)
        for b in sorted(scope.nodes)
        if (a in inside or b in inside or not draw(st.integers(0, 4)))
        and (a != b or not draw(st.integers(0, 3)))
        and _fitting_members(scope.nodes[a], scope.nodes[b])
    ]
    if not ends:
        return None
    left, right = draw(st.sampled_from(ends))
    fitting = _fitting_members(scope.nodes[left], scope.nodes[right])
    members = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2))
    same = scope.nodes[left] == scope.nodes[right]
    if same and draw(st.booleans()):
        members = [q.HopMember(m.edge_type, "both") for m in members]
    if draw(st.integers(0, 2)) == 0:
        name = scope.fresh()
        scope.edges[name] = tuple(dict.fromkeys(m.edge_type for m in members))
        return q.Hop(left, right, tuple(members), edge_var=name)
    low, high = 1, 1
    if same:
        low, high = draw(st.sampled_from([(1, 2), (1, 3), (1, 1), (2, 2), (1, 4), (2, 3), (3, 4)]))
    return q.Hop(left, right, tuple(members), low, high)


@st.composite
def patterns(draw: st.DrawFn, scope: Scope, depth: int = 2) -> q.Pattern:
    """A block; its variables stay in `scope`."""
    own: dict[str, str] = {}
    for _ in range(draw(st.integers(1 if depth == 2 else 0, 3 if depth == 2 else 2))):
        name = scope.fresh(anonymous=draw(st.integers(0, 4)) == 0)
        own[name] = draw(st.sampled_from(["Aa", "Aa", "Aa", "Bb", "Cc"]))
    scope.nodes.update(own)
    found = [draw(hops(scope, own)) for _ in range(draw(st.sampled_from([1, 2, 0, 3])) if scope.nodes else 0)]
    filters = [draw(conditions(scope)) for _ in range(draw(st.sampled_from([0, 1, 2])))]
    if own and draw(st.integers(0, 2)) == 0:
        filters.append(draw(lookups(scope, draw(st.sampled_from(sorted(own))))))
    blocks = [draw(blocks_(scope, depth - 1)) for _ in range(draw(st.integers(0, 2)) if depth else 0)]
    return q.Pattern(
        tuple(q.NodeVar(name, type_name) for name, type_name in own.items()),
        tuple(hop for hop in found if hop is not None),
        tuple(filters),
        tuple(blocks),
    )


@st.composite
def lookups(draw: st.DrawFn, scope: Scope, var: str) -> q.Expr:
    """A filter that names a node by id or key."""
    match scope.nodes[var]:
        case "Aa":
            key = q.PropertyRef(var, "k", scalar(Scalar.I32))
            if draw(st.booleans()):
                numbers = st.sampled_from([0, 1, 2, 10, 0.0, 1.0, 0.5, 2**40])
                values = tuple(draw(st.lists(numbers, max_size=3)))
                of = Scalar.I64 if all(isinstance(v, int) for v in values) else Scalar.F64
                return q.InList(key, q.Constant(values, ValueType("list", of)), BOOL)
            value = draw(st.sampled_from([0, 1, -1, 1.0, -0.0, 0.5, 2**31 - 1, 2**31]))
            return q.Compare("=", q.Constant(value, _literal_type(value)), key, BOOL)
        case "Bb":
            i, c = q.PropertyRef(var, "i", scalar(Scalar.U32)), q.PropertyRef(var, "c", STRING)
            left = q.Compare("=", i, q.Constant(draw(st.sampled_from([0, 1])), I64), BOOL)
            return q.And(left, q.Compare("=", c, q.Constant(draw(st.sampled_from(["x", "é"])), STRING), BOOL), BOOL)
        case _:
            value = draw(st.sampled_from(["c1", "c2", "zz"]))
            return q.Compare("=", q.SystemRef(var, "id", STRING), q.Constant(value, STRING), BOOL)


@st.composite
def blocks_(draw: st.DrawFn, outer: Scope, depth: int) -> q.Block:
    scope = Scope(dict(outer.nodes), dict(outer.edges), outer.params, outer.names)
    pattern = draw(patterns(scope, depth))
    seen = tuple(sorted([*outer.nodes, *outer.edges]))
    if draw(st.booleans()):
        return q.Block(pattern, seen, negated=draw(st.booleans()))
    func = cast("q.AggregateName", draw(st.sampled_from(["count", "sum", "avg", "min", "max"])))
    op = cast("q.CompareOp", draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])))
    argument, kind = draw(arguments(scope, func))
    right: q.Expr = draw(constants(scope, kind))
    if func == "count":
        argument = argument if draw(st.booleans()) else None
        right = q.Constant(draw(st.integers(0, 3)), I64)
    return q.Block(pattern, seen, False, func, argument, op, right)


@st.composite
def arguments(draw: st.DrawFn, scope: Scope, func: str) -> tuple[q.Expr, str]:
    """An argument that the aggregate takes, and the kind of the aggregate."""
    found = [cast("Any", r) for r in _references(scope)]
    if func in ("sum", "avg"):
        found = [r for r in found if _kind(r.type) == "number"]
    elif func in ("min", "max"):
        found = [r for r in found if r.type.kind in ("scalar", "enum")]
    else:
        found += _named_nodes(scope)
    if not found:
        value = q.Constant(1, I64)
        return value, "number"
    chosen = draw(st.sampled_from(found))
    if func in ("count", "sum", "avg"):
        return chosen, "number"
    return chosen, _kind(chosen.type)


def lively(pattern: q.Pattern, oracle: Oracle, coins: Callable[[], int]) -> q.Pattern:
    """The pattern with most clauses that leave no assignment turned round or left out, so that answers are not all empty."""
    kept = q.Pattern(pattern.nodes)

    def stays(more: q.Pattern) -> bool:
        return bool(oracle.assignments(more, {})) or not coins()

    for hop in pattern.hops:
        more = replace(kept, hops=(*kept.hops, hop))
        if hop.edge_var is not None or stays(more):
            kept = more
    for each in pattern.filters:
        for way in (each, q.Not(each, scalar(Scalar.BOOL, nullable=True))):
            more = replace(kept, filters=(*kept.filters, way))
            if stays(more):
                kept = more
                break
    for block in pattern.blocks:
        for turned in (block, replace(block, negated=not block.negated) if block.func is None else block):
            more = replace(kept, blocks=(*kept.blocks, turned))
            if stays(more):
                kept = more
                break
    return kept


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    found = draw(nodes())
    return Graph(CATALOG, found, draw(edges(found)))


@st.composite
def reads(draw: st.DrawFn, graph: Graph | None = None) -> tuple[q.ReadQuery, dict[str, Any]]:
    """A well-typed read and its parameters; given a graph, mostly one with an answer there."""
    scope = Scope()
    pattern = draw(patterns(scope))
    if graph is not None:
        pattern = lively(pattern, Oracle(graph, scope.params, NOW), lambda: draw(st.integers(0, 9)))
    plain: list[q.Expr] = [*_references(scope), *_named_nodes(scope)]
    items: list[q.Expr] = draw(st.lists(st.sampled_from(plain), max_size=3)) if plain else []
    aggregated = draw(st.booleans()) or not items
    if aggregated:
        for _ in range(draw(st.integers(1, 3))):
            func = cast("q.AggregateName", draw(st.sampled_from(["count", "sum", "avg", "min", "max"])))
            argument, _ = draw(arguments(scope, func))
            items.append(q.Aggregate(func, argument, _aggregate_type(func, argument)))
    elif draw(st.integers(0, 3)) == 0:
        items.append(draw(conditions(scope, 1)))
    names = tuple(q.ReturnItem(f"c{i}", each) for i, each in enumerate(items))
    order: list[q.OrderKey] = []
    for _ in range(draw(st.integers(0, 2))):
        descending = draw(st.booleans())
        if aggregated or draw(st.booleans()):
            place = draw(st.integers(0, len(items) - 1))
            order.append(q.OrderKey(items[place], descending, place))
        else:
            order.append(q.OrderKey(draw(st.sampled_from(plain)), descending))
    limit: int | q.Param | None = draw(st.none() | st.integers(0, 4))
    if limit is not None and draw(st.booleans()):
        scope.params["lim"] = limit
        limit = q.Param("lim", I64)
    return q.ReadQuery("drawn", (), pattern, names, aggregated, tuple(order), limit), scope.params


def _aggregate_type(func: str, argument: q.Expr) -> ValueType:
    if func == "count":
        return I64
    if func in ("sum", "avg"):
        return scalar(Scalar.F64, nullable=True)
    return cast("Any", argument).type.with_nullable(True)
