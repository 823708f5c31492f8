"""Mutations through the public handle, on the harbour of languages.md (cases of section 22 by their number)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import (
    ConstraintViolation,
    InvalidParams,
    InvalidQuery,
    InvalidRequest,
    LimitExceeded,
    PreconditionFailed,
)

HARBOUR = (Path(__file__).parent.parent / "data" / "harbour.pg").read_text()

ROWS: list[dict[str, Any]] = [
    {
        "type": "Vessel",
        "data": {
            "imo": 1,
            "title": "Alma",
            "tonnage": 500.0,
            "status": "active",
            "tags": ["ferry", "night"],
            "hull": [0, 0],
        },
    },
    {"type": "Vessel", "data": {"imo": 2, "title": "Brig", "status": "laid-up", "hull": [3, 4]}},
    {"type": "Vessel", "data": {"imo": 3, "title": "Corvo", "tonnage": 1200.5, "status": "active", "tags": []}},
    {"type": "Port", "data": {"country": "NO", "code": "BGO", "title": "Bergen"}},
    {"type": "Port", "data": {"country": "PT", "code": "LIS", "title": "Lisboa"}},
    {"type": "Sailor", "id": "s1", "data": {"name": "Ines", "rank": 3}},
    {"type": "Sailor", "id": "s2", "data": {"name": "Otto"}},
    {"type": "Sailor", "id": "s3", "data": {"name": "Pia", "rank": 3}},
    {"edge": "CallsAt", "from": "1", "to": '["BGO","NO"]', "id": "c1", "data": {"berth": "A"}},
    {"edge": "CallsAt", "from": "1", "to": '["BGO","NO"]', "id": "c2", "data": {"berth": "B"}},
    {"edge": "CallsAt", "from": "3", "to": '["LIS","PT"]', "id": "c3"},
    {"edge": "CallsAt", "from": "2", "to": '["BGO","NO"]', "id": "c4", "data": {"berth": "A"}},
    *(
        {"edge": "Follows", "from": a, "to": b, "id": i}
        for i, a, b in [("f1", "1", "2"), ("f2", "2", "3"), ("f3", "3", "1"), ("f4", "3", "3"), ("f5", "1", "2")]
    ),
    {"edge": "Tows", "from": "1", "to": "2"},
    {"edge": "ServesOn", "from": "s1", "to": "1", "id": "v1"},
    {"edge": "ServesOn", "from": "s2", "to": "1", "id": "v2"},
]


@pytest.fixture
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    graph = omnigraph.init(tmp_path / "harbour", schema=HARBOUR)
    graph.load(ROWS, mode="append")
    return graph


def run(graph: Graph, body: str, **params: Any) -> Any:
    declared = ", ".join(f"${name}: {_type(value)}" for name, value in params.items())
    return graph.mutate(f"query m({declared}) {{ {body} }}", params)


def _type(value: Any) -> str:
    return "I64?" if isinstance(value, int) else "String?"


def rows(graph: Graph, type_name: str, *properties: str) -> list[dict[str, Any]]:
    items = ", ".join(f"$x.{p} as {p.lstrip('@')}" for p in properties)
    return list(graph.query(f"query r() {{ match {{ $x: {type_name} }} return {{ {items} }} order {{ $x.@id }} }}"))


def test_case_28_a_keyed_insert_replaces_the_whole_row(harbour: Graph) -> None:
    result = run(harbour, 'insert Vessel { imo: 1, title: "Alma II", status: "active" }')
    assert (result.affected_nodes, result.affected_edges, result.ids) == (1, 0, ("1",))
    assert result.commit.counts["node:Vessel"].updated == 1
    assert rows(harbour, "Vessel", "title", "tonnage", "tags")[0] == {"title": "Alma II", "tonnage": None, "tags": None}


def test_case_29_a_keyed_edge_is_one_row_however_often_inserted(harbour: Graph) -> None:
    for _ in range(2):
        result = run(harbour, 'insert Tows { from: "1", to: "2", since: date("2024-01-01") }')
        assert (result.affected_nodes, result.affected_edges) == (0, 1)
    found = harbour.query("query r() { match { $a $t:tows $b } return { $t.since as since } }")
    assert [str(row["since"]) for row in found] == ["2024-01-01"]


def test_case_30_an_unkeyed_edge_twice_is_two_parallel_edges(harbour: Graph) -> None:
    insert = r'insert CallsAt { from: "1", to: "[\"BGO\",\"NO\"]" }'
    result = run(harbour, f"{insert} {insert}")
    assert result.affected_edges == 2
    assert len(set(result.ids)) == 2
    assert list(result.ids) == sorted(result.ids)
    assert harbour.query("query r() { match { $v $c:callsAt $p } return { count($c.@id) as n } }").scalar() == 6


def test_case_31_the_id_of_a_composite_key_is_the_array(harbour: Graph) -> None:
    with pytest.raises(ConstraintViolation) as caught:
        run(harbour, 'insert CallsAt { from: "1", to: "BGO" }')
    assert caught.value.details["code"] == "W006"


def test_case_32_a_key_cant_be_updated(harbour: Graph) -> None:
    with pytest.raises(InvalidQuery) as caught:
        run(harbour, 'update Port set { code: "OSL" } where code = "BGO"')
    assert caught.value.diagnostic.code == "T64"


def test_case_33_deleting_a_node_takes_its_edges_and_deleting_it_again_commits_nothing(harbour: Graph) -> None:
    result = run(harbour, "delete Vessel where imo = 1")
    assert (result.affected_nodes, result.affected_edges) == (1, 8)
    deleted = {name: c.deleted for name, c in result.commit.counts.items()}
    assert deleted == {"node:Vessel": 1, "edge:CallsAt": 2, "edge:Follows": 3, "edge:Tows": 1, "edge:ServesOn": 2}
    again = run(harbour, "delete Vessel where imo = 1")
    assert (again.affected_nodes, again.affected_edges, again.commit) == (0, 0, None)


def test_case_34_both_kinds_in_one_mutation_are_refused(harbour: Graph) -> None:
    head = harbour.head
    with pytest.raises(InvalidQuery) as caught:
        run(harbour, 'insert Sailor { name: "X" } delete Sailor where name = "Ines"')
    assert caught.value.diagnostic.code == "T65"
    assert harbour.head == head


def test_case_35_cardinality_counts_the_final_state(harbour: Graph) -> None:
    with pytest.raises(ConstraintViolation) as caught:
        run(harbour, 'insert ServesOn { from: "s1", to: "2" }')
    details = caught.value.details
    assert (details["code"], details["constraint"]) == ("W007", "cardinality")
    assert (details["entity_kind"], details["type_name"], details["entity_id"]) == ("node", "Sailor", "s1")
    assert details["property"] is None
    assert details["message"] == 'ServesOn: @card(0..1): Sailor "s1" would have 2 of these edges'
    run(harbour, 'delete ServesOn where @src = "s1"')
    run(harbour, 'insert ServesOn { from: "s1", to: "2" }')


def test_a_lower_bound_does_not_hold_a_source_that_is_deleted(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node N { k: String @key } edge E: N -> N @card(2..)")
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "b"), ("c", "b"), ("c", "b")]
    graph.load(
        [
            *({"type": "N", "data": {"k": key}} for key in "abc"),
            *({"edge": "E", "from": src, "to": dst} for src, dst in pairs),
        ],
        mode="append",
    )
    for body in ('delete E where @src = "a" and @dst = "b"', 'delete N where k = "c"'):  # the edge, or its target
        with pytest.raises(ConstraintViolation) as caught:
            run(graph, body)
        assert (caught.value.details["code"], caught.value.details["entity_id"]) == ("W007", "a")
    result = run(graph, 'delete N where k = "a"')
    assert (result.affected_nodes, result.affected_edges) == (1, 2)
    result = run(graph, 'delete N where k = "b" or k = "c"')
    assert (result.affected_nodes, result.affected_edges) == (2, 4)


def test_case_36_two_updates_may_swap_unique_values(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node N { k: I64 @key  u: I64 @unique }")
    run(graph, "insert N { k: 1, u: 10 } insert N { k: 2, u: 20 }")
    run(graph, "update N set { u: 20 } where k = 1 update N set { u: 10 } where k = 2")
    assert [row["u"] for row in rows(graph, "N", "u")] == [20, 10]
    with pytest.raises(ConstraintViolation) as caught:
        run(graph, "update N set { u: 10 } where k = 1")
    assert caught.value.details["code"] == "W005"
    with pytest.raises(ConstraintViolation):
        run(graph, "insert N { k: 3, u: 10 }")
    run(graph, "insert N { k: 2, u: 30 } insert N { k: 3, u: 10 }")


def test_an_update_changes_what_it_names_and_keeps_the_rest(harbour: Graph) -> None:
    result = run(harbour, 'update Vessel set { status: "scrapped" } where status = "laid-up" and built is null')
    assert (result.affected_nodes, result.commit.counts["node:Vessel"].updated) == (1, 1)
    found = rows(harbour, "Vessel", "title", "status", "hull")
    assert found[1] == {"title": "Brig", "status": "scrapped", "hull": [3.0, 4.0]}
    assert len(harbour.query("query r() { match { $v: Vessel } return { $v.title } }")) == 3


def test_each_statement_sees_what_the_earlier_ones_did(harbour: Graph) -> None:
    result = run(
        harbour,
        'insert Vessel { imo: 9, title: "New", status: "laid-up" }'
        ' update Vessel set { status: "active" } where status = "laid-up"'
        ' update Vessel set { title: "Newer" } where imo = 9',
    )
    assert result.affected_nodes == 1 + 2 + 1
    assert result.commit.counts["node:Vessel"].inserted == 1
    assert rows(harbour, "Vessel", "title", "status")[-1] == {"title": "Newer", "status": "active"}


def test_the_later_insert_of_one_key_wins_and_an_update_of_it_is_seen(harbour: Graph) -> None:
    result = run(
        harbour,
        'insert Vessel { imo: 9, title: "A", status: "active" } insert Vessel { imo: 9, title: "B", status: "active" }',
    )
    assert result.affected_nodes == 2
    assert result.ids == ("9", "9")
    assert rows(harbour, "Vessel", "title")[-1] == {"title": "B"}


def test_an_edge_may_come_before_its_node_in_one_mutation(harbour: Graph) -> None:
    result = run(
        harbour, 'insert Follows { from: "9", to: "1" } insert Vessel { imo: 9, title: "N", status: "active" }'
    )
    assert (result.affected_nodes, result.affected_edges) == (1, 1)


def test_deletes_see_each_other_and_count_an_edge_once(harbour: Graph) -> None:
    result = run(harbour, "delete Vessel where imo = 1 delete Vessel where imo = 2")
    assert result.affected_nodes == 2
    assert result.affected_edges == 8 + 2


def test_delete_of_edges_by_their_ends(harbour: Graph) -> None:
    result = run(harbour, 'delete CallsAt where @src = "1" and berth = "B"')
    assert (result.affected_nodes, result.affected_edges) == (0, 1)
    assert "c2" not in [
        r["id"] for r in harbour.query("query r() { match { $v $c:callsAt $p } return { $c.@id as id } }")
    ]


@pytest.mark.parametrize(
    ("body", "params", "code"),
    [
        ('insert Vessel { imo: $n, title: "x", status: "active" }', {"n": -1}, "W009"),
        ('insert Vessel { imo: 7, title: "x", status: $s }', {"s": "sunk"}, "W002"),
        ('insert Vessel { imo: 7, title: $s, status: "active" }', {"s": None}, "W001"),
        ('insert Vessel { imo: 7, title: "x", status: "active", tonnage: -1.0 }', {}, "W003"),
        ('insert Port { country: "NO", code: "bgo", title: "x" }', {}, "W004"),
        ('insert Port { country: "", code: "BGO", title: "x" }', {}, None),
    ],
)
def test_values_are_judged_when_they_run(harbour: Graph, body: str, params: dict[str, Any], code: str | None) -> None:
    head = harbour.head
    if code is None:
        run(harbour, body, **params)  # one empty member of a composite key is no empty key
        return
    with pytest.raises(ConstraintViolation) as caught:
        run(harbour, body, **params)
    assert caught.value.details["code"] == code
    assert harbour.head == head


def test_a_read_sent_to_mutate_and_a_mutation_sent_to_query_are_refused(harbour: Graph) -> None:
    with pytest.raises(InvalidRequest) as caught:
        harbour.mutate("query r() { match { $v: Vessel } return { $v } }")
    assert caught.value.code == "wrong_verb"
    with pytest.raises(InvalidRequest) as caught:
        harbour.query('query m() { insert Sailor { name: "x" } }')
    assert caught.value.code == "wrong_verb"


def test_a_parameter_that_is_missing_or_unknown_is_refused(harbour: Graph) -> None:
    text = "query m($n: String) { insert Sailor { name: $n } }"
    for given, code in (({}, "P001"), ({"n": "a", "x": 1}, "P004"), ({"n": 3}, "P002")):
        with pytest.raises(InvalidParams) as caught:
            harbour.mutate(text, given)
        assert caught.value.diagnostic.code == code


def test_a_condition_on_the_head_is_judged_before_anything_else(harbour: Graph) -> None:
    first = harbour.head.graph_commit_id
    harbour.mutate('query m() { insert Sailor { name: "A" } }', if_commit=first)
    with pytest.raises(PreconditionFailed) as caught:
        harbour.mutate('query m() { delete Sailor where name = "nobody" }', if_commit=first)
    assert caught.value.expected == first
    assert caught.value.actual == harbour.head.graph_commit_id


def test_a_key_gives_the_first_receipt_again(harbour: Graph) -> None:
    text = "query m($n: String) { insert Sailor { name: $n } }"
    first = harbour.mutate(text, n="A", idempotency_key="k")
    again = omnigraph.open(harbour.uri).mutate(text, n="A", idempotency_key="k")
    assert again.replayed
    assert (again.commit, again.ids, again.affected_nodes) == (first.commit, first.ids, 1)
    with pytest.raises(omnigraph.errors.IdempotencyKeyReused):
        harbour.mutate(text, n="B", idempotency_key="k")


def test_now_is_one_moment_for_a_whole_mutation(harbour: Graph) -> None:
    run(harbour, 'insert Sailor { name: "A", joined: now() } insert Sailor { name: "B", joined: now() }')
    found = harbour.query("query r() { match { $s: Sailor  $s.joined is not null } return { $s.joined as j } }")
    assert len(found) == 2
    assert found[0]["j"] == found[1]["j"]


@pytest.mark.parametrize(
    "odd",
    [
        "O'Neil",
        'say "hi"',
        "back\\slash",
        "100%",
        "a_b",
        "x' OR 'a'='a",
        "`tick`",
        "{b}",
        "$p",
        "a\nb",
        "é",
        "e\u0301",
        "\u202egnp",
        "x" * 70_000,
    ],
)
def test_any_text_is_a_value_and_nothing_else(tmp_path: Path, odd: str) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node N { k: String @key  t: String? } edge E: N -> N { t: String? }")
    graph.mutate(
        'query m($k: String) { insert N { k: $k, t: $k } insert N { k: "other", t: "b" } insert E { from: $k, to: "other", t: $k } }',
        k=odd,
    )
    assert graph.query("query r($k: String) { match { $n: N { t: $k } } return { $n.k as k } }", k=odd).scalars() == [
        odd
    ]
    assert (
        len(graph.query("query r($k: String) { match { $n: N { k: $k }  $n e $m } return { $m.k as k } }", k=odd)) == 1
    )
    assert graph.mutate('query m($k: String) { update N set { t: "new" } where k = $k }', k=odd).affected_nodes == 1
    assert graph.mutate("query m($k: String) { delete E where t = $k }", k=odd).affected_edges == 1
    assert graph.mutate("query m($k: String) { delete N where k = $k }", k=odd).affected_nodes == 1
    assert graph.mutate("query m($k: String) { delete N where k = $k }", k=odd).affected_nodes == 0
    assert [r["k"] for r in rows(graph, "N", "k")] == ["other"]


TOO_MUCH = [
    ("query q($s: String) { insert Sailor { name: $s } }", "write_bytes:node:Sailor"),
    ("query q($s: String) { update Sailor set { name: $s } where rank = 3 }", "write_bytes:node:Sailor"),
    (
        'query q($s: String) { insert Sailor { name: $s } insert Port { country: "SE", code: "STO", title: $s } }',
        "write_bytes",
    ),
]


@pytest.mark.parametrize(("query", "resource"), TOO_MUCH)
def test_a_write_that_is_too_large_is_refused_before_anything_is_staged(
    harbour: Graph, monkeypatch: pytest.MonkeyPatch, query: str, resource: str
) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITE_BYTES", "4000")
    small = omnigraph.open(harbour.uri)
    length = 2_500 if resource == "write_bytes" or "update" in query else 5_000
    files = sorted(Path(harbour.uri).rglob("*.lance"))
    with pytest.raises(LimitExceeded) as caught:
        small.mutate(query, s="x" * length)
    details = caught.value.details
    assert (details["resource"], details["limit"]) == (resource, 4_000)
    assert details["actual"] > 4_000
    assert sorted(Path(harbour.uri).rglob("*.lance")) == files
    small.mutate(query, s="x" * 100)


def test_a_mutation_of_too_many_entities_is_refused(harbour: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITE_ENTITIES", "1")
    small = omnigraph.open(harbour.uri)
    with pytest.raises(LimitExceeded) as caught:
        small.mutate("query q() { update Sailor set { rank: 4 } where rank = 3 }")
    assert caught.value.details == {"resource": "write_entities:node:Sailor", "limit": 1, "actual": 2}
