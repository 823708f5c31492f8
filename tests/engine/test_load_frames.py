"""Frames: what a value that does not fit is told, and that a record with the same value is told the same."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import ConstraintViolation, InvalidData, InvalidRequest, NotAvailable, OmnigraphError

SCHEMA = """
node Thing {
  name: String
  small: I32?
  natural: U32?
  huge: U64?
  single: F32?
  day: Date?
  moment: DateTime?
  place: Vector(2)?
  counts: [I32]?
  moments: [DateTime]?
  weights: [F32]?
  texts: [String]?
  low: I32?
  @range(low, 0..9)
}
edge Link: Thing -> Thing { rank: I32? }
"""
GOOD_ROWS = 100


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "things", schema=SCHEMA)


def refused(graph: Graph, data: Any, **more: Any) -> OmnigraphError:
    head = graph.head
    with pytest.raises((InvalidData, ConstraintViolation)) as caught:
        graph.load(data, mode="append", **more)
    assert graph.head == head
    return caught.value


def place_of(error: OmnigraphError) -> tuple[Any, ...]:
    details = error.details
    return error.code, *(details.get(key) for key in ("code", "line_number", "type_name", "property", "entity_id"))


def frame(name: str, good: Any, bad: Any, kind: pa.DataType) -> pa.Table:
    """Many good rows, a bad one, good ones and another bad one."""
    values = [*[good] * GOOD_ROWS, bad, None, good, bad]
    return pa.table({"name": ["x"] * len(values), name: pa.array(values, kind)})


@pytest.mark.parametrize(
    ("name", "good", "bad", "kind", "said"),
    [
        ("small", 1, 2**31, pa.int64(), "outside -2147483648 to 2147483647"),
        ("small", 1.0, 3e9, pa.float64(), "outside -2147483648 to 2147483647"),
        ("small", 1.0, 1.5, pa.float64(), "an integer is wanted"),
        ("small", 1.0, float("nan"), pa.float32(), "an integer is wanted"),
        ("natural", 1, -1, pa.int8(), "outside 0 to 4294967295"),
        ("huge", 1, -1, pa.int64(), "outside 0 to 18446744073709551615"),
        ("single", 1.0, 1e300, pa.float64(), "not finite"),
        ("place", [1.0, 2.0], [1.0], pa.list_(pa.float64()), "it has 1 elements, not 2"),
        ("place", [1, 2], [1, 2, 3], pa.large_list(pa.int64()), "it has 3 elements, not 2"),
        ("place", [1.0, 2.0], [1.0, None], pa.list_(pa.float32(), 2), "element 2: null"),
        ("counts", [1, None], [1, 2**31], pa.list_(pa.int64()), "element 2: it is outside"),
        ("counts", [1.0], [2.0, 0.5], pa.list_(pa.float64()), "element 2: a number written as an integer"),
    ],
)
def test_a_value_that_does_not_fit_is_told_as_in_a_record(
    graph: Graph, name: str, good: Any, bad: Any, kind: pa.DataType, said: str
) -> None:
    error = refused(graph, frame(name, good, bad, kind), type="Thing")
    assert said in error.message
    assert error.message.startswith(f"line {GOOD_ROWS + 1}: Thing.{name}: ")
    value = json.dumps(int(bad) if bad == 3e9 else bad)
    lines = ['{"type":"Thing","data":{"name":"x"}}'] * GOOD_ROWS
    record = refused(graph, [*lines, f'{{"type":"Thing","data":{{"name":"x","{name}":{value}}}}}'])
    assert place_of(error) == place_of(record)


@pytest.mark.parametrize(
    ("name", "good", "bad", "kind"),
    [
        ("moment", 0, 1_500, pa.timestamp("us")),
        ("moment", 0, 1, pa.timestamp("ns", "Europe/Berlin")),
        ("moment", 0, 10**17, pa.timestamp("s", "UTC")),
        ("moment", 0, 10**15, pa.timestamp("ms", "UTC")),
        ("moments", [0], [0, 1_500], pa.list_(pa.timestamp("us"))),
        ("day", 0, 86_400_000 + 1, pa.date64()),
        ("day", 0, 10**7, pa.date32()),
    ],
)
def test_a_time_that_is_none_is_out_of_the_range_of_its_type(
    graph: Graph, name: str, good: Any, bad: Any, kind: pa.DataType
) -> None:
    error = refused(graph, frame(name, good, bad, kind), type="Thing")
    assert place_of(error) == ("constraint_violation", "W009", GOOD_ROWS + 1, "Thing", name, None)
    assert "years 1 to 9999" in error.message


def test_the_first_row_is_named_whatever_is_wrong_with_it(graph: Graph) -> None:
    def told(small: int, natural: int, low: int) -> tuple[Any, ...]:
        columns = {"small": [0] * 9, "natural": [0] * 9, "low": [0] * 9}
        columns["small"][small] = 2**40
        columns["natural"][natural] = -1
        columns["low"][low] = 10
        error = refused(graph, pa.table({**columns, "name": ["x"] * 9}), type="Thing")
        return error.details["code"], error.details["line_number"], error.details["property"]

    assert told(small=3, natural=2, low=5) == ("W009", 3, "natural")
    assert told(small=3, natural=3, low=3) == ("W009", 4, "small")  # of one row what can't be read, as declared
    assert told(small=3, natural=2, low=1) == ("W003", 2, "low")
    assert told(small=0, natural=2, low=1) == ("W009", 1, "small")


def test_a_row_is_found_in_any_chunk_and_named_by_its_id(graph: Graph) -> None:
    chunks = pa.chunked_array([[1], [], [2, 3], [2**40, 2**41]], type=pa.int64())
    ids = pa.chunked_array([["a", "b", "c", "d", "e"]])
    table = pa.table({"@id": ids, "name": ids, "small": chunks})
    error = refused(graph, table, type="Thing")
    assert place_of(error) == ("constraint_violation", "W009", 4, "Thing", "small", "d")


@pytest.mark.parametrize("column", ["@id", "@src", "@dst"])
def test_an_id_and_an_end_are_texts_that_are_not_empty(graph: Graph, column: str) -> None:
    columns: dict[str, Any] = {"@id": ["l1", "l2", "l3"], "@src": ["a", "a", "a"], "@dst": ["a", "a", "a"]}
    columns[column] = [*columns[column][:2], ""]
    error = refused(graph, pa.table(columns), type="Link")
    assert (error.code, error.details["code"], error.details["line_number"]) == ("invalid_data", "W010", 3)
    assert error.details["property"] == column
    if column != "@id":
        columns[column] = ["a", None, None]
        assert refused(graph, pa.table(columns), type="Link").details["line_number"] == 2


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("counts", pa.array([["1"]])),
        ("texts", pa.array([[1]])),
        ("place", pa.array([["1", "2"]])),
        ("small", pa.array(["1"])),
        ("small", pa.array([True])),
        ("counts", pa.array([1])),
        ("moment", pa.array([1])),
    ],
)
def test_a_column_of_another_kind_is_no_column_of_the_property(graph: Graph, name: str, values: pa.Array) -> None:
    error = refused(graph, pa.table({"name": ["x"], name: values}), type="Thing")
    assert (error.details["code"], error.details["property"]) == ("W010", name)
    assert "does not fit" in error.message


def test_columns_come_in_all_widths_and_keep_every_value(graph: Graph) -> None:
    text = pa.array(["a", None], pa.large_string())
    table = pa.table(
        {
            "name": pa.array(["x", "y"]).dictionary_encode(),
            "small": pa.array([1, None], pa.uint64()),
            "single": pa.array([2**60, None], pa.int64()),
            "place": pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
            "weights": pa.array([[2**60, None], []], pa.list_(pa.int64())),
            "texts": pa.LargeListArray.from_arrays([0, 2, 2], text),
            "counts": pa.array([None, [None]], pa.list_(pa.null())),
            "moments": pa.array([[0], None], pa.list_(pa.timestamp("s"))),
            "day": pa.nulls(2),
        }
    )
    graph.load(table, mode="append", type="Thing")
    found = list(graph.query("query q() { match { $t: Thing } return { $t, $t.place as place } order { $t.name } }"))
    assert [None if row["place"] is None else list(row["place"]) for row in found] == [[1.0, 2.0], None]
    one, two = (row["t"] for row in found)
    assert (one["name"], one["small"], one["single"]) == ("x", 1, float(2**60))
    assert (one["weights"], one["texts"]) == ([float(2**60), None], ["a", None])
    assert one["moments"] == [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]
    assert (two["name"], two["texts"], two["weights"], two["counts"]) == ("y", [], [], [None])


def test_what_stands_outside_a_part_or_under_a_null_is_no_value(graph: Graph) -> None:
    bad = [2**40, 2**41]
    lists = pa.ListArray.from_arrays([0, 2, 3, 5, 7], [*bad, 1, *bad, 5, 6], mask=pa.array([False, False, True, False]))
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array([None, 1.0, 2.0, 3.0, None, None, 5.0, 6.0]), 2, mask=pa.array([False, False, True, False])
    )
    table = pa.table({"name": ["a", "b", "c", "d"], "counts": lists, "place": vectors})
    graph.load(table.slice(1), mode="append", type="Thing")
    found = list(
        graph.query("query q() { match { $t: Thing } return { $t.counts as c, $t.place as p } order { $t.name } }")
    )
    assert [row["c"] for row in found] == [[1], None, [5, 6]]
    assert [None if row["p"] is None else list(row["p"]) for row in found] == [[2.0, 3.0], None, [5.0, 6.0]]
    assert refused(graph, table, type="Thing").details["line_number"] == 1


# --- the index of a pandas frame


def stored(graph: Graph) -> list[dict[str, Any]]:
    return list(
        graph.query(
            "query q() { match { $t: Thing } return { $t.@id as id, $t.name as name, $t.small as small } order { id } }"
        )
    )


@pytest.mark.parametrize("index", [["name"], ["@id"], ["name", "small"]])
def test_a_named_index_is_loaded_as_the_columns_that_it_names(graph: Graph, index: list[str]) -> None:
    data = pd.DataFrame({"@id": ["a", "b"], "name": ["x", "y"], "small": [1, 2]})
    graph.load(data.set_index(index), type="Thing", mode="merge")
    assert stored(graph) == [{"id": "a", "name": "x", "small": 1}, {"id": "b", "name": "y", "small": 2}]


def test_a_named_index_of_row_numbers_is_a_column_too(graph: Graph) -> None:
    data = pd.DataFrame({"@id": ["a", "b"], "name": ["x", "y"]}, index=pd.RangeIndex(5, 7, name="small"))
    graph.load(data, type="Thing", mode="append")
    assert [row["small"] for row in stored(graph)] == [5, 6]


def test_ends_of_edges_may_be_an_index(graph: Graph) -> None:
    graph.load(pd.DataFrame({"@id": ["a", "b"], "name": "x"}), type="Thing", mode="append")
    edges = pd.DataFrame({"@src": ["a"], "@dst": ["b"], "rank": [1]}).set_index(["@src", "@dst"])
    assert graph.load(edges, type="Link", mode="append").edges[0].entities_loaded == 1


def test_row_numbers_without_a_name_are_no_column(graph: Graph) -> None:
    data = pd.DataFrame({"@id": ["b", "a", "c"], "name": ["x", "y", "z"]})
    graph.load(data.sort_values("@id").query("name != 'x'"), type="Thing", mode="append")
    assert [row["id"] for row in stored(graph)] == ["a", "c"]


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (
            pd.Index(["q"], name="row"),
            r"no property 'row'; it names the index of the frame: drop that by `reset_index\(drop",
        ),
        (
            pd.Index(["q"], name="name"),
            r"column 'name': the index is named as a column is; .*`reset_index\(drop=True\)`",
        ),
        (pd.Index(["q"]), r"labels and no name: .*`reset_index\(drop=True\)`"),
        (pd.date_range("2024", periods=1), r"labels and no name"),
        (pd.MultiIndex.from_tuples([("q", 1)], names=["texts", None]), r"labels and no name"),
    ],
)
def test_an_index_that_is_no_property_is_refused_with_what_to_do(graph: Graph, index: pd.Index, said: str) -> None:
    head = graph.head
    with pytest.raises(InvalidRequest, match=said):
        graph.load(pd.DataFrame({"name": ["x"]}, index=index), type="Thing", mode="append")
    assert graph.head == head


def test_an_index_that_arrow_made_a_column_is_refused_with_what_to_do(graph: Graph) -> None:
    table = pa.Table.from_pandas(pd.DataFrame({"name": ["x"]}, index=["q"]))
    with pytest.raises(InvalidData, match=r"leave that out by `Table\.from_pandas"):
        graph.load(table, type="Thing", mode="append")


@pytest.mark.parametrize(
    ("data", "of", "said"),
    [
        (pl.LazyFrame({"name": ["x"]}), "Thing", r"`collect\(\)`"),
        (pl.LazyFrame({"name": ["x"]}), None, r"`collect\(\)`"),
        ({"name": ["x"]}, "Thing", r"`pyarrow.table\(columns\)`"),
        ([{"name": "x"}], "Thing", r"`pyarrow.Table.from_pylist\(rows\)`"),
        (pa.chunked_array([["x"]]), "Thing", "a single column has no name"),
        (pa.table({"name": ["x"]}), 5, "`type` is a text, not int"),
    ],
)
def test_what_is_nearly_a_frame_is_told_how_to_become_one(graph: Graph, data: Any, of: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        graph.load(data, type=of, mode="append")


def test_a_column_of_text_that_is_no_utf_8_is_refused_by_name_and_nothing_is_stored(graph: Graph) -> None:
    damaged = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
    )
    before = graph.head.graph_commit_id
    in_pandas = pd.DataFrame({"name": pd.arrays.ArrowExtensionArray(pa.chunked_array([damaged]))})
    for frame in (pa.table({"name": damaged}), in_pandas):
        with pytest.raises(InvalidRequest, match="The column 'name' holds what its type can't"):
            graph.load(frame, type="Thing", mode="append")
    assert graph.head.graph_commit_id == before


def test_what_the_source_of_a_frame_raises_is_not_told_as_a_mistake_of_ours(graph: Graph) -> None:
    def batches() -> Any:
        yield pa.record_batch({"name": ["x"]})
        raise ValueError("the source dried up")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("name", pa.string())]), batches())
    with pytest.raises(pa.ArrowInvalid, match="the source dried up"):
        graph.load(reader, type="Thing", mode="append")


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string()])
def test_a_blob_value_is_not_available_at_every_way_in_and_a_null_is_a_null(tmp_path: Path, kind: pa.DataType) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node D { k: String @key  b: Blob? }")
    text = "base64:AAAA"
    value = text if kind == pa.string() else text.encode()
    ways = (
        lambda: graph.mutate('query m($b: Blob) { insert D { k: "a", b: $b } }', b=text),
        lambda: graph.load([{"type": "D", "data": {"k": "a", "b": text}}], mode="append"),
        lambda: graph.load(pa.table({"k": ["a", "b"], "b": pa.array([None, value], kind)}), type="D", mode="append"),
    )
    for way in ways:
        with pytest.raises(NotAvailable, match="Blob values are not part of this version") as caught:
            way()
        refused = caught.value
        assert (refused.code, refused.status, refused.effects) == ("not_available", 400, "none")
        if refused.line_number is not None:
            assert (refused.details["line_number"], refused.details["property"]) == (refused.line_number, "b")
    graph.load(pa.table({"k": ["a"], "b": pa.array([None], kind)}), type="D", mode="append")
    assert graph.get("D", "a") is not None
