"""Files, parameters and clocks that no honest program leaves: each is refused or passed over, by name, never raw."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import CommitNotFound, IdempotencyKeyReused, InvalidParams, InvalidRequest, StorageFailure

SCHEMA = "node Port { code: String @key  depth: I64?  hull: Vector(2000)? }"
CODES = "query q() { match { $p: Port } return { $p.code as c } order { c } }"
INSERT = "query m($c: String) { insert Port { code: $c } }"
DEEP = b"[" * 100_000


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    made = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    made.mutate(INSERT, c="A")
    return made


# --- what stands in the root


def _file(name: bytes) -> Callable[[str], None]:
    def put(root: str) -> None:
        path = os.path.join(os.fsencode(root), b"__manifest", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(b"{}")

    return put


def _link(name: str, to: str) -> Callable[[str], None]:
    return lambda root: os.symlink(to, os.path.join(root, "__manifest", name))


FOREIGN: dict[str, Callable[[str], None]] = {
    "a folder that is no UTF-8": _file(b"\xff\xfe/9223372036854775806.json"),
    "a folder with a line break": _file(b"a\nb/9223372036854775806.json"),
    "a folder with a backslash": _file(b"a\\b/9223372036854775806.json"),
    "a file that is no UTF-8, before all versions of main": _file(b"main/!\xff"),
    "a link to itself": _link("loop", "loop"),
    "a link to itself, before all versions of main": _link("main/!loop", "!loop"),
    "a link to the folder above": _link("up", ".."),
    "a link to its own folder": _link("here", "."),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_can_not_be_an_object_is_passed_over(graph: Graph, what: str) -> None:
    FOREIGN[what](graph.uri)
    again = omnigraph.open(graph.uri)
    assert [branch.name for branch in again.branches.list()] == ["main"]
    again.branches.create("review")
    again.mutate(INSERT, c="B")
    assert omnigraph.open(graph.uri).query(CODES).scalars() == ["A", "B"]
    assert [branch.name for branch in omnigraph.open(graph.uri).branches.list()] == ["main", "review"]


@pytest.mark.parametrize("damage", [DEEP, b'{"nodes":' + b"[" * 900 + b"]" * 900 + b"}"], ids=["open", "closed"])
def test_a_schema_nested_without_end_is_damaged(graph: Graph, damage: bytes) -> None:
    (catalog,) = Path(graph.uri, "__schema").glob("*.json")
    catalog.chmod(0o644)
    catalog.write_bytes(damage)
    with pytest.raises(StorageFailure) as caught:
        omnigraph.open(graph.uri).query(CODES)
    assert (caught.value.cls, caught.value.phase) == ("corrupt", "read")


@pytest.mark.parametrize(
    "damage",
    [b"node Port { code: String @key }", b"", b"node Port { code: String @key  depth: I64?  hull: Vector(2001)? }"],
)
def test_a_schema_text_that_is_not_the_accepted_one_is_damaged_and_nothing_is_compared_with_it(
    graph: Graph, damage: bytes
) -> None:
    (text,) = Path(graph.uri, "__schema").glob("*.pg")
    text.chmod(0o644)
    text.write_bytes(damage)
    with pytest.raises(StorageFailure) as caught:
        _ = omnigraph.open(graph.uri).schema.source
    assert (caught.value.cls, caught.value.phase) == ("corrupt", "read")
    with pytest.raises(StorageFailure) as caught:
        omnigraph.open(graph.uri).schema.apply(SCHEMA + " node New { k: String @key }")
    assert (caught.value.cls, caught.value.effects) == ("corrupt", "none")


@pytest.mark.parametrize(
    "identity",
    [
        DEEP,
        b'{"format":1e999,"graph_id":"x"}',
        b'{"format":' + b"9" * 9_000 + b',"graph_id":"x"}',
        b'{"format":true,"graph_id":"x"}',
        b'{"format":1,"graph_id":["x"]}',
        b'{"format":1}',
        b"[1]",
        b"\xff",
    ],
    ids=lambda data: data[:24],
)
def test_a_damaged_identity_is_named_and_no_graph_is_made_over_it(tmp_path: Path, identity: bytes) -> None:
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "__graph.json").write_bytes(identity)
    with pytest.raises(StorageFailure) as caught:
        omnigraph.init(tmp_path / "g", schema=SCHEMA)
    assert caught.value.cls == "corrupt"
    assert "__graph.json" in caught.value.message
    assert not (tmp_path / "g" / "__manifest").exists()


# --- what a caller gives


@pytest.mark.parametrize("version", [2**63 - 1, 2**63, 9_999_999_999_999_999_999])
def test_a_commit_id_beyond_the_last_version_is_no_commit_id(graph: Graph, version: int) -> None:
    commit = f"main@{version}-0011223344556677"
    for ask in (
        lambda: graph.commits.outcome(commit),
        lambda: graph.commits.get(commit),
        lambda: graph.query(CODES, snapshot=commit),
        lambda: graph.at(commit).query(CODES),
        lambda: graph.branches.create("b", from_=commit),
    ):
        with pytest.raises(InvalidRequest) as caught:
            ask()
        assert caught.value.code == "bad_request"
    last = f"main@{2**63 - 2}-0011223344556677"
    assert graph.commits.outcome(last).reason == "version_absent"
    with pytest.raises(CommitNotFound):
        graph.query(CODES, snapshot=last)


def _deep() -> dict[str, Any]:
    top: dict[str, Any] = {}
    below = top
    for _ in range(5_000):
        below["a"] = below = {}
    return top


def _cyclic() -> list[Any]:
    around: list[Any] = []
    around.append(around)
    return around


@pytest.mark.parametrize(
    "value",
    [_deep(), _cyclic(), {1: "a", "b": 2}, 10**100_000, "\ud800", object()],
    ids=["deep", "cyclic", "keys of two kinds", "many digits", "surrogate", "object"],
)
def test_a_parameter_that_has_no_json_is_refused_alike_with_and_without_a_key(graph: Graph, value: object) -> None:
    text = 'query m($d: I64) { insert Port { code: "B", depth: $d } }'
    refusals: list[dict[str, Any]] = []
    for key in (None, "k"):
        with pytest.raises(InvalidParams) as caught:
            graph.mutate(text, {"d": value}, idempotency_key=key)
        refusals.append(caught.value.to_dict())
    assert refusals[0] == refusals[1]
    assert "`d`" in refusals[0]["error"]


def test_under_one_key_two_long_arrays_are_two_requests_and_a_list_is_its_array(graph: Graph) -> None:
    text = 'query m($h: Vector(2000)) { insert Port { code: "B", hull: $h } }'
    first = np.zeros(2000, np.float32)
    other = first.copy()
    other[1000] = 1  # in the middle, which the text of an array leaves out
    assert not graph.mutate(text, h=first, idempotency_key="k").replayed
    assert graph.mutate(text, h=first.tolist(), idempotency_key="k").replayed
    with pytest.raises(IdempotencyKeyReused):
        graph.mutate(text, h=other, idempotency_key="k")


# --- what the machine says


@pytest.mark.parametrize("seconds", [-10_000_000_000, 253_402_300_800, 1_000_000_000_000])
def test_a_clock_outside_of_all_dates_stops_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: seconds * 1_000_000_000)
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA + " node Note { at: DateTime? }")
    graph.mutate(INSERT, c="A")
    graph.load([{"type": "Note", "data": {}}], mode="append")
    graph.mutate("query m() { insert Note { at: now() } }")
    graph.branches.create("review")
    again = omnigraph.open(graph.uri)
    times = [commit.created_at for commit in again.commits.list()]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(times)
    assert times[0].year in (1970, 9999)
    assert again.query(CODES).scalars() == ["A"]
    assert again.query("query q() { match { $n: Note } return { count($n) as n } }").scalar() == 2
    assert [branch.name for branch in again.branches.list()] == ["main", "review"]
