"""Native Python values: a record, a parameter and a frame with the same value are told the same, and none becomes text."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import omnigraph
from omnigraph.errors import InvalidData, InvalidParams, OmnigraphError

SCHEMA = """
node Thing {
  name: String?
  state: enum(a, b)?
  day: Date?
  moment: DateTime?
  count: I64?
  weight: F64?
  flag: Bool?
  texts: [String]?
  days: [Date]?
  moments: [DateTime]?
  place: Vector(2)?
  file: Blob?
}
"""
TYPES = {
    "name": "String",
    "day": "Date",
    "moment": "DateTime",
    "count": "I64",
    "weight": "F64",
    "flag": "Bool",
    "texts": "[String]",
    "days": "[Date]",
    "moments": "[DateTime]",
    "place": "Vector(2)",
}
RECORD_CODES = {"P002": "W010", "P003": "W009"}


class Colour(enum.StrEnum):
    RED = "red"


VALUES: list[Any] = [
    b"x",
    bytearray(b"x"),
    memoryview(b"x"),
    decimal.Decimal("1.5"),
    uuid.UUID(int=1),
    dt.date(2024, 1, 5),
    dt.datetime(2024, 1, 5, 6, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 5, 6, 7, 8, 5, tzinfo=dt.UTC),
    dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))),
    dt.time(1),
    dt.timedelta(1),
    Colour.RED,
    np.int64(3),
    np.float32(1.5),
    np.bool_(True),
    np.str_("text"),
    np.bytes_(b"x"),
    np.void(b"x"),
    np.datetime64("2024-01-05"),
    np.datetime64("2024-01-05T00:00:00.001", "ns"),
    np.datetime64("2024-01-05T00:00:00.0000001", "ns"),
    np.timedelta64(5, "ns"),
    pd.Timestamp("2024-01-05"),
    pd.Timestamp("2024-01-05 00:00:00.000000001"),
    pd.NaT,
    pd.NA,
    {"a": 1},
    {1, 2},
    range(2),
    ["x"],
    (b"x", b"y"),
    [dt.date(2024, 1, 5), dt.date(2024, 1, 6)],
    [dt.datetime(2024, 1, 5, tzinfo=dt.UTC), dt.datetime(2024, 1, 6, tzinfo=dt.UTC)],
    [["x"], [b"x"]],
    np.array([1.0, 2.0]),
    np.array([[1.0, 2.0]]),
    np.array(["2024-01-05", "2024-01-06"], "datetime64[ns]"),
    pd.Series([1.0, 2.0]),
    True,
    1,
    1.0,
    1.5,
    "text",
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    return omnigraph.init(tmp_path_factory.mktemp("natives") / "g", schema=SCHEMA)


def code_of_param(graph: omnigraph.Graph, of: str, value: Any) -> str | None:
    source = f"query q($p: {of}) {{ match {{ $t: Thing }} return {{ count($t) as n }} }}"
    try:
        graph.query(source, {"p": value})
    except InvalidParams as error:
        return RECORD_CODES[error.details["code"]]
    return None


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_in_a_record_is_judged_as_the_same_value_in_a_parameter(graph: omnigraph.Graph, value: Any) -> None:
    for name, of in TYPES.items():
        expected = code_of_param(graph, of, value)
        if expected is None:
            graph.load([{"type": "Thing", "data": {name: value}}], mode="append")
            continue
        with pytest.raises(OmnigraphError) as caught:
            graph.load([{"type": "Thing", "data": {}}, {"type": "Thing", "data": {name: value}}], mode="append")
        details = caught.value.details
        assert (details["code"], details["line_number"], details["property"]) == (expected, 2, name), (
            of,
            str(caught.value),
        )


@pytest.mark.parametrize("name", ["name", "state", "texts"])
@pytest.mark.parametrize(
    "value", [b"a", dt.date(2024, 1, 5), dt.datetime(2024, 1, 5, tzinfo=dt.UTC), decimal.Decimal(1), uuid.UUID(int=1)]
)
def test_what_is_no_text_is_not_stored_as_one(graph: omnigraph.Graph, name: str, value: Any) -> None:
    given = [value] if name == "texts" else value
    head = graph.head
    with pytest.raises(InvalidData, match=f"line 1: Thing.{name}: .*a string is wanted, not a value of type") as record:
        graph.load([{"type": "Thing", "data": {name: given}}], mode="append")
    assert record.value.details["code"] == "W010"
    with pytest.raises(InvalidData) as framed:
        graph.load(pd.DataFrame({name: [given]}), type="Thing", mode="append")
    assert (framed.value.details["code"], framed.value.details["property"]) == ("W010", name)
    assert graph.head == head


def test_bytes_for_a_blob_are_not_available_yet(graph: omnigraph.Graph) -> None:
    with pytest.raises(OmnigraphError) as caught:
        graph.load([{"type": "Thing", "data": {"file": b"x"}}], mode="append")
    assert caught.value.details["code"] == "N001"


def test_the_first_record_is_named_whichever_way_it_is_refused(graph: omnigraph.Graph) -> None:
    records: list[Any] = [{"type": "Thing", "data": {"day": dt.date(2024, 1, 1)}} for _ in range(300)]
    records[200] = {"type": "Thing", "data": {"day": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}}
    for key in (None, "k"):
        with pytest.raises(InvalidData, match=r"line 201: Thing.day: .*not a value of type datetime"):
            graph.load(records, mode="append", idempotency_key=key)
    records[100] = {"type": "Thing", "data": {"day": True}}
    with pytest.raises(InvalidData, match="line 101: "):
        graph.load(records, mode="append")


@pytest.mark.parametrize(
    "record",
    [
        {"type": "Thing", "id": b"x"},
        {"type": "Thing", "id": dt.date(2024, 1, 1)},
        {"type": b"Thing"},
        {"type": "Thing", "data": b"x"},
        {"type": "Thing", "data": {1: "x"}},
        {True: "Thing"},
    ],
)
def test_names_and_ids_are_texts(graph: omnigraph.Graph, record: Any) -> None:
    with pytest.raises(InvalidData) as caught:
        graph.load([record], mode="append")
    assert (caught.value.details["code"], caught.value.details["line_number"]) == ("W010", 1)


def test_an_array_of_a_library_without_kinds_is_known_by_its_shape(graph: omnigraph.Graph) -> None:
    class Tensor:
        dtype = "float32"

        def tolist(self) -> list[float]:
            return [1.0, 2.0]

    assert code_of_param(graph, "Vector(2)", Tensor()) is None
    graph.load([{"type": "Thing", "data": {"name": "tensor", "place": Tensor()}}], mode="append")
    found = graph.query('query q() { match { $t: Thing { name: "tensor" } } return { $t.place as place } }')
    assert found.scalar() == [1.0, 2.0]


def test_a_pandas_column_of_several_kinds_is_refused_by_its_name(graph: omnigraph.Graph, tmp_path: Path) -> None:
    for values in (["a", 1], [object()], [1j]):
        with pytest.raises(InvalidData, match="column 'name': its values have no common type"):
            graph.load(pd.DataFrame({"count": [1] * len(values), "name": values}), type="Thing", mode="append")
    twice = pd.DataFrame([["a", "b"]], columns=["name", "name"])
    with pytest.raises(InvalidData, match="column 'name': the column comes twice"):
        graph.load(twice, type="Thing", mode="append")
