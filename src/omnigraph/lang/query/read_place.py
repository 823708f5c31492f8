"""What expressions of a read see: variables, parameters, and in `order` aliases (languages.md 8.2, 9.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.query.constant_places import ConstantPlace
from omnigraph.lang.query.faults import Fault, Replacement, listing, quoted, type_fault
from omnigraph.lang.query.places import Place, declared_property, system_field
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.scope import EdgeVariable, Scope
from omnigraph.lang.query.search import typed_search
from omnigraph.lang.query.syntax import (
    FOLDS,
    RANKS,
    SEARCH_CALLS,
    BareName,
    BareSystem,
    Call,
    LiteralValue,
    PropertyAccess,
    SystemAccess,
    Variable,
)
from omnigraph.lang.query.typed import Expr, NodeRef, Param, PropertyRef, SystemRef
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import STRING, Scalar, ValueType

_NODE_FIELDS = ("id",)
_EDGE_FIELDS = ("id", "src", "dst", "type")


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """In a read: `role` is a filter, a return item, an order key, or the argument of a correlated block."""

    scope: Scope
    role: Literal["filter", "item", "key", "fold"]
    aliases: frozenset[str] = frozenset()
    in_aggregate: bool = False
    null_test: bool = False

    def variable(self, node: Variable) -> Expr:
        found = self.scope.find(node.name, node.span)
        match found:
            case NodeType():
                return NodeRef(node.name, found.name)
            case Param():
                return self._readable(found, found.type, node.span, f"${node.name}")
            case EdgeVariable():
                raise type_fault(
                    "T23",
                    f"`${node.name}` is an edge and has no value of its own",
                    node.span,
                    expression=f"${node.name}",
                    expected="a property or system field of it",
                    fix=f"${node.name}.@id",
                    edits=(Replacement(Span(node.span.end, node.span.end), ".@id"),),
                )
            case None:
                raise self.scope.unbound(node.name, node.span)

    def property(self, node: PropertyAccess) -> Expr:
        name = node.name.text
        found = self.scope.find(node.variable.text, node.variable.span)
        match found:
            case NodeType():
                prefix = f"${node.variable.text}."
                of = declared_property("T6", found, node.name, node.span, prefix).type
            case EdgeVariable():
                of = _edge_property(found, node)
            case Param():
                raise _parameter_field(node)
            case None:
                raise self.scope.unbound(node.variable.text, node.variable.span)
        return self._readable(PropertyRef(node.variable.text, name, of), of, node.span, expression_text(node))

    def system(self, node: SystemAccess) -> Expr:
        found = self.scope.find(node.variable.text, node.variable.span)
        match found:
            case NodeType():
                fields = _NODE_FIELDS
            case EdgeVariable():
                fields = _EDGE_FIELDS
            case Param():
                raise _parameter_field(node)
            case None:
                raise self.scope.unbound(node.variable.text, node.variable.span)
        if node.name.text not in fields:
            what = f"node type `{found.name}`" if isinstance(found, NodeType) else "a bound edge"
            raise type_fault(
                "T6",
                f"{what} has no system field `@{node.name.text}`",
                node.span,
                expression=expression_text(node),
                expected=quoted([f"@{field}" for field in fields]),
            )
        return SystemRef(node.variable.text, system_field(node.name.text), STRING)

    def bare_name(self, node: BareName) -> Expr:
        if node.name in self.aliases:
            raise type_fault(
                "T36",
                f"`{node.name}` is an alias and cannot be used in `return`",
                node.span,
                expression=node.name,
                expected="the expression that the alias names",
            )
        raise self._without_variable(node.name, node.span, node.name)

    def bare_system(self, node: BareSystem) -> Expr:
        raise self._without_variable(f"@{node.name}", node.span, None)

    def literal(self, node: LiteralValue) -> None:
        return None

    def call(self, node: Call) -> None:
        if node.name in SEARCH_CALLS:
            self._search_call(node)
        elif node.name in FOLDS:
            self._aggregate_call(node)

    def _search_call(self, node: Call) -> None:
        """What no filter and no block takes. Where such a call may stand in `return` and `order`: search_places.py."""
        if self.role == "fold":
            message = f"a block's argument is a value, and `{node.name}` belongs to the whole read"
            raise type_fault("T40", message, node.span, expression=expression_text(node))
        if self.role == "filter" and node.name in RANKS:
            raise type_fault(
                "T7",
                f"`{node.name}` ranks the rows of an answer and cannot be a filter",
                node.span,
                expression=expression_text(node),
                expected=f"the first order key: `order {{ {expression_text(node)} }}`",
            )

    def _aggregate_call(self, node: Call) -> None:
        if self.in_aggregate:
            raise type_fault(
                "T8", "aggregates do not nest", node.span, expression=expression_text(node), expected="no aggregate"
            )
        if self.role == "filter":
            raise type_fault(
                "T7",
                f"`{node.name}` adds up the rows of an answer and cannot be a filter",
                node.span,
                expression=expression_text(node),
                expected=f"a block, as in `{node.name} {{ … }} > 1`",
            )
        if self.role == "fold":
            raise type_fault(
                "T40", "a block's argument holds no aggregate", node.span, expression=expression_text(node)
            )

    def search(self, node: Call, parts: list[Expr]) -> Expr:
        return typed_search(node, parts, self.scope)

    def within_aggregate(self) -> ReadPlace:
        return replace(self, in_aggregate=True, null_test=False)

    def under_null_test(self) -> ReadPlace:
        return replace(self, null_test=True)

    def element(self) -> Place:
        return ConstantPlace(self.scope.params, "element", self.scope)

    def _readable(self, typed: Expr, of: ValueType, span: Span, text: str) -> Expr:
        if of.scalar is not Scalar.BLOB:
            return typed
        code = "T7" if self.null_test else "T24"
        raise type_fault(code, f"`{text}` is a Blob, which no query reads", span, expression=text)

    def _without_variable(self, text: str, span: Span, name: str | None) -> Fault:
        """`T6` for a property or system field without a variable before it, with the first that could have it."""
        for variable, of in self.scope.nodes.items():
            if not variable.startswith("__") and (name is None or of.property(name) is not None):
                fix = f"${variable}.{text}"
                break
        else:
            fix = None
        return type_fault(
            "T6",
            f"`{text}` stands without a variable",
            span,
            expression=text,
            expected=f"a variable and a property: `$x.{text}`",
            fix=fix,
            edits=(Replacement(span, fix),) if fix else (),
        )


def _parameter_field(node: PropertyAccess | SystemAccess) -> Fault:
    return type_fault(
        "T6",
        f"`${node.variable.text}` is a parameter and has no fields",
        node.span,
        expression=expression_text(node),
        expected="a node or edge variable",
        fix=f"${node.variable.text}",
    )


def _edge_property(edge: EdgeVariable, node: PropertyAccess) -> ValueType:
    """The type of a bound edge's property: of one edge type, or what the members of a selection agree on (8.5)."""
    name, prefix = node.name, f"${node.variable.text}."
    if len(edge.members) == 1:
        return declared_property("T6", edge.members[0], name, node.span, prefix).type
    types = [found.type for member in edge.members if (found := member.property(name.text)) is not None]
    if not edge.members:
        message = "an edge of an empty selection has only its system fields"
        raise type_fault(
            "T6", message, node.span, expression=expression_text(node), expected=quoted([f"@{f}" for f in _EDGE_FIELDS])
        )
    agreed = _united(types) if len(types) == len(edge.members) else None
    if agreed is None:
        names = listing(f"`{member.name}`" for member in edge.members)
        raise type_fault(
            "T68",
            f"not every edge type of the selection has a property `{name.text}` of one type",
            node.span,
            expression=expression_text(node),
            expected=f"a property with one type in all of {names}",
            property_name=name.text,
        )
    return agreed


def _united(types: list[ValueType]) -> ValueType | None:
    """The type that the values of several properties have in common, None if there is none."""
    first = types[0]
    nullable = any(of.nullable for of in types)
    if all(of.is_text for of in types):
        if all(of.kind == "enum" for of in types):
            variants = sorted({variant for of in types for variant in of.variants})
            return ValueType("enum", Scalar.STRING, nullable, tuple(variants))
        return STRING.with_nullable(nullable)
    shapes = {(of.kind, of.scalar, of.dimension) for of in types}
    return first.with_nullable(nullable) if len(shapes) == 1 else None
