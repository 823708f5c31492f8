"""Values of typed expressions over Arrow columns, in three-valued logic (languages.md 9).

    mask = true_rows(filter, columns, scope)

A value is an Arrow array as long as the columns, or an Arrow scalar where nothing depends on a row. Where columns come from
is the caller's matter. No expression can fail for a row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, assert_never, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import EmbeddingFailed, InternalError
from omnigraph.lang.query.typed import (
    Aggregate,
    And,
    Bm25,
    Compare,
    CompareOp,
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
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import FLOATS, ValueType
from omnigraph.query.limits import SearchLimits
from omnigraph.query.numbers import KERNELS, compare_numbers, exact_values
from omnigraph.query.search.predicates import Sought, sought
from omnigraph.tables.columns import arrow_type

FUZZY_EDITS = 2
TRUE = pa.scalar(True, pa.bool_())
FALSE = pa.scalar(False, pa.bool_())
UNKNOWN = pa.scalar(None, pa.bool_())


class RowColumns(Protocol):
    """The rows that an expression is evaluated for. Every array has `length` values."""

    @property
    def length(self) -> int: ...

    def property(self, var: str, name: str, of: ValueType) -> pa.Array: ...

    def system(self, var: str, field: str) -> pa.Array: ...

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        """Where a text property of a node holds what is sought. Raises FullTextRebuildRequired, StorageFailure."""
        ...


class Embedder(Protocol):
    def __call__(self, text: str, entity: NodeType, name: str) -> np.ndarray:
        """A query text as a vector for a property of a type: float32. Raises EmbeddingFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """What an invocation fixes: `params` by name (absent or None is null), `now` in UTC, cut to milliseconds; who embeds
    texts, if anybody does; of how many rows at most a text index is made for a query; and of how many partitions a vector
    index looks at (0: at all; None: it is not asked).
    """

    params: Mapping[str, object]
    now: dt.datetime
    embedder: Embedder | None = None
    search: SearchLimits = SearchLimits()
    probes: int | None = None

    def embedded(self, text: str, entity: NodeType, name: str) -> np.ndarray:
        """Raises EmbeddingFailed."""
        if self.embedder is None:
            raise EmbeddingFailed("Nobody embeds texts here.", reason="no_provider")
        return self.embedder(text, entity, name)


class NoColumns:
    """No rows to speak of: for expressions that need none."""

    length = 1

    def property(self, var: str, name: str, of: ValueType) -> pa.Array:
        raise InternalError("a constant expression names a property")

    def system(self, var: str, field: str) -> pa.Array:
        raise InternalError("a constant expression names a system field")

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        raise InternalError("a constant expression searches a property")


@dataclass(frozen=True, slots=True)
class RankedColumns:
    """Rows that have been ranked: `scores` are those of the one rank that a query has."""

    rows: RowColumns
    scores: pa.Array

    @property
    def length(self) -> int:
        return self.rows.length

    def property(self, var: str, name: str, of: ValueType) -> pa.Array:
        return self.rows.property(var, name, of)

    def system(self, var: str, field: str) -> pa.Array:
        return self.rows.system(var, field)

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        return self.rows.holding(var, name, what, limits)


def evaluate(expr: Expr, columns: RowColumns, scope: Scope) -> Any:
    """The value of an expression: an array of `columns.length` values or a scalar. Of a node variable: its ids."""
    match expr:
        case Constant():
            return _scalar(expr.value, expr.type)
        case Param():
            return _scalar(scope.params.get(expr.name), expr.type)
        case Now():
            return pa.scalar(scope.now, arrow_type(expr.type))
        case PropertyRef():
            return columns.property(expr.var, expr.name, expr.type)
        case SystemRef():
            return columns.system(expr.var, expr.field)
        case NodeRef():
            return columns.system(expr.var, "id")
        case Compare():
            return compare(expr.op, evaluate(expr.left, columns, scope), evaluate(expr.right, columns, scope))
        case And():
            return pc.and_kleene(evaluate(expr.left, columns, scope), evaluate(expr.right, columns, scope))
        case Or():
            return pc.or_kleene(evaluate(expr.left, columns, scope), evaluate(expr.right, columns, scope))
        case Not():
            return pc.invert(evaluate(expr.operand, columns, scope))
        case IsNull():
            test = pc.is_valid if expr.negated else pc.is_null
            return test(evaluate(expr.operand, columns, scope))
        case InList():
            return _in_list(expr, columns, scope)
        case TextTest():
            return _text_test(expr.kind, evaluate(expr.text, columns, scope), evaluate(expr.part, columns, scope))
        case TextSearch():
            return _searched(expr, columns, scope)
        case ListOf():
            return _scalar(constant_value(expr, scope), expr.type)
        case Nearest() | Bm25() | Fused():  # tree-equal to the first order key, wherever it stands
            if not isinstance(columns, RankedColumns):
                raise InternalError("a rank was evaluated before its scores were there")
            return columns.scores
        case Aggregate():
            raise InternalError("an aggregate was evaluated for single rows")
        case _:
            assert_never(expr)


def evaluated_array(expr: Expr, columns: RowColumns, scope: Scope) -> pa.Array:
    """The value of an expression as an array in any case."""
    value = evaluate(expr, columns, scope)
    if not isinstance(value, pa.Scalar):
        return value
    # Arrow can't repeat a list no times
    return pa.repeat(value, columns.length) if columns.length else pa.array([], value.type)


