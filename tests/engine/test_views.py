"""A view of the past shows the past wherever it is asked, and waiting for an outcome is a matter of an argument."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import BranchNotFound, CommitNotFound, InvalidRequest
from support.clocks import SteppingClock

SCHEMA = "node N { k: I64 @key }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    for k in range(3):
        graph.load([{"type": "N", "data": {"k": k}}], mode="append", message=f"load {k}")
    return graph


def test_head_and_history_of_a_view_are_those_of_its_commit(graph: Graph) -> None:
    log = list(graph.commits.list())
    for place, commit in enumerate(log):
        for view in (graph.at(commit), graph.at(commit.graph_commit_id), graph.at(commit.created_at)):
            assert view.head == commit
            assert view.info().head_commit_id == commit.graph_commit_id
            assert view.summary().graph_commit_id == commit.graph_commit_id
            assert list(view.commits.list()) == log[place:]
            assert list(view.commits.list(limit=1)) == [commit]
            assert list(view.commits.list("main")) == log
            assert view.on("main").head == log[0]


def test_a_view_of_another_branch_shows_that_branch(graph: Graph) -> None:
    graph.branches.create("dev")
    dev = graph.on("dev")
    dev.load([{"type": "N", "data": {"k": 7}}], mode="append")
    dev.load([{"type": "N", "data": {"k": 8}}], mode="append")
    newest, middle, *rest = dev.commits.list()
    view = graph.at(middle)
    assert view.head == middle
    assert list(view.commits.list()) == [middle, *rest]
    assert rest == list(graph.commits.list())
    assert dev.at(middle.created_at).head == middle
    assert dev.info().head_commit_id == newest.graph_commit_id
    assert dev.info().nodes == {"N": 5}
    assert graph.info().nodes == {"N": 3}


def test_a_view_of_what_never_was_has_no_head(graph: Graph) -> None:
    for view in (graph.at(dt.datetime(2000, 1, 1, tzinfo=dt.UTC)), graph.at("main@3-0123456789abcdef")):
        with pytest.raises(CommitNotFound):
            view.head  # noqa: B018 - it asks
        with pytest.raises(CommitNotFound):
            view.commits.list()
        with pytest.raises(BranchNotFound):
            view.commits.list("nothing")


def test_a_view_says_what_it_shows(graph: Graph) -> None:
    head = graph.head
    assert repr(graph.at(head)).endswith(f" at {head}>")
    moment = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)
    assert repr(graph.at(moment)).endswith(" on main as of 2026-01-02T03:00:00+00:00>")


def test_an_outcome_is_waited_for_as_long_as_the_caller_says(graph: Graph) -> None:
    head = graph.head.graph_commit_id
    coming = f"main@{graph.head.graph_manifest_version + 1}-0123456789abcdef"
    assert graph.commits.outcome(head, wait=1e9).outcome == "published"
    for wait, slept in ((None, 0), (0, 0), (30, 30), (1.5, 1.5), (dt.timedelta(minutes=2), 120)):
        clock = graph.core.clock = SteppingClock()
        assert graph.commits.outcome(coming, wait=wait).outcome == "undetermined"
        assert sum(clock.slept) == pytest.approx(slept)


@pytest.mark.parametrize("wait", [-1, float("nan"), "5", True, dt.timedelta(-1)])
def test_a_wait_is_a_span_of_time(graph: Graph, wait: Any) -> None:
    with pytest.raises(InvalidRequest, match="`wait` is a number of seconds"):
        graph.commits.outcome(graph.head.graph_commit_id, wait=wait)
