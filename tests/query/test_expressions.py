"""Expressions over columns against the naive evaluator, and numbers that only exact comparison gets right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.query import typed as q
from omnigraph.lang.types import BOOL, F64, I64, STRING, Scalar, ValueType, scalar
from omnigraph.query.expressions import NoColumns, Scope, evaluate, evaluated_array, true_rows
from omnigraph.query.limits import SearchLimits
from omnigraph.query.numbers import compare_numbers
from omnigraph.query.rowcolumns import SomeVertices, WholeType
from omnigraph.query.search.predicates import Sought
from omnigraph.tables.columns import arrow_type
from support import random_graphs as drawn
from support.memory_graphs import MemoryGraph
from support.oracle import Graph, Oracle

OPS: list[q.CompareOp] = ["=", "!=", "<", "<=", ">", ">="]
NUMBERS = (Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.F32, Scalar.F64)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_column_of_values_is_what_the_naive_evaluator_gives_row_by_row(data: st.DataObject) -> None:
    nodes = {"Aa": data.draw(drawn.nodes())["Aa"], "Bb": {}, "Cc": {}}
    scope = drawn.Scope(nodes={"v": "Aa"})
    expr = data.draw(drawn.conditions(scope, 3))
    graph = MemoryGraph(drawn.CATALOG)
    graph.put(nodes)
    rows = graph.snapshot().nodes("Aa")
    entity = drawn.CATALOG.nodes["Aa"]
    oracle = Oracle(Graph(drawn.CATALOG, nodes, {}), scope.params, drawn.NOW)
    ids = rows.dictionary.keys(rows.vertices()).to_pylist()
    expected = [oracle.value(expr, {"v": ("node", "Aa", key)}) for key in ids]
    chosen = Scope(scope.params, drawn.NOW)
    for columns in (WholeType(entity, rows, False), SomeVertices(entity, rows, rows.vertices())):
        assert evaluated_array(expr, columns, chosen).to_pylist() == expected
        assert true_rows(expr, columns, chosen).tolist() == [value is True for value in expected]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), left=st.sampled_from(NUMBERS), right=st.sampled_from(NUMBERS), op=st.sampled_from(OPS))
def test_numbers_compare_by_exact_value_in_all_widths_and_shapes(
    data: st.DataObject, left: Scalar, right: Scalar, op: q.CompareOp
) -> None:
    pairs = data.draw(st.lists(st.tuples(any_number(left), any_number(right)), min_size=1, max_size=8))
    x = pa.array([a for a, _ in pairs], arrow_type(scalar(left)))
    y = pa.array([b for _, b in pairs], arrow_type(scalar(right)))
    compared = [None if a is None or b is None else _python(op, a, b) for a, b in pairs]
    assert compare_numbers(op, x, y).to_pylist() == compared
    first = pa.scalar(pairs[0][1], y.type)
    against_first = [None if a is None or first.as_py() is None else _python(op, a, first.as_py()) for a, _ in pairs]
    assert compare_numbers(op, x, first).to_pylist() == against_first
    assert compare_numbers(op, x[0], y[0]).as_py() == compared[0]


def any_number(of: Scalar) -> st.SearchStrategy[Any]:
    if of is Scalar.F64:
        wide: st.SearchStrategy[Any] = st.floats(allow_nan=False, allow_infinity=False)
    elif of is Scalar.F32:
        wide = st.floats(allow_nan=False, allow_infinity=False, width=32)
    else:
        low, high = drawn._RANGES[of]
        wide = st.integers(low, high)
    return st.none() | drawn.scalars(of) | wide


def _python(op: str, a: Any, b: Any) -> bool:
    """Python compares integers with floats exactly."""
    return {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


@pytest.mark.parametrize(
    ("left", "right", "of_left", "of_right", "signs"),
    [
        (9007199254740993, 9007199254740992.0, Scalar.I64, Scalar.F64, ">"),
        (2**63 - 1, 2.0**63, Scalar.I64, Scalar.F64, "<"),
        (-(2**63), -(2.0**63), Scalar.I64, Scalar.F64, "="),
        (2**64 - 1, 2.0**64, Scalar.U64, Scalar.F64, "<"),
        (2**64 - 1, -1, Scalar.U64, Scalar.I64, ">"),
        (0, -0.0, Scalar.U64, Scalar.F32, "="),
        (16777217, 16777216.0, Scalar.I32, Scalar.F32, ">"),
        (0.5, 0.5, Scalar.F32, Scalar.F64, "="),
    ],
)
def test_case_16_and_its_neighbours(left: Any, right: Any, of_left: Scalar, of_right: Scalar, signs: str) -> None:
    x, y = pa.scalar(left, arrow_type(scalar(of_left))), pa.scalar(right, arrow_type(scalar(of_right)))
    for op in OPS:
        expected = signs in {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}[op]
        assert compare_numbers(op, x, y).as_py() is expected
        assert compare_numbers(op, pa.array([left], x.type), pa.array([right], y.type)).to_pylist() == [expected]


def test_an_f32_that_stores_a_tenth_is_not_the_decimal_but_is_its_parameter() -> None:
    stored = pa.array([np.float32(0.1)], pa.float32())
    assert compare_numbers("=", stored, pa.scalar(0.1, pa.float64())).to_pylist() == [False]
    assert compare_numbers("<", stored, pa.scalar(0.1000001, pa.float64())).to_pylist() == [True]
    assert compare_numbers("=", stored, pa.scalar(np.float32(0.1), pa.float32())).to_pylist() == [True]


TRUE, FALSE, NULL = (
    q.Constant(True, BOOL),
    q.Constant(False, BOOL),
    q.Param("absent", scalar(Scalar.BOOL, nullable=True)),
)


@pytest.mark.parametrize(
    ("x", "y", "both", "either", "negated"),
    [
        (TRUE, TRUE, True, True, False),
        (TRUE, FALSE, False, True, False),
        (TRUE, NULL, None, True, False),
        (FALSE, FALSE, False, False, True),
        (FALSE, NULL, False, None, True),
        (NULL, NULL, None, None, None),
    ],
)
def test_the_table_of_9_3(x: q.Expr, y: q.Expr, both: Any, either: Any, negated: Any) -> None:
    def value(expr: q.Expr) -> Any:
        return evaluate(expr, NoColumns(), Scope({}, drawn.NOW)).as_py()

    assert value(q.And(x, y, BOOL)) is both
    assert value(q.And(y, x, BOOL)) is both
    assert value(q.Or(x, y, BOOL)) is either
    assert value(q.Or(y, x, BOOL)) is either
    assert value(q.Not(x, BOOL)) is negated


TEXTS = ValueType("list", Scalar.STRING, nullable=True)


@pytest.mark.parametrize(
    ("item", "items", "expected"),
    [
        (q.Constant("a", STRING), q.Constant(("a", "b"), TEXTS), True),
        (q.Constant("c", STRING), q.Constant(("a", "b"), TEXTS), False),
        (q.Constant("a", STRING), q.Constant((), TEXTS), False),
        (q.Param("absent", STRING), q.Constant((), TEXTS), None),
        (q.Constant("a", STRING), q.Param("absent", TEXTS), None),
        (q.Constant("a", STRING), q.ListOf((q.Param("absent", STRING), q.Constant("a", STRING)), TEXTS), True),
        (q.Constant("b", STRING), q.ListOf((q.Param("absent", STRING), q.Constant("a", STRING)), TEXTS), False),
        (q.Constant(2**53 + 1, I64), q.Constant((2.0**53,), ValueType("list", Scalar.F64)), False),
        (q.Constant(2**53 + 1, I64), q.Constant((2.0**53, 2**53 + 1), ValueType("list", Scalar.F64)), True),
        (q.Constant(-0.0, F64), q.Constant((0,), ValueType("list", Scalar.I64)), True),
    ],
)
def test_membership_knows_nulls_and_exact_numbers(item: q.Expr, items: q.Expr, expected: bool | None) -> None:
    found = evaluate(q.InList(item, items, BOOL), NoColumns(), Scope({}, drawn.NOW))
    assert found.as_py() is expected


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(st.none() | st.text(), st.none() | st.text(max_size=2)), max_size=8))
@example(rows=[("", None), ("a", None), ("\0", "\0"), ("a\0", "a\0"), ("a\0b", None), ("a\0\0", "a\0\0")])
def test_text_tests_take_every_character_as_itself(rows: list[tuple[str | None, str | None]]) -> None:
    table = {str(i): {"s": text, "w": [part]} for i, (text, part) in enumerate(rows) if text is not None}
    for kind in ("contains", "starts_with"):
        for text, part in rows:
            if part is None:
                continue
            test = q.TextTest(kind, q.PropertyRef("v", "s", STRING), q.Constant(part, STRING), BOOL)
            graph = Graph(drawn.CATALOG, {"Cc": table}, {})
            oracle = Oracle(graph, {}, drawn.NOW)
            expected = [oracle.value(test, {"v": ("node", "Cc", key)}) for key in table]
            assert evaluated_array(test, _Texts([r["s"] for r in table.values()]), _SCOPE).to_pylist() == expected
            both = q.TextTest(kind, q.Constant(text or "", STRING), q.PropertyRef("v", "s", STRING), BOOL)
            expected = [oracle.value(both, {"v": ("node", "Cc", key)}) for key in table]
            assert evaluated_array(both, _Texts([r["s"] for r in table.values()]), _SCOPE).to_pylist() == expected


@pytest.mark.parametrize("of", [ValueType("list", Scalar.I64), ValueType("vector", Scalar.F32, dimension=2)], ids=str)
def test_a_list_or_vector_beside_no_rows_is_an_empty_column_of_its_type(of: ValueType) -> None:
    column = evaluated_array(q.Param("given", of), _Texts([]), Scope({"given": (1, 2)}, drawn.NOW))
    assert column.type == arrow_type(of)
    assert len(column) == 0


_SCOPE = Scope({}, drawn.NOW)


class _Texts:
    def __init__(self, texts: list[str]) -> None:
        self._texts = pa.array(texts, pa.string())
        self.length = len(texts)

    def property(self, var: str, name: str, of: ValueType) -> pa.Array:
        return self._texts

    def system(self, var: str, field: str) -> pa.Array:
        return self._texts

    def holding(self, var: str, name: str, what: Sought, limits: SearchLimits) -> np.ndarray:
        raise AssertionError("nothing is searched here")
