"""A serving process that is killed loses nothing that was acknowledged and doubles nothing: a few rounds of the 300."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import omnigraph
from faults import kills
from faults.serving import SCHEMA, Standing, Told

ROUNDS = 4
SEED = int(os.environ.get("OMNIGRAPH_TEST_SEED", "20261130"))


def test_kills_of_a_serving_process_lose_and_double_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    judge = Standing.judge

    def counted(standing: Standing, told: Told) -> None:
        judge(standing, told)
        judged.append(len(told.done))

    monkeypatch.setattr(Standing, "judge", counted)
    counts = kills.kill_rounds(tmp_path, ROUNDS, SEED)
    assert counts.rounds == ROUNDS
    assert len(judged) == ROUNDS + 1, "each round is judged, and the end"
    assert judged[-1] == counts.clients.acknowledged
    assert counts.clients.branches > 0, "nobody made a branch"
    assert counts.clients.acknowledged > ROUNDS, "hardly anything was acknowledged: this showed nothing"
    assert counts.clients.unanswered > 0, "no kill met a request: this showed nothing"


def test_what_was_acknowledged_and_does_not_stand_once_is_found(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graphs" / "g.omni", schema=SCHEMA)
    port = graph.mutate('query m() { insert Port { code: "p" } }').commit
    graph.branches.create("b")
    graph.mutate('query m() { insert Port { code: "q" } }')
    merged = graph.branches.merge("main", "b").commit
    assert port is not None
    assert merged is not None
    stands = {"p": port.graph_commit_id, "b": merged.graph_commit_id}
    Standing(str(tmp_path)).judge(Told(done=stands, branches={"b"}))
    for wrong in (
        Told(done={"lost": port.graph_commit_id}),
        Told(done={"p": "main@9-0011223344556677"}),
        Told(done={"c": ""}, branches={"c"}),
        Told(done={"b": ""}, branches={"b"}),
        Told(done={"b": "b@2-0011223344556677"}, branches={"b"}),
        Told(refused={"p": "read_set_conflict"}),
    ):
        with pytest.raises(AssertionError):
            Standing(str(tmp_path)).judge(wrong)
