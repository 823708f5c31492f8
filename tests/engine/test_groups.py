"""Writes that wait for one another's publication share the next version, each with a commit of its own (history.md 9.2)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.reading.context import Context
from omnigraph.errors import (
    NotAvailable,
    OutcomeUnknown,
    PreconditionFailed,
    ReadSetConflict,
    SchemaChangeRefused,
    StorageClass,
    StorageFailure,
)
from omnigraph.manifest.builder import Built, next_version
from omnigraph.manifest.model import Counts
from omnigraph.store.faults import Fault, LandLate, LoseAfter, LoseBefore, Meanwhile, Refuse, Rule
from support.faulty import MANIFEST, Faulty
from support.grouping import Together

SCHEMA = """
node Port { code: String @key  name: String? }
node Note { text: String }
edge Ferry: Port -> Port { line: String? }
"""
INSERT = "query m($c: String) { insert Port { code: $c } }"
NOTE = "query m($t: String) { insert Note { text: $t } }"
FERRY = 'query m() { insert Ferry { from: "A", to: "A" } }'
UPDATE = 'query m() { update Port set { name: "x" } where code = "A" }'


@pytest.fixture
def root(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.mutate(INSERT, c="A")
    return str(tmp_path / "g")


def insert(graph: Graph, code: str, **more: Any) -> Callable[[], Any]:
    return lambda: graph.mutate(INSERT, c=code, **more)


def note(graph: Graph, text: str, **more: Any) -> Callable[[], Any]:
    return lambda: graph.mutate(NOTE, t=text, **more)


def codes(root: str, **state: Any) -> list[str]:
    query = "query q() { match { $p: Port } return { $p.code as c } order { c } }"
    return omnigraph.open(root).query(query, **state).scalars()


def texts(root: str, **state: Any) -> list[str]:
    query = "query q() { match { $n: Note } return { $n.text as t } order { t } }"
    return omnigraph.open(root).query(query, **state).scalars()


def versions(results: list[Any]) -> list[int]:
    return [result.commit.graph_manifest_version for result in results]


def test_writes_that_wait_share_one_version_and_have_commits_of_their_own(root: str) -> None:
    faulty = Faulty(root)
    ann, ben = (Graph(Context(faulty.core, actor=name)) for name in ("ann", "ben"))
    done = Together(
        faulty,
        insert(faulty.graph, "B"),
        [
            insert(ann, "C", message="a port"),
            note(ben, "hello"),
            lambda: ann.load([{"type": "Port", "data": {"code": c}} for c in "DE"], mode="append"),
            insert(ben, "F"),
        ],
    )
    assert versions([done.first, *done.results]) == [3, 4, 4, 4, 4]
    assert len([request for request in faulty.store.requests if request.verb == "create"]) == 2
    commits = [result.commit for result in done.results]
    assert [commit.actor_id for commit in commits] == ["ann", "ben", "ann", "ben"]
    assert [commit.message for commit in commits] == ["a port", None, None, None]
    ids = [done.first.commit.graph_commit_id, *(commit.graph_commit_id for commit in commits)]
    assert len(set(ids)) == 5
    assert [commit.parent_commit_id for commit in commits] == ids[:-1]
    assert all(a.created_at < b.created_at for a, b in pairwise(commits))
    log = omnigraph.open(root).commits.list(limit=5)
    assert [commit.graph_commit_id for commit in log] == ids[::-1]
    assert codes(root) == ["A", "B", "C", "D", "E", "F"]
    assert texts(root) == ["hello"]
    assert faulty.graph.query("query q() { match { $p: Port } return { count($p) as n } }").scalar() == 6


def test_an_id_that_two_of_a_group_insert_is_one_row_in_the_end(root: str) -> None:
    faulty = Faulty(root)
    done = Together(faulty, insert(faulty.graph, "B"), [insert(faulty.graph, "C"), insert(faulty.graph, "C")])
    assert versions(done.results) == [4, 5]
    assert [result.commit.counts["node:Port"].updated for result in done.results] == [0, 1]
    assert codes(root) == ["A", "B", "C"]


def test_an_append_load_of_an_id_that_another_of_the_group_inserts_is_refused(root: str) -> None:
    faulty = Faulty(root)
    done = Together(
        faulty,
        insert(faulty.graph, "B"),
        [
            insert(faulty.graph, "C"),
            lambda: faulty.graph.load([{"type": "Port", "data": {"code": "C"}}], mode="append"),
            insert(faulty.graph, "D"),
        ],
    )
    assert [type(result).__name__ for result in done.results] == ["WriteResult", "KeyConflict", "WriteResult"]
    assert codes(root) == ["A", "B", "C", "D"]


def test_who_looked_at_rows_waits_for_the_lane_and_nobody_is_refused(root: str) -> None:
    faulty = Faulty(root)
    started = threading.Event()

    def update() -> Any:
        started.set()
        return faulty.graph.mutate(UPDATE)

    updating = threading.Thread(target=lambda: results.append(update()))
    results: list[Any] = []

    def meanwhile() -> None:
        updating.start()
        started.wait()

    faulty.store.add(Rule(Meanwhile(before=meanwhile), verb="create", key=MANIFEST))
    faulty.graph.mutate(INSERT, c="B")
    updating.join()
    assert results[0].affected_nodes == 1
    assert codes(root) == ["A", "B"]


@pytest.mark.parametrize("fault", [LoseAfter(), LoseBefore()])
def test_one_lost_answer_is_settled_for_all_by_the_identical_request(root: str, fault: Fault) -> None:
    faulty = Faulty(root)
    faulty.store.add(Rule(fault, verb="create", key=MANIFEST, skip=1))
    done = Together(faulty, insert(faulty.graph, "B"), [insert(faulty.graph, "C"), note(faulty.graph, "n")])
    assert versions(done.results) == [4, 4]
    assert (codes(root), texts(root)) == (["A", "B", "C"], ["n"])


def test_an_unknown_outcome_is_told_to_each_with_its_own_id_and_one_look_settles_all(root: str) -> None:
    faulty = Faulty(root)
    faulty.store.add(Rule(LandLate(after=10_000), verb="create", key=MANIFEST, skip=1, times=1))
    faulty.store.add(Rule(LoseBefore(), verb="create", key=MANIFEST, skip=1, times=4))
    keys = ["one", "two", "three"]
    writes = [insert(faulty.graph, key, idempotency_key=key) for key in keys]
    done = Together(faulty, insert(faulty.graph, "B"), writes)
    assert all(isinstance(result, OutcomeUnknown) for result in done.results)
    attempted = [result.graph_commit_id for result in done.results]
    assert len(set(attempted)) == 3
    assert [result.details["idempotency_key"] for result in done.results] == keys
    assert {result.base_commit_id for result in done.results} == {done.first.commit.graph_commit_id}
    assert [faulty.graph.commits.outcome(each).outcome for each in attempted] == ["undetermined"] * 3
    faulty.store.release()
    repeated = [write() for write in writes]
    assert [result.replayed for result in repeated] == [True] * 3
    assert [result.commit.graph_commit_id for result in repeated] == attempted
    assert [faulty.graph.commits.outcome(each).outcome for each in attempted] == ["published"] * 3
    assert codes(root) == ["A", "B", "one", "three", "two"]


def test_a_refused_publication_is_definite_for_each_of_the_group(root: str) -> None:
    faulty = Faulty(root)
    faulty.store.add(Rule(Refuse(StorageClass.DENIED), verb="create", key=MANIFEST, skip=1))
    done = Together(faulty, insert(faulty.graph, "B"), [insert(faulty.graph, "C"), note(faulty.graph, "n")])
    assert all(isinstance(result, StorageFailure) and result.effects == "none" for result in done.results)
    assert done.results[0] is not done.results[1]
    assert codes(root) == ["A", "B"]
    faulty.graph.mutate(INSERT, c="C")


def test_a_group_that_meets_appends_of_another_process_follows_them_without_staging_anew(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.store.add(Rule(Meanwhile(before=insert(other, "X")), verb="create", key=MANIFEST, skip=1))
    writes = [insert(faulty.graph, "C"), note(faulty.graph, "n"), lambda: faulty.graph.mutate(FERRY)]
    done = Together(faulty, insert(faulty.graph, "B"), writes)
    assert versions(done.results) == [5, 5, 5]
    assert faulty.clock.slept == []  # no attempt was counted: nobody prepared again
    assert codes(root) == ["A", "B", "C", "X"]


def test_a_group_that_meets_an_update_prepares_again_what_looked_at_the_type(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.store.add(Rule(Meanwhile(before=lambda: other.mutate(UPDATE)), verb="create", key=MANIFEST, skip=1))
    done = Together(faulty, insert(faulty.graph, "B"), [insert(faulty.graph, "C"), note(faulty.graph, "n")])
    assert sorted(versions(done.results)) == [5, 6]
    assert len(faulty.clock.slept) == 1
    assert (codes(root), texts(root)) == (["A", "B", "C"], ["n"])


def test_an_id_that_another_process_inserted_meanwhile_makes_the_write_prepare_again(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=insert(other, "B")))
    result = faulty.graph.mutate(INSERT, c="B")
    assert result.commit is not None
    assert result.commit.counts["node:Port"] == Counts(updated=1)
    assert codes(root) == ["A", "B"]


def test_one_key_twice_in_a_lane_is_one_commit(root: str) -> None:
    faulty = Faulty(root)
    writes = [note(faulty.graph, "n", idempotency_key="k") for _ in range(3)]
    done = Together(faulty, insert(faulty.graph, "B"), writes)
    assert [result.replayed for result in done.results] == [False, True, True]
    assert len({result.commit.graph_commit_id for result in done.results}) == 1
    assert texts(root) == ["n"]


def test_a_conditional_write_stands_alone(root: str) -> None:
    faulty = Faulty(root)
    head = faulty.graph.mutate(INSERT, c="B").commit
    assert head is not None
    result = faulty.graph.mutate(NOTE, t="first", if_commit=head.graph_commit_id)
    assert versions([result]) == [4]
    with pytest.raises(PreconditionFailed):
        faulty.graph.mutate(NOTE, t="second", if_commit=head.graph_commit_id)


def test_a_group_has_at_most_64_commits(root: str) -> None:
    faulty = Faulty(root)
    done = Together(faulty, note(faulty.graph, "first"), [note(faulty.graph, f"{n:02}") for n in range(70)])
    assert versions(done.results) == [4] * 64 + [5] * 6
    assert texts(root) == [*(f"{n:02}" for n in range(70)), "first"]


def test_who_is_interrupted_while_publishing_leaves_the_others_an_answer(root: str) -> None:
    faulty = Faulty(root)

    def interrupt() -> None:
        raise KeyboardInterrupt

    faulty.store.add(Rule(Meanwhile(after=interrupt), verb="create", key=MANIFEST, skip=1))
    writes = [insert(faulty.graph, code, idempotency_key=code) for code in "CDE"]
    done = Together(faulty, insert(faulty.graph, "B"), writes)
    stopped = [result for result in done.results if isinstance(result, KeyboardInterrupt)]
    told = [result for result in done.results if isinstance(result, OutcomeUnknown)]
    assert (len(stopped), len(told)) == (1, 2)
    assert all(error.by_fault for error in told)
    assert [write().replayed for write in writes] == [True] * 3
    assert codes(root) == ["A", "B", "C", "D", "E"]


def test_a_fault_before_anything_was_sent_is_told_as_definite(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty = Faulty(root)

    def fails_the_second_time(*arguments: Any, **more: Any) -> Built:
        calls.append(1)
        return next_version(*arguments, **more) if len(calls) < 2 else 1 / 0  # type: ignore[return-value]

    calls: list[int] = []
    monkeypatch.setattr("omnigraph.engine.writing.groups.next_version", fails_the_second_time)
    done = Together(faulty, insert(faulty.graph, "B"), [insert(faulty.graph, "C"), insert(faulty.graph, "D")])
    kinds = sorted(type(result).__name__ for result in done.results)
    assert kinds == ["InternalError", "ZeroDivisionError"]
    assert next(r for r in done.results if not isinstance(r, ZeroDivisionError)).effects == "none"
    monkeypatch.undo()
    faulty.graph.mutate(INSERT, c="C")
    assert codes(root) == ["A", "B", "C"]


def test_a_write_prepared_again_four_times_has_the_lane_to_itself(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(UPDATE)), times=6)
    assert faulty.graph.mutate(INSERT, c="B").commit is not None
    assert len(faulty.clock.slept) == 6


def test_branches_publish_beside_each_other(root: str) -> None:
    faulty = Faulty(root)
    faulty.graph.branches.create("b")
    on_b = faulty.graph.on("b")
    faulty.store.add(Rule(Meanwhile(before=insert(on_b, "C")), verb="create", key=MANIFEST))
    faulty.graph.mutate(INSERT, c="B")
    assert codes(root) == ["A", "B"]
    assert codes(root, branch="b") == ["A", "C"]


def test_two_handles_of_one_graph_share_a_lane_and_no_version(root: str) -> None:
    graphs = [omnigraph.open(root) for _ in range(4)]
    start = threading.Barrier(len(graphs))

    def work(place: int) -> None:
        start.wait()
        for turn in range(5):
            graphs[place].mutate(INSERT, c=f"{place}-{turn}")

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(graphs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes(root)) == 21


def test_a_first_write_of_a_type_is_kept_by_a_schema_change_that_was_planned_without_it(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=note(other, "kept")))
    faulty.graph.schema.apply(SCHEMA + "node New { k: String @key }")
    assert texts(root) == ["kept"]


def test_a_first_write_of_a_type_makes_its_removal_ask_for_consent(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=note(other, "kept")))
    with pytest.raises((ReadSetConflict, SchemaChangeRefused)):
        faulty.graph.schema.apply(SCHEMA.replace("node Note { text: String }", ""))
    assert texts(root) == ["kept"]


def test_a_first_write_of_a_type_is_kept_by_a_merge_that_was_planned_without_it(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    other.branches.create("b")
    other.mutate(INSERT, c="B", branch="b")
    faulty.publish_with(Meanwhile(before=note(other, "kept")))
    with pytest.raises(NotAvailable):
        faulty.graph.branches.merge("b")
    assert texts(root) == ["kept"]


def test_a_merge_that_another_process_makes_meanwhile_is_up_to_date(root: str) -> None:
    other = omnigraph.open(root)
    other.branches.create("b")
    other.mutate(NOTE, t="n", branch="b")
    faulty = Faulty(root)
    faulty.publish_with(Meanwhile(before=lambda: other.branches.merge("b")))
    assert faulty.graph.branches.merge("b").outcome == "already_up_to_date"
    log = [commit.graph_commit_id for commit in omnigraph.open(root).commits.list()]
    assert len(log) == len(set(log)) == 4


def test_who_is_interrupted_before_anything_was_sent_takes_nobody_with_it(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = Faulty(root)
    calls: list[int] = []

    def interrupted_the_second_time(*arguments: Any, **more: Any) -> Built:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return next_version(*arguments, **more)

    monkeypatch.setattr("omnigraph.engine.writing.groups.next_version", interrupted_the_second_time)
    done = Together(faulty, insert(faulty.graph, "B"), [insert(faulty.graph, code) for code in "CDE"])
    kinds = sorted(type(result).__name__ for result in done.results)
    assert kinds == ["KeyboardInterrupt", "WriteResult", "WriteResult"], "the others are led by the next"
    assert len(codes(root)) == 4
