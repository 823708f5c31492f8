"""Canonical text (languages.md 10.1) of checked expressions: what `explain` shows of a plan.

The text of a tree that came from a text is that text in canonical form, but for what checking made of it: a pair of a
declaration is a comparison, infix tests are calls, and a chain of `and` or `or` has no brackets inside.
"""

from __future__ import annotations

import datetime as dt
from typing import assert_never

from omnigraph.lang.lexical import string_literal
from omnigraph.lang.query.brackets import AND, ATOM, NOT, OR, TEST, within
from omnigraph.lang.query.typed import (
    Aggregate,
    And,
    Bm25,
    Compare,
    Constant,
    Expr,
    Fused,
    InList,
    IsNull,
    ListOf,
    Nearest,
    NodeRef,
    Not,
    Now,
    Or,
    Param,
    PropertyRef,
    SystemRef,
    TextSearch,
    TextTest,
)
from omnigraph.lang.values import date_text, datetime_text, float_text


def typed_text(expr: Expr) -> str:
    """One line of query text that means this expression."""
    return _spelled(expr)[0]


def constant_text(value: object) -> str:
    """The literal that means this value: str, bool, int, float, date, datetime (UTC), or a tuple of them."""
    match value:
        case str():
            return string_literal(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return float_text(value)
        case dt.datetime():
            return f"datetime({string_literal(datetime_text(value))})"
        case dt.date():
            return f"date({string_literal(date_text(value))})"
        case tuple():
            return f"[{', '.join(map(constant_text, value))}]"  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise AssertionError(f"{type(value).__name__} is no constant")


def _spelled(expr: Expr) -> tuple[str, int]:
    """The text and how tightly it holds."""
    match expr:
        case Constant(value=value):
            return constant_text(value), ATOM
        case ListOf(items=items):
            return f"[{', '.join(typed_text(item) for item in items)}]", ATOM
        case Param(name=name) | NodeRef(var=name):
            return f"${name}", ATOM
        case Now():
            return "now()", ATOM
        case PropertyRef(var=var, name=name):
            return f"${var}.{name}" if var else name, ATOM
        case SystemRef(var=var, field=field):
            return f"${var}.@{field}" if var else f"@{field}", ATOM
        case Compare(op=op):
            return f"{within(_spelled(expr.left), ATOM)} {op} {within(_spelled(expr.right), ATOM)}", TEST
        case InList():
            return f"{within(_spelled(expr.item), ATOM)} in {within(_spelled(expr.items), ATOM)}", TEST
        case IsNull(negated=negated):
            return f"{within(_spelled(expr.operand), ATOM)} is {'not ' if negated else ''}null", TEST
        case TextTest(kind=kind):
            return f"{kind}({typed_text(expr.text)}, {typed_text(expr.part)})", ATOM
        case TextSearch(call=call):
            return _call_text(call, expr.text, expr.query, expr.edits), ATOM
        case Nearest():
            return _call_text("nearest", expr.vector, expr.query), ATOM
        case Bm25():
            return _call_text("bm25", expr.text, expr.query), ATOM
        case Fused():
            return _call_text("rrf", expr.first, expr.second, expr.k), ATOM
        case Aggregate(func=func):
            return f"{func}({typed_text(expr.argument)})", ATOM
        case Not():
            return f"not {within(_spelled(expr.operand), NOT)}", NOT
        case And():
            return " and ".join(_chain(expr, And, NOT)), AND
        case Or():
            return " or ".join(_chain(expr, Or, AND)), OR
        case _:
            assert_never(expr)


def _call_text(name: str, *arguments: Expr | None) -> str:
    return f"{name}({', '.join(typed_text(each) for each in arguments if each is not None)})"


def _chain(expr: And | Or, kind: type[And] | type[Or], wanted: int) -> list[str]:
    """The operands of a chain, however it leans: grouping makes no difference to it. Without recursion: chains may be long."""
    found: list[str] = []
    pending: list[Expr] = [expr]
    while pending:
        current = pending.pop()
        if isinstance(current, kind):
            pending += (current.right, current.left)
        else:
            found.append(within(_spelled(current), wanted))
    return found
