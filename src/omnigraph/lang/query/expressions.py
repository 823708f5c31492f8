"""Expression syntax -> typed expression (languages.md 9, 10.2, 16.2). What a leaf means is the place's to say.

Operands are typed before what they are part of and from left to right, so the first fault in the text is the one
reported. Nothing here recurses, since trees are as deep as their brackets; chains of `and` and `or` become balanced
trees, whose depth grows with the logarithm of their length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.query.faults import Fault, Replacement, type_fault
from omnigraph.lang.query.places import Place
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.syntax import (
    FOLDS,
    BareName,
    BareSystem,
    Call,
    Comparison,
    Conjunction,
    DateLiteral,
    Disjunction,
    Expression,
    FoldName,
    InfixTest,
    ListLiteral,
    LiteralValue,
    Membership,
    Negation,
    NullTest,
    PropertyAccess,
    SystemAccess,
    Variable,
    operands,
)
from omnigraph.lang.query.typed import (
    Aggregate,
    And,
    Compare,
    Constant,
    Expr,
    InList,
    IsNull,
    ListOf,
    NodeRef,
    Not,
    Now,
    Or,
    TextTest,
)
from omnigraph.lang.query.value_types import (
    boolean,
    common_element,
    comparable,
    compares,
    element_type,
    is_boolean,
    is_empty_list,
    spelled,
    value_type,
)
from omnigraph.lang.types import BOOL, DATETIME, F64, I64, STRING, Scalar, ValueType, scalar

_I64_MAX = 2**63 - 1


def typed_expression(expression: Expression, place: Place) -> Expr:
    """The typed form of an expression that stands at a place. Raises `Fault`."""
    pending: list[tuple[Expression, Place, bool]] = [(expression, place, False)]
    done: list[Expr] = []
    while pending:
        node, where, ready = pending.pop()
        parts = operands(node)
        if not ready:
            if isinstance(node, Call):
                where.call(node)
            inner = _inner_place(node, where)
            pending.append((node, where, True))
            pending.extend((part, inner, False) for part in reversed(parts))
            continue
        typed = done[len(done) - len(parts) :]
        del done[len(done) - len(parts) :]
        done.append(_typed(node, typed, where))
    return done[0]


def filters_of(expression: Expression, place: Place) -> list[Expr]:
    """The typed conjuncts of a filter clause. Raises `Fault` (`T41`) if it is not Boolean."""
    typed = typed_expression(expression, place)
    require_boolean(typed, expression)
    pending, conjuncts = [typed], list[Expr]()
    while pending:
        part = pending.pop()
        if isinstance(part, And):
            pending += [part.right, part.left]
        else:
            conjuncts.append(part)
    return conjuncts


def require_boolean(typed: Expr, expression: Expression) -> None:
    """Raises `Fault` (`T41`) unless a condition is Boolean."""
    if not is_boolean(typed):
        raise type_fault(
            "T41",
            f"a condition is Boolean, and this is `{spelled(typed)}`",
            expression.span,
            expression=expression_text(expression),
            expected="a Boolean",
        )


def _inner_place(node: Expression, place: Place) -> Place:
    match node:
        case NullTest():
            return place.under_null_test()
        case ListLiteral():
            return place.element()
        case Call(name=name) if name in FOLDS:
            return place.within_aggregate()
        case _:
            return place


def _typed(node: Expression, parts: list[Expr], place: Place) -> Expr:
    match node:
        case LiteralValue():
            place.literal(node)
            return _literal(node)
        case DateLiteral():
            return _date(node)
        case Variable():
            return place.variable(node)
        case PropertyAccess():
            return place.property(node)
        case SystemAccess():
            return place.system(node)
        case BareName():
            return place.bare_name(node)
        case BareSystem():
            return place.bare_system(node)
        case ListLiteral():
            return _list(node, parts)
        case Call():
            return _call(node, parts, place)
        case Comparison():
            return _comparison(node, parts[0], parts[1])
        case Membership():
            return _membership(node, node.item, parts[0], parts[1])
        case InfixTest():
            return _infix(node, parts[0], parts[1])
        case NullTest():
            return _null_test(node, parts[0])
        case Negation():
            _require_operands("not", node, (node.operand,), parts)
            return parts[0] if node.times % 2 == 0 else Not(parts[0], boolean(parts[0]))
        case Conjunction():
            _require_operands("and", node, node.operands, parts)
            return _balanced(parts, lambda left, right: And(left, right, boolean(left, right)))
        case Disjunction():
            _require_operands("or", node, node.operands, parts)
            return _balanced(parts, lambda left, right: Or(left, right, boolean(left, right)))


def _balanced(parts: list[Expr], join: Callable[[Expr, Expr], Expr]) -> Expr:
    while len(parts) > 1:
        pairs = [join(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs if len(parts) % 2 == 0 else [*pairs, parts[-1]]
    return parts[0]


def _require_operands(word: str, node: Expression, written: tuple[Expression, ...], parts: list[Expr]) -> None:
    """Raises `Fault` (`T41`) for the first operand that is not Boolean, naming its type and that of its neighbour."""
    for index, (part, expression) in enumerate(zip(parts, written, strict=True)):
        if is_boolean(part):
            continue
        if len(parts) == 1:
            types = f"`{spelled(part)}`"
        else:
            left = boolean(*parts[:index]).spelling() if index else spelled(part)
            right = spelled(part) if index else spelled(parts[1])
            types = f"`{left}` and `{right}`"
        raise type_fault(
            "T41",
            f"`{word}` takes Booleans, not {types}",
            expression.span,
            expression=expression_text(expression),
            expected="a Boolean",
        )


# --- leaves


def _literal(node: LiteralValue) -> Constant:
    match node.kind:
        case "integer":
            wide = isinstance(node.value, int) and node.value > _I64_MAX
            return Constant(node.value, scalar(Scalar.U64) if wide else I64)
        case "decimal":
            return Constant(node.value, F64)
        case "string":
            return Constant(node.value, STRING)
        case "boolean":
            return Constant(node.value, BOOL)


def _date(node: DateLiteral) -> Constant:
    value = node.value
    if value is None:
        form = "YYYY-MM-DD" if node.kind == "date" else "YYYY-MM-DDTHH:MM:SS.mmm, with an optional offset"
        raise type_fault(
            "T3",
            f'"{node.text}" is no {"date" if node.kind == "date" else "point in time"}',
            node.span,
            expression=expression_text(node),
            expected=form,
        )
    return Constant(value, scalar(Scalar.DATE) if node.kind == "date" else DATETIME)


def _list(node: ListLiteral, parts: list[Expr]) -> Constant | ListOf:
    types: list[ValueType] = []
    for part, item in zip(parts, node.items, strict=True):
        of = value_type(part)
        if of is None or of.kind in ("list", "vector"):
            raise type_fault(
                "T52",
                "a list holds single values, no lists",
                item.span,
                expression=expression_text(item),
                expected="a constant that is no list",
            )
        types.append(of)
    for of, item in zip(types, node.items, strict=True):
        if not comparable(types[0], of):
            raise type_fault(
                "T53",
                f"the elements of a list have one type, not `{types[0].spelling()}` and `{of.spelling()}`",
                item.span,
                expression=expression_text(node),
                expected=f"an element that compares with `{types[0].spelling()}`",
            )
    common = common_element(types)
    assert common is not None
    constants = [part for part in parts if isinstance(part, Constant)]
    if len(constants) < len(parts):
        return ListOf(tuple(parts), ValueType("list", common.scalar))
    values = tuple(constant.value for constant in constants)
    if {of.scalar for of in types} == {Scalar.I64, Scalar.U64} and not any(_is_negative(value) for value in values):
        common = scalar(Scalar.U64)
    return Constant(values, ValueType("list", common.scalar))


def _is_negative(value: object) -> bool:
    return isinstance(value, int) and value < 0


# --- calls


def _call(node: Call, parts: list[Expr], place: Place) -> Expr:
    match node.name:
        case "now":
            return Now(DATETIME)
        case "contains":
            return _text_test("contains", node, node.arguments, parts)
        case "starts_with":
            return _text_test("starts_with", node, node.arguments, parts)
        case "count" | "sum" | "avg" | "min" | "max":
            return aggregate(node.name, node.arguments[0], parts[0])
        case _:
            return place.search(node, parts)


def aggregate(fold: FoldName, argument: Expression, typed: Expr, code: Literal["T8", "T40"] = "T8") -> Aggregate:
    """An aggregate over a typed argument. Raises `Fault` with `code` if it does not take such an argument."""
    of = value_type(typed)
    match fold:
        case "count":
            return Aggregate(fold, typed, I64)
        case "sum" | "avg":
            if of is not None and of.is_number:
                return Aggregate(fold, typed, F64.with_nullable(True))
            wanted = "a number"
        case "min" | "max":
            if of is not None and of.kind in ("scalar", "enum") and of.scalar is not Scalar.BLOB:
                return Aggregate(fold, typed, of.with_nullable(True))
            wanted = "a number, String, Bool, Date, DateTime or enum"
    raise type_fault(
        code,
        f"`{fold}` takes {wanted}, not `{spelled(typed)}`",
        argument.span,
        expression=expression_text(argument),
        expected=wanted,
    )


def _text_test(
    kind: Literal["contains", "starts_with"],
    node: Call | InfixTest,
    written: tuple[Expression, ...],
    parts: list[Expr],
) -> TextTest:
    for part, expression in zip(parts, written, strict=True):
        of = value_type(part)
        if of is not None and of.is_text:
            continue
        fix, edits = None, tuple[Replacement, ...]()
        if of is not None and of.kind == "list" and kind == "contains" and part is parts[0]:
            fix = f"{operand_text(written[1])} in {operand_text(written[0])}"
            edits = (Replacement(node.span, fix),)
        raise type_fault(
            "T7",
            f"`{kind}` tests a String, not `{spelled(part)}`",
            expression.span,
            expression=expression_text(node),
            expected="a String",
            fix=fix,
            edits=edits,
        )
    return TextTest(kind, parts[0], parts[1], boolean(*parts))


# --- tests


def _comparison(node: Comparison, left: Expr, right: Expr) -> Compare:
    if compares(left, right):
        return Compare(node.sign, left, right, boolean(left, right))
    fix, edits, expected = None, tuple[Replacement, ...](), "two values of comparable types"
    if isinstance(left, NodeRef) and isinstance(right, NodeRef):
        fix = f"{expression_text(node.left)}.@id {node.sign} {expression_text(node.right)}.@id"
        edits = tuple(Replacement(Span(part.span.end, part.span.end), ".@id") for part in (node.left, node.right))
        expected = "values; nodes compare by `@id`"
    else:
        literal, literal_text = _as_date(node.left, right) or _as_date(node.right, left) or (None, "")
        if literal is not None:
            fix, edits = literal_text, (Replacement(literal.span, literal_text),)
            expected = (
                f"`{literal_text.partition('(')[0]}(…)` beside `{spelled(right if literal is node.left else left)}`"
            )
    raise type_fault(
        "T7",
        f"`{spelled(left)}` does not compare with `{spelled(right)}`",
        node.span,
        expression=expression_text(node),
        expected=expected,
        fix=fix,
        edits=edits,
    )


def _as_date(written: Expression, other: Expr) -> tuple[Expression, str] | None:
    """A string beside a Date or DateTime, with the literal that it was meant to be."""
    of = value_type(other)
    if not isinstance(written, LiteralValue) or written.kind != "string" or of is None or of.kind != "scalar":
        return None
    word = {Scalar.DATE: "date", Scalar.DATETIME: "datetime"}.get(of.scalar)
    return None if word is None else (written, f"{word}({expression_text(written)})")


def _null_test(node: NullTest, operand: Expr) -> IsNull:
    if isinstance(operand, NodeRef):
        raise _not_tested(node, f"`${operand.var}` is a node, and never null", "a property")
    if operand.type.scalar is Scalar.BLOB:
        raise _not_tested(node, f"`{expression_text(node.operand)}` is a Blob, which no test reads", "no Blob")
    return IsNull(operand, node.negated, BOOL)


def _membership(node: Expression, item: Expression, left: Expr, right: Expr) -> InList:
    left_type, right_type = value_type(left), value_type(right)
    if right_type is None or right_type.kind != "list":
        raise _not_tested(node, f"`in` needs a list, not `{spelled(right)}`", "a list on the right of `in`")
    if is_empty_list(right) and left_type is not None:
        right_type = ValueType("list", left_type.scalar)
        right = Constant((), right_type)
    if left_type is None or not comparable(left_type, element_type(right_type)):
        message = f"`{spelled(left)}` does not compare with the elements of `{spelled(right)}`"
        raise type_fault(
            "T7",
            message,
            item.span,
            expression=expression_text(node),
            expected=f"a value that compares with `{element_type(right_type).spelling()}`",
        )
    return InList(left, right, boolean(left, right))


def _infix(node: InfixTest, left: Expr, right: Expr) -> Expr:
    of = value_type(left)
    if node.word == "contains" and of is not None and of.kind == "list":
        return _membership(node, node.right, right, left)
    return _text_test(node.word, node, (node.left, node.right), [left, right])


def operand_text(expression: Expression) -> str:
    """The text of an expression as the operand of a test."""
    text = expression_text(expression)
    compound = isinstance(expression, (Disjunction, Conjunction, Negation, Comparison, Membership, NullTest, InfixTest))
    return f"({text})" if compound else text


def _not_tested(node: Expression, message: str, expected: str) -> Fault:
    return type_fault("T7", message, node.span, expression=expression_text(node), expected=expected)
