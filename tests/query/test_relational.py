"""Both engines of the tail group and order alike, and aggregates are exact whatever the order of rows."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.types import Scalar, ValueType, scalar
from omnigraph.query.relational import duck as duck_module
from omnigraph.query.relational.aggregates import aggregate
from omnigraph.query.relational.choice import choose_tail
from omnigraph.query.relational.duck import DuckTail
from omnigraph.query.relational.kernels import KERNEL_TAIL
from omnigraph.query.relational.keys import comparable, shown
from omnigraph.query.relational.tail import SortKey, Tail
from omnigraph.tables.columns import arrow_type
from support import random_graphs as drawn
from support.oracle import Directed, exact_sum, fold, order_key

TYPES = [
    *(scalar(of, nullable=True) for of in Scalar if of is not Scalar.BLOB),
    *(ValueType("list", of, nullable=True) for of in Scalar if of is not Scalar.BLOB),
    ValueType("vector", Scalar.F32, nullable=True, dimension=2),
]


@pytest.fixture(scope="module")
def duck() -> Iterator[DuckTail]:
    tail = DuckTail(threads=2, memory_limit="200MB")
    yield tail
    tail.close()


@st.composite
def columns(draw: st.DrawFn) -> list[tuple[ValueType, list[Any], bool]]:
    rows = draw(st.integers(0, 12))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    return [(of, draw(st.lists(drawn.values(of), min_size=rows, max_size=rows)), draw(st.booleans())) for of in types]


def sort_key(of: ValueType, values: list[Any], descending: bool) -> SortKey:
    whole = comparable(pa.array(values, arrow_type(of)))
    return SortKey(lambda rows: whole if rows is None else whole.take(pa.array(rows)), descending)


@settings(max_examples=200, deadline=None)
@given(drawn_columns=columns(), limit=st.none() | st.integers(0, 5))
def test_both_engines_put_rows_into_the_one_order_of_11_2(
    duck: DuckTail, drawn_columns: Any, limit: int | None
) -> None:
    rows = len(drawn_columns[0][1])
    keys = [sort_key(*column) for column in drawn_columns]
    keys.append(sort_key(scalar(Scalar.I64), list(range(rows)), False))
    expected = sorted(
        range(rows),
        key=lambda i: [Directed(order_key(values[i], of), down) for of, values, down in drawn_columns] + [i],
    )[:limit]
    for tail in (KERNEL_TAIL, duck):
        assert tail.order(rows, keys, limit).tolist() == expected


@settings(max_examples=200, deadline=None)
@given(drawn_columns=columns())
def test_both_engines_group_equal_tuples_null_with_null_and_zero_with_zero(duck: DuckTail, drawn_columns: Any) -> None:
    rows = len(drawn_columns[0][1])
    keys = [comparable(pa.array(values, arrow_type(of))) for of, values, _ in drawn_columns]
    expected: dict[Any, set[int]] = {}
    for i in range(rows):
        expected.setdefault(tuple(order_key(values[i], of) for of, values, _ in drawn_columns), set()).add(i)
    for tail in (KERNEL_TAIL, duck):
        groups = tail.groups(keys)
        found = [set(np.flatnonzero(groups.of_row == number).tolist()) for number in range(groups.count)]
        assert sorted(map(sorted, found)) == sorted(map(sorted, expected.values()))
        assert [groups.of_row[first] for first in groups.first] == list(range(groups.count))


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    of=st.sampled_from([t for t in TYPES if t.kind == "scalar"]),
    func=st.sampled_from(["count", "sum", "avg", "min", "max"]),
)
def test_aggregates_are_those_of_10_2(data: st.DataObject, of: ValueType, func: Any) -> None:
    if func in ("sum", "avg") and not of.is_number:
        func = "max"
    values = data.draw(st.lists(st.tuples(drawn.values(of), st.integers(0, 2)), max_size=12))
    group = np.array([g for _, g in values], np.int64)
    found = aggregate(func, pa.array([v for v, _ in values], arrow_type(of)), group, 3).to_pylist()
    for number in range(3):
        members = [v for v, g in values if g == number]
        expected = fold(func, members, of)
        got = found[number]
        if isinstance(expected, float) and func in ("sum", "avg") and math.isfinite(expected):
            scale = sum(abs(Fraction(v)) for v in members if v is not None)
            assert abs(Fraction(got) - Fraction(expected)) <= Fraction(1, 10**12) * scale
        elif isinstance(expected, float):
            assert repr(got) == repr(expected)
        else:
            assert got == expected


@settings(max_examples=100, deadline=None)
@given(
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=60), seed=st.integers(0, 99)
)
@example(numbers=[8.988465674311579e307, 8.98846567431158e307], seed=0)
@example(numbers=[1.107913932560223e276, -8.988465674311579e307, -8.98846567431158e307], seed=0)
def test_a_sum_of_floats_is_the_exact_sum_rounded_in_any_order(numbers: list[float], seed: int) -> None:
    group = np.zeros(len(numbers), np.int64)
    found = aggregate("sum", pa.array(numbers), group, 1)[0].as_py()
    shuffled = np.random.default_rng(seed).permutation(numbers)
    assert aggregate("sum", pa.array(shuffled), group, 1)[0].as_py() == found
    expected = exact_sum(numbers)
    if math.isfinite(expected):
        size = sum(abs(Fraction(x)) for x in numbers)
        assert abs(Fraction(found) - Fraction(expected)) <= Fraction(1, 10**12) * size
    else:
        assert found == expected


def test_terms_that_cancel_leave_the_small_one() -> None:
    numbers = pa.array([1e300, 1.0, -1e300, 1e16, 1.0, -1e16])
    assert aggregate("sum", numbers, np.zeros(6, np.int64), 1).to_pylist() == [2.0]


def test_a_sum_out_of_range_is_infinite_and_one_that_only_passes_there_is_not() -> None:
    big = 1.7e308
    numbers = pa.array([big, big, -big, -big, big, big])
    group = np.array([0, 0, 0, 0, 1, 1])
    assert aggregate("sum", numbers, group, 2).to_pylist() == [0.0, math.inf]


def test_integers_are_added_exactly_and_rounded_once() -> None:
    group = np.zeros(3, np.int64)
    assert aggregate("sum", pa.array([2**63 - 1, 2**63 - 1, 3]), group, 1).to_pylist() == [float(2**64 + 1)]
    assert aggregate("sum", pa.array([2**53, 1, 1]), group, 1).to_pylist() == [float(2**53 + 2)]
    assert aggregate("sum", pa.array([-(2**63), 2**63 - 1, 0]), group, 1).to_pylist() == [-1.0]
    assert aggregate("sum", pa.array([2**64 - 1, 2**64 - 1, 1], pa.uint64()), group, 1).to_pylist() == [
        float(2**65 - 1)
    ]


def test_many_of_the_largest_integers_are_still_added_exactly() -> None:
    count = 3_000_000
    total = aggregate("sum", pa.array(np.full(count, 2**63 - 1)), np.zeros(count, np.int64), 1)
    assert total.to_pylist() == [float(count * (2**63 - 1))]


def test_of_both_zeros_the_least_is_negative_and_the_greatest_is_not() -> None:
    zeros = pa.array([0.0, -0.0, 0.0])
    group = np.zeros(3, np.int64)
    assert repr(aggregate("min", zeros, group, 1).to_pylist()) == "[-0.0]"
    assert repr(aggregate("max", zeros, group, 1).to_pylist()) == "[0.0]"


@pytest.mark.parametrize("of", [pa.float32(), pa.list_(pa.float32()), pa.list_(pa.float32(), 2)])
def test_a_group_key_shows_zero_without_a_sign(of: pa.DataType) -> None:
    cells: list[Any] = [-0.0, None, 1.0] if of == pa.float32() else [[-0.0, 1.0], None, [0.0, -0.0]]
    positive: list[Any] = [0.0, None, 1.0] if of == pa.float32() else [[0.0, 1.0], None, [0.0, 0.0]]
    values = shown(pa.array(cells, of))
    assert values.type == of
    assert repr(values.to_pylist()) == repr(positive)
    assert repr(shown(pa.array([], of)).to_pylist()) == "[]"


def test_little_work_never_starts_duckdb_and_much_work_with_several_keys_does(monkeypatch: pytest.MonkeyPatch) -> None:
    class Started(Exception):
        pass

    def started() -> Tail:
        raise Started

    monkeypatch.setattr(duck_module, "duck_tail", started)
    assert choose_tail(50_000, 3) is KERNEL_TAIL
    assert choose_tail(5_000_000, 1) is KERNEL_TAIL
    assert choose_tail(5_000_000, 3, limit=10) is KERNEL_TAIL
    with pytest.raises(Started):
        choose_tail(5_000_000, 3)


def test_duckdb_reads_nothing_but_what_it_is_given_and_keeps_its_settings(duck: DuckTail, tmp_path: Any) -> None:
    cursor = duck._root.cursor()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    outside = pa.table({"a": [1]})
    assert outside.num_rows == 1
    for statement in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
        "SELECT * FROM outside",
    ):
        with pytest.raises(duckdb.Error):
            cursor.execute(statement).fetchall()
    folder = duck._folder
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_duckdb_spills_when_memory_is_short() -> None:
    tail = DuckTail(memory_limit="40MB", threads=1)
    try:
        rows = 1_500_000
        numbers = np.random.default_rng(0).permutation(rows)
        texts = pa.array([f"{n:08d}" for n in range(1000)]).take(pa.array(numbers % 1000))
        keys = [
            SortKey(lambda rows: texts),
            SortKey(lambda rows: pa.array(numbers)),
        ]
        order = tail.order(rows, keys, None)
        expected = np.lexsort((numbers, numbers % 1000))
        assert np.array_equal(order, expected)
    finally:
        tail.close()
