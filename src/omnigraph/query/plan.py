"""The order in which a pattern is matched: pure, from the pattern and a few numbers about the tables.

A plan begins where the fewest assignments are expected and grows from there; filters are applied as soon as their
variables are bound. The answer never depends on the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Protocol

from omnigraph.lang.query.typed import (
    Aggregate,
    And,
    Block,
    Bm25,
    Compare,
    Expr,
    Fused,
    Hop,
    InList,
    IsNull,
    ListOf,
    Nearest,
    NodeRef,
    Not,
    Or,
    Param,
    Pattern,
    PropertyRef,
    ReadQuery,
    SystemRef,
    TextSearch,
    TextTest,
)
from omnigraph.lang.query.value_types import STRING
from omnigraph.lang.types import Scalar


class Statistics(Protocol):
    """What planning asks about the tables; answers may be wrong without harm to results."""

    def node_rows(self, type_name: str) -> float: ...

    def edge_rows(self, edge_type: str) -> float: ...

    def key_of(self, type_name: str) -> tuple[str, ...]: ...

    def list_length(self, expr: Expr) -> float:
        """Elements of a list constant."""
        ...


@dataclass(frozen=True, slots=True)
class Lookup:
    """The nodes of a variable named by id: `ids` is a String expression or a list of them, or `key` gives the components.

    `implied` are the filters that looking up makes true.
    """

    key: tuple[Expr, ...] = ()  # one expression per key component, in id order
    ids: Expr | None = None
    many: bool = False  # the expression is a list of ids, or of keys of one component
    implied: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTests:
    """What a node variable must satisfy by itself."""

    var: str
    type_name: str
    filters: tuple[Expr, ...] = ()
    lookup: Lookup | None = None

    @property
    def conjuncts(self) -> tuple[Expr, ...]:
        """What is asked of the node, the look-up written out again."""
        return self.filters if self.lookup is None else (*self.lookup.implied, *self.filters)


@dataclass(frozen=True, slots=True)
class Start:
    """Every assignment so far with every node that passes; the first step, or a cross product."""

    node: NodeTests
    expected: float


@dataclass(frozen=True, slots=True)
class Expand:
    """From the bound end of a hop to the other, which it binds."""

    hop: Hop
    from_left: bool
    node: NodeTests
    expected: float


@dataclass(frozen=True, slots=True)
class Close:
    """A hop whose ends are both bound: keeps assignments, or multiplies them by edge rows if it binds the edge."""

    hop: Hop


@dataclass(frozen=True, slots=True)
class Keep:
    """A filter over several variables, over an edge, or over none."""

    filter: Expr


@dataclass(frozen=True, slots=True)
class Correlate:
    """A correlated block."""

    block: Block


Step = Start | Expand | Close | Keep | Correlate


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...]

    def needed(self, wanted: Set[str]) -> list[frozenset[str]]:
        """After each step: the variables that a later step reads, and those wanted of the answer."""
        needed = [frozenset(wanted)]
        for step in self.steps[:0:-1]:
            needed.append(needed[-1] | read_by(step))
        return needed[::-1] if self.steps else []


def read_by(step: Step) -> frozenset[str]:
    """The variables that a step reads of the assignments it is given."""
    match step:
        case Start():
            return frozenset()
        case Expand():
            return frozenset((step.hop.left if step.from_left else step.hop.right,))
        case Close():
            return frozenset((step.hop.left, step.hop.right))
        case Keep():
            return variables(step.filter)
        case Correlate():
            return free_variables(step.block)


def variables(expr: Expr) -> frozenset[str]:
    """The pattern variables that an expression reads."""
    return frozenset(part.var for part in parts(expr) if isinstance(part, PropertyRef | SystemRef | NodeRef))


def parts(*exprs: Expr) -> Iterator[Expr]:
    """Expressions and everything that they are made of."""
    pending = list(exprs)
    while pending:
        expr = pending.pop()
        yield expr
        pending += _operands(expr)


def expressions(query: ReadQuery) -> Iterator[Expr]:
    """Every expression of a read and every part of it, whichever block it stands in."""
    exprs: list[Expr] = [*(item.expr for item in query.items), *(key.expr for key in query.order)]
    patterns = [query.pattern]
    while patterns:
        pattern = patterns.pop()
        exprs += pattern.filters
        for block in pattern.blocks:
            patterns.append(block.pattern)
            exprs += [each for each in (block.argument, block.right) if each is not None]
    if isinstance(query.limit, Param):
        exprs.append(query.limit)
    yield from parts(*exprs)


def _operands(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Compare() | And() | Or():
            return expr.left, expr.right
        case Not() | IsNull():
            return (expr.operand,)
        case InList():
            return expr.item, expr.items
        case TextTest():
            return expr.text, expr.part
        case TextSearch():
            return (expr.text, expr.query) if expr.edits is None else (expr.text, expr.query, expr.edits)
        case Nearest():
            return expr.vector, expr.query
        case Bm25():
            return expr.text, expr.query
        case Fused():
            return expr.first, expr.second, expr.k
        case Aggregate():
            return (expr.argument,)
        case ListOf():
            return expr.items
        case _:
            return ()


def shown_ties(query: ReadQuery) -> list[Expr]:
    """What decides between rows whose order keys are equal, in order (languages.md 11.2): the group keys of an aggregated
    read, else the ids of all named variables. Nothing, if such rows would look the same.
    """
    keys = [key.expr for key in query.order]
    if not query.order or all(item.expr in keys and not _has_two_zeros(item.expr) for item in query.items):
        return []
    if query.aggregated:
        return [item.expr for item in query.items if not isinstance(item.expr, Aggregate) and item.expr not in keys]
    ties: list[Expr] = []
    edges = {hop.edge_var: hop for hop in query.pattern.hops if hop.edge_var is not None}
    names = [*(node.name for node in query.pattern.nodes), *edges]
    for name in sorted(names, key=str.encode):
        if name.startswith("__"):
            continue
        if name in edges and len({member.edge_type for member in edges[name].members}) > 1:
            ties.append(SystemRef(name, "type", STRING))
        ties.append(SystemRef(name, "id", STRING))
    return ties


def _has_two_zeros(expr: Expr) -> bool:
    """Whether two values may be equal and look different, as -0.0 and 0.0 do."""
    of = None if isinstance(expr, NodeRef) else expr.type
    return of is not None and of.scalar in (Scalar.F32, Scalar.F64)


def free_variables(block: Block) -> frozenset[str]:
    """The variables of enclosing blocks that a block reads, itself or in a block nested in it."""
    pattern = block.pattern
    own = {node.name for node in pattern.nodes} | {hop.edge_var for hop in pattern.hops}
    used: set[str] = set(block.outer)
    for hop in pattern.hops:
        used |= {hop.left, hop.right}
    for each in (*pattern.filters, *(() if block.argument is None else (block.argument,))):
        used |= variables(each)
    for nested in pattern.blocks:
        used |= free_variables(nested)
    return frozenset(used - own)


def plan_pattern(
    pattern: Pattern,
    statistics: Statistics,
    *,
    outer: Mapping[str, str] | None = None,
    assignments: float = 1,
) -> Plan:
    """Order the steps of a match block. `outer`: variables that are bound already, with the type of the nodes."""
    return Plan(tuple(_Planner(pattern, statistics, outer or {}, assignments).steps()))


@dataclass(slots=True)
class _Planner:
    pattern: Pattern
    statistics: Statistics
    outer: Mapping[str, str]
    rows: float
    bound: set[str] = field(default_factory=set[str])
    tests: dict[str, NodeTests] = field(default_factory=dict[str, NodeTests])
    hops: list[Hop] = field(default_factory=list[Hop])
    filters: list[Expr] = field(default_factory=list[Expr])
    blocks: list[Block] = field(default_factory=list[Block])

    def steps(self) -> Iterable[Step]:
        own = {node.name: node.type_name for node in self.pattern.nodes}
        alone: dict[str, list[Expr]] = {name: [] for name in own}
        for each in self.pattern.filters:
            names = variables(each)
            if len(names) == 1 and (name := next(iter(names))) in own:
                alone[name].append(each)
            else:
                self.filters.append(each)
        for name, type_name in own.items():
            self.tests[name] = node_tests(name, type_name, alone[name], self.statistics.key_of(type_name))
        self.bound.update(self.outer)
        self.hops.extend(self.pattern.hops)
        self.blocks.extend(self.pattern.blocks)
        yield from self._free()
        while self.hops or any(name not in self.bound for name in own):
            yield self._cheapest()
            yield from self._free()

    def _free(self) -> Iterable[Step]:
        """Everything that only takes assignments away and whose variables are bound, cheapest kind first."""
        yield from self._ready_filters()
        for hop in [hop for hop in self.hops if hop.left in self.bound and hop.right in self.bound]:
            self.hops.remove(hop)
            if hop.edge_var is not None:
                self.bound.add(hop.edge_var)
            yield Close(hop)
        yield from self._ready_filters()
        for block in [block for block in self.blocks if self.bound.issuperset(free_variables(block))]:
            self.blocks.remove(block)
            yield Correlate(block)

    def _ready_filters(self) -> Iterable[Step]:
        for each in [each for each in self.filters if self.bound.issuperset(variables(each))]:
            self.filters.remove(each)
            yield Keep(each)

    def _cheapest(self) -> Step:
        """The step after which the fewest assignments are expected; of equals the first as written."""
        options = [*self._expansions(), *self._starts()]
        best = min(options, key=lambda step: step.expected)
        self.rows = max(best.expected, 0.0)
        self.bound.add(best.node.var)
        if isinstance(best, Expand):
            self.hops.remove(best.hop)
            if best.hop.edge_var is not None:
                self.bound.add(best.hop.edge_var)
        return best

    def _expansions(self) -> Iterable[Start | Expand]:
        for hop in self.hops:
            if (hop.left in self.bound) == (hop.right in self.bound):
                continue
            from_left = hop.left in self.bound
            node = self.tests[hop.right if from_left else hop.left]
            reached = self.rows * self._fanout(hop, from_left)
            expected = reached * self._share(node)
            if node.lookup is not None:
                expected = min(expected, self.rows)
            yield Expand(hop, from_left, node, expected)

    def _starts(self) -> Iterable[Start | Expand]:
        """A variable that no hop reaches from what is bound, or whose nodes are named by id."""
        for name, node in self.tests.items():
            if name in self.bound:
                continue
            reached = any(
                (hop.left == name and hop.right in self.bound) or (hop.right == name and hop.left in self.bound)
                for hop in self.hops
            )
            if reached and (node.lookup is None or node.lookup.many):
                continue
            expected = self.statistics.node_rows(node.type_name) * self._share(node)
            yield Start(node, self.rows * expected)

    def _share(self, node: NodeTests) -> float:
        """The part of a type's nodes that is expected to pass."""
        rows = max(self.statistics.node_rows(node.type_name), 1.0)
        share = 1.0
        if node.lookup is not None:
            named = node.lookup.ids if node.lookup.ids is not None else node.lookup.key[0]
            share = min(1.0, (self.statistics.list_length(named) if node.lookup.many else 1.0) / rows)
        for each in node.filters:
            share *= selectivity(each)
        return share

    def _fanout(self, hop: Hop, from_left: bool) -> float:
        near = self.tests.get(hop.left if from_left else hop.right)
        near_type = near.type_name if near is not None else self.outer.get(hop.left if from_left else hop.right)
        far = self.tests[hop.right if from_left else hop.left]
        sources = max(self.statistics.node_rows(near_type), 1.0) if near_type else 1.0
        edges = sum(
            self.statistics.edge_rows(member.edge_type) * (2 if member.direction == "both" else 1)
            for member in hop.members
        )
        step = edges / sources
        if hop.high == 1:
            return step
        reached = 0.0
        for hops in range(1, min(hop.high, 30) + 1):
            reached += step**hops
            if reached > 1e12:
                break
        return min(reached, self.statistics.node_rows(far.type_name))


