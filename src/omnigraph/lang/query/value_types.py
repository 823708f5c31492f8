"""Rules of value types that expressions share: what compares with what, and how types are named in messages."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.query.typed import Constant, Expr, NodeRef
from omnigraph.lang.types import BOOL, F64, I64, STRING, Scalar, ValueType, scalar


def value_type(expr: Expr) -> ValueType | None:
    """The type of an expression's value; None for a node."""
    return None if isinstance(expr, NodeRef) else expr.type


def spelled(expr: Expr) -> str:
    """The type of an expression for messages."""
    return expr.type_name if isinstance(expr, NodeRef) else expr.type.spelling()


def is_nullable(expr: Expr) -> bool:
    return not isinstance(expr, NodeRef) and expr.type.nullable


def boolean(*operands: Expr) -> ValueType:
    """Bool, nullable if an operand is."""
    return BOOL.with_nullable(any(is_nullable(operand) for operand in operands))


def is_boolean(expr: Expr) -> bool:
    of = value_type(expr)
    return of is not None and of.kind == "scalar" and of.scalar is Scalar.BOOL


def element_type(of: ValueType) -> ValueType:
    """The type of a list's elements."""
    return scalar(of.scalar)


def comparable(left: ValueType, right: ValueType) -> bool:
    """Whether two values compare (languages.md 9.4): equal types, any two numbers, String with String or enum.

    Two enums of different sets are different types. Lists, vectors and blobs compare with nothing.
    """
    if left.kind not in ("scalar", "enum") or right.kind not in ("scalar", "enum"):
        return False
    if left.is_number and right.is_number:
        return True
    if left.is_text and right.is_text:
        return left.kind == "scalar" or right.kind == "scalar" or left.variants == right.variants
    return left.scalar == right.scalar and left.kind == right.kind and left.scalar is not Scalar.BLOB


def compares(left: Expr, right: Expr) -> bool:
    left_type, right_type = value_type(left), value_type(right)
    return left_type is not None and right_type is not None and comparable(left_type, right_type)


def is_empty_list(expr: Expr) -> bool:
    """`[]`, which fits every list type."""
    return isinstance(expr, Constant) and expr.value == ()


def common_element(types: Sequence[ValueType]) -> ValueType | None:
    """The one type of a list's elements, None if they have none in common. Of no elements: String.

    Integers and decimals mix; the list is then F64 in type, while its constants keep their exact values.
    """
    if not types:
        return STRING
    if not all(comparable(types[0], other) for other in types):
        return None
    first = types[0]
    if first.is_text:
        return STRING
    scalars = {of.scalar for of in types}
    if len(scalars) == 1:
        return scalar(first.scalar)
    if scalars <= {Scalar.I32, Scalar.I64, Scalar.U32}:
        return I64
    if scalars <= {Scalar.U32, Scalar.U64}:
        return scalar(Scalar.U64)
    return F64
