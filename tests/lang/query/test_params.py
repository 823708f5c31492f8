"""Parameters: the table of languages.md 7 at the JSON door, native values at the Python door."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from omnigraph.errors import InvalidParams, InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.check import check
from omnigraph.lang.query.params import bind_given, bind_params, choose_query
from omnigraph.lang.query.typed import TypedQuery
from omnigraph.lang.schema.catalog import Catalog

UTC = dt.UTC


def query(params: str, catalog: Catalog, tail: str = "") -> TypedQuery:
    (typed,) = check(f"query q({params}) {{ match {{ $v: Vessel }} return {{ $v }} {tail} }}", catalog)
    return typed


def bind(of: str, value: object, catalog: Catalog, door: Literal["json", "python"] = "json") -> object:
    return bind_params(query(f"$p: {of}", catalog), {"p": value}, door=door)["p"]


def refused(of: str, value: object, catalog: Catalog, door: Literal["json", "python"] = "json") -> Diagnostic:
    with pytest.raises(InvalidParams) as caught:
        bind(of, value, catalog, door)
    assert isinstance(caught.value.diagnostic, Diagnostic)
    return caught.value.diagnostic


DAY = dt.date(2024, 1, 1)
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)
NAIVE = NOON.replace(tzinfo=None)

ACCEPTED: list[tuple[str, str, object]] = [
    # type, JSON, value
    ("String", '"é\\u0000"', "é\0"),
    ("String?", "null", None),
    ("Bool", "true", True),
    ("I32", "-2147483648", -(2**31)),
    ("I32", '"2147483647"', 2**31 - 1),
    ("I32", '"-0007"', -7),
    ("I64", '"9223372036854775807"', 2**63 - 1),
    ("U64", "18446744073709551615", 2**64 - 1),
    ("U32", "-0", 0),
    ("F64", "1", 1.0),
    ("F64", "9007199254740993", 9007199254740992.0),
    ("F64", "1e3", 1000.0),
    ("F64", "5e-324", 5e-324),
    ("F32", "0.1", 0.10000000149011612),
    ("F32", "3.4028235e38", 3.4028234663852886e38),
    ("F32", "1e-60", 0.0),
    ("Date", '"2024-01-01"', DAY),
    ("Date", "19723", DAY),
    ("Date", "-719162", dt.date.min),
    ("Date", "2932896", dt.date.max),
    ("DateTime", '"2024-01-01T12:00:00"', NOON),
    ("DateTime", '"2024-01-01 12:00"', NOON),
    ("DateTime", '"2024-01-01T12:00:00.0000000Z"', NOON),
    ("DateTime", '"2024-01-01T14:30:00+02:30"', NOON),
    ("DateTime", '"2024-01-01"', dt.datetime(2024, 1, 1, tzinfo=UTC)),
    ("DateTime", '"2024-01-01-01:00"', dt.datetime(2024, 1, 1, 1, tzinfo=UTC)),
    ("DateTime", '"2024-01-01T00:00:00.25"', dt.datetime(2024, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)),
    ("DateTime", "1704110400000", NOON),
    ("DateTime", "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ("DateTime", "253402300799999", dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ("Vector(2)", "[1, 0.1]", (1.0, 0.10000000149011612)),
    ("[String]", '["a", ""]', ("a", "")),
    ("[Date]", '["2024-01-01", 19723]', (DAY, DAY)),
    ("[I64]", "[]", ()),
    ("Blob", '"base64:AAE="', "base64:AAE="),
    ("Blob", '"base64:"', "base64:"),
    ("Blob", '"s3://somewhere/x"', "s3://somewhere/x"),
    ("Blob", '""', ""),
]


@pytest.mark.parametrize(("of", "text", "value"), ACCEPTED)
def test_json_values_are_accepted(of: str, text: str, value: object, catalog: Catalog) -> None:
    found = bind(of, json.loads(text), catalog)
    assert found == value
    assert type(found) is type(value)


REFUSED: list[tuple[str, str, str]] = [
    # code, type, JSON
    ("P003", "String", "null"),
    ("P002", "String", "1"),
    ("P002", "String", "true"),
    ("P002", "String", '["a"]'),
    ("P003", "String", '"\\ud800"'),
    ("P002", "Bool", '"true"'),
    ("P002", "Bool", "0"),
    ("P002", "Bool", "1"),
    ("P002", "I32", "1.0"),
    ("P002", "I32", "1e3"),
    ("P002", "I32", "true"),
    ("P003", "I32", '" 5"'),
    ("P003", "I32", '"+5"'),
    ("P003", "I32", '"5 "'),
    ("P003", "I32", '"5.0"'),
    ("P003", "I32", '""'),
    ("P003", "I32", '"-"'),
    ("P003", "I32", '"٣"'),
    ("P003", "I32", "2147483648"),
    ("P003", "U32", "-1"),
    ("P003", "U64", "18446744073709551616"),
    ("P003", "I64", '"99999999999999999999999999"'),
    ("P003", "I64", '"' + "9" * 10_000 + '"'),
    ("P002", "F64", '"1.5"'),
    ("P002", "F64", "true"),
    ("P003", "F64", "NaN"),
    ("P003", "F64", "Infinity"),
    ("P003", "F64", "1e999"),
    ("P003", "F64", "1" + "0" * 400),
    ("P003", "F32", "1e39"),
    ("P003", "F32", "3.4028235677973366e38"),
    ("P003", "Date", '"2024-01-01T00:00:00"'),
    ("P003", "Date", '"2023-02-29"'),
    ("P003", "Date", '"2024-1-1"'),
    ("P003", "Date", '"0000-01-01"'),
    ("P003", "Date", '"2024-01-01\\n"'),
    ("P003", "Date", '"２０２４-01-01"'),
    ("P003", "Date", "2932897"),
    ("P003", "Date", "-719163"),
    ("P002", "Date", "19723.0"),
    ("P002", "Date", "true"),
    ("P003", "DateTime", '"2024-01-01T24:00"'),
    ("P003", "DateTime", '"2024-01-01T12:00:60"'),
    ("P003", "DateTime", '"2024-01-01T12"'),
    ("P003", "DateTime", '"2024-01-01t12:00"'),
    ("P003", "DateTime", '"2024-01-01T12:00z"'),
    ("P003", "DateTime", '"2024-01-01  12:00"'),
    ("P003", "DateTime", '"2024-01-01T12:00:00."'),
    ("P003", "DateTime", '"2024-01-01T12:00:00.1234"'),
    ("P003", "DateTime", '"2024-01-01T12:00+24:00"'),
    ("P003", "DateTime", '"2024-01-01T12:00+02"'),
    ("P003", "DateTime", '"2024-01-01T12:00 +02:00"'),
    ("P003", "DateTime", '"0001-01-01T00:00+00:01"'),
    ("P003", "DateTime", '"9999-12-31T23:59:59.999-00:01"'),
    ("P003", "DateTime", "253402300800000"),
    ("P002", "DateTime", "1704110400000.0"),
    ("P003", "Vector(2)", "[1]"),
    ("P003", "Vector(2)", "[1, 2, 3]"),
    ("P003", "Vector(2)", "[1, null]"),
    ("P003", "Vector(2)", "[1, 1e39]"),
    ("P002", "Vector(2)", '"1,2"'),
    ("P002", "Vector(2)", '["1", "2"]'),
    ("P003", "[String]", '["a", null]'),
    ("P002", "[String]", '"a"'),
    ("P002", "[String]", '[["a"]]'),
    ("P002", "[I64]", "{}"),
    ("P003", "Blob", '"base64:AAE"'),
    ("P003", "Blob", '"base64:A=E="'),
    ("P003", "Blob", '"base64:AA-_"'),
    ("P003", "Blob", '"base64:AAE=\\n"'),
    ("P002", "Blob", "[0, 1]"),
]


@pytest.mark.parametrize(("code", "of", "text"), REFUSED)
def test_json_values_are_refused(code: str, of: str, text: str, catalog: Catalog) -> None:
    found = refused(of, json.loads(text), catalog)
    assert (found.code, found.stage, found.query) == (code, "params", "q")
    assert found.message.startswith(f"parameter error: {code}: the parameter `p` ")
    assert found.expected == f"a value of type `{of}`"


class Colour(str, enum.Enum):  # noqa: UP042 (the kind whose str() is not its value)
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


PYTHON: list[tuple[str, object, object]] = [
    ("String", "a", "a"),
    ("String", Colour.RED, "red"),
    ("String", np.str_("a"), "a"),
    ("I32", Level.HIGH, 3),
    ("I64", np.int64(2**63 - 1), 2**63 - 1),
    ("U64", np.uint64(2**64 - 1), 2**64 - 1),
    ("I64", "7", 7),
    ("Bool", np.bool_(True), True),
    ("F64", np.float32(0.5), 0.5),
    ("F64", 3, 3.0),
    ("F32", np.float64(0.1), 0.10000000149011612),
    ("Date", DAY, DAY),
    ("Date", np.datetime64("2024-01-01"), DAY),
    ("Date", 19723, DAY),
    ("DateTime", NOON, NOON),
    ("DateTime", NAIVE, NOON),
    ("DateTime", dt.datetime(2024, 1, 1, 14, tzinfo=dt.timezone(dt.timedelta(hours=2))), NOON),
    ("DateTime", np.datetime64("2024-01-01T12:00:00"), NOON),
    ("DateTime", np.datetime64("2024-01-01T12:00:00.000000000", "ns"), NOON),
    ("DateTime", pd.Timestamp("2024-01-01T12:00:00"), NOON),
    ("Vector(2)", np.array([1.0, 0.1], dtype=np.float32), (1.0, 0.10000000149011612)),
    ("Vector(2)", (1, 2), (1.0, 2.0)),
    ("[I64]", np.array([1, 2]), (1, 2)),
    ("[DateTime]", np.array(["2024-01-01T12:00:00"], dtype="datetime64[ns]"), (NOON,)),
    ("[DateTime]", [NAIVE], (NOON,)),
    ("[Date]", np.array(["2024-01-01"], dtype="datetime64[D]"), (DAY,)),
    ("[Bool]", [np.bool_(False)], (False,)),
    ("Blob", b"\x00\x01", "base64:AAE="),
    ("Blob", bytearray(b""), "base64:"),
    ("String?", None, None),
]


@pytest.mark.parametrize(("of", "given", "value"), PYTHON)
def test_native_values_are_accepted(of: str, given: object, value: object, catalog: Catalog) -> None:
    found = bind(of, given, catalog, "python")
    assert found == value
    assert type(found) is type(value)


def test_a_datetime_comes_out_aware_and_in_utc(catalog: Catalog) -> None:
    found = bind("DateTime", NAIVE, catalog, "python")
    assert isinstance(found, dt.datetime)
    assert found.tzinfo is UTC


NOT_PYTHON: list[tuple[str, str, object]] = [
    ("P002", "I64", decimal.Decimal(1)),
    ("P002", "F64", decimal.Decimal("1.5")),
    ("P002", "I64", True),
    ("P002", "I64", np.bool_(True)),
    ("P002", "F64", False),
    ("P002", "Bool", 1),
    ("P002", "I64", 1.0),
    ("P002", "I64", np.float64(1.0)),
    ("P003", "F64", float("nan")),
    ("P003", "F64", np.float64("inf")),
    ("P002", "Date", NOON),
    ("P002", "DateTime", DAY),
    ("P003", "DateTime", NAIVE.replace(microsecond=1)),
    ("P003", "DateTime", pd.Timestamp("2024-01-01T12:00:00.000000001")),
    ("P003", "DateTime", np.datetime64("2024-01-01T12:00:00.000000001", "ns")),
    ("P003", "DateTime", np.datetime64("NaT")),
    ("P003", "DateTime", dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
    ("P002", "String", b"a"),
    ("P002", "Blob", [0, 1]),
    ("P002", "Vector(2)", np.array([[1.0, 2.0], [1.0, 2.0]])),
    ("P003", "Vector(2)", np.array([1.0, float("nan")])),
    ("P002", "[I64]", {1, 2}),
    ("P002", "[I64]", {1: 2}),
    ("P002", "[I64]", range(2)),
    ("P003", "[I64]", [1, None]),
    ("P002", "[String]", "ab"),
    ("P003", "String", None),
    ("P002", "String", object()),
]


@pytest.mark.parametrize(("code", "of", "given"), NOT_PYTHON)
def test_native_values_are_refused(code: str, of: str, given: object, catalog: Catalog) -> None:
    assert refused(of, given, catalog, "python").code == code


def test_every_code_of_a_parameter_has_a_case() -> None:
    """Beside P001, P004 and P006, which have tests of their own; P005 belongs to ranking calls."""
    assert {code for code, _, _ in [*REFUSED, *NOT_PYTHON]} == {"P002", "P003"}


def test_native_values_are_no_json(catalog: Catalog) -> None:
    for of, value in [("Date", DAY), ("DateTime", NOON), ("Blob", b""), ("Vector(2)", np.array([1.0, 2.0]))]:
        assert refused(of, value, catalog).code == "P002"


def test_every_parameter_has_a_value_in_order_of_declaration(catalog: Catalog) -> None:
    declared = query("$b: I64?, $a: String, $c: Bool?", catalog)
    assert list(bind_params(declared, {"a": "x", "b": 1}, door="json").items()) == [("b", 1), ("a", "x"), ("c", None)]


def problem(declared: TypedQuery, given: dict[str, Any]) -> Diagnostic:
    with pytest.raises(InvalidParams) as caught:
        bind_params(declared, given, door="json")
    assert isinstance(caught.value.diagnostic, Diagnostic)
    return caught.value.diagnostic


def test_a_missing_parameter_is_p001_and_null_p003(catalog: Catalog) -> None:
    declared = query("$a: String", catalog)
    assert problem(declared, {}).code == "P001"
    assert problem(declared, {"a": None}).code == "P003"


def test_a_parameter_that_is_not_declared_is_p004_with_the_name_it_may_mean(catalog: Catalog) -> None:
    declared = query("$title: String?, $rank: I64?", catalog)
    found = problem(declared, {"titel": "x"})
    assert (found.code, found.fix) == ("P004", "title")
    assert found.expected == "a parameter of `q`: rank, title"
    assert found.to_dict() == {
        "code": "P004",
        "stage": "params",
        "query": "q",
        "message": "parameter error: P004: `q` declares no parameter `titel`",
        "expected": "a parameter of `q`: rank, title",
        "fix": "title",
    }
    assert problem(query("", catalog), {"x": 1}).code == "P004"


def test_a_negative_limit_is_p003(catalog: Catalog) -> None:
    declared = query("$n: I64", catalog, "limit $n")
    assert bind_params(declared, {"n": 0}, door="json") == {"n": 0}
    assert problem(declared, {"n": -1}).code == "P003"
    assert bind_params(query("$n: I64", catalog), {"n": -1}, door="json") == {"n": -1}


SEARCHED: dict[str, tuple[str, str, list[Any], list[Any]]] = {
    # how `$p` is used: its type, the text around it, values that it takes, integers out of range
    "edits": ("I64?", 'search($v.title, "a")  not { $v follows $w  fuzzy($w.title, "a", $p) }', [0, 2], [-1, 3]),
    "bm25": ("String?", "order { bm25($v.title, $p) }", ["", "a"], []),
    "nearest a vector": ("Vector(2)?", "order { nearest($v.hull, $p) } limit 3", [[0, 1]], []),
    "nearest a text": ("String?", "order { nearest($v.hull, $p) } limit 3", [""], []),
    "the second arm": ("String?", 'order { rrf(bm25($v.title, "a"), nearest($v.hull, $p)) } limit 3', ["a"], []),
    "k": ("U32?", 'order { rrf(bm25($v.title, "a"), bm25($v.title, "b"), $p) } limit 3', [1, 2**32 - 1], [0]),
}


@pytest.mark.parametrize("use", SEARCHED)
def test_a_null_or_misfit_operand_of_a_search_is_refused(use: str, catalog: Catalog) -> None:
    of, text, fitting, outside = SEARCHED[use]
    block, tail = ("", text) if text.startswith("order") else (text, "")
    (declared,) = check(f"query q($p: {of}) {{ match {{ $v: Vessel  {block} }} return {{ $v }} {tail} }}", catalog)
    for value in fitting:
        assert list(bind_params(declared, {"p": value}, door="json")) == ["p"]
    assert problem(declared, {}).code == problem(declared, {"p": None}).code == "P005"
    for value in outside:
        assert problem(declared, {"p": value}).code == "P003"
    assert bind_given(declared, {}, door="json") == {}  # type: ignore[arg-type]


def test_a_predicate_may_look_for_null(catalog: Catalog) -> None:
    text = "query q($p: String?) { match { $v: Vessel  search($v.title, $p) } return { $v } }"
    assert bind_params(check(text, catalog)[0], {}, door="json") == {"p": None}


def test_the_query_to_run_is_the_named_or_the_only_one(catalog: Catalog) -> None:
    one, two = check(
        "query one() { match { $v: Vessel } return { $v } } query two() { match { $v: Vessel } return { $v } }", catalog
    )
    assert choose_query([one], None, source="") is one
    assert choose_query([one, two], "two", source="") is two
    for queries, name in [([one, two], None), ([one], "One")]:
        with pytest.raises(InvalidParams) as caught:
            choose_query(queries, name, source="")
        assert caught.value.diagnostic.code == "P006"


@pytest.mark.parametrize("name", [None, "q"])
@pytest.mark.parametrize("source", ["", "// nothing", "branch list"])
def test_a_text_without_a_query_is_refused_when_run(source: str, name: str | None, catalog: Catalog) -> None:
    with pytest.raises(InvalidQuery) as caught:
        choose_query(check(source, catalog), name, source=source)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == "Q004"
    assert diagnostic.to_dict()["position"] == {"line": 1, "column": len(source) + 1, "byte": len(source)}
