"""Of several violations of one write the first by statement or record is named, then by type name, then by id (13.4)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import ConstraintViolation

SCHEMA = """
node Ant {
  k: String @key  a: I32?  b: I32?  u: I64? @unique
  @range(a, 0..)  @range(a, ..100)  @range(b, 0..)
}
node Bee { k: String @key  a: I32?  @range(a, 0..) }
edge Climbs: Ant -> Ant @card(0..1)
edge Digs: Ant -> Ant @card(2..)
edge Bites: Ant -> Ant @card(2..)
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.load([{"type": "Ant", "data": {"k": key, "a": 1}} for key in ("p", "q", "r")], mode="append")
    return graph


def refused(graph: Graph, body: str, **params: Any) -> tuple[Any, ...]:
    """Code, entity, and the type of the message's first word; the statement's number is no line."""
    declared = ", ".join(f"${name}: I64?" for name in params)
    with pytest.raises(ConstraintViolation) as caught:
        graph.mutate(f"query m({declared}) {{ {body} }}", params)
    error = caught.value
    assert error.line_number is None
    assert "line" not in error.message
    word = re.match(r"\w+", error.message)
    assert word is not None
    return error.details["code"], word[0], error.details["entity_id"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('insert Ant { k: "z", a: -1 } insert Ant { k: "a", a: -2 }', ("W003", "Ant", "z")),
        ('insert Bee { k: "z", a: -1 } insert Ant { k: "a", a: -2 }', ("W003", "Bee", "z")),
        ('insert Ant { k: "z", a: -1 } insert Bee { k: "a", a: -2 }', ("W003", "Ant", "z")),
        ("update Ant set { a: -1 } where true", ("W003", "Ant", "p")),
        ('update Ant set { a: -1 } where k = "r" update Ant set { a: -1 } where k = "p"', ("W003", "Ant", "r")),
        ('insert Ant { k: "z" } insert Ant { k: "y", a: -1 } update Ant set { a: -1 } where k = "z"', ("W003", "Ant", "y")),
        ('insert Ant { k: "z", a: -1 } insert Ant { k: "a", a: -1 } insert Ant { k: "z" }', ("W003", "Ant", "a")),
        ('insert Ant { k: "z", u: 1 } insert Ant { k: "c", u: 2 } insert Ant { k: "b", u: 1 }', ("W005", "Ant", "b")),
        ('insert Ant { k: "z", a: 101 } insert Ant { k: "a", u: 1 } insert Ant { k: "b", u: 1 }', ("W003", "Ant", "z")),
        ('insert Digs { from: "x", to: "q" } insert Bites { from: "y", to: "q" }', ("W006", "Digs", None)),
        ('insert Climbs { from: "q", to: "p" } insert Climbs { from: "q", to: "r" } insert Bites { from: "p", to: "p" }',
         ("W007", "Climbs", "q")),
        ('insert Digs { from: "r", to: "p" } insert Bites { from: "p", to: "p" } insert Digs { from: "q", to: "p" }',
         ("W007", "Digs", "r")),
    ],
)  # fmt: skip
def test_the_first_statement_that_breaks_a_rule_is_named(
    graph: Graph, body: str, expected: tuple[str, str, str | None]
) -> None:
    code, type_name, entity = refused(graph, body)
    assert (code, type_name) == expected[:2]
    if expected[2] is not None:
        assert entity == expected[2]


def test_a_value_that_cant_be_stored_does_not_overtake_an_earlier_statement(graph: Graph) -> None:
    broken = 'insert Ant { k: "z", a: -1 }'
    assert refused(graph, f'{broken} insert Ant {{ k: "a", b: $big }}', big=2**40)[:2] == ("W003", "Ant")
    assert refused(graph, f'insert Ant {{ k: "a", b: $big }} {broken}', big=2**40)[:2] == ("W009", "Ant")
    assert refused(graph, f'insert Ant {{ k: "a" }} update Ant set {{ b: $big }} where true {broken}', big=2**40) == (
        "W009",
        "Ant",
        None,
    )


def test_of_several_deletes_the_first_that_breaks_a_rule_is_named(graph: Graph) -> None:
    pairs = [("p", "q"), ("p", "r"), ("q", "p"), ("q", "r"), ("r", "p"), ("r", "q")]
    edges = [{"edge": name, "from": a, "to": b} for name in ("Digs", "Bites") for a, b in pairs]
    graph.load(edges, mode="append")
    one = 'delete Digs where @src = "q" and @dst = "p" delete Bites where @src = "p" and @dst = "q"'
    assert refused(graph, one) == ("W007", "Digs", "q")
    same = 'delete Digs where @src = "r" and @dst = "p" delete Digs where @src = "p" and @dst = "q"'
    assert refused(graph, same) == ("W007", "Digs", "r")
    cascade = 'delete Bites where @src = "q" and @dst = "p" delete Ant where k = "r"'
    assert refused(graph, cascade) == ("W007", "Bites", "q")
    assert refused(graph, 'delete Ant where k = "r" delete Digs where @src = "p"')[::2] == ("W007", "p")
    assert refused(graph, 'delete Digs where @dst = "p" delete Ant where k = "r"') == ("W007", "Digs", "q")


def test_an_edge_that_a_record_moves_away_counts_to_that_record(graph: Graph) -> None:
    """The source that lost it has no record of its own, and is still judged before later lines."""
    digs = [{"edge": "Digs", "from": "r", "to": to, "id": f"d{to}"} for to in ("p", "q")]
    graph.load([*digs, *({"edge": "Digs", "from": "q", "to": to} for to in ("p", "q"))], mode="append")
    moved = {"edge": "Digs", "from": "q", "to": "p", "id": "dp"}
    bad = {"type": "Ant", "data": {"k": "a", "u": 5}}
    with pytest.raises(ConstraintViolation) as caught:
        graph.load([bad, moved, {"type": "Ant", "data": {"k": "b", "u": 5}}], mode="merge")
    assert (caught.value.details["code"], caught.value.details["entity_id"]) == ("W007", "r")
    assert caught.value.line_number == 2
    assert caught.value.message.startswith("line 2: ")


def test_every_range_of_a_property_holds(graph: Graph) -> None:
    assert refused(graph, 'insert Ant { k: "x", a: -1 }')[0] == "W003"
    assert refused(graph, 'insert Ant { k: "x", a: 101 }')[0] == "W003"
    graph.mutate('query m() { insert Ant { k: "x", a: 100 } }')
    with pytest.raises(ConstraintViolation):
        graph.load([{"type": "Ant", "data": {"k": "y", "a": 101}}], mode="append")