def selectivity(expr: Expr) -> float:
    """A guess at the part of rows for which an expression is true."""
    match expr:
        case Compare():
            return {"=": 0.05, "!=": 0.9}.get(expr.op, 0.3)
        case And():
            return selectivity(expr.left) * selectivity(expr.right)
        case Or():
            return min(1.0, selectivity(expr.left) + selectivity(expr.right))
        case Not():
            return 1.0 - 0.9 * selectivity(expr.operand)
        case InList():
            return 0.1
        case IsNull():
            return 0.9 if expr.negated else 0.1
        case TextTest():
            return 0.1
        case TextSearch():
            return 0.02
        case _:
            return 0.5


# --- looking nodes up by id


def node_tests(var: str, type_name: str, filters: Iterable[Expr], key: tuple[str, ...]) -> NodeTests:
    """The filters of one variable, with a look-up by id taken out of them if they allow one."""
    all_filters = tuple(filters)
    lookup = _lookup_by_id(all_filters) or _lookup_by_key(all_filters, key)
    if lookup is None:
        return NodeTests(var, type_name, all_filters)
    rest = tuple(each for each in all_filters if not any(each is implied for implied in lookup.implied))
    return NodeTests(var, type_name, rest, lookup)


def _equated(expr: Expr) -> tuple[Expr, Expr] | None:
    """The two sides of `reference = constant`, whichever way round it is written."""
    if isinstance(expr, Compare) and expr.op == "=":
        for left, right in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(left, PropertyRef | SystemRef) and not variables(right):
                return left, right
    return None


