"""`omnigraph cluster validate`, `apply`, `status`, and work on a cluster's graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cluster.ownership import acquire
from omnigraph.errors import GraphNotFound
from support.command_line import Run

VESSEL = '{"type":"Vessel","data":{"imo":7,"title":"Gull","status":"active"}}\n'


def test_validate_gives_every_finding_and_touches_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("version: 2\ncolour: red\ngraphs: {policies: {schema: a.pg}}\n")
    done = run("cluster", "validate", "--config", tmp_path)
    assert done.code == 1
    codes = [line.split("]")[0].removeprefix("error[") for line in done.out.splitlines()]
    assert set(codes) >= {"unsupported_cluster_config_version", "unknown_key", "invalid_graph_id"}
    as_json = run("cluster", "validate", "--config", tmp_path, "--json").json
    assert [finding["code"] for finding in as_json["findings"]] == codes
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("__")] == []


def test_validate_of_a_good_folder_names_its_graphs(run: Run, cluster: Path) -> None:
    done = run("cluster", "validate", "--config", cluster, "--json")
    assert (done.code, done.json) == (0, {"status": "ok", "findings": [], "graphs": ["atlas", "north"]})


def test_validate_counts_in_english(run: Run, cluster: Path) -> None:
    assert run("cluster", "validate", "--config", cluster).out == "no findings; 2 graphs: atlas, north\n"
    (cluster / "cluster.yaml").write_text("version: 1\nstorage: data\ngraphs: {atlas: {schema: harbour.pg}}\n")
    assert run("cluster", "validate", "--config", cluster).out == "no findings; 1 graph: atlas\n"


def test_apply_makes_what_is_missing_and_then_nothing(run: Run, cluster: Path) -> None:
    again = run("cluster", "apply", "--config", cluster, "--json")
    assert again.code == 0
    assert [(g["graph_id"], g["change"]) for g in again.json["graphs"]] == [
        ("atlas", "unchanged"),
        ("north", "unchanged"),
    ]
    (cluster / "harbour.pg").write_text((cluster / "harbour.pg").read_text() + "\nnode Buoy { name: String @key }\n")
    changed = run("cluster", "apply", "--config", cluster)
    assert [line.split()[:3] for line in changed.out.splitlines()] == [
        ["atlas", "schema", "changed"],
        ["north", "schema", "changed"],
    ]


def test_apply_tells_programs_how_many_graphs_are_done(run: Run, cluster: Path) -> None:
    done = run("cluster", "apply", "--config", cluster, "--json", "-q", "--progress", "json")
    assert [json.loads(line)["progress"] for line in done.err.splitlines()] == [
        {"phase": "apply", "done": count, "total": 2, "unit": "graphs"} for count in (0, 1, 2)
    ]


def test_a_graph_that_fails_does_not_stop_the_others(run: Run, cluster: Path) -> None:
    (cluster / "narrow.pg").write_text("node Other { x: String @key }\n")
    text = (cluster / "cluster.yaml").read_text()
    (cluster / "cluster.yaml").write_text(text.replace("north: {schema: harbour.pg}", "north: {schema: narrow.pg}"))
    done = run("cluster", "apply", "--config", cluster, "--json")
    assert done.code == 1
    assert [graph["change"] for graph in done.json["graphs"]] == ["unchanged", "failed"]
    assert done.json["outcome"] == "failed"


def test_a_faulty_folder_is_refused_with_every_finding(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("version: 2\n")
    done = run("cluster", "apply", "--config", tmp_path)
    assert done.code == 1
    assert "unsupported_cluster_config_version version: must be exactly 1" in done.err


def test_losing_data_needs_consent(run: Run, cluster: Path) -> None:
    refused = run("cluster", "apply", "--config", cluster, "--allow-data-loss", "--json")
    assert (refused.code, refused.json["code"]) == (2, "consent_required")
    assert run("cluster", "apply", "--config", cluster, "--allow-data-loss", "--yes").code == 0


def test_status_lists_graphs_with_their_heads(run: Run, cluster: Path) -> None:
    for place in (["--config", cluster], ["--cluster", cluster], ["--cluster", cluster / "data"]):
        rows = run("cluster", "status", *place).lines
        assert [(row["graph_id"], row["state"]) for row in rows] == [("atlas", "ready"), ("north", "ready")]
        assert all(row["head_commit_id"].startswith("main@1-") for row in rows)


def test_status_ends_with_1_if_a_graph_cannot_be_opened(run: Run, cluster: Path) -> None:
    for manifest in (cluster / "data" / "graphs" / "atlas.omni").rglob("__manifest/**/*.*"):
        if manifest.is_file():
            manifest.write_bytes(b"damaged")
    done = run("cluster", "status", "--config", cluster, "--json")
    assert (done.code, [graph["state"] for graph in done.json["graphs"]]) == (1, ["blocked", "ready"])


def test_a_clusters_graph_is_reached_by_folder_by_root_and_by_name(run: Run, cluster: Path, home: Path) -> None:
    (home / "config.yaml").write_text(f"clusters: {{sea: {{root: {cluster / 'data'}}}}}\n")
    for place in (cluster, cluster / "data", "sea"):
        assert (
            run("load", "--cluster", place, "--graph", "atlas", "--data", "-", "--mode", "merge", stdin=VESSEL).code
            == 0
        )
        exported = run("export", "--cluster", place, "--graph", "atlas")
        assert exported.lines[0]["id"] == "7"
    assert run("export", "--cluster", cluster, "--graph", "north").out == ""


def test_no_graph_is_guessed_among_several(run: Run, cluster: Path) -> None:
    refused = run("export", "--cluster", cluster)
    assert refused.code == 2
    assert "atlas, north" in refused.err
    missing = run("export", "--cluster", cluster, "--graph", "south", "--json", "--out", cluster / "x")
    assert (missing.code, missing.json["code"]) == (1, "graph_not_found")


def test_a_writer_takes_the_clusters_lock_and_a_reader_does_not(run: Run, cluster: Path) -> None:
    inside = cluster / "data" / "graphs" / "atlas.omni"
    with acquire(str(cluster / "data")):
        for place in (["--cluster", cluster, "--graph", "atlas"], ["--store", inside]):
            refused = run("branch", "create", "a", *place, "--json")
            assert (refused.code, refused.json["code"]) == (1, "state_lock_held"), place
            assert refused.json["command_outcome"] == {
                "execution": "not_started",
                "effects": "none",
                "action": "recover",
            }
            assert run("branch", "list", *place).code == 0
    assert run("branch", "create", "a", "--store", inside).code == 0


def test_harm_to_a_clusters_graph_needs_consent(run: Run, cluster: Path) -> None:
    place = ("--cluster", str(cluster), "--graph", "atlas")
    run("branch", "create", "a", *place)
    refused = run("branch", "delete", "a", *place, "--json")
    assert (refused.code, refused.json["code"]) == (2, "consent_required")
    overwrite = ("load", *place, "--data", "-", "--mode", "overwrite")
    assert run(*overwrite, stdin=VESSEL).code == 2
    assert run(*overwrite, "--yes", stdin=VESSEL).code == 0
    assert run("branch", "delete", "a", *place, "-y").code == 0


@pytest.mark.parametrize(
    "words", [("query", "-e", "query q() { match { $p: Port } return { $p } }"), ("branch", "list")]
)
def test_a_graph_that_the_cluster_does_not_hold_is_answered_with_those_it_holds(
    run: Run, cluster: Path, words: tuple[str, ...]
) -> None:
    stored = cluster / "data" / "graphs"
    for address in (("--cluster", cluster, "--graph", "nort"), ("--store", stored / "nort.omni")):
        missing = run(*words, *address, "--json")
        assert (missing.code, missing.json["code"]) == (1, "graph_not_found")
        said = missing.json["error"]
        assert "holds north, atlas." in said  # the nearest first
        assert "omnigraph cluster apply" in said
        assert "omnigraph init" not in said


def test_a_name_that_no_graph_can_have_leads_nowhere_else(run: Run, cluster: Path) -> None:
    run("init", cluster / "away.omni", "--schema", cluster / "harbour.pg")
    refused = run("branch", "list", "--cluster", cluster, "--graph", "../../away", "--json")
    assert (refused.code, refused.json["code"]) == (1, "graph_not_found")
    assert "atlas, north" in refused.json["error"]


def test_an_empty_cluster_says_what_makes_graphs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("version: 1\ngraphs: {}\n")
    assert run("cluster", "apply", "--config", tmp_path).code == 0
    for words in ((), ("--graph", "atlas")):
        refused = run("branch", "list", "--cluster", tmp_path, *words)
        assert refused.code
        assert "omnigraph cluster apply" in refused.err


def test_a_graph_that_was_never_finished_is_told_how_it_is(run: Run, cluster: Path) -> None:
    (cluster / "data" / "graphs" / "south.omni").mkdir()
    (cluster / "data" / "graphs" / "south.omni" / "__graph.json").write_text("{}")
    found = {g["graph_id"]: g for g in run("cluster", "status", "--cluster", cluster, "--json").json["graphs"]}
    assert "omnigraph cluster apply" in found["south"]["error"]["error"]
    with pytest.raises(GraphNotFound, match=r"holds north, .*omnigraph cluster apply"):
        omnigraph.open(cluster / "data" / "graphs" / "nort.omni")
