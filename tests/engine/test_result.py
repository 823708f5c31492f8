"""What a caller can do with an answer."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.engine.result import Result
from omnigraph.errors import ExpectedOne

SCHEMA = "node N { k: I64 @key  t: String?  v: Vector(2)?  d: Date?  at: DateTime?  tags: [String]? }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("r") / "g", schema=SCHEMA)
    rows = [
        {"k": 1, "t": "a<b>\x1b[31m", "v": [1, 2], "d": "2024-01-05", "at": "2024-01-05T06:07:08Z", "tags": ["x", "y"]},
        {"k": 2, "v": [3, 4]},
    ]
    graph.load([{"type": "N", "data": row} for row in rows], mode="append")
    return graph


@pytest.fixture
def result(graph: omnigraph.Graph) -> Result:
    return graph.query(
        "query q() { match { $n: N } return { $n.k as k, $n.t as t, $n.v as v, $n.d as d, $n.at as at, $n.tags as tags }"
        " order { k } }"
    )


def test_rows_are_dicts_with_native_values_and_every_key(result: Result) -> None:
    assert len(result) == 2
    assert result[0]["d"] == dt.date(2024, 1, 5)
    assert result[0]["at"] == dt.datetime(2024, 1, 5, 6, 7, 8, tzinfo=dt.UTC)
    assert result[-1] == {"k": 2, "t": None, "v": [3.0, 4.0], "d": None, "at": None, "tags": None}
    assert result["k"] == [1, 2] == [row["k"] for row in result]
    assert result[0:1] == [result[0]]
    with pytest.raises(IndexError):
        result[2]
    with pytest.raises(KeyError):
        result["nothing"]


def test_one_and_scalar_insist(graph: omnigraph.Graph, result: Result) -> None:
    assert graph.query("query q() { match { $n: N } return { count($n) as n } }").scalar() == 2
    assert result.first()["k"] == 1
    with pytest.raises(ExpectedOne):
        result.one()
    with pytest.raises(ExpectedOne):
        result.scalar()
    with pytest.raises(ExpectedOne):
        result.scalars()
    empty = graph.query("query q() { match { $n: N { k: 9 } } return { $n.k as k } }")
    assert (len(empty), empty.first("none"), empty.schema.field("k").type) == (0, "none", pa.int64())


def test_it_turns_into_arrow_polars_pandas_and_numpy(result: Result) -> None:
    assert pa.table(result).equals(result.arrow())
    assert pl.DataFrame(result).shape == (2, 6)
    assert result.polars()["k"].to_list() == [1, 2]
    assert result.pandas()["k"].tolist() == [1, 2]
    assert str(result.pandas()["k"].dtype) == "int64[pyarrow]"
    assert np.array_equal(result.numpy("v"), np.array([[1, 2], [3, 4]], np.float32))
    assert sum(batch.num_rows for batch in result.batches()) == 2


def test_it_goes_into_files(result: Result, tmp_path: Path) -> None:
    result.to_parquet(tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet").num_rows == 2
    result.to_json(tmp_path / "r.jsonl")
    assert (tmp_path / "r.jsonl").read_text().splitlines()[1] == '{"k":2,"v":[3.0,4.0]}'
    result.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith("k,t,v,d,at,tags")


def test_it_shows_itself_and_lets_no_text_speak_to_the_terminal(result: Result) -> None:
    shown = repr(result)
    assert shown.splitlines()[1].split() == ["I64", "String?", "Vector(2)?", "Date?", "DateTime?", "[String]?"]
    assert "\x1b" not in shown
    assert "\\x1b[31m" in shown
    assert shown.splitlines()[-1] == f"2 rows at {result.commit_id}"
    html = result._repr_html_()
    assert "a&lt;b&gt;" in html
    assert "<b>" not in html


def test_a_long_answer_is_shown_in_part(graph: omnigraph.Graph) -> None:
    many = Result(pa.table({"n": list(range(50))}), ("I64",), "main@1-x", "q", graph.query("branch list").target)
    assert "… 30 more" in repr(many)


def test_the_handle_shows_itself(graph: omnigraph.Graph) -> None:
    assert "on main" in repr(graph)
    assert "<table>" in graph._repr_html_()
    info = graph.info()
    assert info.nodes == {"N": 2}
    assert info.to_dict()["branch_count"] == 1
