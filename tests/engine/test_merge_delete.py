"""A merge that deletes its source deletes what it merged: not what came after it, not another life of the branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine import namespaces
from omnigraph.engine.graph import Graph
from omnigraph.engine.lanes import Lanes
from omnigraph.engine.writing import branches
from omnigraph.errors import StorageClass, StorageFailure, StoragePhase

SCHEMA = "node Port { code: String @key }"
INSERT = "query add($c: String) { insert Port { code: $c } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """`main` with A, and a branch `b` with B on top."""
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    add(graph, "A")
    graph.branches.create("b")
    add(graph.on("b"), "B")
    return graph


def add(graph: Graph, code: str) -> str:
    commit = graph.mutate(INSERT, c=code).commit
    assert commit is not None
    return commit.graph_commit_id


def names(graph: Graph) -> list[str]:
    return [branch.name for branch in graph.branches.list()]


def codes(graph: Graph) -> list[str]:
    return graph.query("query q() { match { $p: Port } return { $p.code as c } order { c } }").scalars()


@pytest.fixture
def after_merge(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Lets something happen once, between the publication of a merge and the deletion of its source."""

    def arrange(act: Callable[[], Any]) -> None:
        real = namespaces.write

        def write_then_act(*given: Any) -> Any:
            monkeypatch.setattr(namespaces, "write", real)
            written = real(*given)
            act()
            return written

        monkeypatch.setattr(namespaces, "write", write_then_act)

    return arrange


def test_a_commit_that_reaches_the_source_after_the_merge_keeps_the_branch(graph: Graph, after_merge: Any) -> None:
    merged = graph.on("b").head.graph_commit_id
    late: list[str] = []
    after_merge(lambda: late.append(add(omnigraph.open(graph.uri, branch="b"), "late")))
    result = graph.branches.merge("b", delete_branch=True)
    assert (result.outcome, result.branch_deleted) == ("fast_forward", False)
    details = result.branch_delete_error_details
    assert details is not None
    assert (details["code"], details["effects"]) == ("commit_precondition_failed", "none")
    assert details["precondition_failure"] == {"expected": merged, "actual": late[0]}
    assert codes(graph) == ["A", "B"]
    assert codes(graph.on("b")) == ["A", "B", "late"]


def test_the_same_holds_for_a_source_that_was_up_to_date(graph: Graph, after_merge: Any) -> None:
    graph.branches.merge("b")
    after_merge(lambda: add(omnigraph.open(graph.uri, branch="b"), "late"))
    result = graph.branches.merge("b", delete_branch=True)
    assert (result.outcome, result.branch_deleted) == ("already_up_to_date", False)
    assert names(graph) == ["main", "b"]
    assert graph.branches.merge("b", delete_branch=True).branch_deleted
    assert codes(graph) == ["A", "B", "late"]


def test_a_commit_that_comes_while_the_source_is_being_deleted_keeps_it_too(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = branches.deletion

    other = omnigraph.open(graph.uri, branch="b")
    other.core.lanes = Lanes()  # as on another host: it does not wait for its turn

    def late(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(branches, "deletion", real)
        add(other, "late")
        return real(*given, **more)

    monkeypatch.setattr(branches, "deletion", late)
    result = graph.branches.merge("b", delete_branch=True)
    assert result.branch_deleted is False
    assert codes(graph.on("b")) == ["A", "B", "late"]


def merge_and_die(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends between the merge and the deletion of its source."""

    def died(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(branches, "delete_branch", died)
        with pytest.raises(KeyboardInterrupt):
            graph.branches.merge("b", delete_branch=True, idempotency_key="k")
    assert names(graph) == ["main", "b"]


def test_a_repeat_never_deletes_another_life_of_the_branch(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    merge_and_die(graph, monkeypatch)
    graph.branches.delete("b")
    graph.branches.create("b")
    precious = add(graph.on("b"), "precious")
    result = graph.branches.merge("b", delete_branch=True, idempotency_key="k")
    assert (result.replayed, result.branch_deleted) == (True, False)
    assert result.branch_delete_error_details is not None
    assert result.branch_delete_error_details["code"] == "branch_not_found"
    assert graph.on("b").head.graph_commit_id == precious


def test_a_repeat_deletes_what_the_first_request_left(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    merge_and_die(graph, monkeypatch)
    for _ in range(2):
        result = graph.branches.merge("b", delete_branch=True, idempotency_key="k")
        assert (result.replayed, result.branch_deleted, result.branch_delete_error_details) == (True, True, None)
        assert names(graph) == ["main"]


def test_a_repeat_does_not_claim_a_deletion_that_took_more_than_was_merged(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge_and_die(graph, monkeypatch)
    add(graph.on("b"), "more")
    graph.branches.delete("b")
    again = graph.branches.merge("b", delete_branch=True, idempotency_key="k")
    assert (again.replayed, again.branch_deleted) == (True, False)


def test_a_branch_with_descendants_stays_and_says_so(graph: Graph) -> None:
    graph.branches.create("child", from_="b")
    kept = graph.branches.merge("b", delete_branch=True)
    assert (bool(kept), kept.branch_deleted) == (True, False)
    assert kept.branch_delete_error_details is not None
    assert kept.branch_delete_error_details["code"] == "branch_has_descendants"


def test_whatever_the_deletion_meets_the_merge_stands(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: Any, **__: Any) -> None:
        raise StorageFailure("no", cls=StorageClass.TIMEOUT, phase=StoragePhase.READ)

    monkeypatch.setattr(branches, "delete_branch", unreadable)
    result = graph.branches.merge("b", delete_branch=True)
    assert (bool(result), result.branch_deleted) == (True, False)
    assert result.branch_delete_error_details is not None
    assert result.branch_delete_error_details["effects"] == "none"
