"""Every case of `*.case`, through the doors of a graph in a folder. `steps` says how a case is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from conformance.steps import LogicCase, Step, cases_of, spelled
from omnigraph.engine.graph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.query.encode import Spelling, ndjson

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
CASES = list(cases_of(HERE))


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Graph]:
    """The graphs that cases begin from, each made once; a case that writes works on a branch of its own."""
    folder = tmp_path_factory.mktemp("graphs")
    made: dict[str, Graph] = {}
    for name in {case.graph for case in CASES}:
        graph = made[name] = omnigraph.init(folder / name, schema=DATA / f"{name}.pg")
        graph.load(DATA / f"{name}.jsonl", mode="append")
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_comes_out_as_it_says(graphs: dict[str, Graph], case: LogicCase) -> None:
    graph = graphs[case.graph]
    if any(step.writes or step.mode for step in case.steps):
        branch = f"case-{CASES.index(case)}"
        graph.branches.create(branch)
        graph = graph.on(branch)
    for step in case.steps:
        judge(graph if step.branch is None else graph.on(step.branch), step)


def judge(graph: Graph, step: Step) -> None:
    """Take a step and look at what came of it."""
    if step.wanted == "code":
        with pytest.raises(OmnigraphError) as caught:
            take(graph, step)
        refused_as(caught.value, step)
        return
    done = take(graph, step)
    if step.wanted == "receipt":
        receipt = done.to_dict()
        wanted = json.loads("".join(step.below) or "{}")
        assert {name: receipt[name] for name in wanted} == wanted
        return
    answer = done.to_dict()
    rows = [spelled(row) for row in answer["rows"]]
    match step.wanted:
        case "rows":
            assert sorted(rows) == sorted(step.rows)
        case "ordered":
            assert rows == step.rows
        case "some":
            assert len(rows) == int(step.argument)
            left = list(step.rows)
            for row in rows:
                left.remove(row)
        case "among":
            left = iter(rows)
            assert all(row in left for row in step.rows), rows
        case "json":
            spelling = Spelling(int64_as_text=done.int64_as_text)
            text = b"".join(ndjson(done.table, spelling)).decode()
            assert text == "".join(f"{line}\n" for line in step.below)
        case "columns":
            assert answer["columns"] == json.loads("".join(step.below))


def take(graph: Graph, step: Step) -> Any:
    if step.mode is not None:
        return graph.load(step.text.encode(), mode=step.mode)  # type: ignore[arg-type]
    if step.writes:
        return graph.mutate(step.text, step.params, door="json")
    return graph.query(step.text, step.params, door="json")


def refused_as(error: OmnigraphError, step: Step) -> None:
    """The code, be it the error's own, that of its diagnostic or that of a constraint; and place and fix if asked for."""
    diagnostic = getattr(error, "diagnostic", None)
    inner = diagnostic.code if isinstance(diagnostic, Diagnostic) else (error.details or {}).get("code")
    assert step.argument in (inner, error.code), f"{error.code} {inner}: {error}"
    assert error.effects in (None, "none")
    for line in step.below:
        what, _, text = line.partition(" ")
        assert isinstance(diagnostic, Diagnostic)
        if what == "at":
            assert diagnostic.position is not None
            assert diagnostic.end is not None
            source = step.text.encode()
            assert source[diagnostic.position.byte : diagnostic.end.byte].decode() == text
        else:
            assert diagnostic.fix == text
