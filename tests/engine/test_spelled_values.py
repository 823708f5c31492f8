"""Refusals spell values as records, queries and schemas do (languages.md 20), never as Python does, at every door."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import OmnigraphError

# Of each type a value, another, and how a message spells the first.
VALUES: dict[str, tuple[Any, Any, str]] = {
    "String": ('say "hi"\n\x1b', "b", '"say \\"hi\\"\\n\\u001b"'),
    "Bool": (True, False, "true"),
    "I32": (-7, 7, "-7"),
    "I64": (-(2**63), 7, "-9223372036854775808"),
    "U32": (8, 7, "8"),
    "U64": (2**64 - 1, 7, "18446744073709551615"),
    "F32": (0.1, 7.0, "0.1"),
    "F64": (1e22, 7.0, "1.0e22"),
    "Date": (dt.date(2020, 1, 31), dt.date(1, 1, 1), '"2020-01-31"'),
    "DateTime": (
        dt.datetime(2020, 1, 31, 5, 6, 7, 80_000, dt.UTC),
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        '"2020-01-31T05:06:07.080"',
    ),
    "enum(laid-up, true)": ("laid-up", "true", '"laid-up"'),
}
NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
LISTS = ("[String]", "[Bool]", "[I32]", "[U64]", "[F32]", "[F64]", "[Date]", "[DateTime]", "Vector(2)")

PYTHON = re.compile(
    r"\b(?:None|True|False|inf|nan|dtype)\b|Decimal\(|datetime\.|\bdate\(|array\(|Timestamp\(|np\.|\bb'"
    r"|object at 0x|<class|\de\+\d|\de-0\d|\\x|''"
)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Graph]:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    numbers = iter(range(1_000))
    return lambda schema: omnigraph.init(tmp_path / f"g{next(numbers)}", schema=schema)


def stored(of: str) -> tuple[Any, Any]:
    """The two values as a query gives them back."""
    value, other, _ = VALUES[of]
    return (float(np.float32(value)), other) if of == "F32" else (value, other)


def parameter(of: str) -> str:
    return "String" if of.startswith("enum") else of


def framed(of: str, value: Any) -> pa.Array | None:
    """A column of a frame with this value; None if Arrow has none."""
    try:
        return pa.array([value], pa.uint64() if of == "U64" and type(value) is int and value > 2**63 else None)
    except (pa.ArrowException, OverflowError, TypeError):
        return None


def doors(graph: Graph, of: str) -> dict[str, Callable[[str, Any], object]]:
    """Ways to write a node N with the key `k` and the value `u`."""
    kind = parameter(of)

    def records(key: str, value: Any) -> object:
        return graph.load([{"type": "N", "data": {"k": key, "u": value}}], mode="append", progress=False)

    def frame(key: str, value: Any) -> object:
        column = framed(of, value)
        return (
            None
            if column is None
            else graph.load(pa.table({"k": [key], "u": column}), type="N", mode="append", progress=False)
        )

    def insert(key: str, value: Any) -> object:
        return graph.mutate(
            f"query m($k: String, $u: {kind}?) {{ insert N {{ k: $k, u: $u }} }}", {"k": key, "u": value}
        )

    def update(key: str, value: Any) -> object:
        text = f'query m($u: {kind}?) {{ update N set {{ u: $u }} where k = "other" }}'
        return graph.mutate(text, {"u": value})

    return {"records": records, "frame": frame, "insert": insert, "update": update}


def refused(write: Callable[[], object]) -> tuple[str, str]:
    """Code and message; the whole body of the error is read for Python's words."""
    try:
        write()
    except OmnigraphError as error:
        told = json.dumps(error.to_dict(), ensure_ascii=False)
        assert not PYTHON.search(told), told
        details = error.details if isinstance(error.details, dict) else {}
        return details.get("code", error.code), error.message
    raise AssertionError("it was not refused")


@pytest.mark.parametrize("door", ["records", "frame", "insert", "update"])
@pytest.mark.parametrize("of", VALUES)
def test_a_value_that_is_taken_is_spelled_as_records_spell_it(made: Callable[[str], Graph], of: str, door: str) -> None:
    value, other, spelled = VALUES[of]
    graph = made(f"node N {{ k: String @key  u: {of}? @unique }}")
    write = doors(graph, of)
    write["insert"]("a", value)
    write["insert"]("other", other)
    code, message = refused(lambda: write[door]("b", value))
    assert code == "W005"
    assert message.endswith(f': @unique(u): {spelled} belongs to node "a"')


