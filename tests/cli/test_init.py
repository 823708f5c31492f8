"""`omnigraph init`: make a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import HARBOUR, Run


def test_init_makes_a_graph_that_other_commands_open(run: Run, tmp_path: Path) -> None:
    made = run("init", tmp_path / "new", "--schema", HARBOUR)
    assert (made.code, made.err) == (0, f"→ {tmp_path / 'new'}\n")
    assert "commit main@1-" in made.out
    assert run("snapshot", tmp_path / "new", "--json").json["graph_commit_id"].startswith("main@1-")


def test_init_with_json_describes_the_graph_and_nothing_else(run: Run, tmp_path: Path) -> None:
    made = run("init", tmp_path / "new", "--schema", HARBOUR, "--json")
    assert made.json["types"]["nodes"] == ["Vessel", "Port", "Sailor"]


def test_init_takes_the_schema_from_stdin(run: Run, tmp_path: Path) -> None:
    assert run("init", tmp_path / "new", "--schema", "-", stdin="node A { x: String @key }").code == 0
    assert run("schema", "show", tmp_path / "new").out == "node A { x: String @key }\n"


def test_a_second_init_is_refused_and_changes_nothing(run: Run, harbour: Path) -> None:
    before = run("export", harbour).out
    again = run("init", harbour, "--schema", HARBOUR, "--json")
    assert (again.code, again.json["code"]) == (1, "already_initialized")
    assert run("export", harbour).out == before


def test_a_faulty_schema_is_shown_with_its_place_before_anything_exists(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.pg").write_text("node A {\n  x: Nothing\n}\n")
    refused = run("init", tmp_path / "new", "--schema", tmp_path / "bad.pg")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error[S006]: ")
    assert f"\n  --> {tmp_path}/bad.pg:2:6\n" in refused.err
    assert not (tmp_path / "new").exists()


def test_a_cluster_makes_its_graphs_itself(run: Run, cluster: Path) -> None:
    refused = run("init", cluster / "data" / "graphs" / "mine.omni", "--schema", HARBOUR, "--json")
    assert (refused.code, refused.json["code"]) == (2, "cluster_managed_path")
    assert run("init", "--cluster", cluster, "--graph", "atlas", "--schema", HARBOUR).code == 2


def test_init_makes_no_graph_at_a_place_that_was_not_named(run: Run, home: Path, tmp_path: Path) -> None:
    (home / "config.yaml").write_text(f"defaults: {{store: {tmp_path}/standing}}\n")
    refused = run("init", "--schema", HARBOUR)
    assert refused.code == 2
    assert "omnigraph init URI" in refused.err


@pytest.mark.parametrize("place", ["a.pg", "a.pg/graph"])
def test_an_address_at_which_a_file_stands_is_refused_with_what_to_do(run: Run, tmp_path: Path, place: str) -> None:
    (tmp_path / "a.pg").write_text("node A { x: String @key }")
    for words in (["init", tmp_path / place, "--schema", tmp_path / "a.pg"], ["snapshot", tmp_path / place]):
        refused = run(*words, "--json")
        body = refused.json
        assert (refused.code, body["code"], body["retry"]) == (1, "invalid_storage_root", "fix")
        assert "name another folder" in body["error"]
        assert str(tmp_path) not in body["error"]
    assert (tmp_path / "a.pg").read_text() == "node A { x: String @key }"
