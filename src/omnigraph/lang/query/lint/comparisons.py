"""Rules about what is compared with what: the old infix tests, enums and 32-bit floats beside literals."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.lexical import string_literal
from omnigraph.lang.query.expressions import operand_text
from omnigraph.lang.query.faults import listing, nearest_name
from omnigraph.lang.query.lint.findings import Found
from omnigraph.lang.query.lint.looks import Look, Meeting, QueryLooks
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.syntax import InfixTest, parts_of
from omnigraph.lang.types import Scalar
from omnigraph.lang.values import float_text, rounded_to_f32


def infix_tests(query: QueryLooks) -> Iterator[Found]:
    """`L202`: `contains` or `starts_with` between its operands, with the call or `in` that means the same."""
    for look in query.looks:
        for part in parts_of(look.expression):
            if isinstance(part, InfixTest):
                text = _rewritten(part, look)
                message = f"`{part.word}` between its operands is an old spelling: {text}"
                yield Found("L202", message, part.span, text, sure=True, queries=(query.name,))


def _rewritten(test: InfixTest, look: Look) -> str:
    of = look.type_of(test.left)
    if of is None or of.kind != "list":
        return f"{test.word}({expression_text(test.left)}, {expression_text(test.right)})"
    text = f"{operand_text(test.right)} in {operand_text(test.left)}"
    # The span of what stands in parentheses has them in it, and a test needs them where the call would not.
    return f"({text})" if test.span.start < test.left.span.start else text


def variants_that_are_none(query: QueryLooks) -> Iterator[Found]:
    """`L205`: an enum compared with a string that is no variant of it."""
    for meeting in query.meetings:
        variants = meeting.property.type.variants
        for literal in meeting.literals if meeting.property.type.kind == "enum" else ():
            if not isinstance(literal.value, str) or literal.value in variants:
                continue
            near = nearest_name(literal.value, variants)
            written = expression_text(literal)
            message = f"{written} is no variant of {_named(meeting)}: {listing(variants)}"
            fix = None if near is None else string_literal(near)
            yield Found(
                "L205",
                message,
                literal.span,
                fix,
                queries=(query.name,),
                type_name=meeting.type_name,
                property_name=meeting.property.name,
            )


def decimals_that_no_f32_equals(query: QueryLooks) -> Iterator[Found]:
    """`L210`: an `F32` property compared for equality with a decimal that no `F32` equals."""
    for meeting in query.meetings:
        if meeting.sign not in ("=", "!=", "in") or meeting.property.type.kind not in ("scalar", "list"):
            continue
        for literal in meeting.literals if meeting.property.type.scalar is Scalar.F32 else ():
            value = literal.value
            if literal.kind != "decimal" or not isinstance(value, float) or rounded_to_f32(value) == value:
                continue
            message = (
                f"no F32 equals {float_text(value)}, and {_named(meeting)} is one: give it by a parameter of type F32"
            )
            yield Found(
                "L210",
                message,
                literal.span,
                queries=(query.name,),
                type_name=meeting.type_name,
                property_name=meeting.property.name,
            )


def _named(meeting: Meeting) -> str:
    return meeting.property.name if meeting.type_name is None else f"{meeting.type_name}.{meeting.property.name}"
