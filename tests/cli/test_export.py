"""`omnigraph export`: load records of one state."""

from __future__ import annotations

from pathlib import Path

from support.command_line import HARBOUR, Run


def test_an_export_loads_into_an_equal_graph(run: Run, harbour: Path, tmp_path: Path) -> None:
    exported = run("export", harbour)
    assert exported.code == 0
    assert [line.get("type", line.get("edge")) for line in exported.lines] == ["Port", "Vessel", "Vessel", "CallsAt"]
    run("init", tmp_path / "copy", "--schema", HARBOUR)
    assert run("load", tmp_path / "copy", "--data", "-", "--mode", "overwrite", stdin=exported.out).code == 0
    assert run("export", tmp_path / "copy").out == exported.out


def test_types_and_states_may_be_chosen(run: Run, harbour: Path) -> None:
    assert len(run("export", harbour, "--type", "Port").lines) == 1
    first = run("commit", "list", "--store", harbour).lines[-1]["graph_commit_id"]
    assert run("export", harbour, "--snapshot", first).out == ""
    assert run("export", harbour, "--type", "Nothing").code == 1


def test_a_file_is_written_whole_and_json_tells_of_it(run: Run, harbour: Path, tmp_path: Path) -> None:
    told = run("export", harbour, "--out", tmp_path / "all.jsonl", "--json").json
    assert told["entities"] == 4
    assert told["bytes"] == (tmp_path / "all.jsonl").stat().st_size
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".all")] == []


def test_json_without_a_file_would_be_two_kinds_of_output(run: Run, harbour: Path) -> None:
    assert run("export", harbour, "--json").code == 2


def test_a_path_that_no_file_can_take_is_refused_before_the_graph_is_opened(run: Run, tmp_path: Path) -> None:
    places = {"/nope/x": "No such file or directory", "/dev/null": "this is not a regular file", ".": "Is a directory"}
    for out, reason in places.items():
        refused = run("export", tmp_path / "no graph", "--out", out)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err.startswith(f"error[bad_request]: --out {out}: {reason}"), refused.err