@pytest.mark.parametrize("door", ["records", "frame", "insert", "update"])
@pytest.mark.parametrize("of", NUMBERS)
def test_a_number_and_its_range_are_spelled_at_the_width_of_the_property(
    made: Callable[[str], Graph], of: str, door: str
) -> None:
    value, other, spelled = VALUES[of]
    low, high, bounds = ("0.25", "1e23", "0.25..1.0e23") if of.startswith("F") else ("7", "7", "7..7")
    if of.startswith("F"):
        value, other, spelled = (1e-7, 7.0, "1.0e-7")
    graph = made(f"node N {{ k: String @key  u: {of}? @range(u, {low}..{high}) }}")
    write = doors(graph, of)
    write["insert"]("other", other)
    code, message = refused(lambda: write[door]("b", value))
    assert code == "W003"
    assert message.endswith(f": {spelled} lies outside @range(u, {bounds})")


@pytest.mark.parametrize("of", ["String", "enum(laid-up, true)"])
def test_a_text_and_its_pattern_are_spelled_as_schemas_spell_them(made: Callable[[str], Graph], of: str) -> None:
    value, _, spelled = VALUES[of]
    graph = made(f'node N {{ k: String @key  u: {of}? @check(u, "^\\\\p{{Lu}}\\"$") }}')
    for door in ("records", "frame", "insert"):
        code, message = refused(lambda door=door: doors(graph, of)[door]("b", value))
        assert code == "W004"
        assert message.endswith(f': {spelled} does not match @check "^\\\\p{{Lu}}\\"$"')


@pytest.mark.parametrize("of", VALUES)
def test_ids_of_every_type_are_spelled_as_records_spell_them(made: Callable[[str], Graph], of: str) -> None:
    value, other, _ = VALUES[of]
    graph = made(f"node N {{ k: {of} @key  u: String? }} edge E: N -> N @card(0..1)")
    records = [{"type": "N", "data": {"k": each}} for each in (value, other)]
    graph.load(records, mode="append", progress=False)
    ids = "query q() { match { $n: N } return { $n.@id as id, $n.k as k } }"
    own_id, other_id = (next(row["id"] for row in graph.query(ids) if row["k"] == each) for each in stored(of))
    own = json.dumps(own_id, ensure_ascii=False)

    def told(mode: Any, *given: dict[str, Any]) -> tuple[str, str]:
        return refused(lambda: graph.load(given, mode=mode, progress=False))

    assert told("append", records[0]) == ("key_conflict", f"line 1: node N {own} already exists")
    assert told("overwrite", records[0], records[0]) == ("key_conflict", f"node N {own} comes twice: on lines 1 and 2")
    wrong = f'line 1: N: the id "no\\"" is not the one that the key gives: {own}'
    assert told("merge", {**records[0], "id": 'no"'}) == ("W008", wrong)
    edge = {"edge": "E", "from": own_id, "to": other_id}
    nobody = 'line 1: E: @dst: there is no N with the id "no\\""'
    assert told("append", {**edge, "to": 'no"'}) == ("W006", nobody)
    twice = f"line 1: E: @card(0..1): N {own} would have 2 of these edges"
    assert told("append", edge, edge) == ("W007", twice)
    graph.load([{**edge, "id": "e"}], mode="append", progress=False)
    hanging = f'E "e" would be left without its end: there is no N {own} any more'
    assert told("overwrite", records[1]) == ("W006", hanging)


# --- whatever is given in place of a value

GIVEN: tuple[Any, ...] = (
    *(None, True, False, 1, 1.5, 1e22, 1e300, 10**30, float("inf"), float("-inf"), float("nan"), "x", 'a"b', b"x", ""),
    *(
        Decimal("1"),
        dt.date(2020, 1, 1),
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        dt.time(1),
        dt.timedelta(1),
        complex(1, 2),
        object(),
    ),
    *([], {}, [None], [1, None], [True], [b"x"], [1.5, float("nan")], (1,), set(), {1: 2}, {"a": None}, [[1]]),
    *(np.float32(1.5), np.int8(1), np.bool_(True), np.array([1.0]), np.array([None]), np.datetime64("2020-01-01")),
    *("2020-13-01", "2020-01-01T25:00", "base64:?", Ellipsis, range(3)),
)


def ends(graph: Graph, of: str) -> Iterator[tuple[str, str]]:
    for value in GIVEN:
        for name, write in doors(graph, of).items():
            try:
                write("b", value)
            except OmnigraphError as error:
                told = json.dumps(error.to_dict(), ensure_ascii=False)
                assert not PYTHON.search(told), f"{name} of {value!r} as {of}: {told}"
                details = error.details if isinstance(error.details, dict) else {}
                yield name, details.get("code", error.code)


@pytest.mark.parametrize("of", [*VALUES, *LISTS])
def test_whatever_stands_in_place_of_a_value_is_not_shown_as_python_shows_it(
    made: Callable[[str], Graph], of: str
) -> None:
    graph = made(f"node N {{ k: String @key  u: {of} }}")
    found = set(ends(graph, of))
    assert {code for _, code in found} >= {"W010", "P002", "W001"}
