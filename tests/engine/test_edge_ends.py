"""Edge ends of several types in one load: looked up together, judged each for itself (languages.md 4.4, W006)."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ConstraintViolation

SCHEMA = """
node A { k: String @key }
node B { k: String @key }
edge Ab: A -> B
edge Ba: B -> A
edge Aa: A -> A
"""

NODES = ['{"type":"A","data":{"k":"a1"}}', '{"type":"A","data":{"k":"a2"}}', '{"type":"B","data":{"k":"b1"}}']


def edge(edge_type: str, source: str, target: str) -> str:
    return f'{{"edge":"{edge_type}","from":"{source}","to":"{target}"}}'


RIGHT = [edge("Ab", "a1", "b1"), edge("Ba", "b1", "a2"), edge("Aa", "a1", "a2"), edge("Ab", "a2", "b1")]


@pytest.mark.parametrize("stored", [False, True], ids=["nodes of the same load", "nodes of the base"])
@pytest.mark.parametrize(
    ("wrong", "member"),
    [
        (edge("Ab", "b1", "b1"), "@src"),
        (edge("Ab", "a1", "a1"), "@dst"),
        (edge("Ba", "b1", "b1"), "@dst"),
        (edge("Aa", "a1", "b1"), "@dst"),
        (edge("Aa", "b1", "a1"), "@src"),
    ],
)
def test_an_end_is_looked_for_among_the_nodes_of_its_own_type(
    tmp_path: Path, stored: bool, wrong: str, member: str
) -> None:
    with omnigraph.init(tmp_path / "g", schema=SCHEMA) as graph:
        before: list[str] = []
        if stored:
            graph.load(NODES, mode="append")
        else:
            before = NODES
        lines = [*before, *RIGHT, wrong, *RIGHT]
        with pytest.raises(ConstraintViolation) as caught:
            graph.load(lines, mode="append")
        found = caught.value.details
        assert (found["code"], found["property"], found["line_number"]) == (
            "W006",
            member,
            len(before) + len(RIGHT) + 1,
        )
        assert graph.load([*before, *RIGHT], mode="append").total_entities == len(before) + len(RIGHT)
