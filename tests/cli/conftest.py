"""The program with a home of its own, and graphs to work on."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from support.command_line import HARBOUR, RECORDS, Run, run_program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty configuration folder."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("OMNIGRAPH_HOME", str(place))
    for name in ("OMNIGRAPH_PROFILE", "NO_COLOR", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    return place


@pytest.fixture
def run(home: Path) -> Run:
    """The program; nothing of this user's configuration reaches it."""
    return run_program


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    """A graph of its own: two vessels, a port, one call. Not a copy: what a process knows of a graph goes by its id."""
    root = tmp_path / "harbour"
    with omnigraph.init(root, schema=HARBOUR) as graph:
        graph.load(RECORDS, mode="append")
    return root


@pytest.fixture
def cluster(tmp_path: Path, run: Run) -> Path:
    """A configuration folder with two graphs, applied."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    (folder / "harbour.pg").write_text(HARBOUR.read_text())
    (folder / "cluster.yaml").write_text(
        "version: 1\nstorage: data\ngraphs:\n  atlas: {schema: harbour.pg}\n  north: {schema: harbour.pg}\n"
    )
    assert run("cluster", "apply", "--config", folder).code == 0
    return folder
