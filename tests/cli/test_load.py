"""`omnigraph load`: records and files of columns, as one commit."""

from __future__ import annotations

import gzip
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from support.command_line import RECORDS, Run

THIRD = '{"type":"Vessel","data":{"imo":3,"title":"Corvo","status":"active"}}\n'
SAILORS = pa.table({"name": ["Ada", "Otto"], "rank": pa.array([1, None], pa.int32())})


def count(run: Run, harbour: Path, type_name: str, *more: str) -> int:
    rows = run("snapshot", harbour, *more).lines
    return next(row["entity_count"] for row in rows if row["type_name"] == type_name)


@pytest.mark.parametrize("way", ["file", "gzip", "stdin"])
def test_records_come_from_a_file_gzip_or_stdin(run: Run, harbour: Path, tmp_path: Path, way: str) -> None:
    place = tmp_path / "more.jsonl"
    place.write_bytes(gzip.compress(THIRD.encode()) if way == "gzip" else THIRD.encode())
    data = "-" if way == "stdin" else place
    done = run("load", harbour, "--data", data, "--mode", "append", stdin=THIRD if way == "stdin" else None)
    assert done.code == 0, done.err
    assert "1 entity loaded into main; commit main@3-" in done.out
    assert count(run, harbour, "Vessel") == 3


@pytest.mark.parametrize("packed", [False, True])
def test_a_named_pipe_is_read_once_and_whole(run: Run, harbour: Path, tmp_path: Path, packed: bool) -> None:
    place = tmp_path / "more.jsonl"
    os.mkfifo(place)
    with ThreadPoolExecutor(1) as writer:
        writer.submit(place.write_bytes, gzip.compress(THIRD.encode()) if packed else THIRD.encode())
        done = run("load", harbour, "--data", place, "--mode", "append", "--json")
    assert done.json["total_entities"] == 1
    assert count(run, harbour, "Vessel") == 3


def test_a_pipe_of_the_shell_is_read_once_and_whole(run: Run, harbour: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, THIRD.encode())
    os.close(writing)
    try:  # `<(…)` is such a path
        done = run("load", harbour, "--data", f"/dev/fd/{reading}", "--mode", "append", "--json")
    finally:
        os.close(reading)
    assert done.json["total_entities"] == 1
    assert count(run, harbour, "Vessel") == 3


def test_a_key_knows_a_file_again_from_stdin_and_from_python(run: Run, harbour: Path, tmp_path: Path) -> None:
    text = THIRD.replace("\n", "\r\n") + THIRD.replace("3", "4").rstrip()  # the last line has no end
    (tmp_path / "more.jsonl").write_bytes(text.encode())
    words = ("load", str(harbour), "--mode", "append", "--json", "--idempotency-key", "k")
    first = run(*words, "--data", tmp_path / "more.jsonl").json
    again = run(*words, "--data", "-", stdin=text.encode()).json
    assert again == {**first, "idempotent_replay": True}
    with omnigraph.open(harbour) as graph:
        assert graph.load(text.encode(), mode="append", idempotency_key="k").to_dict() == again


def test_json_is_the_receipt(run: Run, harbour: Path) -> None:
    receipt = run("load", harbour, "--data", "-", "--mode", "append", "--json", stdin=THIRD).json
    assert receipt["nodes"] == [{"name": "Vessel", "entities_loaded": 1}]
    assert receipt["commit"]["kind"] == "load"


def test_the_mode_is_never_guessed(run: Run, harbour: Path) -> None:
    refused = run("load", harbour, "--data", "-", stdin=THIRD)
    assert refused.code == 2
    assert "error[bad_request]: Missing option --mode overwrite|append|merge.\n" in refused.err


def test_a_file_that_cannot_be_read_is_named_as_it_was_written(run: Run, tmp_path: Path) -> None:
    for data, reason in (("nofile.jsonl", "No such file or directory"), ("..", "Is a directory")):
        refused = run("load", tmp_path / "no graph", "--data", data, "--mode", "append")
        assert (refused.code, refused.err) == (2, f"error[bad_request]: --data {data}: {reason}.\n")


