"""What `cluster apply` does to storage: one publication a graph, repeatable, and no graph's fault stops another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cluster.apply import ApplyReport, apply, stored_graphs
from omnigraph.cluster.config import InvalidConfig
from omnigraph.cluster.ownership import acquire
from omnigraph.errors import LockHeld

PORTS = "node Port { code: String @key }\n"
NAMED = "node Port { code: String @key  name: String? }\n"
RETYPED = "node Port { code: String @key  name: I64? }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "config"
    place.mkdir()
    return place


def declare(folder: Path, graphs: dict[str, str], storage: str | None = None) -> None:
    lines = ["version: 1", *([f"storage: {storage}"] if storage else []), "graphs:"]
    for graph_id, schema in graphs.items():
        (folder / f"{graph_id}.pg").write_text(schema)
        lines.append(f"  {graph_id}: {{ schema: {graph_id}.pg }}")
    (folder / "cluster.yaml").write_text("\n".join(lines) + "\n")


def changes(report: ApplyReport) -> dict[str, str]:
    return {each.graph_id: each.change for each in report.graphs}


def schema_of(report: ApplyReport, graph_id: str) -> str:
    return omnigraph.open(f"{report.storage}/graphs/{graph_id}.omni").schema.source


def test_missing_graphs_are_made_changed_ones_changed_and_the_rest_left_alone(folder: Path, any_root: str) -> None:
    declare(folder, {"atlas": PORTS, "tides": PORTS}, any_root)
    first = apply(folder, actor="me")
    assert (first.outcome, changes(first)) == ("done", {"atlas": "created", "tides": "created"})

    declare(folder, {"atlas": NAMED, "tides": PORTS}, any_root)
    second = apply(folder)
    assert changes(second) == {"atlas": "schema_changed", "tides": "unchanged"}
    assert schema_of(second, "atlas") == NAMED
    before, after = first.graphs[1].commit_id, second.graphs[1].commit_id
    assert before == after, "an unchanged graph gets no commit"

    assert changes(apply(folder)) == {"atlas": "unchanged", "tides": "unchanged"}


def test_a_graph_that_is_no_longer_declared_is_reported_and_stays(folder: Path) -> None:
    declare(folder, {"atlas": PORTS, "tides": PORTS})
    apply(folder)
    declare(folder, {"atlas": PORTS})
    report = apply(folder)
    assert changes(report) == {"atlas": "unchanged", "tides": "undeclared"}
    assert schema_of(report, "tides") == PORTS


def test_a_refused_schema_change_leaves_the_other_graphs_their_changes(folder: Path) -> None:
    declare(folder, {"atlas": NAMED, "tides": PORTS})
    root = apply(folder).storage
    omnigraph.open(f"{root}/graphs/atlas.omni").mutate('query q() { insert Port { code: "a", name: "A" } }')
    declare(folder, {"atlas": RETYPED, "tides": NAMED, "winds": PORTS})
    report = apply(folder)
    assert report.outcome == "partial"
    assert changes(report) == {"atlas": "failed", "tides": "schema_changed", "winds": "created"}
    error = report.graphs[0].error
    assert error is not None
    assert (error["code"], error["effects"]) == ("schema_change_refused", "none")
    assert schema_of(report, "atlas") == NAMED


def test_loss_of_data_needs_consent(folder: Path) -> None:
    declare(folder, {"atlas": NAMED})
    root = apply(folder).storage
    omnigraph.open(f"{root}/graphs/atlas.omni").mutate('query q() { insert Port { code: "a", name: "A" } }')
    declare(folder, {"atlas": PORTS})
    refused = apply(folder)
    assert (refused.outcome, changes(refused)) == ("failed", {"atlas": "failed"})
    assert changes(apply(folder, allow_data_loss=True)) == {"atlas": "schema_changed"}


def test_a_run_that_was_cut_short_is_finished_by_the_next(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.engine import opening

    declare(folder, {"atlas": PORTS, "tides": PORTS})

    def killed(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # after the graph's identity was stored, before the graph is one
        patched.setattr(opening, "publish_version", killed)
        with pytest.raises(KeyboardInterrupt):
            apply(folder)
    identity = folder / "graphs" / "atlas.omni" / "__graph.json"
    standing = identity.read_bytes()
    assert changes(apply(folder)) == {"atlas": "created", "tides": "created"}
    assert identity.read_bytes() == standing, "what stands there is taken over"


def test_a_folder_with_findings_touches_no_storage(folder: Path) -> None:
    declare(folder, {"atlas": PORTS, "tides": "node Port {"})
    with pytest.raises(InvalidConfig):
        apply(folder)
    assert sorted(os.listdir(folder)) == ["atlas.pg", "cluster.yaml", "tides.pg"]


def test_apply_needs_the_lock_and_gives_it_back(folder: Path) -> None:
    declare(folder, {"atlas": PORTS})
    with acquire(str(folder)), pytest.raises(LockHeld) as refused:
        apply(folder)
    assert refused.value.effects == "none"
    assert not (folder / "graphs").exists()
    apply(folder)
    with acquire(str(folder)):
        pass


def test_a_damaged_graph_fails_alone(folder: Path) -> None:
    declare(folder, {"atlas": PORTS, "tides": PORTS})
    root = Path(apply(folder).storage)
    [manifest] = (root / "graphs" / "atlas.omni" / "__manifest" / "main").glob("*.json")
    manifest.write_bytes(b"{")
    report = apply(folder)
    assert changes(report) == {"atlas": "failed", "tides": "unchanged"}
    error = report.graphs[0].error
    assert error is not None
    assert error["storage_failure"]["class"] == "corrupt"
    assert str(root) not in str(error)


def test_other_folders_beside_the_graphs_are_no_graphs(folder: Path) -> None:
    declare(folder, {"atlas": PORTS})
    root = Path(apply(folder).storage)
    for name in ("lost+found", "a b.omni", "metrics.omni", "notes"):
        (root / "graphs" / name).mkdir()
        (root / "graphs" / name / "file").write_text("x")
    assert stored_graphs(str(root)) == ["atlas"]
