"""`omnigraph snapshot`: tables and counts."""

from __future__ import annotations

from pathlib import Path

from support.command_line import HARBOUR, Run


def test_tables_and_counts_of_the_head(run: Run, harbour: Path) -> None:
    rows = run("snapshot", harbour).lines
    counts = {(row["entity_kind"], row["type_name"]): row["entity_count"] for row in rows}
    assert counts["node", "Vessel"] == 2
    assert counts["edge", "CallsAt"] == 1


def test_a_commit_and_a_branch_may_be_named(run: Run, harbour: Path) -> None:
    first = run("commit", "list", "--store", harbour).lines[-1]["graph_commit_id"]
    then = run("snapshot", harbour, "--snapshot", first, "--json").json
    assert then["graph_commit_id"] == first
    assert {d["entity_count"] for d in then["datasets"]} == {0}
    assert run("snapshot", harbour, "--branch", "none").code == 1


def test_a_time_may_be_named_wherever_a_commit_may(run: Run, harbour: Path, tmp_path: Path) -> None:
    first = run("commit", "list", "--store", harbour).lines[-1]
    (tmp_path / "wider.pg").write_text(HARBOUR.read_text() + "\nnode Buoy { name: String @key }\n")
    assert run("schema", "apply", harbour, "--schema", tmp_path / "wider.pg").code == 0
    time = ("--as-of", str(first["created_at"]))
    assert run("snapshot", harbour, *time, "--json").json["graph_commit_id"] == first["graph_commit_id"]
    assert "Buoy" not in run("schema", "show", harbour, *time).out
    assert "Buoy" in run("schema", "show", harbour).out
    assert run("export", harbour, *time).out == ""
    assert run("export", harbour).out != ""


def test_a_table_names_the_commit_beside_the_data(run: Run, harbour: Path) -> None:
    shown = run("snapshot", harbour, "--format", "table")
    assert shown.out.splitlines()[0].split() == ["entity_kind", "type_name", "entity_count"]
    assert shown.err.startswith("at main@2-")
