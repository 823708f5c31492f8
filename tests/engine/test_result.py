"""What a caller can do with an answer."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.engine.reading.answers import result_json
from omnigraph.engine.result import Result, Target
from omnigraph.errors import ExpectedOne, InvalidRequest
from omnigraph.query.encode import Spelling

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


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("", [[np.nan, np.nan], [3, 4], [0, 0]]),
        ("$n.k > 2", [[np.nan, np.nan], [np.nan, np.nan]]),
        ("$n.k > 9", np.empty((0, 2))),
        ("$n.k < 2", [[0, 0]]),
    ],
)
def test_a_vector_column_in_numpy_has_a_row_for_each_row(tmp_path: Path, condition: str, expected: Any) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    vectors = {1: [0, 0], 2: [3, 4], 3: None} if not condition else {1: [0, 0], 3: None, 4: None}
    graph.load([{"type": "N", "data": {"k": k, "v": v}} for k, v in vectors.items()], mode="append")
    found = graph.query(f"query q() {{ match {{ $n: N {condition} }} return {{ $n.v as v }} order {{ $n.k desc }} }}")
    array = found.numpy("v")
    assert array.dtype == np.float32
    assert array.shape == (len(found), 2)
    np.testing.assert_array_equal(array, np.array(expected, np.float32))
    part = Result(found.arrow().slice(1), found.types, found.commit_id, "q", found.target)
    np.testing.assert_array_equal(part.numpy("v"), array[1:])


@pytest.mark.parametrize("settings_of", ["the handle", "the call"])
def test_64_bit_integers_are_texts_on_the_wire_where_the_setting_says_so(
    tmp_path: Path, graph: omnigraph.Graph, settings_of: str
) -> None:
    source = "query q() { match { $n: N } return { $n as n, $n.k as c } order { c } }"
    setting = {"int64_json": "string"}
    if settings_of == "the handle":
        result = omnigraph.open(graph.uri, settings=setting).query(source)
    else:
        result = graph.query(source, settings=setting)
    assert result[0]["c"] == 1
    rows = result.to_dict()["rows"]
    assert (rows[0]["c"], rows[0]["n"]["k"]) == ("1", "1")
    assert json.loads(b"".join(result_json(result, Spelling(int64_as_text=True))))["rows"] == rows
    result.to_json(tmp_path / "r.jsonl")
    assert [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()] == rows
    assert graph.query(source).to_dict()["rows"][0]["c"] == 1


def test_a_word_that_pandas_types_are_not_is_refused(result: Result) -> None:
    with pytest.raises(InvalidRequest, match="`types` is arrow or numpy"):
        result.pandas(types="foo")  # type: ignore[arg-type]


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


def test_as_a_dict_it_is_the_answer_of_the_wire(graph: omnigraph.Graph) -> None:
    source = (
        "query q() { match { $n: N } return { $n as n, $n.t as t, $n.v as v, $n.d as d, $n.at as at, $n.tags as tags }"
        " order { $n.k } }"
    )
    result = graph.query(source)
    wire = json.loads(b"".join(result_json(result, Spelling())))
    assert result.to_dict() == wire
    assert result.to_dict()["rows"][0]["d"] == "2024-01-05"
    assert result.to_dict()["rows"][1] == {"n": {"@id": "2", "k": 2}, "v": [3.0, 4.0]}
    big = 2**63 - 1
    odd = Result(
        pa.table(
            {
                "f": [float("inf"), -0.0],
                "fs": [[float("-inf"), 1e-7], None],
                "half": pa.array([0.1, None], pa.float32()),
                "i": [big, None],
            }
        ),
        ("F64", "[F64]?", "F32?", "I64?"),
        "main@1-x",
        "q",
        Target("main"),
        warnings=({"code": "X", "message": "m"},),
    )
    assert odd.to_dict() == json.loads(b"".join(result_json(odd, Spelling())))
    assert odd.to_dict()["rows"] == [{"fs": [None, 1e-7], "half": 0.1, "i": big}, {"f": -0.0}]


def test_a_stream_gives_its_batches_once(graph: omnigraph.Graph) -> None:
    source = "query q($k: I64) { match { $n: N  $n.k >= $k } return { $n.k as k } order { k } }"
    stream = graph.stream(source, k=2)
    assert (stream.columns, stream.types, stream.query_name) == (["k"], ("I64",), "q")
    assert stream.commit_id == graph.head.graph_commit_id
    assert [batch.to_pydict() for batch in stream] == [{"k": [2]}]
    assert list(stream) == []
    assert pa.table(graph.stream(source, {"k": 1})).to_pydict() == {"k": [1, 2]}
    empty = graph.stream(source, k=9)
    assert pa.table(empty).schema.names == ["k"]


def test_receipts_and_namespaces_show_what_they_are(graph: omnigraph.Graph) -> None:
    written = graph.mutate(
        "query m() { insert N { k: 3 } }", branch=graph.branches.create("shown").name, message="<b>\x1b[2J"
    )
    lines = repr(written).splitlines()
    assert lines[0] == "WriteResult"
    assert lines[-1].split() == ["commit", str(written.commit)]
    commit = repr(written.commit)
    assert "\n" not in commit
    assert r"message: <b>\x1b[2J" in commit
    assert "inserted: 1" in commit
    assert written.commit is not None
    page = written.commit._repr_html_()
    assert "&lt;b&gt;" in page
    assert not {"<b>", "\x1b"} & set(page)
    assert written._repr_html_().startswith("<table>")
    assert "shown" in repr(graph.branches.list())
    assert repr(graph.branches).endswith(": list(), get(name), create(name), delete(name), merge(source)>")
    assert repr(graph.commits).endswith(": list(), get(commit_id), outcome(commit_id)>")
    loaded = graph.on("shown").load([{"type": "N", "data": {"k": 4}}], mode="append")
    assert repr(loaded).splitlines()[:2] == ["LoadResult", "  branch          shown"]
