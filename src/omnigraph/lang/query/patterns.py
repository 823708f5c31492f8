"""Match blocks: declarations, hops, filters and correlated blocks, in the order of languages.md 16.1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.lang.diagnostics import Sought, Span
from omnigraph.lang.query.constant_places import ConstantPlace
from omnigraph.lang.query.expressions import aggregate, filters_of, typed_expression
from omnigraph.lang.query.faults import Fault, Replacement, listing, nearest_name, type_fault
from omnigraph.lang.query.fit import match_filter
from omnigraph.lang.query.hops import HopEnds, checked_hop, infer_types, text_test_fix
from omnigraph.lang.query.places import declared_property
from omnigraph.lang.query.printer import clause_text, expression_text
from omnigraph.lang.query.read_place import ReadPlace
from omnigraph.lang.query.scope import ANONYMOUS, Scope
from omnigraph.lang.query.search_places import placed_filters
from omnigraph.lang.query.syntax import (
    TEXT_TESTS,
    BlockClause,
    Call,
    Clause,
    DateLiteral,
    Declaration,
    Expression,
    FoldClause,
    HopClause,
    LiteralValue,
    Variable,
    Word,
)
from omnigraph.lang.query.typed import Block, Expr, Hop, NodeVar, Pattern
from omnigraph.lang.query.value_types import comparable, spelled, value_type
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.lang.types import I64, ValueType


def check_names(clauses: Sequence[Clause], scope: Scope) -> None:
    """Raises `Fault` for the first pattern variable with a reserved name (`T49`) or that of a parameter (`T61`)."""
    for word, hop in _bound_words(clauses):
        if word.text.startswith("__"):
            raise type_fault(
                "T49",
                f"`${word.text}` begins with two underscores, which is reserved",
                word.span,
                expression=f"${word.text}",
                expected="a name that does not begin with `__`",
            )
        if word.text in scope.params:
            raise _named_like_parameter(word, hop)


def _bound_words(clauses: Sequence[Clause]) -> Iterator[tuple[Word, HopClause | None]]:
    """The names that clauses and the blocks among them bind, in written order, with the hop that binds one."""
    for clause in clauses:
        match clause:
            case Declaration(variable=variable):
                yield variable, None
            case HopClause(left=left, binding=binding, right=right):
                yield left, clause
                if binding is not None:
                    yield binding, clause
                yield right, clause
            case BlockClause(clauses=inner) | FoldClause(clauses=inner):
                yield from _bound_words(inner)
            case _:
                pass


def _named_like_parameter(word: Word, hop: HopClause | None) -> Fault:
    fix, expected, edits = None, "a name that no parameter has", tuple[Replacement, ...]()
    if hop is not None and [edge.text for edge in hop.selection.words] in ([test] for test in TEXT_TESTS):
        fix, expected = text_test_fix(hop)
        edits = (Replacement(hop.span, fix),)
    return type_fault(
        "T61",
        f"`${word.text}` is a parameter and cannot be bound by a pattern",
        word.span,
        expression=f"${word.text}",
        expected=expected,
        fix=fix,
        edits=edits,
    )


def check_pattern(
    clauses: Sequence[Clause], scope: Scope, catalog: Catalog, declared: Mapping[str, NodeType] | None = None
) -> Pattern:
    """The typed pattern of a block. `scope` is empty for the outermost block, else what `Scope.inner` gave; it holds
    the block's own variables afterwards. `declared` are the variables that enclosing blocks declare.

    Raises `Fault` at the first fault in the order of 16.1.
    """
    return _BlockCheck(clauses, scope, catalog, dict(declared or {})).pattern()


@dataclass
class _BlockCheck:
    clauses: Sequence[Clause]
    scope: Scope
    catalog: Catalog
    declared: dict[str, NodeType]  # by an own declaration or one outside

    def pattern(self) -> Pattern:
        filters = [f for clause in self.clauses if isinstance(clause, Declaration) for f in self._declaration(clause)]
        ends = {i: self._ends(clause) for i, clause in enumerate(self.clauses) if isinstance(clause, HopClause)}
        infer_types(list(ends.values()), self.scope, self.catalog)
        hops = self._hops(ends)
        order = self._order(ends)
        blocks: list[Block] = []
        for index, clause in enumerate(self.clauses):
            match clause:
                case Declaration() | HopClause():
                    pass
                case BlockClause() | FoldClause():
                    blocks.append(self._block(clause, index, order))
                case _:
                    conjuncts = filters_of(clause, ReadPlace(self.scope, "filter"))
                    filters += placed_filters(clause, conjuncts, self.scope)
        nodes = tuple(
            NodeVar(name, self.scope.nodes[name].name)
            for name in order
            if name in self.scope.nodes and name not in self.scope.outer
        )
        return Pattern(nodes, tuple(hops), tuple(filters), tuple(blocks))

    def _order(self, ends: Mapping[int, HopEnds]) -> dict[str, int]:
        """The names that the block's clauses bind, in order of appearance, with the index of the first clause."""
        order: dict[str, int] = {}
        for index, clause in enumerate(self.clauses):
            if isinstance(clause, Declaration):
                order.setdefault(clause.variable.text, index)
            elif index in ends:
                hop = ends[index]
                order.setdefault(hop.left, index)
                if hop.clause.binding is not None and hop.clause.binding.text != ANONYMOUS:
                    order.setdefault(hop.clause.binding.text, index)
                order.setdefault(hop.right, index)
        return order

    def _declaration(self, clause: Declaration) -> list[Expr]:
        """Note the variable's type; the filters that its pairs stand for."""
        name, span = clause.variable.text, clause.variable.span
        if name == ANONYMOUS:
            raise self.scope.unbound(name, span)
        self.scope.use(name, span)
        if name in self.scope.edges:
            raise type_fault("T23", f"`${name}` is an edge and cannot be declared", span, expression=f"${name}")
        of = self.catalog.nodes.get(clause.type_name.text)
        if of is None:
            raise _unknown_type(clause, self.catalog)
        known = self.scope.nodes.get(name)
        if known is not None and known.name != of.name:
            raise type_fault(
                "T50",
                f"`${name}` is `{known.name}` and cannot be `{of.name}` too",
                clause.type_name.span,
                expression=clause_text(clause),
                expected=f"`{known.name}`",
                type_name=of.name,
            )
        self.scope.nodes[name] = self.declared[name] = of
        place = ConstantPlace(self.scope.params, "match")
        filters: list[Expr] = []
        for pair in clause.pairs:
            wanted = declared_property("T2", of, pair.name, pair.name.span)
            value = typed_expression(pair.value, place)
            filters.append(match_filter(name, of, wanted, pair, value))
        return filters

    def _ends(self, clause: HopClause) -> HopEnds:
        left, right = (
            self.scope.fresh.name() if end.text == ANONYMOUS else end.text for end in (clause.left, clause.right)
        )
        return HopEnds(clause, left, right)

    def _hops(self, ends: Mapping[int, HopEnds]) -> list[Hop]:
        seen: set[str] = set()
        hops: list[Hop] = []
        for hop in ends.values():
            typed = checked_hop(hop, self.scope, self.catalog, self.declared, seen)
            seen.update((hop.left, hop.right))
            if typed.edge_var is not None:
                seen.add(typed.edge_var)
            hops.append(typed)
        return hops

    def _block(self, clause: BlockClause | FoldClause, index: int, order: Mapping[str, int]) -> Block:
        visible = self.scope.outer | {name for name, first in order.items() if first < index}
        later = (self.scope.later | {name for name, first in order.items() if first > index}) - visible
        inner = self.scope.inner(frozenset(visible), frozenset(later))
        declared = {name: of for name, of in self.declared.items() if name in visible}
        pattern = check_pattern(clause.clauses, inner, self.catalog, declared)
        if not inner.used:
            raise _unrelated(clause)
        argument, right = _fold_parts(clause, inner) if isinstance(clause, FoldClause) else (None, None)
        # What a nested block uses from further out must reach it, though it is no use of this block's own.
        passed_on = {name for block in pattern.blocks for name in block.outer if name in inner.outer}
        return Block(
            pattern=pattern,
            outer=tuple(sorted(inner.used | passed_on)),
            negated=isinstance(clause, BlockClause) and clause.word == "not",
            func=clause.fold if isinstance(clause, FoldClause) else None,
            argument=argument,
            op=clause.sign if isinstance(clause, FoldClause) else None,
            right=right,
        )


