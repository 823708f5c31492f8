"""Bounds of the write path: how often a write is prepared again, and how large a group becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.merge import MergeOperation
from omnigraph.engine.writing import groups, pauses, sharing
from omnigraph.engine.writing.entry import Entry
from omnigraph.errors import ReadSetConflict
from omnigraph.manifest.jsonvalue import canonical
from omnigraph.manifest.records import records_to_json
from omnigraph.store.faults import Meanwhile, Rule
from support.faulty import MANIFEST, Faulty
from support.grouping import Together

SCHEMA = "node Port { code: String @key  name: String? }"
INSERT = "query m($c: String) { insert Port { code: $c } }"
RENAME = 'query m($n: String) { update Port set { name: $n } where code = "A" }'


@pytest.fixture
def root(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.mutate(INSERT, c="A")
    return str(tmp_path / "g")


@pytest.mark.parametrize(
    ("write", "repeats"),
    [
        (lambda graph: graph.mutate(INSERT, c="B"), 32),
        (lambda graph: graph.load(b'{"type": "Port", "data": {"code": "B"}}', mode="append"), 32),
        (lambda graph: graph.load(b'{"type": "Port", "data": {"code": "B"}}', mode="merge"), 32),
        (lambda graph: graph.schema.apply(SCHEMA.replace("name", "depth: I64?  name")), 5),
        (lambda graph: graph.branches.delete("b"), 32),
    ],
    ids=["insert", "append", "merge load", "schema", "branch delete"],
)
@pytest.mark.parametrize("once_too_often", [False, True])
def test_a_write_is_prepared_again_so_often_and_no_oftener(
    root: str, write: Callable[[Any], Any], repeats: int, once_too_often: bool
) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.graph.branches.create("b")
    faulty.clock.slept.clear()
    times: list[int] = []

    def rival() -> None:
        times.append(len(times))
        for branch in ("main", "b"):
            other.on(branch).mutate(RENAME, n=str(len(times)))

    faulty.store.add(Rule(Meanwhile(before=rival), verb="create", key=MANIFEST, times=repeats + once_too_often))
    if once_too_often:
        with pytest.raises(ReadSetConflict) as caught:
            write(faulty.graph)
        assert (caught.value.status, caught.value.code, caught.value.effects) == (409, "read_set_conflict", "none")
    else:
        write(faulty.graph)
    assert len(times) == repeats + once_too_often
    assert len(faulty.clock.slept) == repeats
    assert len(set(faulty.clock.slept)) > 1, "not all alike, so that two rivals don't keep step"


def test_a_merge_is_prepared_again_five_times_at_most(root: str) -> None:
    """Each of which needs another head that it can follow: a commit on its target alone refuses it."""
    assert MergeOperation(Faulty(root).core, "b", "main").repeats == 5


def test_pauses_grow_and_end_at_a_second(root: str) -> None:
    clock = Faulty(root).clock
    for attempt in range(32):
        pauses.pause_before_again(clock, attempt)
    assert 0.005 <= clock.slept[0] <= 0.05
    assert max(clock.slept) <= 1.0
    assert clock.slept[8] >= 1.0


# --- what a group may grow to (history.md 9.2, G3)


def versions(done: Together) -> list[int]:
    return [result.commit.graph_manifest_version for result in done.results]


def together(faulty: Faulty, others: int) -> Together:
    writes = [lambda n=n: faulty.graph.mutate(INSERT, c=f"P{n}", idempotency_key=f"k{n}") for n in range(others)]
    return Together(faulty, lambda: faulty.graph.mutate(INSERT, c="first"), writes)


def test_a_group_has_at_most_256_fragments(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sharing.FRAGMENTS_MAX == 256
    monkeypatch.setattr(sharing, "FRAGMENTS_MAX", 3)  # a write of these has one
    assert versions(together(Faulty(root), 7)) == [4] * 3 + [5] * 3 + [6]


def test_a_group_adds_at_most_a_mebibyte_to_the_manifest(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sharing.GROWTH_MAX == 1 << 20
    monkeypatch.setattr(groups, "_growth", lambda entry: 400 << 10)
    assert versions(together(Faulty(root), 5)) == [4] * 2 + [5] * 2 + [6]


def test_a_write_whose_own_growth_is_over_the_bound_is_published_alone(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "_growth", lambda entry: 2 << 20)
    assert versions(together(Faulty(root), 2)) == [4, 5]


@pytest.mark.parametrize(
    "given", [{}, {"message": "\x01" * 1_000}, {"ids": "å" * 200}, {"ids": '"' * 200}, {"actor": '"' * 300}]
)
def test_what_a_commit_is_said_to_add_is_no_less_than_it_adds_its_files_included(
    root: str, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    said, counted = list[int](), groups._growth
    files = tuple(f"{n:030}.lance" for n in range(100))

    def growth(entry: Entry) -> int:
        with monkeypatch.context() as patched:
            before = counted(entry)
            patched.setattr(type(entry.staged.types[0].staged), "files", files)
            assert counted(entry) - before >= 97 * len(canonical(files[0])), "their names count"
        said.append(before)
        return before

    monkeypatch.setattr(groups, "_growth", growth)
    faulty = Faulty(root)
    message, ids = given.get("message"), given.get("ids", "P")
    graph = Graph(replace(faulty.graph._context, actor=given.get("actor")))
    writes = [
        lambda n=n: graph.mutate(INSERT, c=f"{ids}{n}", message=message, idempotency_key=f"k{n}") for n in range(5)
    ]
    done = Together(faulty, lambda: faulty.graph.mutate(INSERT, c="first"), writes)
    assert versions(done) == [4] * 5
    commits = faulty.core.head("main").manifest.commits
    assert all(commit.files for commit in commits)
    added = sum(len(canonical(records_to_json(commits, files=files))) for files in (True, False))
    assert added <= sum(said[-5:])
