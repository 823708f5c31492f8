"""What an open graph keeps of its tables: few of the versions that writes leave behind, and all within one limit."""

from __future__ import annotations

import gc
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.tables.budget import process_budget

SCHEMA = "node Port { code: String @key  name: String? } edge Ferry: Port -> Port { line: String? }"
INSERT = "query m($c: String) { insert Port { code: $c } insert Ferry { from: $c, to: $c } }"
CODES = "query q() { match { $p: Port } return { $p.code as c } }"
WRITES = 30


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    return omnigraph.init(tmp_path / "g", schema=SCHEMA)


def open_tables(graph: Graph) -> int:
    gc.collect()
    return sum(1 for each in gc.get_objects() if isinstance(each, lance.LanceDataset) and graph.uri in each.uri)


def written(graph: Graph) -> list[str]:
    """The commits of many small writes."""
    commits: list[str] = []
    for number in range(WRITES):
        done = graph.mutate(INSERT, c=f"p{number}").commit
        assert done is not None
        commits.append(done.graph_commit_id)
    return commits


def test_of_many_writes_few_table_versions_stay_open(graph: Graph) -> None:
    written(graph)
    kept = open_tables(graph)
    assert kept <= WRITES // 2, "of two tables"
    graph.close()
    assert open_tables(graph) < kept
    assert len(graph.query(CODES)) == WRITES


def test_every_state_reads_right_under_a_limit_that_holds_nothing(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_budget(), "limit", 1)
    commits = written(graph)
    for place, commit in enumerate(commits):
        assert len(graph.query(CODES, snapshot=commit)) == place + 1
    assert len(graph.query("query q() { match { $a: Port  $a ferry $b } return { $b.code as c } }")) == WRITES
    assert open_tables(graph) <= WRITES // 2


def test_states_that_are_read_stay_open_while_there_is_room(graph: Graph) -> None:
    commits = written(graph)
    for commit in commits:
        graph.query(CODES, snapshot=commit)
    again = open_tables(graph)
    assert again >= WRITES
    for commit in commits:
        graph.query(CODES, snapshot=commit)
    assert open_tables(graph) == again
