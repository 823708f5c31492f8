"""What no call can take is refused with a typed error that a program can catch, never with a TypeError of the depths."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import InvalidParams, InvalidRequest, NotAvailable, OmnigraphError, PreconditionFailed

SCHEMA = "node Port { code: String @key } edge Ferry: Port -> Port"
READ = "query q($c: String?) { match { $p: Port { code: $c } } return { $p.code } }"
ADD = 'query m() { insert Port { code: "A" } }'
WRONG = [5, 1.5, True, b"x", object(), float("nan"), "\udc00"]
TEXTS = (*WRONG, ["x"])

CALLS: dict[str, Callable[[Graph, Any], object]] = {
    "open": lambda g, v: omnigraph.open(v),
    "open branch": lambda g, v: omnigraph.open(g.uri, branch=v),
    "open actor": lambda g, v: omnigraph.open(g.uri, actor=v),
    "open mode": lambda g, v: omnigraph.open(g.uri, mode=v),
    "open settings": lambda g, v: omnigraph.open(g.uri, settings=v),
    "open storage options": lambda g, v: omnigraph.open(g.uri, storage_options=v),
    "init": lambda g, v: omnigraph.init(v, schema=SCHEMA),
    "init schema": lambda g, v: omnigraph.init(g.uri + "2", schema=v),
    "query": lambda g, v: g.query(v),
    "query params": lambda g, v: g.query(READ, v),
    "query name": lambda g, v: g.query(READ, query_name=v),
    "query branch": lambda g, v: g.query(READ, branch=v),
    "query snapshot": lambda g, v: g.query(READ, snapshot=v),
    "query settings": lambda g, v: g.query(READ, settings=v),
    "stream": lambda g, v: g.stream(v),
    "get": lambda g, v: g.get(v, "A"),
    "get id": lambda g, v: g.get("Port", v),
    "at": lambda g, v: g.at(v).query(READ),
    "on": lambda g, v: g.on(v).query(READ),
    "export": lambda g, v: g.export(v),
    "export types": lambda g, v: g.export(types=v),
    "mutate": lambda g, v: g.mutate(v),
    "mutate params": lambda g, v: g.mutate(ADD, v),
    "mutate name": lambda g, v: g.mutate(ADD, query_name=v),
    "mutate branch": lambda g, v: g.mutate(ADD, branch=v),
    "mutate message": lambda g, v: g.mutate(ADD, message=v),
    "mutate key": lambda g, v: g.mutate(ADD, idempotency_key=v),
    "mutate condition": lambda g, v: g.mutate(ADD, if_commit=v),
    "load": lambda g, v: g.load(v, mode="append"),
    "load mode": lambda g, v: g.load([], mode=v),
    "load type": lambda g, v: g.load([], mode="append", type=v),
    "load from": lambda g, v: g.load([], mode="append", branch="b", from_=v),
    "branches.create": lambda g, v: g.branches.create(v),
    "branches.create from": lambda g, v: g.branches.create("b", from_=v),
    "branches.delete": lambda g, v: g.branches.delete(v),
    "branches.get": lambda g, v: g.branches.get(v),
    "branches.merge": lambda g, v: g.branches.merge(v),
    "branches.merge target": lambda g, v: g.branches.merge("main", v),
    "commits.list": lambda g, v: g.commits.list(v),
    "commits.list since": lambda g, v: g.commits.list(since=v),
    "commits.list until": lambda g, v: g.commits.list(until=v),
    "commits.get": lambda g, v: g.commits.get(v),
    "commits.outcome": lambda g, v: g.commits.outcome(v),
    "schema.plan": lambda g, v: g.schema.plan(v),
    "schema.apply": lambda g, v: g.schema.apply(v),
}  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("g") / "g", schema=SCHEMA)


@pytest.mark.parametrize("call", CALLS)
def test_a_value_of_the_wrong_kind_is_an_invalid_request_and_nothing_is_done(graph: Graph, call: str) -> None:
    before = graph.head
    for value in TEXTS:
        with pytest.raises((InvalidRequest, PreconditionFailed, InvalidParams)) as caught:
            CALLS[call](graph, value)
        assert isinstance(caught.value, OmnigraphError)
        assert caught.value.retry in ("fix", "refresh")
    assert graph.head == before
    assert [branch.name for branch in graph.branches.list()] == ["main"]


@pytest.mark.parametrize("limit", [-1, 0, True, 1.5, "1"])
def test_a_list_of_commits_has_at_least_one(graph: Graph, limit: Any) -> None:
    with pytest.raises(InvalidRequest, match="limit"):
        graph.commits.list(limit=limit)


@pytest.mark.parametrize("time", [True, False, 1.5, b"1", "1", "yesterday", "2026-11-30T12:00:00", [], object()])
def test_a_time_is_never_guessed(graph: Graph, time: Any) -> None:
    for read in (graph.query, graph.stream):
        with pytest.raises(InvalidRequest, match="as_of"):
            read(READ, as_of=time)
    for other in (graph.summary, graph.export):
        with pytest.raises(InvalidRequest, match="as_of"):
            other(as_of=time)
    with pytest.raises(InvalidRequest, match="as_of"):
        graph.get("Port", "A", as_of=time)


def test_a_parameter_is_given_once(graph: Graph) -> None:
    source = "query q($a: I64) { match { $p: Port } return { count($p) as n } }"
    assert graph.query(source, {"a": 1}).scalar() == 0
    for given in (1, 2):
        with pytest.raises(InvalidRequest, match="'a' is given twice"):
            graph.query(source, {"a": 1}, a=given)
        with pytest.raises(InvalidRequest, match="'a' is given twice"):
            graph.mutate("query q($a: String) { delete Port where code = $a }", {"a": "1"}, a=given)


@pytest.mark.parametrize("progress", [5, 0, None, "yes", []])
def test_progress_is_a_switch_or_a_function(graph: Graph, tmp_path: Path, progress: Any) -> None:
    with pytest.raises(InvalidRequest, match="`progress` is True, False"):
        graph.load([], mode="append", progress=progress)
    with pytest.raises(InvalidRequest, match="`progress` is True, False"):
        graph.export(tmp_path / "out", progress=progress)
    with pytest.raises(InvalidRequest, match="`progress` is True, False"):
        graph.export(progress=progress)


def test_an_export_goes_to_what_takes_bytes(graph: Graph, tmp_path: Path) -> None:
    place = tmp_path / "out.jsonl"
    for out in (io.StringIO(), place.open("w")):
        with out, pytest.raises(InvalidRequest, match="a file opened for text: open it with mode 'wb'"):
            graph.export(out)  # type: ignore[call-overload]
    with place.open("rb") as reading, pytest.raises(InvalidRequest, match="open for reading only"):
        graph.export(reading)
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(InvalidRequest, match="the file is closed"):
        graph.export(closed)


def test_an_unknown_mode_is_not_taken_for_reading(tmp_path: Path, graph: Graph) -> None:
    with pytest.raises(InvalidRequest, match=r"`mode` is rw .* or r "):
        omnigraph.open(graph.uri, mode="read")  # type: ignore[arg-type]


def test_a_schema_may_be_any_kind_of_path(tmp_path: Path) -> None:
    class Named:
        def __fspath__(self) -> str:
            return str(tmp_path / "s.pg")

    (tmp_path / "s.pg").write_text(SCHEMA)
    assert omnigraph.init(tmp_path / "g", schema=Named()).schema.source == SCHEMA


@pytest.mark.parametrize("condition", ["zzz", "", "main", "*", '"main@1-0011223344556677"', "main@0-0011223344556677"])
def test_a_condition_that_no_head_can_ever_be_is_a_mistake_and_no_race_that_was_lost(
    graph: Graph, condition: str
) -> None:
    for text in (ADD, "branch create b from main"):
        with pytest.raises(InvalidRequest) as caught:
            graph.mutate(text, if_commit=condition)
        refused = caught.value
        assert (refused.code, refused.status, refused.retry, refused.effects) == (
            "condition_misplaced",
            400,
            "fix",
            "none",
        )
    with pytest.raises(PreconditionFailed):
        graph.mutate(ADD, if_commit="main@9-0011223344556677")


def test_settings_of_a_mutation_are_checked_like_those_of_a_read(graph: Graph) -> None:
    for text in (ADD, "branch create b from main"):
        with pytest.raises(InvalidRequest, match="no setting 'speed'") as caught:
            graph.mutate(text, settings={"speed": 1})
        assert (caught.value.code, caught.value.effects) == ("invalid_setting", "none")
    assert graph.mutate(ADD, settings={"traversal": "auto"}).commit is not None


def test_reading_by_version_is_not_available_unless_that_is_a_parameter(graph: Graph) -> None:
    with pytest.raises(NotAvailable, match="snapshot"):
        graph.query("query q() { match { $p: Port } return { $p.code } }", version=1)
    declared = "query q($version: I32) { match { $p: Port } return { $p.code, $version as v } }"
    graph.query(declared, version=1)
    with pytest.raises(InvalidParams, match="P004"):
        graph.query(declared, version=1, versions=2)