def _lookup_by_id(filters: tuple[Expr, ...]) -> Lookup | None:
    for each in filters:
        equated = _equated(each)
        if equated is not None and isinstance(equated[0], SystemRef) and equated[0].field == "id":
            return Lookup(ids=equated[1], implied=(each,))
    for each in filters:
        listed = _listed(each)
        if listed is not None and isinstance(listed[0], SystemRef) and listed[0].field == "id":
            return Lookup(ids=listed[1], many=True, implied=(each,))
    return None


def _listed(expr: Expr) -> tuple[Expr, Expr] | None:
    """The item and the list of `reference in constant list`."""
    if isinstance(expr, InList) and not variables(expr.items):
        return expr.item, expr.items
    return None


def _lookup_by_key(filters: tuple[Expr, ...], key: tuple[str, ...]) -> Lookup | None:
    if not key:
        return None
    given: dict[str, tuple[Expr, Expr]] = {}
    for each in filters:
        equated = _equated(each)
        if equated is not None and isinstance(equated[0], PropertyRef) and equated[0].name in key:
            given.setdefault(equated[0].name, (equated[1], each))
    if len(given) == len(key):
        return Lookup(key=tuple(given[name][0] for name in key), implied=tuple(given[name][1] for name in key))
    for each in filters:
        listed = _listed(each) if len(key) == 1 else None
        if listed is not None and isinstance(listed[0], PropertyRef) and listed[0].name == key[0]:
            return Lookup(key=(listed[1],), many=True, implied=(each,))
    return None
