"""`graph.export`: load records as Python values, of any state."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import InvalidRequest
from support.command_line import HARBOUR, RECORDS

DETAILED: list[dict[str, Any]] = [
    *RECORDS,
    {
        "type": "Vessel",
        "data": {
            "imo": 3,
            "title": 'a\nb "c" 漢 \u2028',
            "status": "active",
            "draught": 0.1,
            "built": "2024-01-05",
            "tags": ["x", "y"],
            "hull": [0.1, 2.0],
            "note": "n" * 200_000,  # longer than a piece of the byte form
        },
    },
    {"type": "Sailor", "id": "s1", "data": {"name": "Ines", "joined": "2024-01-05T06:07:08.250"}},
]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", schema=HARBOUR)
    graph.load(DETAILED, mode="append")
    return graph


def test_the_records_of_an_export_load_back_into_an_equal_graph(graph: Graph, tmp_path: Path) -> None:
    records = list(graph.export())
    assert [r.get("type", r.get("edge")) for r in records] == [
        "Port",
        "Sailor",
        "Vessel",
        "Vessel",
        "Vessel",
        "CallsAt",
    ]
    assert records[1] == {"type": "Sailor", "id": "s1", "data": {"name": "Ines", "joined": "2024-01-05T06:07:08.250"}}
    other = omnigraph.init(tmp_path / "other", schema=HARBOUR)
    assert other.load(list(graph.export()), mode="append").total_entities == 6
    assert list(other.export()) == records
    assert b"".join(other.export_stream()[1]) == b"".join(graph.export_stream()[1])


def test_an_export_is_of_the_state_at_the_call_and_of_the_types_that_were_named(graph: Graph) -> None:
    begun = graph.export(types=["Sailor"])
    graph.mutate('query m() { insert Sailor { name: "Late" } }')
    assert [record["data"]["name"] for record in begun] == ["Ines"]
    for types in ("Sailor", ["Sailer"], [5], 5):
        with pytest.raises(InvalidRequest) as caught:
            graph.export(types=types)  # type: ignore[call-overload]
        assert caught.value.code == "bad_request"
    with pytest.raises(InvalidRequest, match="Did you mean 'Sailor'"):
        graph.export(types=["Sailer"])


def test_an_export_and_a_summary_may_be_of_a_time(graph: Graph) -> None:
    then = graph.head.created_at
    graph.mutate('query m() { insert Sailor { name: "Late" } }')
    assert len(list(graph.export(types=["Sailor"]))) == 2
    assert len(list(graph.export(types=["Sailor"], as_of=then))) == 1
    assert len(list(graph.at(then).export(types=["Sailor"]))) == 1
    assert graph.export_stream(as_of=then)[0] == graph.summary(as_of=then).graph_commit_id
    assert graph.summary(as_of=then).graph_commit_id != graph.head.graph_commit_id
    with pytest.raises(InvalidRequest, match="future"):
        graph.export(as_of=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))


def test_one_entity_is_read_by_its_id_with_all_its_properties(graph: Graph) -> None:
    before = graph.head
    found = graph.get("Vessel", "3")
    assert found is not None
    assert list(found) == [
        "@id",
        "imo",
        "tonnage",
        "draught",
        "built",
        "status",
        "tags",
        "hull",
        "papers",
        "title",
        "note",
    ]
    assert (found["@id"], found["imo"], found["tonnage"], found["built"]) == ("3", 3, None, dt.date(2024, 1, 5))
    assert found["hull"] == pytest.approx([0.1, 2.0])
    edge = {"@id": "c1", "@src": "1", "@dst": '["BGO","NO"]', "berth": "A", "arrived": None}
    assert graph.get("CallsAt", "c1") == graph.get("callsAt", "c1") == edge
    assert graph.get("Sailor", "s1")["joined"] == dt.datetime(2024, 1, 5, 6, 7, 8, 250_000, dt.UTC)  # type: ignore[index]
    graph.mutate("query m() { delete Vessel where imo = 3 }")
    assert graph.get("Vessel", "3") is None
    assert graph.get("Vessel", "3", snapshot=str(before)) == found
    assert graph.get("Vessel", "3", as_of=before.created_at) == found
    assert graph.at(before).get("Vessel", "3") == found
    assert graph.get("CallsAt", "nothing") is None
    with pytest.raises(InvalidRequest, match="Did you mean 'Vessel'"):
        graph.get("Vesel", "3")
