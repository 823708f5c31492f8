"""Whether a constant fits a property: as a binding match (languages.md 8.3) and as an assigned value (13.2)."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import cast

from omnigraph.lang.query.faults import Fault, Replacement, type_fault
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.syntax import Expression, ListLiteral, Pair
from omnigraph.lang.query.typed import Compare, Constant, Expr, InList, ListOf, PropertyRef
from omnigraph.lang.query.value_types import (
    boolean,
    comparable,
    element_type,
    spelled,
    value_type,
)
from omnigraph.lang.schema.catalog import EntityType, Property
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, INTEGERS, Scalar, ValueType
from omnigraph.lang.values import BASE64_PREFIX, ScalarValue, blob_bytes, rounded_to_f32


def match_filter(variable: str, of: EntityType, wanted: Property, pair: Pair, value: Expr) -> Expr:
    """The filter that `{ p: c }` stands for: `$x.p = c`, or `c in $x.p` for a list. Raises `Fault` (`T3`)."""
    reference = PropertyRef(variable, wanted.name, wanted.type)
    found = value_type(value)
    if wanted.type.scalar is Scalar.BLOB or wanted.type.kind == "vector":
        raise _unfit(of, wanted, pair.value, f"`{wanted.type.spelling()}` cannot be matched", "another property")
    against = element_type(wanted.type) if wanted.type.kind == "list" else wanted.type
    if found is None or not comparable(against, found):
        message = f"`{spelled(value)}` does not match `{wanted.type.spelling()}`"
        raise _unfit(of, wanted, pair.value, message, _wanted_words(against))
    if against.kind == "enum" and isinstance(value, Constant) and value.value not in against.variants:
        raise _unfit(of, wanted, pair.value, f"`{expression_text(pair.value)}` is no variant", _wanted_words(against))
    if wanted.type.kind == "list":
        return InList(value, reference, boolean(value, reference))
    return Compare("=", reference, value, boolean(reference, value))


def assigned_value(of: EntityType, wanted: Property, pair: Pair, value: Expr) -> Expr:
    """The value to store: a literal in the property's own type and precision, anything else as it is.

    Raises `Fault`: `T3` for a literal that does not fit, `T7` for a value of another type.
    """
    if wanted.type.kind in ("list", "vector") and isinstance(pair.value, ListLiteral):
        return _assigned_list(of, wanted, pair, value)
    return _assigned_single(of, wanted, pair.value, value, wanted.type)


def _assigned_list(of: EntityType, wanted: Property, pair: Pair, value: Expr) -> Expr:
    assert isinstance(pair.value, ListLiteral)
    items = _elements(value)
    target = wanted.type.with_nullable(False)
    if target.kind == "vector" and len(items) != target.dimension:
        message = f"`{wanted.name}` holds {target.dimension} numbers, not {len(items)}"
        raise _unfit(of, wanted, pair.value, message, f"{target.dimension} numbers")
    fitted = [
        _assigned_single(of, wanted, written, item, element_type(target))
        for written, item in zip(pair.value.items, items, strict=True)
    ]
    if all(isinstance(item, Constant) for item in fitted):
        return Constant(tuple(item.value for item in fitted if isinstance(item, Constant)), target)
    return ListOf(tuple(fitted), target)


def _elements(value: Expr) -> Sequence[Expr]:
    match value:
        case ListOf(items=items):
            return items
        case Constant(value=tuple() as values):
            return [Constant(cast("ScalarValue", item), element_type(value.type)) for item in values]
        case _:
            raise AssertionError("a list literal is typed as a list")


def _assigned_single(of: EntityType, wanted: Property, written: Expression, value: Expr, target: ValueType) -> Expr:
    if isinstance(value, Constant):
        fitted = _stored(value.value, target)
        if fitted is None:
            message = f"`{expression_text(written)}` does not fit `{target.spelling()}`"
            raise _unfit(of, wanted, written, message, _wanted_words(target), _date_fix(value, target, written))
        return Constant(fitted, target.with_nullable(False))
    found = value_type(value)
    if found is None or not _assignable(found, target):
        raise type_fault(
            "T7",
            f"`{spelled(value)}` cannot be assigned to `{wanted.name}`, which is `{wanted.type.spelling()}`",
            written.span,
            expression=expression_text(written),
            expected=_wanted_words(target),
            type_name=of.name,
            property_name=wanted.name,
        )
    return value


def _stored(value: object, target: ValueType) -> ScalarValue | None:
    """A literal's value as a property of this type stores it; None if it does not fit."""
    if target.kind not in ("scalar", "enum"):
        return None
    match value:
        case bool():
            return value if target.scalar is Scalar.BOOL else None
        case int() | float():
            return _stored_number(value, target.scalar)
        case dt.datetime():
            return value if target.scalar is Scalar.DATETIME else None
        case dt.date():
            return value if target.scalar is Scalar.DATE else None
        case str():
            return value if _takes_text(value, target) else None
        case _:
            return None


def _stored_number(value: float, target: Scalar) -> int | float | None:
    if target in INTEGERS:
        low, high = INTEGER_RANGE[target]
        return value if isinstance(value, int) and low <= value <= high else None
    if target not in FLOATS:
        return None
    number = float(value)
    rounded = rounded_to_f32(number) if target is Scalar.F32 else number
    return rounded if rounded is not None and math.isfinite(rounded) else None


def _takes_text(value: str, target: ValueType) -> bool:
    if target.kind == "enum":
        return value in target.variants
    if target.scalar is Scalar.BLOB:
        return not value.startswith(BASE64_PREFIX) or blob_bytes(value[len(BASE64_PREFIX) :]) is not None
    return target.scalar is Scalar.STRING


def _assignable(found: ValueType, target: ValueType) -> bool:
    """Whether a value that is known only when the query runs can be assigned (languages.md 13.2)."""
    if target.kind == "enum" or (target.kind == "scalar" and target.scalar is Scalar.BLOB):
        same = found.kind == target.kind and found.scalar is target.scalar and found.variants == target.variants
        return same or (found.kind == "scalar" and found.scalar is Scalar.STRING)
    if found.kind == target.kind == "scalar" and found.scalar is not target.scalar:
        if found.scalar in INTEGERS:
            return target.scalar in INTEGERS or target.scalar in FLOATS
        return found.scalar in FLOATS and target.scalar in FLOATS
    return (found.kind, found.scalar, found.dimension) == (target.kind, target.scalar, target.dimension)


def _wanted_words(target: ValueType) -> str:
    """What a property of this type takes, for `expected`."""
    if target.kind == "enum":
        return f"one of {', '.join(target.variants)}"
    if target.kind == "scalar" and target.scalar in INTEGERS:
        low, high = INTEGER_RANGE[target.scalar]
        return f"an integer from {low} to {high}"
    return f"a value of type `{target.spelling()}`"


def _date_fix(value: Constant, target: ValueType, written: Expression) -> str | None:
    word = {Scalar.DATE: "date", Scalar.DATETIME: "datetime"}.get(target.scalar) if target.kind == "scalar" else None
    return f"{word}({expression_text(written)})" if word and isinstance(value.value, str) else None


def _unfit(
    of: EntityType, wanted: Property, written: Expression, message: str, expected: str, fix: str | None = None
) -> Fault:
    return type_fault(
        "T3",
        f"{message}: property `{wanted.name}` of `{of.name}`",
        written.span,
        expression=expression_text(written),
        expected=expected,
        fix=fix,
        edits=(Replacement(written.span, fix),) if fix else (),
        type_name=of.name,
        property_name=wanted.name,
    )
