"""Eight workers write the same keys that do not exist yet, at once: one row a key, whoever came first.

Seven through Python, each with an engine of its own as in a process of its own, and one through the command line.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.lanes import Lanes
from omnigraph.engine.opening import open_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import KeyConflict
from support.command_line import run_program

WORKERS = 8
OF_THE_COMMAND_LINE = WORKERS - 1


@dataclass(frozen=True)
class Case:
    """A way to say what a port is, and the branch where it is said."""

    name: str
    schema: str
    keys: tuple[dict[str, Any], ...]
    branch: str = "main"

    def record(self, number: int, depth: int) -> dict[str, Any]:
        return {"type": "Port", "data": {**self.keys[number], "depth": depth}}

    def rows(self, graph: Graph) -> list[tuple[str, int]]:
        names = ", ".join(f"$p.{name} as {name}" for name in self.keys[0])
        found = graph.query(f"query q() {{ match {{ $p: Port }} return {{ {names}, $p.depth as depth }} }}")
        return [(self.named({name: row[name] for name in self.keys[0]}), row["depth"]) for row in found]

    @staticmethod
    def named(key: dict[str, Any]) -> str:
        return " ".join(str(value) for value in key.values())


_PLAIN = "node Port { code: String @key  depth: I32 }"
_CODES = tuple({"code": f"K{number}"} for number in range(20))
CASES = (
    Case("a key", _PLAIN, _CODES),
    Case("a key on a branch", _PLAIN, _CODES[:8], branch="b"),
    Case(
        "a key of two properties",
        "node Port { country: String  code: String  depth: I32  @key(country, code) }",
        tuple({"country": f"C{number % 2}", "code": f"K{number // 2}"} for number in range(8)),
    ),
    Case(
        "a key that is a date",
        "node Port { day: Date @key  depth: I32 }",
        tuple({"day": f"2026-11-{number + 1:02}"} for number in range(8)),
    ),
)
of_each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")


@pytest.fixture
def root(tmp_path: Path, case: Case) -> Path:
    with omnigraph.init(tmp_path / "g", schema=case.schema) as graph:
        if case.branch != "main":
            graph.branches.create(case.branch)
    return tmp_path / "g"


Load = Callable[[list[dict[str, Any]], str], str | None]
"""Loads records in a mode; the commit that was acknowledged, or None if the keys were taken."""


def of_python(root: Path, branch: str) -> Load:
    core = open_core(str(root))
    core.lanes = Lanes()  # as on another host
    graph = Graph(Context(core)).on(branch)

    def load(records: list[dict[str, Any]], mode: Any) -> str | None:
        try:
            receipt = graph.load(records, mode=mode, progress=False)
        except KeyConflict:
            return None
        assert receipt.commit is not None
        return receipt.commit.graph_commit_id

    return load


def of_the_command_line(root: Path, branch: str) -> Load:
    def load(records: list[dict[str, Any]], mode: str) -> str | None:
        text = "".join(json.dumps(record) + "\n" for record in records)
        ran = run_program("load", root, "--data", "-", "--mode", mode, "--branch", branch, "--json", stdin=text)
        if ran.code == 0:
            return ran.json["commit"]["graph_commit_id"]
        assert "key_conflict" in ran.out + ran.err, ran.out + ran.err
        return None

    return load


def together(root: Path, branch: str, work: Callable[[int, Load], Any]) -> list[Any]:
    """What each worker's work returned, all begun at one moment."""
    gate = threading.Barrier(WORKERS)

    def run(number: int) -> Any:
        load = (of_the_command_line if number == OF_THE_COMMAND_LINE else of_python)(root, branch)
        gate.wait(60)
        return work(number, load)

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(run, range(WORKERS)))


def log(graph: Graph) -> Counter[str]:
    return Counter(commit.graph_commit_id for commit in graph.commits.list())


@of_each_case
def test_eight_who_upsert_the_same_new_keys_leave_one_row_a_key(root: Path, case: Case) -> None:
    def upsert(number: int, load: Load) -> str | None:
        return load([case.record(each, number) for each in range(len(case.keys))], "merge")

    acknowledged = together(root, case.branch, upsert)
    assert None not in acknowledged, "what can be put in another's place has no conflict"
    with omnigraph.open(root) as whole:
        graph = whole.on(case.branch)
        rows = case.rows(graph)
        assert sorted(name for name, _ in rows) == sorted(map(case.named, case.keys))
        assert {depth for _, depth in rows} <= set(range(WORKERS))
        assert len({depth for _, depth in rows}) == 1, "a load is there whole"
        found = log(graph)
        assert [found[commit] for commit in acknowledged] == [1] * WORKERS


@of_each_case
def test_of_eight_who_append_the_same_new_keys_each_key_has_one_winner(root: Path, case: Case) -> None:
    def append(number: int, load: Load) -> dict[int, str | None]:
        order = random.Random(number).sample(range(len(case.keys)), len(case.keys))
        return {each: load([case.record(each, number)], "append") for each in order}

    answers = together(root, case.branch, append)
    with omnigraph.open(root) as whole:
        graph = whole.on(case.branch)
        rows = dict(case.rows(graph))
        assert len(case.rows(graph)) == len(rows) == len(case.keys)
        found = log(graph)
        for place, key in enumerate(case.keys):
            winners = [number for number, told in enumerate(answers) if told[place] is not None]
            assert winners == [rows[case.named(key)]], key
            assert found[answers[winners[0]][place]] == 1
