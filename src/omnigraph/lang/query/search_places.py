"""Where search and ranking calls may stand (languages.md 12.1): predicates as conjuncts of a filter, ranks as the first
order key and, again, in `return`. What their operands may be is told in search.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.lang.query.faults import Fault, Replacement, type_fault
from omnigraph.lang.query.printer import expression_text, tree_equal
from omnigraph.lang.query.scope import Scope
from omnigraph.lang.query.search import is_integer
from omnigraph.lang.query.syntax import (
    FOLDS,
    RANKS,
    SEARCH_PREDICATES,
    Call,
    Comparison,
    Conjunction,
    Expression,
    Key,
    LiteralValue,
    Negation,
    ReadBody,
    operands,
)
from omnigraph.lang.query.typed import Compare, Constant, Expr, Fused, Nearest, OrderKey, Rank, TextSearch

# --- filters


def placed_filters(clause: Expression, conjuncts: Sequence[Expr], scope: Scope) -> list[Expr]:
    """The conjuncts of a filter clause with each search predicate bare. Raises `Fault` (`T38`) for one that is not a
    conjunct of its own.
    """
    pending = [clause]
    while pending:
        node = pending.pop()
        if isinstance(node, Conjunction):
            pending += reversed(node.operands)
        elif not _is_predicate(node) and not _is_true_predicate(node):
            inside = next((call for call, _ in _calls(node) if call.name in SEARCH_PREDICATES), None)
            if inside is not None:
                raise _no_conjunct(inside, clause, scope)
    return [_bare(each) for each in conjuncts]


def _is_predicate(node: Expression) -> bool:
    return isinstance(node, Call) and node.name in SEARCH_PREDICATES


def _is_true_predicate(node: Expression) -> bool:
    """`search(…) = true`"""
    return (
        isinstance(node, Comparison)
        and node.sign == "="
        and _is_predicate(node.left)
        and isinstance(node.right, LiteralValue)
        and node.right.value is True
    )


def _bare(conjunct: Expr) -> Expr:
    if isinstance(conjunct, Compare) and isinstance(conjunct.left, TextSearch):
        return conjunct.left
    return conjunct


def _no_conjunct(call: Call, clause: Expression, scope: Scope) -> Fault:
    text = expression_text(call)
    fix = None
    if isinstance(clause, Negation) and clause.operand is call and clause.times % 2:
        variable = expression_text(call.arguments[0]).partition(".")[0]
        of = scope.nodes[variable.removeprefix("$")]
        fix = f"not {{ {variable}: {of.name}  {text} }}"
    return type_fault(
        "T38",
        f"`{call.name}` stands alone or between `and`",
        call.span,
        expression=text,
        expected=f"`{text}` as a condition of its own; to negate it, a `not` block",
        fix=fix,
        edits=(Replacement(clause.span, fix),) if fix else (),
    )


# --- return


def check_item(item: Expression, first: Key | None) -> None:
    """Raises `Fault` for the first call of a return item that can't stand there: `T35` a predicate, `T37` `rrf`, `T32` a
    rank inside an aggregate, `T33` one that is not the first order key.
    """
    for call, aggregated in _calls(item):
        text = expression_text(call)
        if call.name in SEARCH_PREDICATES:
            raise _misplaced("T35", call, f"`{call.name}` filters rows and has no value", "a condition in `match`")
        if call.name == "rrf":
            raise _misplaced("T37", call, "a fused rank has no value to return", "an order key only")
        if call.name not in RANKS:
            continue
        if aggregated:
            raise _misplaced("T32", call, f"`{call.name}` stands inside an aggregate", "a rank in a column of its own")
        if first is None or not tree_equal(call, first.expression):
            message = f"`{call.name}` is returned and is not the first order key"
            raise _misplaced("T33", call, message, f"`order {{ {text}, … }}`")


def _misplaced(code: str, call: Call, message: str, expected: str) -> Fault:
    return type_fault(code, message, call.span, expression=expression_text(call), expected=expected)


def _calls(expression: Expression) -> Iterator[tuple[Call, bool]]:
    """The calls in an expression, outer ones first and from left to right, each with whether an aggregate is around it."""
    pending = [(expression, False)]
    while pending:
        node, aggregated = pending.pop()
        if isinstance(node, Call):
            yield node, aggregated
            aggregated = aggregated or node.name in FOLDS
        pending.extend((part, aggregated) for part in reversed(operands(node)))


# --- order


def rank_of(key: Key) -> Call | None:
    """The ranking call that an order key is, if it is one."""
    found = key.expression
    return found if isinstance(found, Call) and found.name in RANKS else None


def check_rank(body: ReadBody, order: Sequence[OrderKey]) -> None:
    """Raises `Fault`: `T21` for the operands of `rrf` or its missing limit, `T17` for a `nearest` without limit."""
    if not order:
        return
    rank, written = order[0].expr, rank_of(body.order[0])
    if written is None:
        return
    if isinstance(rank, Fused):
        _check_fused(rank, written)
        if body.limit is None:
            raise _misplaced("T21", written, "`rrf` ranks the best only", "a `limit`")
    if isinstance(rank, Nearest) and body.limit is None:
        raise _misplaced("T17", written, "`nearest` ranks the nearest only", "a `limit`")


def _check_fused(rank: Fused, written: Call) -> None:
    first, second = (arm.vector if isinstance(arm, Nearest) else arm.text for arm in (rank.first, rank.second))
    if first.var != second.var:
        raise type_fault(
            "T21",
            f"`rrf` ranks one variable, not `${first.var}` and `${second.var}`",
            written.arguments[1].span,
            expression=expression_text(written),
            expected=f"a rank of `${first.var}`",
        )
    k = rank.k
    if not is_integer(k) or (isinstance(k, Constant) and isinstance(k.value, int) and k.value < 1):
        raise type_fault(
            "T21",
            "the third operand of `rrf` is an integer of at least 1",
            written.arguments[2].span,
            expression=expression_text(written),
            expected="an integer of at least 1, or an integer parameter",
        )


def check_ungrouped(body: ReadBody, order: Sequence[OrderKey]) -> None:
    """Raises `Fault` (`T66`) if a rank orders what is an aggregated query."""
    written = rank_of(body.order[0]) if body.order else None
    if written is not None and isinstance(order[0].expr, Rank):
        raise _misplaced(
            "T66",
            written,
            f"`{written.name}` ranks rows, and an aggregated answer has groups",
            "a return item or an alias",
        )
