"""Branches, commits, time travel and fast-forward merges through the public handle."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import (
    AlreadyExists,
    BranchNotFound,
    CommitNotFound,
    Conflict,
    InvalidRequest,
    LimitExceeded,
    NotAvailable,
    SnapshotNotFound,
)
from omnigraph.query.residency import MemoryBudget, Residency
from support.faulty import Faulty

SCHEMA = "node Port { code: String @key  name: String? } edge Ferry: Port -> Port { line: String? }"


@pytest.fixture
def graph(any_root: str) -> Graph:
    return omnigraph.init(any_root, schema=SCHEMA, actor="ann")


def add(graph: Graph, code: str, **more: Any) -> str:
    result = graph.mutate("query m($c: String) { insert Port { code: $c } }", c=code, **more)
    assert result.commit is not None
    return result.commit.graph_commit_id


def codes(graph: Graph, **more: Any) -> list[str]:
    found = graph.query("query q() { match { $p: Port } return { $p.code as c } order { c } }", **more)
    return found.scalars()


def test_a_branch_begins_where_its_source_stood_and_goes_its_own_way(graph: Graph) -> None:
    first = add(graph, "A")
    made = graph.branches.create("drafts")
    assert (made.name, made.from_, made.base_commit_id, made.actor_id) == ("drafts", "main", first, "ann")
    drafts = graph.on("drafts")
    assert drafts.head.graph_commit_id == first
    second = add(drafts, "B")
    assert second.startswith("drafts@2-")
    assert (codes(graph), codes(drafts)) == (["A"], ["A", "B"])
    assert [c.graph_commit_id for c in drafts.commits.list(limit=2)] == [second, first]
    assert [b.name for b in graph.branches.list()] == ["main", "drafts"]
    assert graph.branches.get("drafts").created_from == "main"


def test_a_branch_can_begin_at_any_commit(graph: Graph) -> None:
    first = add(graph, "A")
    add(graph, "B")
    graph.branches.create("old", from_=first)
    assert codes(graph.on("old")) == ["A"]


def test_names_that_are_taken_look_alike_or_are_wrong_are_refused(graph: Graph) -> None:
    graph.branches.create("Review/q3")
    for name in ("Review/q3", "review/Q3", "main"):
        with pytest.raises(AlreadyExists):
            graph.branches.create(name)
    for name in ("", "a@b", " a", "a//b", "../a", "__x", "a\\b", "a\tb", "x" * 201):
        with pytest.raises(InvalidRequest) as caught:
            graph.branches.create(name)
        assert caught.value.code == "bad_request"
    with pytest.raises(BranchNotFound):
        graph.branches.create("b", from_="nowhere")


def test_a_graph_has_so_many_live_branches_and_no_more(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.engine.writing.branches.LIVE_BRANCHES_MAX", 3)
    for name in ("a", "b"):
        graph.branches.create(name)
    with pytest.raises(LimitExceeded) as caught:
        graph.branches.create("c")
    assert (caught.value.code, caught.value.effects) == ("resource_limit", "none")
    assert caught.value.details == {"resource": "live_branches", "limit": 3, "actual": 4}
    with pytest.raises(LimitExceeded):
        graph.load([{"type": "Port", "data": {"code": "X"}}], mode="append", branch="c", from_="main")
    graph.branches.delete("a")
    assert graph.branches.create("c").name == "c"


def test_odd_names_are_branches_like_any_other(graph: Graph) -> None:
    for name in ("feat/ü 1", "a%2Fb", "a.b", "漢字/ß", "x" * 200):
        graph.branches.create(name)
        add(graph.on(name), name[:20])
        assert codes(graph.on(name)) == [name[:20]]
    assert len(graph.branches.list()) == 6


def test_a_deleted_branch_is_gone_and_its_commits_stay(graph: Graph) -> None:
    add(graph, "A")
    graph.branches.create("b")
    last = add(graph.on("b"), "B")
    gone = graph.branches.delete("b")
    assert (gone.unmerged_commits, gone.last_commit_id) == (1, last)
    with pytest.raises(BranchNotFound):
        codes(graph.on("b"))
    with pytest.raises(BranchNotFound):
        graph.branches.delete("b")
    assert graph.commits.get(last).graph_commit_id == last
    assert codes(graph.at(last)) == ["A", "B"]
    graph.branches.create("b", from_=last)
    assert codes(graph.on("b")) == ["A", "B"]


def test_main_and_branches_with_children_cant_be_deleted(graph: Graph) -> None:
    with pytest.raises(InvalidRequest):
        graph.branches.delete("main")
    graph.branches.create("parent")
    graph.branches.create("child", from_="parent")
    with pytest.raises(Conflict) as caught:
        graph.branches.delete("parent")
    assert caught.value.code == "branch_has_descendants"
    graph.branches.delete("child")
    graph.branches.delete("parent")


def test_a_handle_on_an_earlier_life_never_mixes_with_the_namesake(graph: Graph) -> None:
    add(graph, "A")
    for turn in range(3):
        graph.branches.create("b")
        other = omnigraph.open(graph.uri).on("b")
        add(graph.on("b"), f"T{turn}")
        assert codes(other) == ["A", f"T{turn}"]
        life = graph.branches.get("b").life
        graph.branches.delete("b", expected_life=life)
        with pytest.raises(BranchNotFound):
            add(other, "late")
    assert codes(graph) == ["A"]


def test_expected_life_never_deletes_a_namesake(graph: Graph) -> None:
    life = graph.branches.create("b").life
    graph.branches.delete("b")
    graph.branches.create("b")
    with pytest.raises(BranchNotFound):
        graph.branches.delete("b", expected_life=life)
    assert [b.name for b in graph.branches.list()] == ["main", "b"]


def test_every_commit_can_be_read_as_it_was(graph: Graph) -> None:
    commits = [add(graph, code) for code in "ABC"]
    for place, commit in enumerate(commits):
        assert codes(graph, snapshot=commit) == list("ABC")[: place + 1]
        assert graph.at(commit).query("query q() { match { $p: Port } return { count($p) as n } }").commit_id == commit
    view = graph.at(commits[0])
    assert view.read_only
    with pytest.raises(InvalidRequest):
        add(view, "X")
    with pytest.raises(CommitNotFound):
        codes(graph, snapshot=commits[0][:-1] + ("0" if commits[0][-1] != "0" else "1"))
    with pytest.raises(CommitNotFound):
        codes(graph, snapshot="main@99-0123456789abcdef")
    with pytest.raises(SnapshotNotFound):
        codes(graph, snapshot="release")
    with pytest.raises(InvalidRequest):
        codes(graph, snapshot=commits[0], branch="main")


def test_as_of_shows_the_last_commit_of_that_time(graph: Graph) -> None:
    first, second = add(graph, "A"), add(graph, "B")
    moment = graph.commits.get(second).created_at
    assert codes(graph, as_of=moment) == ["A", "B"]
    assert codes(graph, as_of=moment - dt.timedelta(microseconds=1)) == ["A"]
    assert codes(graph.at(graph.commits.get(first).created_at)) == ["A"]
    with pytest.raises(CommitNotFound):
        codes(graph, as_of=0)
    with pytest.raises(InvalidRequest):
        codes(graph, as_of=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))


def test_the_list_of_commits_has_everything_that_was_said(graph: Graph) -> None:
    add(graph, "A", message="first")
    newest, genesis = graph.commits.list()
    assert (newest.kind, newest.actor_id, newest.message) == ("mutation", "ann", "first")
    assert newest.parent_commit_id == genesis.graph_commit_id
    assert (genesis.kind, genesis.parent_commit_id) == ("genesis", None)
    assert newest.created_at > genesis.created_at
    assert newest.counts["node:Port"].inserted == 1


def test_an_outcome_is_published_superseded_or_not_known(graph: Graph) -> None:
    commit = add(graph, "A")
    assert graph.commits.outcome(commit).outcome == "published"
    lost = graph.commits.outcome("main@2-0000000000000000")
    assert (lost.outcome, lost.superseding_commit_id, lost.head_commit_id) == ("superseded", commit, commit)
    ahead = graph.commits.outcome("main@3-0000000000000000")
    assert (ahead.outcome, ahead.reason) == ("undetermined", "version_absent")


def test_a_merge_takes_over_the_source_as_one_commit(graph: Graph) -> None:
    add(graph, "A")
    graph.branches.create("b")
    branch = graph.on("b")
    add(branch, "B")
    source_head = add(branch, "C")
    assert graph.branches.merge("b", dry_run=True).outcome == "fast_forward"
    assert codes(graph) == ["A"]
    merged = graph.branches.merge("b", message="review done")
    assert merged.outcome == "fast_forward"
    assert merged.commit is not None
    assert merged.commit.merged_parent_commit_id == source_head
    assert (merged.commit.kind, merged.commit.message) == ("merge", "review done")
    assert merged.commit.counts["node:Port"].inserted == 2
    assert codes(graph) == ["A", "B", "C"]
    assert source_head in [c.graph_commit_id for c in graph.commits.list()]
    again = graph.branches.merge("b")
    assert (again.outcome, again.commit) == ("already_up_to_date", None)
    add(branch, "D")
    assert graph.branches.merge("b", delete_branch=True).branch_deleted
    assert codes(graph) == ["A", "B", "C", "D"]
    assert [x.name for x in graph.branches.list()] == ["main"]


def test_a_target_whose_changes_cancelled_out_is_not_in_the_way_of_a_merge(graph: Graph) -> None:
    graph.branches.create("b")
    graph.branches.create("c")
    add(graph.on("b"), "B")
    graph.branches.merge("b")
    graph.branches.merge("b", "c")
    assert codes(graph.on("c")) == ["B"]
    add(graph.on("b"), "B2")
    assert graph.branches.merge("b").outcome == "fast_forward"


def test_branches_that_both_changed_are_refused_as_not_available(graph: Graph) -> None:
    graph.branches.create("b")
    add(graph.on("b"), "B")
    head = add(graph, "A")
    with pytest.raises(NotAvailable):
        graph.branches.merge("b")
    assert graph.head.graph_commit_id == head
    with pytest.raises(InvalidRequest):
        graph.branches.merge("main")


def test_two_handles_interleave_inserts_and_refuse_stale_updates(any_root: str) -> None:
    ours = omnigraph.init(any_root, schema=SCHEMA)
    theirs = omnigraph.open(any_root)
    for turn in range(5):
        add(ours, f"o{turn}")
        add(theirs, f"t{turn}")
    assert len(codes(ours)) == len(codes(theirs)) == 10
    ours.mutate('query m() { update Port set { name: "x" } where code = "o1" }')
    theirs.mutate('query m() { update Port set { name: "y" } where code = "o1" }')
    found = ours.query('query q() { match { $p: Port { code: "o1" } } return { $p.name as n } }')
    assert found.scalars() == ["y"]


def test_the_same_key_is_replayed_for_branches(graph: Graph) -> None:
    first = graph.branches.create("b", idempotency_key="k")
    again = graph.branches.create("b", idempotency_key="k")
    assert again.replayed
    assert (again.base_commit_id, again.life) == (first.base_commit_id, first.life)
    with pytest.raises(omnigraph.errors.IdempotencyKeyReused):
        graph.branches.create("b", from_=first.base_commit_id, idempotency_key="k")


def test_an_outcome_look_up_shows_an_owner_the_branch_that_was_made_behind_its_back(tmp_path: Path) -> None:
    """Storage is the truth: a version above the head in memory makes the owner ask, one without commits too."""
    root = str(tmp_path / "g")
    omnigraph.init(root, schema=SCHEMA).branches.create("b")
    owner = Faulty(root).graph
    owner.branches.delete("b")
    omnigraph.open(root).branches.create("b")
    with pytest.raises(BranchNotFound):
        add(owner.on("b"), "A")
    assert owner.commits.outcome(f"b@3-{'0' * 16}").outcome == "superseded"
    assert add(owner.on("b"), "A").startswith("b@4-")


@pytest.mark.parametrize("name", ["", ".", "..", "a//b", " main", "__main", "\ud800"], ids=ascii)
def test_what_can_not_be_a_branch_name_is_refused_at_every_door_and_never_taken_for_main(
    graph: Graph, name: str
) -> None:
    add(graph, "A")
    doors = [
        lambda: codes(graph, branch=name),
        lambda: add(graph, "B", branch=name),
        lambda: graph.load([], mode="append", branch=name, progress=False),
        lambda: graph.on(name).head,
        lambda: graph.branches.create("drafts", from_=name),
        lambda: graph.branches.merge(name),
        lambda: graph.branches.delete(name),
        lambda: codes(graph, snapshot=f"{name}@1-0000000000000000"),
        lambda: graph.commits.outcome(f"{name}@1-0000000000000000"),
    ]
    for door in doors:
        with pytest.raises(InvalidRequest):
            door()
    assert codes(graph) == ["A"]


@pytest.mark.parametrize("text", ["\ud800", 5, b"ann"], ids=ascii)
def test_an_actor_or_a_message_that_is_no_text_is_refused_before_it_can_spoil_a_commit(graph: Graph, text: Any) -> None:
    with pytest.raises(InvalidRequest):
        omnigraph.open(graph.uri, actor=text)
    with pytest.raises(InvalidRequest):
        omnigraph.init(f"{graph.uri}-other", schema=SCHEMA, actor=text)
    with pytest.raises(InvalidRequest) as caught:
        add(graph, "A", message=text)
    assert caught.value.effects == "none"
    assert codes(omnigraph.open(graph.uri)) == []


def test_rows_of_two_branches_that_lie_at_one_place_of_a_table_are_told_apart(graph: Graph) -> None:
    """Two branches append beside each other, one of them in another process: both number their new rows alike."""
    add(graph, "first")
    graph.branches.create("b")
    add(graph.on("b"), "mine")
    elsewhere = omnigraph.open(graph.uri)
    elsewhere.core.residency = Residency(MemoryBudget(1 << 20))  # nothing is handed over, as in another process
    add(elsewhere, "theirs")
    assert codes(graph)[-1] == "theirs"
    assert codes(graph.on("b"))[-1] == "mine"
    elsewhere.mutate('query m() { update Port set { name: "N" } where code = "theirs" }')
    query = "query q($c: String) { match { $p: Port { code: $c } } return { $p.name } }"
    assert graph.query(query, c="theirs").scalars() == ["N"]
    assert graph.on("b").query(query, c="mine").scalars() == [None]


def test_a_branch_tells_when_it_began_and_commits_do_not_move_that(graph: Graph) -> None:
    before = dt.datetime.now(dt.UTC)
    add(graph, "A")
    graph.branches.create("drafts")
    graph.load([{"type": "Port", "data": {"code": "L"}}], mode="append", branch="loaded", from_="main", progress=False)
    graph.branches.create("old", from_=graph.head.graph_commit_id)

    def told() -> dict[str, dt.datetime]:
        return {b.name: b.created_at for b in omnigraph.open(graph.uri).branches.list() if b.created_at is not None}

    began = told()
    made, *_, genesis = [commit.created_at for commit in graph.commits.list()]
    assert sorted(began) == ["drafts", "loaded", "main", "old"]
    assert began["main"] <= genesis <= made <= min(began["drafts"], began["loaded"], began["old"])
    assert began["main"] >= before - dt.timedelta(minutes=5)
    assert max(began.values()) <= dt.datetime.now(dt.UTC)
    for name in began:
        add(graph.on(name), "B")
        add(graph.on(name), "C")
    assert told() == began
    graph.branches.delete("drafts")
    graph.branches.create("drafts")
    assert told()["drafts"] > max(began.values())
