"""Constraints that one row decides by itself: W001 to W004, W008, W009."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.constraints.order import first_row, place_of, truths
from omnigraph.engine.constraints.violation import Violation, quoted, reporter, shown_value, violation_at
from omnigraph.engine.identity import derived_ids
from omnigraph.lang.schema.catalog import CheckRule, EntityType, NodeType, Property, RangeRule
from omnigraph.lang.types import FLOATS, Scalar
from omnigraph.query.encode.strings import scalar_json
from omnigraph.tables.columns import ID

_DAY_RANGE = (dt.date.min, dt.date.max)
_MOMENT_RANGE = (
    dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC),
)


def value_violation(entity: EntityType, rows: pa.Table, *, embedded_later: bool = False) -> Violation | None:
    """W001, W002, W003, W004, W008 and W009 in new or changed rows.

    An `__id` that is null is still to be minted and not judged; one that is given must be the key's. Of several
    violations in one row the first in the order key, then properties as declared, required before all else, is named.
    `embedded_later`: a missing vector with `@embed` is not judged yet, since the embedding step comes after.
    """
    if not len(rows):
        return None
    candidates: list[tuple[int, int, Callable[[int], Violation]]] = []
    for rank, (bad, violation) in enumerate(_value_tests(entity, rows, embedded_later)):
        row = first_row(rows, bad)
        if row is not None:
            candidates.append((row, rank, violation))
    if not candidates:
        return None
    row, _, violation = min(candidates, key=lambda candidate: (*place_of(rows, candidate[0]), candidate[1]))
    return violation(row)


_Test = tuple[pa.ChunkedArray, Callable[[int], Violation]]


def _value_tests(entity: EntityType, rows: pa.Table, embedded_later: bool) -> Iterator[_Test]:
    """Pairs of "which rows break it" and "the violation of one such row", the most telling first."""
    yield from _key_tests(entity, rows)
    ranges: Sequence[RangeRule] = ()
    checks: Sequence[CheckRule] = ()
    if isinstance(entity, NodeType):
        ranges, checks = entity.ranges, entity.checks
    for each in entity.properties:
        column = rows.column(each.column)
        awaited = embedded_later and each.embed is not None
        if not each.type.nullable and not awaited and each.name not in entity.key:
            yield pc.is_null(column), reporter(entity, rows, each, "W001", "required", "a value is required")
        yield from _type_tests(entity, rows, each, column)
        for rule in ranges:
            if rule.property == each.name:
                yield from _range_tests(entity, rows, each, column, rule)
        for rule in checks:
            if rule.property == each.name:
                matches = pc.match_substring_regex(column, pattern=rule.pattern)
                what = f"does not match @check {scalar_json(rule.pattern)}"
                yield pc.invert(matches), reporter(entity, rows, each, "W004", "check", what, shown=True)


def _key_tests(entity: EntityType, rows: pa.Table) -> Iterator[_Test]:
    by_name = {p.name: p for p in entity.properties}
    for member in entity.key:
        if member in by_name:
            each = by_name[member]
            column = rows.column(each.column)
            yield pc.is_null(column), reporter(entity, rows, each, "W008", "key", "a key can't be null")
            if len(entity.key) == 1 and each.type.is_text:
                empty = pc.equal(column, "")
                yield empty, reporter(entity, rows, each, "W008", "key", "a key can't be the empty string")
    if entity.key and rows.column(ID).null_count < len(rows):
        derived = derived_ids(entity, rows)

        def report(row: int) -> Violation:
            given, right = rows.column(ID)[row].as_py(), derived.slice(row, 1)[0].as_py()
            message = f"the id {quoted(given)} is not the one that the key gives: {quoted(right)}"
            return violation_at(entity, rows, row, "W008", "key", message, None)

        yield pc.not_equal(rows.column(ID), derived), report


def _type_tests(entity: EntityType, rows: pa.Table, each: Property, column: pa.ChunkedArray) -> Iterator[_Test]:
    """W002 and W009: values that the type does not have, though its Arrow column could hold them."""
    kind = each.type
    if kind.kind == "enum":
        outside = pc.invert(pc.is_in(column, value_set=pa.array(kind.variants, column.type)))
        what = f"is none of {', '.join(kind.variants)}"
        yield pc.and_(pc.is_valid(column), outside), reporter(entity, rows, each, "W002", "enum", what, shown=True)
    if kind.kind == "vector":
        yield _some_item_missing(column), reporter(entity, rows, each, "W009", "range", "an element is null")
    if kind.scalar in FLOATS:
        yield _not_all(column, pc.is_finite), reporter(entity, rows, each, "W009", "range", "is not finite")
    if kind.scalar in (Scalar.DATE, Scalar.DATETIME):
        low, high = _DAY_RANGE if kind.scalar is Scalar.DATE else _MOMENT_RANGE
        inside = _between(low, high)
        what = "lies outside the years 1 to 9999"
        yield _not_all(column, inside), reporter(entity, rows, each, "W009", "range", what)


def _range_tests(
    entity: EntityType, rows: pa.Table, each: Property, column: pa.ChunkedArray, rule: RangeRule
) -> Iterator[_Test]:
    what = f"lies outside @range({each.name}, {_end(rule.low, column.type)}..{_end(rule.high, column.type)})"
    report = reporter(entity, rows, each, "W003", "range", what, shown=True)
    if rule.low is not None:
        yield pc.less(column, pa.scalar(rule.low, column.type)), report
    if rule.high is not None:
        yield pc.greater(column, pa.scalar(rule.high, column.type)), report


def _end(bound: float | None, of: pa.DataType) -> str:
    return "" if bound is None else shown_value(pa.chunked_array([pa.array([bound], of)]), 0)


def _between(low: dt.date, high: dt.date) -> Callable[[pa.Array], pa.Array]:
    def inside(values: pa.Array) -> pa.Array:
        ends = pa.array([low, high], values.type)
        return pc.and_(pc.greater_equal(values, ends[0]), pc.less_equal(values, ends[1]))

    return inside


def _not_all(column: pa.ChunkedArray, test: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """Rows whose value, or a value of whose list, is known to fail the test."""
    if not _has_items(column.type):
        return pc.invert(test(column))
    return pa.chunked_array([_some_item_fails(chunk, test) for chunk in column.chunks], type=pa.bool_())


def _some_item_missing(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Rows whose list has an element that is null."""

    def missing(lists: pa.Array) -> pa.Array:
        items = pc.list_flatten(lists)
        return _lists_of(lists, pc.is_null(items) if items.null_count else pa.array([], pa.bool_()))

    return pa.chunked_array([missing(chunk) for chunk in column.chunks], type=pa.bool_())


def _some_item_fails(lists: pa.Array, test: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """For each list, whether the test is false for an item; null items pass."""
    passed = pc.fill_null(test(pc.list_flatten(lists)), True)
    return _lists_of(lists, pc.invert(passed))


def _lists_of(lists: pa.Array, marked: pa.Array) -> pa.Array:
    """For each list, whether one of its items is marked; `marked` goes with the items that flattening keeps."""
    found = np.zeros(len(lists), dtype=bool)
    if pc.any(marked, min_count=0).as_py():
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        parents = np.repeat(np.arange(len(lists)), lengths)  # null lists have no items
        found[parents[truths(marked)]] = True
    return pa.array(found)


def _has_items(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
