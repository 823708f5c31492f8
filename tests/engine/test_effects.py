"""Every failed write says what is known of it: `none` for whatever is definite, `unknown` where it is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.effects import definite_failures
from omnigraph.engine.evidence import staging_begins, watching
from omnigraph.engine.graph import Graph
from omnigraph.engine.heads import Heads
from omnigraph.engine.opening import open_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import (
    BranchNotFound,
    Effects,
    InternalError,
    OmnigraphError,
    OutcomeUnknown,
    RecoveryRequired,
    StorageClass,
    StorageFailure,
)
from omnigraph.store.faults import FaultStore, LoseBefore, Refuse, Rule
from omnigraph.store.open import open_store
from support.clocks import SteppingClock

SCHEMA = "node Port { code: String @key  name: String? }"
INSERT = 'query add() { insert Port { code: "A" } }'
RECORD = {"type": "Port", "data": {"code": "L"}}

WRITES: dict[str, Callable[[Graph, str], Any]] = {
    "mutate": lambda graph, branch: graph.mutate(INSERT, branch=branch),
    "load": lambda graph, branch: graph.load([RECORD], mode="append", branch=branch),
    "load into a fork": lambda graph, branch: graph.load([RECORD], mode="append", branch="new", from_=branch),
    "branch create": lambda graph, branch: graph.branches.create("new", from_=branch),
    "branch delete": lambda graph, branch: graph.branches.delete(branch),
    "merge from": lambda graph, branch: graph.branches.merge(branch),
    "merge into": lambda graph, branch: graph.branches.merge("main", branch),
    "schema apply": lambda graph, branch: graph.on(branch).schema.apply(SCHEMA + " node New { k: String @key }"),
    "branch statement": lambda graph, branch: graph.mutate(f"branch delete {branch}"),
}


@pytest.fixture
def root(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.branches.create("b")
    return str(tmp_path / "g")


def faulty(root: str, *rules: Rule) -> Graph:
    store = FaultStore(open_store(root))
    core = open_core(root, store=store, clock=SteppingClock(now_us=2_000_000_000_000_000))
    core.heads = Heads(store, core.clock, owner=False)  # nothing known: every base is read
    store.add(*rules)
    return Graph(Context(core))


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_to_or_from_a_branch_that_is_not_there_had_no_effects(
    root: str, write: Callable[[Graph, str], Any]
) -> None:
    with pytest.raises(BranchNotFound) as caught:
        write(omnigraph.open(root), "nowhere")
    assert caught.value.effects == "none"
    assert caught.value.to_dict()["effects"] == "none"


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("verb", ["read", "list_first"])
def test_a_write_that_can_not_read_its_base_had_no_effects(
    root: str, write: Callable[[Graph, str], Any], verb: Any
) -> None:
    graph = faulty(root, Rule(Refuse(StorageClass.TIMEOUT), verb=verb, times=99))
    with pytest.raises(StorageFailure) as caught:
        write(graph, "b")
    assert (caught.value.phase, caught.value.effects) == ("read", "none")


@pytest.mark.parametrize("name", WRITES)
def test_an_unknown_outcome_stays_unknown(root: str, name: str) -> None:
    with omnigraph.open(root) as there:  # a merge has something to take in
        there.mutate(INSERT, branch="main" if name == "merge into" else "b")
    graph = faulty(root, Rule(LoseBefore(), verb="create", key="__manifest/", times=99))
    with pytest.raises(OutcomeUnknown) as caught:
        WRITES[name](graph, "b")
    told = caught.value
    assert (told.effects, told.retry, told.cls, told.phase) == ("unknown", "reconcile", "timeout", "publish")


@pytest.mark.parametrize(
    "write",
    [
        lambda graph: graph.mutate("query q() { insert Nothing { code: 1 } }"),
        lambda graph: graph.mutate(INSERT, surplus=1),
        lambda graph: graph.mutate(INSERT, if_commit="main@9-0000000000000000"),
        lambda graph: graph.mutate(INSERT, branch="a@b"),
        lambda graph: graph.mutate(INSERT, idempotency_key="a b"),
        lambda graph: graph.load([{"type": "Port", "data": {}}], mode="append"),
        lambda graph: graph.load("/nowhere/at/all.jsonl", mode="append"),
        lambda graph: graph.branches.create("a@b"),
        lambda graph: graph.branches.create("b"),
        lambda graph: graph.branches.create("c", from_="main@9-0000000000000000"),
        lambda graph: graph.branches.delete("main"),
        lambda graph: graph.branches.merge("main"),
        lambda graph: graph.schema.apply("node"),
        lambda graph: graph.schema.apply("node Port { code: I32 @key }"),
        lambda graph: graph.at("main@1-0000000000000000").mutate(INSERT),
    ],
)
def test_a_refused_write_had_no_effects(root: str, write: Callable[[Graph], Any]) -> None:
    with pytest.raises(OmnigraphError) as caught:
        write(omnigraph.open(root))
    assert caught.value.effects == "none"


@pytest.mark.parametrize(
    "make",
    [
        lambda place: omnigraph.init(place / "g", schema="node"),
        lambda place: omnigraph.init(place / "g", schema=place / "nowhere.pg"),
        lambda place: omnigraph.init(place / "g", schema=SCHEMA),
    ],
    ids=["a bad schema", "no schema", "a graph is there"],
)
def test_a_graph_that_was_not_made_had_no_effects(root: str, make: Callable[[Path], Any]) -> None:
    with pytest.raises(OmnigraphError) as caught:
        make(Path(root).parent)
    assert caught.value.effects == "none"


def test_a_graph_whose_place_can_not_be_read_was_not_made(root: str) -> None:
    for version in Path(root, "__manifest", "main").iterdir():
        version.chmod(0o644)
        version.write_bytes(b"no manifest")
    with pytest.raises(StorageFailure) as caught:
        omnigraph.init(root, schema=SCHEMA)
    assert (caught.value.phase, caught.value.effects) == ("read", "none")


def test_a_failed_read_says_nothing_of_effects(root: str) -> None:
    with pytest.raises(BranchNotFound) as caught:
        omnigraph.open(root).query("query q() { match { $p: Port } return { $p.code } }", branch="nowhere")
    assert caught.value.effects is None


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize(
    ("error", "before", "after"),
    [
        (BranchNotFound, "none", "none"),
        (partial(BranchNotFound, effects="unknown"), "unknown", "unknown"),
        (InternalError, "none", "unknown"),
        (partial(InternalError, effects="none"), "none", "none"),
        (RecoveryRequired, "none", "unknown"),
    ],
)
def test_an_error_that_speaks_for_itself_keeps_its_word_and_a_fault_proves_nothing_once_staging_began(
    error: Callable[[str], OmnigraphError], before: Effects, after: Effects, staged: bool
) -> None:
    raised = error("x")

    def fails() -> None:
        if staged:
            staging_begins()
        raise raised

    with pytest.raises(OmnigraphError) as caught, watching() as outside, definite_failures():
        fails()
    assert caught.value is raised
    assert raised.effects == (after if staged else before)
    assert outside.staged == staged


def test_what_an_earlier_write_staged_says_nothing_of_the_next() -> None:
    with watching() as outside:
        with definite_failures():
            staging_begins()
        with pytest.raises(InternalError) as caught, definite_failures():
            raise InternalError("x")
    assert (caught.value.effects, outside.staged) == ("none", True)