def _unknown_type(clause: Declaration, catalog: Catalog) -> Fault:
    name = clause.type_name.text
    near = nearest_name(name, catalog.nodes)
    what = "an interface, and interfaces are not queried" if name in catalog.interfaces else "no node type"
    return type_fault(
        "T1",
        f"`{name}` is {what}",
        clause.type_name.span,
        expression=clause_text(clause),
        expected=f"a node type: {listing(catalog.nodes)}",
        fix=near,
        edits=(Replacement(clause.type_name.span, near),) if near else (),
        type_name=name,
        sought=Sought("node", name, clause.type_name.span),
    )


def _unrelated(clause: BlockClause | FoldClause) -> Fault:
    word = clause.word if isinstance(clause, BlockClause) else clause.fold
    return type_fault(
        "T9" if word == "not" else "T39",
        f"this `{word}` block uses no variable from outside",
        Span(clause.span.start, clause.span.start + len(word)),
        expression=clause_text(clause),
        expected="a variable that the enclosing block binds",
    )


def _fold_parts(clause: FoldClause, scope: Scope) -> tuple[Expr | None, Expr]:
    """The argument and the right side of an aggregate block. Raises `Fault` (`T40`)."""
    argument: Expr | None = None
    of: ValueType = I64
    if clause.argument is not None:
        argument = typed_expression(clause.argument, ReadPlace(scope, "fold"))
        of = aggregate(clause.fold, clause.argument, argument, "T40").type
    elif clause.fold != "count":
        raise type_fault(
            "T40",
            f"`{clause.fold}` has no argument",
            Span(clause.span.start, clause.span.start + len(clause.fold)),
            expression=clause_text(clause),
            expected=f"what to take the {clause.fold} of: `{clause.fold}($x.name) {{ … }}`",
        )
    return argument, _fold_right(clause, scope, of)


def _fold_right(clause: FoldClause, scope: Scope, of: ValueType) -> Expr:
    written = clause.right
    is_now = isinstance(written, Call) and written.name == "now"
    is_param = isinstance(written, Variable) and written.name in scope.params
    if not (is_now or is_param or isinstance(written, (LiteralValue, DateLiteral))):
        raise _fold_right_fault(written, f"`{expression_text(written)}` may differ from row to row")
    right = typed_expression(written, ConstantPlace(scope.params, "element", scope))
    found = value_type(right)
    if found is None or not comparable(of, found):
        raise _fold_right_fault(written, f"`{clause.fold}` gives `{of.spelling()}`, not `{spelled(right)}`")
    return right


def _fold_right_fault(written: Expression, message: str) -> Fault:
    return type_fault(
        "T40",
        message,
        written.span,
        expression=expression_text(written),
        expected="a literal, `now()` or a parameter that compares with the aggregate",
    )
