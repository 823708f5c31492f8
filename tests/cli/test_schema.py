"""`omnigraph schema show`, `plan`, `apply`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import HARBOUR, Run


@pytest.fixture
def wider(tmp_path: Path) -> Path:
    place = tmp_path / "wider.pg"
    place.write_text(HARBOUR.read_text() + "\nnode Lighthouse { name: String @key }\n")
    return place


@pytest.fixture
def narrower(tmp_path: Path) -> Path:
    """Without a property that holds a value."""
    place = tmp_path / "narrower.pg"
    place.write_text(HARBOUR.read_text().replace("berth: String?  ", ""))
    return place


def test_show_gives_the_text_as_it_was_accepted(run: Run, harbour: Path) -> None:
    assert run("schema", "show", harbour).out == HARBOUR.read_text().rstrip("\n") + "\n"


def test_show_with_json_lists_types_and_properties(run: Run, harbour: Path) -> None:
    answer = run("schema", "show", "--store", harbour, "--json").json
    assert answer["system_columns"] == {"id": "@id", "src": "@src", "dst": "@dst"}
    vessel = next(t for t in answer["types"] if t["name"] == "Vessel")
    assert {"name": "imo", "type": "U32", "nullable": False, "key": True} in vessel["properties"]


def test_plan_tells_the_steps_and_changes_nothing(run: Run, harbour: Path, wider: Path) -> None:
    planned = run("schema", "plan", harbour, "--schema", wider)
    assert (planned.code, planned.out) == (0, "info add_node node:Lighthouse: a node type is added\n")
    assert run("schema", "show", harbour).out == HARBOUR.read_text()


def test_plan_ends_with_1_for_what_apply_would_refuse(run: Run, harbour: Path, narrower: Path, tmp_path: Path) -> None:
    planned = run("schema", "plan", harbour, "--schema", narrower)
    assert planned.code == 1
    assert "warning OG-DS-104 drop_property edge:CallsAt.berth" in planned.out
    assert planned.out.endswith("\nrefused: rows or values would be dropped; allow it with --allow-data-loss\n")
    assert run("schema", "plan", harbour, "--schema", narrower, "--allow-data-loss").code == 0
    (tmp_path / "never.pg").write_text(HARBOUR.read_text().replace("rank: I32?", "rank: String?"))
    refused = run("schema", "plan", harbour, "--schema", tmp_path / "never.pg", "--json")
    assert (refused.code, refused.json["supported"]) == (1, False)
    told = run("schema", "plan", harbour, "--schema", tmp_path / "never.pg")
    assert told.out.endswith("\nrefused: a step can't be applied\n")


def test_apply_is_one_commit(run: Run, harbour: Path, wider: Path) -> None:
    done = run("schema", "apply", harbour, "--schema", wider, "-m", "lights")
    assert done.code == 0
    assert "applied; commit main@3-" in done.out
    again = run("schema", "apply", harbour, "--schema", wider)
    assert (again.code, again.out) == (0, "nothing to change\n")


def test_apply_tells_programs_its_steps(run: Run, harbour: Path, wider: Path) -> None:
    done = run("schema", "apply", harbour, "--schema", wider, "--json", "-q", "--progress", "json")
    told = [json.loads(line)["progress"] for line in done.err.splitlines()]
    count = len(done.json["steps"])
    assert told == [
        {"phase": "schema", "done": 0, "unit": "steps"},
        {"phase": "schema", "done": count, "total": count, "unit": "steps"},
    ]


def test_a_refused_step_is_shown_with_its_code(run: Run, harbour: Path, narrower: Path) -> None:
    refused = run("schema", "apply", harbour, "--schema", narrower)
    assert refused.code == 1
    assert refused.err.splitlines()[1].startswith("error[schema_change_refused]: ")
    assert "--allow-data-loss" in refused.err
    assert refused.err.splitlines()[2].startswith("  warning OG-DS-104 drop_property edge:CallsAt.berth: ")


def test_losing_data_needs_consent_even_on_this_disk(run: Run, harbour: Path, narrower: Path) -> None:
    words = ("schema", "apply", str(harbour), "--schema", str(narrower), "--allow-data-loss")
    refused = run(*words, "--json")
    assert (refused.code, refused.json["code"]) == (2, "consent_required")
    assert refused.json["error"].startswith(f"This applies the schema to {harbour} and may drop ")
    assert refused.json["command_outcome"] == {"execution": "not_started", "effects": "none", "action": "fix"}
    assert run(*words, "--yes").code == 0


def test_a_clusters_graph_takes_its_schema_from_the_folder(run: Run, cluster: Path, wider: Path) -> None:
    inside = cluster / "data" / "graphs" / "atlas.omni"
    for words in (["--store", inside], ["--cluster", cluster, "--graph", "atlas"]):
        refused = run("schema", "apply", *words, "--schema", wider)
        assert refused.code == 2, words
    assert "cluster apply" in run("schema", "apply", inside, "--schema", wider).err
