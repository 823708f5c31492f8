"""The state after each commit of a group is exact: to read, to export, to branch from (history.md 9.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from support.faulty import Faulty
from support.grouping import Together

SCHEMA = """
node Port { code: String @key  name: String? }
node Note { text: String }
edge Ferry: Port -> Port { line: String? }
"""
INSERT = "query m($c: String) { insert Port { code: $c } }"
NOTE = "query m($t: String) { insert Note { text: $t } }"
FERRY = 'query m($t: String) { insert Ferry { from: "A", to: $t } }'

STATES = [
    (["A", "B"], [], []),
    (["A", "B", "C"], [], []),
    (["A", "B", "C"], ["n1"], []),
    (["A", "B", "C", "D", "E"], ["n1"], []),
    (["A", "B", "C", "D", "E"], ["n1"], ["A"]),
    (["A", "B", "C", "D", "E", "F"], ["n1"], ["A"]),
    (["A", "B", "C", "D", "E", "F"], ["n1", "n2"], ["A"]),
]
"""Codes, texts and ends of ferries after the commit before the group and after each of it."""


@pytest.fixture
def root(any_root: str) -> str:
    graph = omnigraph.init(any_root, schema=SCHEMA)
    graph.mutate(INSERT, c="A")
    return any_root


@pytest.fixture
def commits(root: str) -> list[str]:
    """A group that touches one type before, one between and one after others, and all of them together."""
    faulty = Faulty(root)
    graph = faulty.graph
    done = Together(
        faulty,
        lambda: graph.mutate(INSERT, c="B"),
        [
            lambda: graph.mutate(INSERT, c="C"),
            lambda: graph.mutate(NOTE, t="n1"),
            lambda: graph.load([{"type": "Port", "data": {"code": c}} for c in "DE"], mode="append"),
            lambda: graph.mutate(FERRY, t="A"),
            lambda: graph.mutate(INSERT, c="F"),
            lambda: graph.mutate(NOTE, t="n2"),
        ],
    )
    assert {result.commit.graph_manifest_version for result in done.results} == {4}
    return [result.commit.graph_commit_id for result in (done.first, *done.results)]


def state(graph: Graph, **at: Any) -> tuple[list[str], list[str], list[str]]:
    ports = graph.query("query q() { match { $p: Port } return { $p.code as c } order { c } }", **at)
    notes = graph.query("query q() { match { $n: Note } return { $n.text as t } order { t } }", **at)
    ferries = graph.query("query q() { match { $a ferry $b } return { $b.code as c } order { c } }", **at)
    return ports.scalars(), notes.scalars(), ferries.scalars()


def exported(graph: Graph, **at: Any) -> list[str]:
    lines = b"".join(graph.export_stream(**at)[1]).decode().splitlines()
    records = [json.loads(line) for line in lines]
    return sorted(r["data"].get("code") or r["data"].get("text") or r["to"] for r in records)


@pytest.mark.parametrize("fresh", [True, False])
def test_each_commit_of_a_group_is_read_as_it_was(root: str, commits: list[str], fresh: bool) -> None:
    graph = omnigraph.open(root)
    if not fresh:
        assert state(graph) == STATES[-1]
    for commit, expected in zip(commits, STATES, strict=True):
        assert state(graph, snapshot=commit) == expected
        assert graph.at(commit).query("query q() { match { $p: Port } return { count($p) as n } }").scalar() == len(
            expected[0]
        )
    assert state(graph) == STATES[-1]


def test_a_point_read_finds_no_row_of_a_later_commit(root: str, commits: list[str]) -> None:
    found = 'query q() { match { $p: Port { code: "F" } } return { $p.code } }'
    assert [len(omnigraph.open(root).query(found, snapshot=commit)) for commit in commits] == [0, 0, 0, 0, 0, 1, 1]


def test_each_commit_of_a_group_is_exported_as_it_was(root: str, commits: list[str]) -> None:
    for commit, (ports, notes, ferries) in zip(commits, STATES, strict=True):
        assert exported(omnigraph.open(root), snapshot=commit) == sorted([*ports, *notes, *ferries])


def test_a_time_between_two_commits_of_a_group_is_the_former(root: str, commits: list[str]) -> None:
    graph = omnigraph.open(root)
    times = [graph.commits.get(commit).created_at for commit in commits]
    faulty = Faulty(root)
    faulty.clock.advance(60)
    for moment, expected in zip(times, STATES, strict=True):
        assert state(faulty.graph, as_of=moment) == expected


@pytest.mark.parametrize("place", range(7))
def test_a_branch_from_inside_a_group_is_that_state_and_takes_writes(root: str, commits: list[str], place: int) -> None:
    graph = omnigraph.open(root)
    graph.branches.create("b", from_=commits[place])
    on_b = graph.on("b")
    ports, notes, ferries = STATES[place]
    assert state(on_b) == STATES[place]
    assert on_b.head.graph_commit_id == commits[place]
    on_b.mutate(INSERT, c="X")
    on_b.mutate(NOTE, t="x")
    on_b.mutate('query m() { update Port set { name: "new" } where code = "A" }')
    on_b.mutate(FERRY, t="X")
    assert state(omnigraph.open(root, branch="b")) == ([*ports, "X"], [*notes, "x"], [*ferries, "X"])
    assert state(graph) == STATES[-1]


def test_a_load_forks_from_inside_a_group(root: str, commits: list[str]) -> None:
    graph = omnigraph.open(root)
    records = [{"type": "Port", "data": {"code": "X"}}, {"edge": "Ferry", "from": "X", "to": "C"}]
    graph.load(records, mode="append", branch="b", from_=commits[1])
    assert state(graph.on("b")) == (["A", "B", "C", "X"], [], ["C"])


def test_a_branch_from_inside_a_group_knows_what_it_lacks(root: str, commits: list[str]) -> None:
    graph = omnigraph.open(root)
    graph.branches.create("b", from_=commits[3])
    assert graph.branches.merge("main", "b").outcome == "fast_forward"
    assert state(graph.on("b")) == STATES[-1]
    assert [c.graph_commit_id for c in graph.on("b").commits.list()][1:4] == commits[6:3:-1]


def test_an_unwritten_branch_from_inside_a_group_counts_as_unchanged(root: str, commits: list[str]) -> None:
    """Its table versions are new and its content is that of the commit: merging main's past into it changes nothing."""
    graph = omnigraph.open(root)
    graph.branches.create("b", from_=commits[2])
    graph.branches.create("c", from_="b")
    graph.mutate(INSERT, c="X", branch="c")
    assert graph.branches.merge("c", "b").outcome == "fast_forward"
    assert state(graph.on("b"))[0] == ["A", "B", "C", "X"]


def test_the_tables_of_a_group_open_after_the_process_that_wrote_them(root: str, commits: list[str]) -> None:
    assert state(omnigraph.open(root, branch="main")) == STATES[-1]
    listed = omnigraph.open(root).commits.list()
    assert [commit.graph_commit_id for commit in listed][:7] == commits[::-1]
