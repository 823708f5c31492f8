"""Files of a graph that are gone: the error names the type and the commit, never a path, and says that someone must act."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import StorageFailure

SCHEMA = "node Port { code: String @key  title: String? }\nnode Ship { name: String @key }\nedge Calls: Ship -> Port"
RECORDS = [
    {"type": "Port", "data": {"code": "BGO"}},
    {"type": "Ship", "data": {"name": "Alma"}},
    {"edge": "Calls", "from": "Alma", "to": "BGO", "id": "c1"},
]

READS: dict[str, Callable[[Graph], object]] = {
    "a query": lambda graph: graph.query("query q() { match { $p: Port } return { $p.title } }"),
    "a hop": lambda graph: graph.query("query q() { match { $s calls $p } return { $p.title } }"),
    "an export": lambda graph: b"".join(graph.export_stream()[1]),
    "an update": lambda graph: graph.mutate('query m() { update Port set { title: "x" } where code = "BGO" }'),
    "a load": lambda graph: graph.load([{"type": "Port", "data": {"code": "OSL"}}], mode="merge"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("gone", ["the folder", "the rows"])
def test_who_meets_a_missing_table_is_told_its_type_and_commit_and_that_someone_must_act(
    tmp_path: Path, read: Callable[[Graph], object], gone: str
) -> None:
    head = omnigraph.init(tmp_path / "g", schema=SCHEMA).load(RECORDS, mode="append").commit
    (moved,) = [p for p in (tmp_path / "g" / "nodes").iterdir() if _holds(p, b"BGO")]
    moved.rename(tmp_path / "gone")
    # at another address, for this process keeps the tables open that it wrote
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    if gone == "the rows":
        shutil.copytree(tmp_path / "gone", tmp_path / "copy" / "nodes" / moved.name)
        for file in (tmp_path / "copy" / "nodes" / moved.name / "data").iterdir():
            file.unlink()
    with pytest.raises(StorageFailure) as caught:
        read(omnigraph.open(tmp_path / "copy"))
    error = caught.value
    assert (error.cls, error.retry, error.status) == ("not_found", "recover", 500)
    assert "node type 'Port'" in error.message
    assert str(head) in error.message
    assert "nodes/" not in error.message
    assert error.details == {"class": "not_found", "phase": "read"}


def test_other_types_of_that_graph_can_still_be_read(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", schema=SCHEMA).load(RECORDS, mode="append")
    (moved,) = [p for p in (tmp_path / "g" / "nodes").iterdir() if _holds(p, b"BGO")]
    shutil.rmtree(moved)
    graph = omnigraph.open(tmp_path / "g")
    assert graph.query("query q() { match { $s: Ship } return { $s.name } }").scalars() == ["Alma"]


def _holds(folder: Path, text: bytes) -> bool:
    return any(text in file.read_bytes() for file in (folder / "data").iterdir())


def test_a_missing_schema_is_no_fault_that_passes(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", schema=SCHEMA).load(RECORDS, mode="append")
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    for file in (tmp_path / "copy" / "__schema").iterdir():
        file.unlink()
    with pytest.raises(StorageFailure) as caught:
        omnigraph.open(tmp_path / "copy").query("query q() { match { $p: Port } return { $p.title } }")
    assert (caught.value.cls, caught.value.retry) == ("not_found", "recover")
    assert "put the graph's files back" in caught.value.message
