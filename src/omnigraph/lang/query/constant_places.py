"""What constants and the `where` of a mutation see: parameters, and in a `where` the target's row (languages.md 9.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.query.faults import Fault, Replacement, listing, nearest_name, quoted, type_fault
from omnigraph.lang.query.places import Place, call_refused, declared_property, refused_before, system_field
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.scope import Scope
from omnigraph.lang.query.syntax import (
    FOLDS,
    SEARCH_CALLS,
    BareName,
    BareSystem,
    Call,
    LiteralValue,
    PropertyAccess,
    SystemAccess,
    Variable,
    Word,
)
from omnigraph.lang.query.typed import Expr, Param, PropertyRef, SystemRef
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType
from omnigraph.lang.types import STRING, Scalar

_NODE_FIELDS = ("id",)
_EDGE_FIELDS = ("id", "src", "dst")


@dataclass(frozen=True, slots=True)
class ConstantPlace:
    """A constant (languages.md 9.6): of an assignment, of a binding match, or a list element in a read, which knows the
    scope around it.
    """

    params: Mapping[str, Param]
    role: Literal["assignment", "match", "element"]
    scope: Scope | None = None
    where: WherePlace | None = None  # the `where` that a list of constants stands in

    def variable(self, node: Variable) -> Expr:
        if self.role == "assignment":
            return _parameter(self.params, node)
        found = self.params.get(node.name)
        if found is not None:
            return found
        if self.role == "element" and self.scope is not None:
            if self.scope.find(node.name, node.span) is None:
                raise self.scope.unbound(node.name, node.span)
            raise type_fault(
                "T23",
                f"`${node.name}` is a variable of the pattern, and a list holds constants",
                node.span,
                expression=f"${node.name}",
                expected="a literal or a parameter",
            )
        raise type_fault(
            "T3",
            f"`${node.name}` is no parameter of this query",
            node.span,
            expression=f"${node.name}",
            expected=f"a literal or a parameter: {listing(f'${name}' for name in self.params)}",
        )

    def property(self, node: PropertyAccess) -> Expr:
        raise _not_constant(node)

    def system(self, node: SystemAccess) -> Expr:
        raise _not_constant(node)

    def bare_name(self, node: BareName) -> Expr:
        raise _not_constant(node)

    def bare_system(self, node: BareSystem) -> Expr:
        raise _not_constant(node)

    def literal(self, node: LiteralValue) -> None:
        if self.where is not None:
            self.where.literal(node)

    def call(self, node: Call) -> None:
        if node.name in FOLDS or node.name in SEARCH_CALLS:
            raise call_refused(node, "a mutation" if self.role == "assignment" else "a constant")

    def search(self, node: Call, parts: list[Expr]) -> Expr:
        raise refused_before(node)

    def within_aggregate(self) -> ConstantPlace:
        return self

    def under_null_test(self) -> ConstantPlace:
        return self

    def element(self) -> Place:
        return self


@dataclass(frozen=True, slots=True)
class WherePlace:
    """The `where` of an update or delete."""

    params: Mapping[str, Param]
    target: EntityType

    def variable(self, node: Variable) -> Expr:
        return _parameter(self.params, node)

    def property(self, node: PropertyAccess) -> Expr:
        raise _no_fields(self.params, node)

    def system(self, node: SystemAccess) -> Expr:
        raise _no_fields(self.params, node)

    def bare_name(self, node: BareName) -> Expr:
        found = self.target.property(node.name)
        if found is None and isinstance(self.target, EdgeType) and node.name in ("from", "to"):
            return SystemRef("", "src" if node.name == "from" else "dst", STRING)
        if found is None:
            found = declared_property("T11", self.target, Word(node.name, node.span), node.span)
        if found.type.scalar is Scalar.BLOB:
            message = f"`{node.name}` is a Blob, which cannot be tested"
            raise type_fault(
                "T11", message, node.span, expression=node.name, type_name=self.target.name, property_name=node.name
            )
        return PropertyRef("", node.name, found.type)

    def bare_system(self, node: BareSystem) -> Expr:
        fields = _NODE_FIELDS if isinstance(self.target, NodeType) else _EDGE_FIELDS
        if node.name not in fields:
            raise type_fault(
                "T11",
                f"`{self.target.name}` has no system field `@{node.name}` here",
                node.span,
                expression=f"@{node.name}",
                expected=quoted([f"@{field}" for field in fields]),
                type_name=self.target.name,
            )
        return SystemRef("", system_field(node.name), STRING)

    def literal(self, node: LiteralValue) -> None:
        if node.kind != "boolean":
            return
        clashing = next((name for name in ("true", "false") if self.target.property(name) is not None), None)
        if clashing is not None:
            text = expression_text(node)
            raise type_fault(
                "T46",
                f"`{text}` is ambiguous: `{self.target.name}` has a property called `{clashing}`",
                node.span,
                expression=text,
                type_name=self.target.name,
                property_name=clashing,
            )

    def call(self, node: Call) -> None:
        if node.name in FOLDS or node.name in SEARCH_CALLS:
            raise call_refused(node, "a mutation")

    def search(self, node: Call, parts: list[Expr]) -> Expr:
        raise refused_before(node)

    def within_aggregate(self) -> WherePlace:
        return self

    def under_null_test(self) -> WherePlace:
        return self

    def element(self) -> Place:
        return ConstantPlace(self.params, "assignment", where=self)


def _not_constant(node: PropertyAccess | SystemAccess | BareName | BareSystem) -> Fault:
    text = expression_text(node)
    return type_fault(
        "T45",
        f"`{text}` is read from a row, and only a constant can stand here",
        node.span,
        expression=text,
        expected="a literal, a parameter, `now()`, or an expression over them",
    )


def _parameter(params: Mapping[str, Param], node: Variable) -> Param:
    found = params.get(node.name)
    if found is not None:
        return found
    near = nearest_name(node.name, params)
    raise type_fault(
        "T14",
        f"`${node.name}` is no parameter, and a mutation has no other variables",
        node.span,
        expression=f"${node.name}",
        expected=f"a parameter: {listing(f'${name}' for name in params)}",
        fix=f"${near}" if near else None,
        edits=(Replacement(node.span, f"${near}"),) if near else (),
    )


def _no_fields(params: Mapping[str, Param], node: PropertyAccess | SystemAccess) -> Fault:
    """`$x.p` in a `where`, whose properties stand bare."""
    text = expression_text(node)
    is_parameter = node.variable.text in params
    sign = "@" if isinstance(node, SystemAccess) else ""
    fix = f"{sign}{node.name.text}"
    return type_fault(
        "T6" if is_parameter else "T14",
        f"`{text}`: " + ("a parameter has no fields" if is_parameter else "a mutation has no pattern variables"),
        node.span,
        expression=text,
        expected="a property of the target, written bare",
        fix=fix,
        edits=(Replacement(node.span, fix),),
    )
