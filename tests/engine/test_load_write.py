"""Loads through the public handle: modes, all or nothing, what a commit says, what stands after a refusal."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import (
    AlreadyExists,
    BranchNotFound,
    ConstraintViolation,
    InvalidData,
    InvalidRequest,
    KeyConflict,
    LimitExceeded,
)

HARBOUR = (Path(__file__).parent.parent / "data" / "harbour.pg").read_text()

VESSEL_1 = {"type": "Vessel", "data": {"imo": 1, "title": "Alma", "status": "active", "tonnage": 500.0}}
VESSEL_2 = {"type": "Vessel", "data": {"imo": 2, "title": "Brig", "status": "laid-up"}}
BERGEN = {"type": "Port", "data": {"country": "NO", "code": "BGO", "title": "Bergen"}}
CALL = {"edge": "CallsAt", "from": "1", "to": '["BGO","NO"]', "id": "c1", "data": {"berth": "A"}}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "harbour", schema=HARBOUR)


def counts(graph: Graph) -> dict[str, int]:
    return {d.type_name: d.entity_count for d in graph.summary().datasets if d.entity_count}


def records(graph: Graph) -> list[str]:
    return b"".join(graph.export_stream()[1]).decode().splitlines()


def load(graph: Graph, *lines: dict[str, Any], mode: Any = "append", **more: Any) -> Any:
    return graph.load(list(lines), mode=mode, **more)


def test_a_load_is_one_commit_over_all_its_types(any_root: str) -> None:
    graph = omnigraph.init(any_root, schema=HARBOUR)
    result = load(graph, CALL, VESSEL_1, BERGEN, message="first")
    assert result.commit is not None
    assert result.commit.graph_commit_id.startswith("main@2-")
    assert result.commit.message == "first"
    assert result.total_entities == 3
    assert {name: c.inserted for name, c in result.commit.counts.items()} == {
        "node:Vessel": 1,
        "node:Port": 1,
        "edge:CallsAt": 1,
    }
    again = omnigraph.open(any_root)
    assert again.head.graph_commit_id == result.commit.graph_commit_id
    assert counts(again) == {"Vessel": 1, "Port": 1, "CallsAt": 1}


def test_append_of_an_existing_id_is_refused_and_leaves_the_branch_as_it_was(graph: Graph) -> None:
    load(graph, VESSEL_1, BERGEN)
    head = graph.head.graph_commit_id
    with pytest.raises(KeyConflict) as caught:
        load(graph, VESSEL_2, VESSEL_1)
    assert caught.value.details["entity_id"] == "1"
    assert caught.value.line_number == 2
    assert graph.head.graph_commit_id == head
    assert counts(graph) == {"Vessel": 1, "Port": 1}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_the_same_id_twice_is_refused_outside_merge(graph: Graph, mode: str) -> None:
    with pytest.raises(KeyConflict):
        load(graph, VESSEL_1, {**VESSEL_1}, mode=mode)
    assert counts(graph) == {}


def test_merge_replaces_the_whole_row_and_the_last_record_wins(graph: Graph) -> None:
    load(graph, VESSEL_1)
    result = load(
        graph,
        {"type": "Vessel", "data": {"imo": 1, "title": "First", "status": "active"}},
        VESSEL_2,
        {"type": "Vessel", "data": {"imo": 1, "title": "Last", "status": "scrapped"}},
        mode="merge",
    )
    assert result.commit.counts["node:Vessel"].inserted == 1
    assert result.commit.counts["node:Vessel"].updated == 1
    assert [line for line in records(graph) if '"1"' in line] == [
        '{"type":"Vessel","id":"1","data":{"imo":1,"status":"scrapped","title":"Last"}}'
    ]


def test_overwrite_replaces_the_types_that_occur_and_no_others(graph: Graph) -> None:
    load(graph, VESSEL_1, VESSEL_2, BERGEN)
    result = load(graph, {"type": "Vessel", "data": {"imo": 2, "title": "B", "status": "active"}}, mode="overwrite")
    assert counts(graph) == {"Vessel": 1, "Port": 1}
    change = result.commit.counts["node:Vessel"]
    assert (change.inserted, change.updated, change.deleted) == (0, 1, 1)


def test_overwrite_that_leaves_an_edge_hanging_is_refused(graph: Graph) -> None:
    load(graph, VESSEL_1, VESSEL_2, BERGEN, CALL)
    with pytest.raises(ConstraintViolation) as caught:
        load(graph, VESSEL_2, mode="overwrite")
    assert caught.value.details["code"] == "W006"
    assert caught.value.details["entity_id"] == "c1"
    assert counts(graph) == {"Vessel": 2, "Port": 1, "CallsAt": 1}
    load(graph, VESSEL_2, {**CALL, "from": "2"}, mode="overwrite")
    assert counts(graph) == {"Vessel": 1, "Port": 1, "CallsAt": 1}


def test_an_edge_without_its_end_is_refused_with_its_line(graph: Graph) -> None:
    load(graph, VESSEL_1)
    with pytest.raises(ConstraintViolation) as caught:
        load(graph, VESSEL_2, CALL)
    assert caught.value.details["code"] == "W006"
    assert caught.value.line_number == 2
    assert counts(graph) == {"Vessel": 1}


def test_edges_may_come_before_their_nodes(graph: Graph) -> None:
    load(graph, CALL, BERGEN, VESSEL_1)
    assert counts(graph) == {"Vessel": 1, "Port": 1, "CallsAt": 1}


def test_cardinality_counts_what_is_there_and_what_comes(graph: Graph) -> None:
    sailor = {"type": "Sailor", "id": "s1", "data": {"name": "Ines"}}
    serves = {"edge": "ServesOn", "from": "s1", "to": "1"}
    load(graph, VESSEL_1, VESSEL_2, sailor, serves)
    with pytest.raises(ConstraintViolation) as caught:
        load(graph, {**serves, "to": "2"})
    assert caught.value.details["code"] == "W007"
    named = [caught.value.details[key] for key in ("entity_kind", "type_name", "entity_id")]
    assert named == ["node", "Sailor", "s1"]


def test_a_keyed_edge_is_replaced_by_merge_and_never_doubled(graph: Graph) -> None:
    tows = {"edge": "Tows", "from": "1", "to": "2", "data": {"since": "2024-01-01"}}
    load(graph, VESSEL_1, VESSEL_2, tows)
    load(graph, {**tows, "data": {"since": "2025-01-01"}}, mode="merge")
    assert counts(graph)["Tows"] == 1
    assert '{"edge":"Tows","from":"1","to":"2","id":"[\\"1\\",\\"2\\"]","data":{"since":"2025-01-01"}}' in records(
        graph
    )


def test_unkeyed_records_without_id_are_new_each_time(graph: Graph) -> None:
    load(graph, {"type": "Sailor", "data": {"name": "Ines"}})
    load(graph, {"type": "Sailor", "data": {"name": "Ines"}}, mode="merge")
    assert counts(graph)["Sailor"] == 2


def test_an_empty_input_commits_nothing(graph: Graph) -> None:
    head = graph.head.graph_commit_id
    result = graph.load(b"\n\n", mode="append")
    assert not result
    assert result.commit is None
    assert graph.head.graph_commit_id == head


def test_the_mode_is_never_guessed(graph: Graph) -> None:
    with pytest.raises(InvalidRequest):
        graph.load([VESSEL_1], mode="upsert")  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [None, 5, 1.5, True, object(), len, list, VESSEL_1])
def test_what_is_no_load_input_is_refused_by_what_is(graph: Graph, data: Any) -> None:
    for key in (None, "k"):
        with pytest.raises(
            InvalidRequest, match="list of them" if data is VESSEL_1 else "A load takes a path, "
        ) as caught:
            graph.load(data, mode="append", idempotency_key=key)
        assert caught.value.effects == "none"


@pytest.mark.parametrize("key", [None, "k"])
def test_a_path_is_a_text_or_a_path_of_text_or_bytes(graph: Graph, tmp_path: Path, key: str | None) -> None:
    (tmp_path / "v.jsonl").write_text(json.dumps(VESSEL_1))
    with os.scandir(os.fsencode(tmp_path)) as entries:
        entry: Any = next(entry for entry in entries if entry.name == b"v.jsonl")
    assert graph.load(entry, mode="merge", idempotency_key=key).total_entities == 1
    for name in ("v\0.jsonl", "\ud800.jsonl"):
        with pytest.raises(InvalidRequest, match="no path") as caught:
            graph.load(name, mode="merge", idempotency_key=key)
        assert caught.value.effects == "none"
    with pytest.raises(InvalidRequest, match="Is a directory"):
        graph.load(tmp_path, mode="merge", idempotency_key=key)


def test_a_bad_record_names_its_line_and_leaves_nothing(graph: Graph) -> None:
    with pytest.raises(InvalidData) as caught:
        load(graph, VESSEL_1, {"type": "Vessel", "data": {"imo": 2, "title": "B", "status": "active", "knots": 3}})
    assert caught.value.details["code"] == "W011"
    assert caught.value.line_number == 2
    assert counts(graph) == {}


def test_an_export_over_a_folder_is_refused_and_leaves_nothing(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidRequest):
        graph.export(tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


def test_export_and_overwrite_give_an_equal_graph(graph: Graph, tmp_path: Path) -> None:
    load(graph, VESSEL_1, VESSEL_2, BERGEN, CALL, {"type": "Sailor", "id": "s1", "data": {"name": 'A\nB "q" 漢'}})
    graph.export(tmp_path / "all.jsonl")
    other = omnigraph.init(tmp_path / "other", schema=HARBOUR)
    other.load(tmp_path / "all.jsonl", mode="overwrite")
    assert records(other) == records(graph)


def test_load_from_forks_and_loads_as_one_version(graph: Graph) -> None:
    load(graph, VESSEL_1)
    result = load(graph, VESSEL_2, branch="drafts", from_="main")
    assert result.branch_created
    assert result.commit.graph_commit_id.startswith("drafts@1-")
    assert result.commit.parent_commit_id == graph.head.graph_commit_id
    assert counts(graph) == {"Vessel": 1}
    assert counts(graph.on("drafts")) == {"Vessel": 2}
    third = {"type": "Vessel", "data": {"imo": 3, "title": "C", "status": "active"}}
    again = load(graph, third, branch="drafts", from_="main")
    assert not again.branch_created
    assert counts(graph.on("drafts")) == {"Vessel": 3}
    graph.branches.create("other")
    with pytest.raises(AlreadyExists):
        load(graph, third, branch="drafts", from_="other")


@pytest.mark.parametrize("data", [[], b"\n\n", pa.table({"imo": pa.array([], pa.int64())})])
def test_a_load_from_without_records_makes_no_branch(graph: Graph, data: Any) -> None:
    kind = "Vessel" if isinstance(data, pa.Table) else None
    for key in (None, "k"):
        result = graph.load(data, mode="append", type=kind, branch="drafts", from_="main", idempotency_key=key)
        assert (result.branch_created, result.commit, result.total_entities) == (False, None, 0)
        assert (result.branch, result.base_branch, result.replayed) == ("drafts", "main", False)
        assert [b.name for b in graph.branches.list()] == ["main"]
    with pytest.raises(BranchNotFound):
        graph.load(data, mode="append", type=kind, branch="drafts")


def test_a_repeat_of_a_fork_and_load_says_that_it_created_the_branch(graph: Graph) -> None:
    first = load(graph, VESSEL_1, branch="drafts", from_="main", idempotency_key="k1")
    load(graph, VESSEL_2, branch="drafts", from_="main", idempotency_key="k2")
    again = load(graph, VESSEL_1, branch="drafts", from_="main", idempotency_key="k1")
    assert again.to_dict() == {**first.to_dict(), "idempotent_replay": True}
    assert again.branch_created
    again = load(graph, VESSEL_2, branch="drafts", from_="main", idempotency_key="k2")
    assert again.replayed
    assert not again.branch_created


def test_a_failed_load_from_leaves_no_branch(graph: Graph) -> None:
    with pytest.raises(ConstraintViolation):
        load(graph, CALL, branch="drafts", from_="main")
    assert [b.name for b in graph.branches.list()] == ["main"]


def test_a_frame_is_loaded_by_its_columns(graph: Graph) -> None:
    frame = pa.table(
        {"imo": [1, 2], "title": ["Alma", "Brig"], "status": ["active", "laid-up"], "tonnage": [1.5, None]}
    )
    graph.load(frame, mode="append", type="Vessel")
    edges = pa.table({"@src": ["1", "1"], "@dst": ["2", "2"], "lag": pa.array([1, None], pa.int64())})
    graph.load(edges, mode="append", type="Follows")
    assert counts(graph) == {"Vessel": 2, "Follows": 2}
    with pytest.raises(InvalidData) as caught:
        graph.load(pa.table({"imo": ["x"]}), mode="append", type="Vessel")
    assert caught.value.details["property"] == "imo"
    with pytest.raises(InvalidRequest):
        graph.load(frame, mode="append")


def test_a_frame_that_names_a_column_twice_or_none_is_refused_as_such(graph: Graph) -> None:
    with pytest.raises(InvalidData) as caught:
        graph.load(pa.table([[1], [2]], names=["imo", "imo"]), mode="append", type="Vessel")
    assert caught.value.details["property"] == "imo"
    with pytest.raises(InvalidRequest):
        graph.load(pa.chunked_array([[1]]), mode="append", type="Vessel")


def test_a_ceiling_is_named(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITE_ENTITIES", "1")
    small = omnigraph.open(graph.uri)
    with pytest.raises(LimitExceeded) as caught:
        load(small, VESSEL_1, VESSEL_2)
    assert caught.value.details == {"resource": "write_entities:node:Vessel", "limit": 1, "actual": 2}
    load(small, VESSEL_1, VESSEL_2, mode="overwrite")


def test_the_same_key_answers_the_first_receipt_and_another_body_is_refused(graph: Graph) -> None:
    first = load(graph, VESSEL_1, idempotency_key="k1")
    again = load(graph, VESSEL_1, idempotency_key="k1")
    assert again.replayed
    assert again.commit == first.commit
    assert again.nodes == first.nodes
    with pytest.raises(omnigraph.errors.IdempotencyKeyReused):
        load(graph, VESSEL_2, idempotency_key="k1")
    assert counts(graph) == {"Vessel": 1}


def test_a_key_knows_python_records_with_native_values_again(graph: Graph) -> None:
    record = {"type": "Vessel", "data": {"imo": 1, "title": "Alma", "status": "active", "built": dt.date(2024, 1, 5)}}
    first = load(graph, record, idempotency_key="k")
    assert load(graph, record, idempotency_key="k").replayed
    assert first.commit.counts["node:Vessel"].inserted == 1
    assert '"built":"2024-01-05"' in records(graph)[0]


def test_whole_numbers_that_pandas_keeps_as_floats_are_integers(graph: Graph) -> None:
    frame = pd.DataFrame({"name": ["A", "B"], "rank": [1, None]})
    graph.load(frame, mode="append", type="Sailor")
    assert sorted(line.split('"data":')[1] for line in records(graph)) == ['{"name":"A","rank":1}}', '{"name":"B"}}']
    with pytest.raises(InvalidData, match=r"^line 1: Sailor.rank: a number written as an integer"):
        graph.load(pd.DataFrame({"name": ["A"], "rank": [1.5]}), mode="append", type="Sailor")


def test_a_bar_ends_with_the_reading(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    load(graph, VESSEL_1, progress=True)
    first = capsys.readouterr().err
    assert "records" in first
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("record", "meant"),
    [
        ('{"type": "Vesel", "data": {}}', "Vessel"),
        ('{"edge": "CallAt", "from": "1", "to": "2"}', "CallsAt"),
        ('{"type": "Vessel", "data": {"titel": "x"}}', "title"),
        ('{"type": "Vessel", "dta": {}}', "data"),
    ],
)
def test_a_misspelt_name_in_a_record_is_refused_with_the_one_that_was_meant(
    graph: Graph, record: str, meant: str
) -> None:
    with pytest.raises(InvalidData) as caught:
        graph.load(record.encode(), mode="append")
    assert caught.value.message.startswith("line 1: ")
    assert caught.value.message.endswith(f'. Did you mean "{meant}"?')
