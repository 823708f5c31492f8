"""Statements that are a whole text: branches (languages.md 14) and `explain` (18)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import AlreadyExists, InvalidParams, InvalidQuery, InvalidRequest


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", schema="node N { k: String @key }")


def test_statements_do_what_the_methods_do(graph: Graph) -> None:
    made = graph.mutate('branch create "review/tides" from main')
    assert (made.outcome, made.commit) == ({"kind": "created", "branch": "review/tides", "from": "main"}, None)
    assert graph.query("// all of them\nbranch list;").scalars() == ["main", "review/tides"]
    graph.on("review/tides").mutate('query m() { insert N { k: "a" } }')
    merged = graph.mutate('branch merge "review/tides" into main')
    assert merged.outcome == {"kind": "merged", "branch": "main", "merge": "fast_forward"}
    assert merged.commit == graph.head
    gone = graph.mutate('branch delete "review/tides"')
    assert gone.outcome == {"kind": "deleted", "branch": "review/tides"}
    assert graph.query("branch list").scalars() == ["main"]


def test_a_statement_at_the_wrong_door_or_in_company_is_refused(graph: Graph) -> None:
    for attempt in (lambda: graph.query("branch create b"), lambda: graph.mutate("branch list")):
        with pytest.raises(InvalidRequest) as caught:
            attempt()
        assert caught.value.code == "wrong_verb"
    with pytest.raises(InvalidRequest):
        graph.mutate("branch create b", branch="main")
    with pytest.raises(InvalidRequest):
        graph.mutate("branch create b", x=1)
    with pytest.raises(InvalidQuery) as caught_query:
        graph.mutate("branch create b  branch create c")
    assert caught_query.value.diagnostic.code == "Q004"
    with pytest.raises(AlreadyExists):
        graph.mutate("branch create main")
    assert graph.query("branch list").scalars() == ["main"]


def test_explain_answers_a_plan_at_every_state_and_runs_nothing(graph: Graph) -> None:
    first = graph.mutate('query m() { insert N { k: "a" } }').commit
    graph.mutate('query m() { insert N { k: "b" } }')
    assert first is not None
    text = "set traversal = matrix; explain query q($k: String) { match { $n: N { k: $k } } return { $n.k } }"
    now, then = graph.query(text), graph.query(text, snapshot=first.graph_commit_id)
    assert now.query_name == "q"
    told = {row["node"]: row["detail"] for row in now if row["tree"] == "plan"}
    assert (told["branch"], told["statistics"], told["settings"]) == ("main", '{"node:N":2}', '{"traversal":"matrix"}')
    past = {row["node"]: row["detail"] for row in then if row["tree"] == "plan"}
    assert (past["snapshot"], past["statistics"]) == (first.graph_commit_id, '{"node:N":1}')
    with pytest.raises(InvalidParams, match="P004"):
        graph.query(text, x=1)
    with pytest.raises(InvalidRequest) as caught:
        graph.mutate(text, k="a")
    assert caught.value.code == "wrong_verb"


def test_explain_of_a_query_is_the_plan_that_the_statement_answers(graph: Graph) -> None:
    text = "query q($k: String) { match { $n: N { k: $k } } return { $n.k } }  query m() { delete N where true }"
    first = graph.head
    plan = graph.explain(text, query_name="q", settings={"traversal": "matrix"})
    stated = graph.query(f"set traversal = matrix; explain {text.partition('  ')[0]}")
    assert plan.to_dict() == stated.to_dict()
    past = {row["node"]: row["detail"] for row in graph.at(first).explain(text, query_name="q")}
    assert past["snapshot"] == first.graph_commit_id
    assert graph.explain(f"explain {text.partition('  ')[0]}", k="a").columns == plan.columns
    assert graph.explain(text, {"k": "a"}, query_name="q", profile=True).profile is None
    with pytest.raises(InvalidParams, match="P004"):
        graph.explain(text, query_name="q", x=1)
    for wrong, name in ((text, "m"), ("show all;", None), ("branch list", None), ("branch create b", None)):
        with pytest.raises(InvalidQuery) as caught:
            graph.explain(wrong, query_name=name)
        assert caught.value.diagnostic.code == "Q004"
    assert graph.head == first


def test_the_depths_of_a_plan_are_spelled_as_other_64_bit_integers(graph: Graph) -> None:
    text = "explain query q() { match { $n: N } return { $n.k } }"
    for spelling, depth in (("number", 0), ("string", "0")):
        answer = graph.query(f"set int64_json = {spelling}; {text}").to_dict()
        assert answer["rows"][0]["depth"] == depth


def test_a_result_has_the_profile_of_its_run_if_it_is_asked_for(graph: Graph) -> None:
    text = "query q($k: String) { match { $n: N { k: $k } } return { $n.k } }"
    result = graph.query(text, {"k": "a"}, profile=True)
    assert result.profile is not None
    trees = list(dict.fromkeys(row["tree"] for row in result.profile))
    assert trees == ["logical", "physical", "plan", "profile"]
    by_name = {row["node"]: row["detail"] for row in result.profile if row["tree"] == "plan"}
    assert (by_name["operation"], by_name["graph_commit_id"]) == ("q", result.commit_id)
    assert result.to_dict()["profile"] == list(result.profile)
    assert graph.query(text, {"k": "a"}).profile is None
    assert "profile" not in graph.query(text, {"k": "a"}).to_dict()
    assert graph.query(f"explain {text}", profile=True).profile is None


@pytest.mark.parametrize(
    "comments", ["/**/" * 2_000, "/* a */ " * 2_000, "/**/\n" * 2_000, "// a\n" * 2_000, "/*" * 2_000]
)
def test_however_many_comments_stand_before_a_query_it_begins_at_once(tmp_path: Path, comments: str) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node Port { code: String @key }")
    with contextlib.suppress(InvalidQuery):  # of a comment that never ends
        assert graph.query(f"{comments} query q() {{ match {{ $p: Port }} return {{ count($p) as n }} }}").scalar() == 0
    with contextlib.suppress(InvalidQuery):
        assert graph.query(f"{comments} show all").arrow().to_pylist()


def test_a_read_without_variables_has_a_plan_and_a_profile(graph: Graph) -> None:
    text = "query q() { match { true } return { 1 as x } }"
    assert graph.query(text).arrow().to_pylist() == [{"x": 1}]
    nodes = [(row["tree"], row["node"]) for row in graph.explain(text).arrow().to_pylist() if row["tree"] != "plan"]
    assert ("logical", "Unit") in nodes
    assert ("physical", "Unit") in nodes
    assert graph.query(text, profile=True).profile is not None
