"""`return`, `order` and `limit` of a read (languages.md 10 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.query.expressions import typed_expression
from omnigraph.lang.query.faults import Fault, Replacement, listing, type_fault
from omnigraph.lang.query.places import Place
from omnigraph.lang.query.printer import column_name, expression_text
from omnigraph.lang.query.read_place import ReadPlace
from omnigraph.lang.query.scope import Scope
from omnigraph.lang.query.search_places import check_item, check_rank, check_ungrouped, rank_of
from omnigraph.lang.query.syntax import (
    FOLDS,
    TEXT_TESTS,
    BareName,
    Call,
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    InfixTest,
    Item,
    Key,
    Membership,
    Negation,
    NullTest,
    PropertyAccess,
    ReadBody,
    SystemAccess,
    Variable,
    parts_of,
)
from omnigraph.lang.query.typed import (
    Aggregate,
    NodeRef,
    OrderKey,
    Param,
    PropertyRef,
    ReturnItem,
    SystemRef,
)
from omnigraph.lang.types import INTEGERS


@dataclass(frozen=True, slots=True)
class Result:
    """The typed tail of a read."""

    items: tuple[ReturnItem, ...]
    aggregated: bool
    order: tuple[OrderKey, ...]
    limit: int | Param | None


def check_result(body: ReadBody, scope: Scope) -> Result:
    """The typed items, keys and limit over the variables of the pattern. Raises `Fault` in the order of 16.1."""
    aliases = frozenset(item.alias.text for item in body.items if item.alias is not None)
    items = _checked_items(body.items, ReadPlace(scope, "item", aliases), body.order[0] if body.order else None)
    aggregated = any(isinstance(item.expr, Aggregate) for item in items)
    order = _OrderCheck(body.items, items, aggregated, ReadPlace(scope, "key"))
    keys = tuple(order.checked(key, first=index == 0) for index, key in enumerate(body.order))
    check_rank(body, keys)
    _check_grouping(body.items, items, aggregated)
    if aggregated:
        check_ungrouped(body, keys)
    return Result(items, aggregated, keys, _checked_limit(body, scope))


def _free_name(written: Sequence[Item]) -> str:
    """A name for a column that no other one has as its alias."""
    taken = {item.alias.text for item in written if item.alias is not None}
    return next(name for n in range(1, len(taken) + 2) if (name := "holds" if n == 1 else f"holds{n}") not in taken)


def _checked_items(written: Sequence[Item], place: Place, first: Key | None) -> tuple[ReturnItem, ...]:
    names: set[str] = set()
    items: list[ReturnItem] = []
    for item in written:
        typed = typed_expression(item.expression, place)
        check_item(item.expression, first)
        if item.alias is None and _is_test(item.expression):
            alias, end = f" as {_free_name(written)}", item.expression.span.end
            raise type_fault(
                "T43",
                "a Boolean expression needs an alias",
                item.expression.span,
                expression=expression_text(item.expression),
                expected="`as` and a name",
                fix=f"{expression_text(item.expression)}{alias}",
                edits=(Replacement(Span(end, end), alias),),
            )
        name = column_name(item.expression) if item.alias is None else item.alias.text
        if name in names:
            span = item.expression.span if item.alias is None else item.alias.span
            raise type_fault(
                "T25",
                f"there are two columns `{name}`",
                span,
                expression=expression_text(item.expression),
                expected="a name that no other column has",
            )
        names.add(name)
        items.append(ReturnItem(name, typed))
    return tuple(items)


def _is_test(expression: Expression) -> bool:
    """A comparison or another Boolean operation, as opposed to a Boolean property, parameter or literal."""
    tests = (Comparison, Membership, NullTest, InfixTest, Negation, Conjunction, Disjunction)
    return isinstance(expression, tests) or (isinstance(expression, Call) and expression.name in TEXT_TESTS)


@dataclass(frozen=True, slots=True)
class _OrderCheck:
    written: Sequence[Item]
    items: tuple[ReturnItem, ...]
    aggregated: bool
    place: Place

    def checked(self, key: Key, *, first: bool) -> OrderKey:
        rank = rank_of(key) if first else None
        descending = key.direction == "desc" if rank is None else rank.name != "nearest"
        index = self._index(key.expression)
        if index is not None:
            return OrderKey(self.items[index].expr, descending, index)
        if rank is not None:
            return OrderKey(typed_expression(rank, self.place), descending)
        if isinstance(key.expression, (PropertyAccess, SystemAccess)):
            typed = typed_expression(key.expression, self.place)
            if not self.aggregated:
                return OrderKey(typed, descending)
        aliases = listing(f"`{item.alias.text}`" for item in self.written if item.alias is not None)
        message = "an aggregated answer is ordered by its columns" if self.aggregated else "this is no order key"
        raise type_fault(
            "T42",
            message,
            key.expression.span,
            expression=expression_text(key.expression),
            expected=f"a property of a bound variable, a return item, or one of the aliases: {aliases}"
            if not self.aggregated
            else f"a return item or one of the aliases: {aliases}",
        )

    def _index(self, expression: Expression) -> int | None:
        """The item that a key means: by its alias, or by being the same expression."""
        if isinstance(expression, BareName):
            named = (i for i, item in enumerate(self.written) if item.alias and item.alias.text == expression.name)
            return next(named, None)
        text = expression_text(expression)
        return next((i for i, item in enumerate(self.written) if expression_text(item.expression) == text), None)


def _check_grouping(written: Sequence[Item], items: tuple[ReturnItem, ...], aggregated: bool) -> None:
    """Beside aggregates stand group keys only; and an aggregate stands alone, not inside an expression (`T9`)."""
    for item, typed in zip(written, items, strict=True):
        if isinstance(typed.expr, Aggregate):
            continue
        inside = _holds_aggregate(item.expression)
        if not inside and (not aggregated or isinstance(typed.expr, (PropertyRef, SystemRef, NodeRef))):
            continue
        message = "an aggregate stands alone in its column" if inside else "this is no group key"
        raise type_fault(
            "T9",
            message,
            item.expression.span,
            expression=expression_text(item.expression),
            expected="an aggregate call" if inside else "a property, a system field or a node beside aggregates",
        )


def _holds_aggregate(expression: Expression) -> bool:
    return any(isinstance(part, Call) and part.name in FOLDS for part in parts_of(expression))


def _checked_limit(body: ReadBody, scope: Scope) -> int | Param | None:
    if not isinstance(body.limit, Variable):
        return body.limit
    name, span = body.limit.name, body.limit_span
    found = scope.find(name, span)
    if found is None:
        raise scope.unbound(name, span)
    if isinstance(found, Param) and found.type.kind == "scalar" and found.type.scalar in INTEGERS:
        if not found.type.nullable:
            return found
        raise _limit_fault(name, span, f"is `{found.type.spelling()}`, which may be null")
    what = f"is `{found.type.spelling()}`" if isinstance(found, Param) else "is a variable of the pattern"
    raise _limit_fault(name, span, what)


def _limit_fault(name: str, span: Span, what: str) -> Fault:
    return type_fault(
        "T67", f"the limit `${name}` {what}", span, expression=f"${name}", expected="a non-null integer parameter"
    )