def test_a_refused_record_is_named_by_its_line_and_loads_nothing(run: Run, harbour: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(THIRD + '{"type":"Vessel","data":{"imo":4,"titel":"X"}}\n')
    refused = run("load", harbour, "--data", tmp_path / "bad.jsonl", "--mode", "append")
    assert refused.code == 1
    assert "error[W011]: " in refused.err
    assert f"  --> {tmp_path}/bad.jsonl:2\n" in refused.err
    assert count(run, harbour, "Vessel") == 2


def test_of_a_packed_file_that_is_cut_the_line_is_named(run: Run, harbour: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(THIRD.encode() * 3)[:-8])
    refused = run("load", harbour, "--data", tmp_path / "cut.jsonl.gz", "--mode", "merge")
    assert refused.code == 1
    assert f"  --> {tmp_path}/cut.jsonl.gz:4\n" in refused.err


def test_a_load_may_fork_its_branch(run: Run, harbour: Path) -> None:
    receipt = run(
        "load", harbour, "--data", "-", "--mode", "merge", "--branch", "in", "--from", "main", "--json", stdin=THIRD
    )
    assert receipt.json["branch_created"] is True
    assert (count(run, harbour, "Vessel", "--branch", "in"), count(run, harbour, "Vessel")) == (3, 2)


def test_a_fork_without_records_creates_no_branch(run: Run, harbour: Path) -> None:
    words = ("load", str(harbour), "--data", "-", "--mode", "merge", "--branch", "in", "--from", "main")
    assert run(*words, stdin="\n").out == "0 entities loaded into in; nothing to commit\n"
    assert run(*words, "--json", stdin="").json["branch_created"] is False
    assert "in" not in run("branch", "list", harbour).out.split()


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_a_file_of_columns_loads_with_its_type(run: Run, harbour: Path, tmp_path: Path, ending: str) -> None:
    place = tmp_path / f"sailors.{ending}"
    if ending == "parquet":
        pq.write_table(SAILORS, place)
    elif ending == "arrow":
        with pa.ipc.new_file(str(place), SAILORS.schema) as writer:
            writer.write_table(SAILORS)
    else:
        place.write_text("name,rank\r\nAda,1\r\nOtto,\r\n")
    done = run("load", harbour, "--data", place, "--type", "Sailor", "--mode", "append")
    assert done.code == 0, done.err
    rows = run(
        "query",
        "--store",
        harbour,
        "-e",
        "query s() { match { $s: Sailor } return { $s.name, $s.rank } order { $s.name } }",
    ).lines
    assert rows == [{"s.name": "Ada", "s.rank": 1}, {"s.name": "Otto"}]


def test_csv_is_read_by_the_types_of_the_schema(run: Run, harbour: Path, tmp_path: Path) -> None:
    (tmp_path / "sailors.csv").write_text('name,rank,joined\n007,1,2024-01-05T06:07:08\n"",2,\n')
    (tmp_path / "vessels.csv").write_text(
        'imo,title,status,built,tags,hull\n8,1844,active,1844-05-24,"[""a"",""b""]","[1.0,2.5]"\n9,X,active,,,\n'
    )
    for name, kind in (("sailors", "Sailor"), ("vessels", "Vessel")):
        done = run("load", harbour, "--data", tmp_path / f"{name}.csv", "--type", kind, "--mode", "append")
        assert done.code == 0, done.err
    source = "query s() { match { $s: Sailor } return { $s.name as n, $s.joined as j } order { $s.rank } }"
    assert run("query", "--store", harbour, "-e", source).lines == [{"n": "007", "j": "2024-01-05T06:07:08"}, {"n": ""}]
    source = "query v() { match { $v: Vessel  $v.imo > 7 } return { $v.title as t, $v.tags as g, $v.hull as h } order { t } }"
    assert run("query", "--store", harbour, "-e", source).lines == [
        {"t": "1844", "g": ["a", "b"], "h": [1.0, 2.5]},
        {"t": "X"},
    ]


def test_csv_that_does_not_fit_is_refused(run: Run, harbour: Path, tmp_path: Path) -> None:
    place = tmp_path / "sailors.csv"
    words = ("load", str(harbour), "--data", str(place), "--type", "Sailor", "--mode", "append")
    place.write_text("name,rank\nAda,first\n")
    assert run(*words).code == 2
    place.write_text("name,colour\nAda,red\n")
    assert "W011" in run(*words).err
    assert count(run, harbour, "Sailor") == 0


def test_type_goes_with_columns_only(run: Run, harbour: Path, tmp_path: Path) -> None:
    pq.write_table(SAILORS, tmp_path / "s.parquet")
    assert run("load", harbour, "--data", tmp_path / "s.parquet", "--mode", "append").code == 2
    assert run("load", harbour, "--data", "-", "--type", "Sailor", "--mode", "append", stdin=THIRD).code == 2
    (tmp_path / "no.parquet").write_text("no")
    assert run("load", harbour, "--data", tmp_path / "no.parquet", "--type", "Sailor", "--mode", "append").code == 2


def test_progress_is_one_object_a_line_on_stderr(run: Run, harbour: Path) -> None:
    done = run("load", harbour, "--data", "-", "--mode", "append", "--progress", "json", "--json", "-q", stdin=THIRD)
    steps = [json.loads(line)["progress"] for line in done.err.splitlines()]
    assert steps
    assert steps[-1] == {"phase": "load", "done": len(THIRD), "total": len(THIRD), "unit": "bytes"}
    assert done.json["total_entities"] == 1


def test_a_local_overwrite_goes_ahead(run: Run, harbour: Path) -> None:
    words = ("load", str(harbour), "--data", "-", "--mode", "overwrite")
    assert run(*words, stdin=json.dumps(RECORDS[1])).code == 1  # vessel 1 is the end of an edge
    assert run(*words, stdin=json.dumps(RECORDS[0])).code == 0
    assert count(run, harbour, "Vessel") == 1
