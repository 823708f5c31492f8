"""`omnigraph profile list`, `show`, and what a profile does."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import Run


@pytest.fixture
def profiles(home: Path, harbour: Path, cluster: Path) -> None:
    (home / "config.yaml").write_text(
        f"profiles:\n  here: {{store: {harbour}, branch: draft, output: json}}\n"
        f"  sea: {{cluster: {cluster}, default_graph: atlas}}\n  far: {{server: https://graph.example.org}}\n"
    )


@pytest.mark.usefixtures("profiles")
def test_profiles_are_listed_and_shown(run: Run, harbour: Path) -> None:
    assert [row["name"] for row in run("profile", "list").lines] == ["far", "here", "sea"]
    assert run("profile", "show", "here").out == f"name: here\nstore: {harbour}\nbranch: draft\noutput: json\n"
    assert run("profile", "show", "none").code == 2


@pytest.mark.usefixtures("profiles")
def test_a_profile_gives_store_branch_and_form(run: Run, harbour: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("branch", "create", "draft", "--store", harbour)
    assert run("snapshot", "--profile", "here").json["graph_branch"] == "draft"
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "here")
    assert run("snapshot").json["graph_branch"] == "draft"
    assert run("snapshot", "--branch", "main").json["graph_branch"] == "main"
    assert run("profile", "show", "--json").json["name"] == "here"


@pytest.mark.usefixtures("profiles")
def test_the_graph_flag_beats_the_profiles_graph(run: Run) -> None:
    assert run("snapshot", "--profile", "sea").code == 0
    refused = run("snapshot", "--profile", "sea", "--graph", "south")
    assert refused.code == 1
    assert "graph_not_found" in refused.err


@pytest.mark.usefixtures("profiles")
def test_a_profile_of_a_server_is_refused_in_this_version(run: Run) -> None:
    refused = run("snapshot", "--profile", "far")
    assert (refused.code, "not_available" in refused.err) == (2, True)
