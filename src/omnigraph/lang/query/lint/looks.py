"""The expressions of a query that checks, each with the place it stands in, so that a rule can ask for the type of a part.

Nothing is judged here, and the places are those of the check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.lang.query.constant_places import ConstantPlace, WherePlace
from omnigraph.lang.query.expressions import typed_expression
from omnigraph.lang.query.places import Place
from omnigraph.lang.query.read_place import ReadPlace
from omnigraph.lang.query.scope import EdgeVariable, Fresh, Scope
from omnigraph.lang.query.syntax import (
    BareName,
    BlockClause,
    Clause,
    CompareSign,
    Comparison,
    Declaration,
    DeleteSyntax,
    Expression,
    FoldClause,
    HopClause,
    InfixTest,
    InsertSyntax,
    ListLiteral,
    LiteralValue,
    Membership,
    QuerySyntax,
    ReadBody,
    WriteSyntax,
    parts_of,
)
from omnigraph.lang.query.typed import Expr, Param, Pattern, PropertyRef, ReadQuery, TypedQuery
from omnigraph.lang.query.value_types import value_type
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import ValueType


@dataclass(frozen=True, slots=True)
class Look:
    """One expression and the place it stands in. Parts of it stand there too."""

    expression: Expression
    place: Place
    owners: Mapping[str, str]  # variable -> name of its type; the target of a mutation is ""

    def typed(self, part: Expression) -> Expr:
        """The typed form of a part of the expression."""
        return typed_expression(part, self.place)

    def type_of(self, part: Expression) -> ValueType | None:
        return value_type(self.typed(part))


@dataclass(frozen=True, slots=True)
class Meeting:
    """A property that is compared with literals, one by one. `type_name`: whose property, if it is of one type."""

    sign: CompareSign | Literal["in"]
    property: PropertyRef
    literals: tuple[LiteralValue, ...]
    type_name: str | None


@dataclass(frozen=True, slots=True)
class QueryLooks:
    """A query as written and as checked."""

    syntax: QuerySyntax
    typed: TypedQuery
    catalog: Catalog
    looks: tuple[Look, ...]
    meetings: tuple[Meeting, ...]

    @property
    def name(self) -> str:
        return self.syntax.name.text


def looked_at(syntax: QuerySyntax, typed: TypedQuery, catalog: Catalog) -> QueryLooks:
    """A query that checked, ready for the rules."""
    walk = _Walk(catalog, {param.name: Param(param.name, param.type) for param in typed.params})
    if isinstance(syntax.body, ReadBody):
        assert isinstance(typed, ReadQuery)
        walk.read(syntax.body, typed)
    else:
        for statement in syntax.body:
            walk.statement(statement)
    return QueryLooks(syntax, typed, catalog, tuple(walk.looks), tuple(walk.meetings))


@dataclass
class _Walk:
    catalog: Catalog
    params: Mapping[str, Param]
    looks: list[Look] = field(default_factory=list[Look])
    meetings: list[Meeting] = field(default_factory=list[Meeting])

    def read(self, body: ReadBody, query: ReadQuery) -> None:
        scope = Scope(self.params, Fresh())
        self.block(body.clauses, query.pattern, scope)
        aliases = {item.alias.text for item in body.items if item.alias is not None}
        place = ReadPlace(scope, "item")
        for expression in (*(item.expression for item in body.items), *(key.expression for key in body.order)):
            if not (isinstance(expression, BareName) and expression.name in aliases):
                self.look(expression, place, _owners(scope))

    def block(self, clauses: Sequence[Clause], pattern: Pattern, scope: Scope) -> None:
        """Add what a block binds to the scope, then look at its clauses; its blocks have scopes of their own."""
        scope.nodes.update({node.name: self.catalog.nodes[node.type_name] for node in pattern.nodes})
        for hop in pattern.hops:
            if hop.edge_var is not None:
                scope.edges[hop.edge_var] = EdgeVariable(tuple(self.catalog.edges[m.edge_type] for m in hop.members))
        owners, blocks = _owners(scope), iter(pattern.blocks)
        for clause in clauses:
            match clause:
                case HopClause():
                    pass
                case Declaration():
                    self.declaration(clause, scope, owners)
                case BlockClause() | FoldClause():
                    inner = Scope(self.params, scope.fresh, dict(scope.nodes), dict(scope.edges))
                    self.block(clause.clauses, next(blocks).pattern, inner)
                    if isinstance(clause, FoldClause):
                        self.fold(clause, inner)
                case _:
                    self.look(clause, ReadPlace(scope, "filter"), owners)

    def declaration(self, clause: Declaration, scope: Scope, owners: Mapping[str, str]) -> None:
        of = scope.nodes[clause.variable.text]
        for pair in clause.pairs:
            self.look(pair.value, ConstantPlace(self.params, "match"), owners)
            wanted = of.property(pair.name.text)
            assert wanted is not None
            sign: Literal["in", "="] = "in" if wanted.type.kind == "list" else "="
            self.meet(sign, PropertyRef(clause.variable.text, wanted.name, wanted.type), (pair.value,), owners)

    def fold(self, clause: FoldClause, scope: Scope) -> None:
        owners = _owners(scope)
        if clause.argument is not None:
            look = self.look(clause.argument, ReadPlace(scope, "fold"), owners)
            if clause.fold in ("min", "max"):
                self.meet(clause.sign, look.typed(clause.argument), (clause.right,), owners)
        self.look(clause.right, ConstantPlace(self.params, "element", scope), owners)

    def statement(self, statement: WriteSyntax) -> None:
        name = statement.type_name.text
        target = self.catalog.nodes.get(name) or self.catalog.edges[name]
        if not isinstance(statement, DeleteSyntax):
            for pair in statement.assignments:
                self.look(pair.value, ConstantPlace(self.params, "assignment"), {})
        if not isinstance(statement, InsertSyntax):
            self.look(statement.where, WherePlace(self.params, target), {"": target.name})

    def look(self, expression: Expression, place: Place, owners: Mapping[str, str]) -> Look:
        look = Look(expression, place, owners)
        self.looks.append(look)
        for part in parts_of(expression):
            match part:
                case Comparison(sign=sign, left=left, right=right):
                    for value, other in ((left, right), (right, left)):
                        if isinstance(other, LiteralValue) and not isinstance(value, LiteralValue):
                            self.meet(sign, look.typed(value), (other,), owners)
                case Membership(item=item, items=ListLiteral(items=others)):
                    self.meet("in", look.typed(item), others, owners)
                case Membership(item=LiteralValue() as other, items=items):
                    self.meet_list(look.typed(items), other, owners)
                case InfixTest(word="contains", left=items, right=LiteralValue() as other):
                    self.meet_list(look.typed(items), other, owners)
                case _:
                    pass
        return look

    def meet_list(self, items: Expr, other: Expression, owners: Mapping[str, str]) -> None:
        of = value_type(items)
        if of is not None and of.kind == "list":  # and not a text, in which a part is looked for
            self.meet("in", items, (other,), owners)

    def meet(
        self,
        sign: CompareSign | Literal["in"],
        value: Expr,
        others: Sequence[Expression],
        owners: Mapping[str, str],
    ) -> None:
        literals = tuple(other for other in others if isinstance(other, LiteralValue))
        if isinstance(value, PropertyRef) and literals:
            self.meetings.append(Meeting(sign, value, literals, owners.get(value.var)))


def _owners(scope: Scope) -> dict[str, str]:
    """The type of each variable that is of one type alone."""
    nodes = {name: of.name for name, of in scope.nodes.items()}
    return nodes | {name: of.members[0].name for name, of in scope.edges.items() if len(of.members) == 1}
