"""Four clients insert rows that have no key while answers are lost and others write: each line is there once, or not.

A repeat that loads the newest state and puts its change on top would double a row that nothing else tells apart.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import OmnigraphError, OutcomeUnknown
from omnigraph.store.faults import LoseAfter, LoseBefore, Meanwhile, Rule
from server.asgi import done
from server.conftest import Served
from support.faulty import MANIFEST, Faulty

CLIENTS, EACH = 4, 50
LOST, DISTURBED = 0.1, 0.1
SCHEMA = "node Port { code: String @key }  edge Ferry: Port -> Port { line: String }"
FERRY = 'query m($line: String) { insert Ferry { from: "A", to: "B", line: $line } }'
NEVER = 1_000_000


@dataclass
class Told:
    """What clients were told, by line: a commit that was acknowledged, or may be there; the effects of a refusal."""

    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    refused: dict[str, str] = field(default_factory=dict[str, str])


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    root = tmp_path / "graphs" / "atlas.omni"
    with omnigraph.init(root, schema=SCHEMA) as graph:
        graph.mutate('query m() { insert Port { code: "A" } insert Port { code: "B" } }')
    return root


class Client:
    """An engine of its own, whose publications lose their answers now and then, or meet another's first."""

    def __init__(self, root: Path, number: int, told: Told) -> None:
        self._number = number
        self._told = told
        self._draw = random.Random(number)
        self._own = Faulty(str(root), owner=False)
        self._other = Faulty(str(root), owner=False)
        self._others = 0

    def insert(self, place: int) -> None:
        self._disturb()
        self._ask(f"c{self._number}-{place}")
        self._own.store.heal()

    def _disturb(self) -> None:
        chance = self._draw.random()
        if chance < LOST / 4:  # settled by the identical request, which is sent again
            self._own.store.add(Rule(LoseAfter(), verb="create", key=MANIFEST))
        elif chance < LOST:
            lost = Meanwhile(after=self._silence, fault=self._draw.choice([LoseAfter(), LoseBefore()]))
            self._own.store.add(Rule(lost, verb="create", key=MANIFEST))
        elif chance < LOST + DISTURBED:
            self._own.store.add(Rule(Meanwhile(before=self._other_inserts), verb="create", key=MANIFEST))

    def _silence(self) -> None:
        self._own.store.add(Rule(LoseBefore(), times=NEVER))

    def _other_inserts(self) -> None:
        self._others += 1
        line = f"other{self._number}-{self._others}"
        result = self._other.graph.mutate(FERRY, line=line, idempotency_key=line)
        assert result.commit is not None
        self._told.acknowledged[line] = result.commit.graph_commit_id

    def _ask(self, line: str) -> None:
        try:
            result = self._own.graph.mutate(FERRY, line=line, idempotency_key=line)
        except OutcomeUnknown as error:
            self._told.unknown[line] = str(error.graph_commit_id)
        except OmnigraphError as error:
            self._told.refused[line] = str(error.effects)
        else:
            assert result.commit is not None
            self._told.acknowledged[line] = result.commit.graph_commit_id


def lines(graph: Graph) -> Counter[str]:
    return Counter(graph.query("query q() { match { $a $f:ferry $b } return { $f.line as line } }")["line"])


def test_rows_without_a_key_are_there_once_if_acknowledged_and_a_repeat_under_its_key_adds_none(root: Path) -> None:
    told = Told()
    clients = [Client(root, number, told) for number in range(CLIENTS)]
    for place in range(EACH):
        for client in clients:
            client.insert(place)
    assert len(told.unknown) > 5, "hardly an answer was lost: this showed nothing"

    with omnigraph.open(root) as graph:
        found = lines(graph)
        assert {found[line] for line in told.acknowledged} == {1}
        assert not [line for line, effects in told.refused.items() if found[line] or effects != "none"]
        for line, commit in told.unknown.items():
            said = graph.commits.outcome(commit).outcome
            assert found[line] == (said == "published"), f"{line} is there {found[line]} times and {said}"
        assert set(found) <= {*told.acknowledged, *told.unknown}

    # in a server that has just been started
    served = Served(root.parents[1])
    try:
        for line, commit in {**told.acknowledged, **told.unknown}.items():
            body = {"query": FERRY, "params": {"line": line}}
            receipt = done(served.post("/graphs/atlas/mutate", body, idempotency_key=line))
            if line in told.acknowledged or found[line]:
                assert (receipt["commit"]["graph_commit_id"], receipt["idempotent_replay"]) == (commit, True)
    finally:
        served.close()
    with omnigraph.open(root) as graph:
        assert set(lines(graph).values()) == {1}
        assert set(lines(graph)) == {*told.acknowledged, *told.unknown}