def constant_value(expr: Expr, scope: Scope) -> Any:
    """The Python value of an expression that names no row: None for null, a list or tuple for a list.

    Elements keep their own types: integers and decimals may be mixed, and no Arrow type holds both exactly.
    """
    match expr:
        case Constant():
            return expr.value
        case Param():
            return scope.params.get(expr.name)
        case ListOf():
            return [constant_value(each, scope) for each in expr.items]
        case _:
            return evaluate(expr, NoColumns(), scope).as_py()


def true_rows(expr: Expr, columns: RowColumns, scope: Scope) -> np.ndarray:
    """Where a Boolean expression is true: neither false nor null."""
    value = evaluate(expr, columns, scope)
    if isinstance(value, pa.Scalar):
        return np.full(columns.length, value.as_py() is True)
    return value.fill_null(False).to_numpy(zero_copy_only=False)


def compare(op: CompareOp, left: Any, right: Any) -> Any:
    """`left op right`, null where either side is: numbers by exact value, strings by code point."""
    if _is_number(left.type):
        return compare_numbers(op, left, right)
    if left.type != right.type:  # strings whose columns outgrew 32-bit offsets
        right = right.cast(left.type)
    return KERNELS[op](left, right)


def _is_number(of: pa.DataType) -> bool:
    return pa.types.is_integer(of) or pa.types.is_floating(of)


def _scalar(value: object, of: ValueType) -> pa.Scalar:
    """A value in the Arrow type of its own. An integer in a list of floats becomes the nearest."""
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        value = [None if each is None else float(each) for each in items] if of.scalar in FLOATS else list(items)
    return pa.scalar(value, arrow_type(of))


# --- lists


def _in_list(expr: InList, columns: RowColumns, scope: Scope) -> Any:
    """True if a non-null element equals the item; null if the item or the list is null, and never for another reason."""
    item = evaluate(expr.item, columns, scope)
    if isinstance(expr.items, ListOf | Constant):
        return _in_values(item, list(constant_value(expr.items, scope)))
    items = evaluate(expr.items, columns, scope)
    if isinstance(items, pa.Scalar):
        return _in_values(item, items.as_py())
    return _in_column(item, items)


def _in_values(item: Any, values: list[Any] | None) -> Any:
    """Membership in a list that is the same for every row."""
    if values is None:
        return UNKNOWN if isinstance(item, pa.Scalar) else pa.nulls(len(item), pa.bool_())
    if isinstance(item, pa.Scalar):
        return _in_values(pa.array([item.as_py()], item.type), values)[0]
    present = [value for value in values if value is not None]
    if _is_number(item.type):
        present = exact_values(item.type, present)
    found = pc.is_in(item, value_set=pa.array(present, item.type))
    return found if item.null_count == 0 else pc.if_else(item.is_valid(), found, UNKNOWN)


def _in_column(item: Any, lists: pa.Array) -> pa.Array:
    """Membership in each row's own list."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(lists)), lengths)
    elements = lists.flatten()
    wanted = item if isinstance(item, pa.Scalar) else item.take(pa.array(owners))
    equal = compare("=", elements, wanted).fill_null(False).to_numpy(zero_copy_only=False)
    found = np.zeros(len(lists), bool)
    found[owners[equal]] = True
    valid = lists.is_valid()
    valid = pc.and_(valid, item.is_valid if isinstance(item, pa.Scalar) else item.is_valid())
    return pc.if_else(valid, pa.array(found), UNKNOWN)


# --- strings


def _searched(expr: TextSearch, columns: RowColumns, scope: Scope) -> Any:
    query = constant_value(expr.query, scope)
    if query is None:
        return FALSE
    edits = None
    if expr.call == "fuzzy":
        edits = FUZZY_EDITS if expr.edits is None else int(constant_value(expr.edits, scope))
    return pa.array(columns.holding(expr.text.var, expr.text.name, sought(query, edits), scope.search))


def _text_test(kind: str, text: Any, part: Any) -> Any:
    """Exact, case-sensitive; the empty part occurs everywhere."""
    if isinstance(part, pa.Scalar):
        pattern = part.as_py()
        if pattern is None:
            return UNKNOWN if isinstance(text, pa.Scalar) else pa.nulls(len(text), pa.bool_())
        kernel = pc.match_substring if kind == "contains" else pc.starts_with
        return kernel(text, pattern=pattern)
    texts = pa.repeat(text, len(part)) if isinstance(text, pa.Scalar) else text
    valid = pc.and_(texts.is_valid(), part.is_valid())
    return pc.if_else(valid, pa.array(_holds(kind, texts, part)), UNKNOWN)


def _holds(kind: str, texts: pa.Array, parts: pa.Array) -> np.ndarray:
    """Row by row, where both change from row to row: Arrow has no kernel for it, NumPy has."""
    texts, parts = texts.fill_null(""), parts.fill_null("")
    a, b = (column.to_numpy(zero_copy_only=False).astype(np.dtypes.StringDType()) for column in (texts, parts))
    found = np.strings.find(a, b) >= 0 if kind == "contains" else np.strings.startswith(a, b)
    # NumPy takes the NULs at a text's end for nothing; few rows have any
    rows = np.flatnonzero(pc.match_substring(parts, "\0").to_numpy(zero_copy_only=False))
    pairs = zip(texts.take(pa.array(rows)).to_pylist(), parts.take(pa.array(rows)).to_pylist(), strict=True)
    found[rows] = [part in text if kind == "contains" else text.startswith(part) for text, part in pairs]
    return found
