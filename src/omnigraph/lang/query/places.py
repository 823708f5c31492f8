"""What an expression may refer to, by where it stands (languages.md 9.1): the leaves of expressions, resolved.

Each place is one class with a method per kind of leaf; it gives the typed leaf or raises `Fault` with the code that the
place has for it. Everything above the leaves is alike in all places and lives in expressions.py. Here are what places
have in common: the protocol, and the faults that several of them raise.
"""

from __future__ import annotations

from typing import Literal, Protocol, cast

from omnigraph.lang.diagnostics import Sought, Span
from omnigraph.lang.query.faults import Fault, Replacement, listing, nearest_name, type_fault
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.syntax import (
    BareName,
    BareSystem,
    Call,
    LiteralValue,
    PropertyAccess,
    SystemAccess,
    Variable,
    Word,
)
from omnigraph.lang.query.typed import Expr
from omnigraph.lang.schema.catalog import EntityType, Property

SystemField = Literal["id", "src", "dst", "type"]


class Place(Protocol):
    """Where an expression stands. Methods raise `Fault` for what can't stand there."""

    def variable(self, node: Variable) -> Expr: ...

    def property(self, node: PropertyAccess) -> Expr: ...

    def system(self, node: SystemAccess) -> Expr: ...

    def bare_name(self, node: BareName) -> Expr: ...

    def bare_system(self, node: BareSystem) -> Expr: ...

    def literal(self, node: LiteralValue) -> None:
        """Only refuses."""
        ...

    def call(self, node: Call) -> None:
        """Only refuses, before the arguments are looked at."""
        ...

    def search(self, node: Call, parts: list[Expr]) -> Expr:
        """A search or ranking call that `call` let pass, with its arguments typed."""
        ...

    def within_aggregate(self) -> Place:
        """The place of an aggregate's argument."""
        ...

    def under_null_test(self) -> Place:
        """The place of the operand of `is null`."""
        ...

    def element(self) -> Place:
        """The place of a list's elements."""
        ...


def system_field(name: str) -> SystemField:
    """A name that was found among the system fields."""
    return cast("SystemField", name)


def declared_property(code: str, of: EntityType, name: Word, span: Span, prefix: str = "") -> Property:
    """The property of a type. Raises `Fault` with `code` at `span`; `prefix` (`$v.`) stands before the name in the text,
    and with it the expression says what the type and property are.
    """
    found = of.property(name.text)
    if found is not None:
        return found
    near = nearest_name(name.text, (known.name for known in of.properties))
    raise type_fault(
        code,
        f"type `{of.name}` has no property `{name.text}`",
        span,
        expression=f"{prefix}{name.text}",
        expected=f"a property of `{of.name}`: {listing(known.name for known in of.properties)}",
        fix=f"{prefix}{near}" if near else None,
        edits=(Replacement(name.span, near),) if near else (),
        type_name=None if prefix else of.name,
        property_name=None if prefix else name.text,
        sought=Sought("property", name.text, name.span, of.id, prefix),
    )


def refused_before(node: Call) -> AssertionError:
    """For the `search` of a place whose `call` lets no search call pass."""
    return AssertionError(f"`{node.name}` was refused here before its arguments were looked at")


def call_refused(node: Call, where: str) -> Fault:
    """`T44` for an aggregate, search or ranking call."""
    return type_fault(
        "T44",
        f"`{node.name}` cannot stand in {where}",
        node.span,
        expression=expression_text(node),
        expected="no call but `now`, `date`, `datetime`, `contains` and `starts_with`",
    )
