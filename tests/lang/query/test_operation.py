"""What a query reads, writes and answers."""

from __future__ import annotations

import pytest

from omnigraph.lang.query.check import check
from omnigraph.lang.query.operation import Operation, describe
from omnigraph.lang.schema.catalog import Catalog


def operation(body: str, catalog: Catalog, params: str = "") -> Operation:
    (query,) = check(f"query q({params}) {{ {body} }}", catalog)
    return describe(query, catalog)


def names(refs: tuple[object, ...]) -> list[str]:
    return [f"{ref.kind} {ref.type_name}" for ref in refs]  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("block", "reads"),
    [
        ("$v: Vessel", ["node Vessel"]),
        ("$v callsAt $_", ["edge CallsAt", "node Port", "node Vessel"]),
        (
            "$s: Sailor  not { $s servesOn $v  exists { $v * $v  $v: Vessel } }",
            ["edge Follows", "edge Marks", "edge ServesOn", "edge Tows", "node Sailor", "node Vessel"],
        ),
        ("$s: Sailor  $p: Port  $s * $p", ["node Port", "node Sailor"]),
    ],
)
def test_a_read_reads_every_type_it_may_look_at(block: str, reads: list[str], catalog: Catalog) -> None:
    found = operation(f"match {{ {block} }} return {{ 1 }}", catalog)
    assert names(found.reads) == reads
    assert found.writes == ()


@pytest.mark.parametrize(
    ("body", "reads", "writes"),
    [
        ('insert Sailor { name: "x" }', ["node Sailor"], ["node Sailor"]),
        ('insert CallsAt { from: "1", to: "2" }', ["edge CallsAt", "node Port", "node Vessel"], ["edge CallsAt"]),
        (
            'insert Sailor { name: "x" } update Port set { title: "x" } where true',
            ["node Port", "node Sailor"],
            ["node Port", "node Sailor"],
        ),
        (
            "delete Port where true",
            ["edge CallsAt", "edge Hosts", "edge In", "node Port"],
            ["edge CallsAt", "edge Hosts", "edge In", "node Port"],
        ),
        ("delete Tows where true", ["edge Tows"], ["edge Tows"]),
    ],
)
def test_a_mutation_reads_its_targets_and_writes_what_goes_with_them(
    body: str, reads: list[str], writes: list[str], catalog: Catalog
) -> None:
    found = operation(body, catalog)
    assert (names(found.reads), names(found.writes)) == (reads, writes)
    assert found.result == ()


def test_the_result_names_kinds(catalog: Catalog) -> None:
    found = operation(
        "match { $v: Vessel  $s: Sailor } return { $v, $v.title, $v.note, $v.status, $v.imo, $v.tonnage, $v.built, "
        "$v.tags, $v.hull, $s.joined, $b as flag, $n as wide } order { $v.title }",
        catalog,
        "$b: Bool, $n: U64",
    )
    assert [field.to_dict() for field in found.result] == [
        {"name": "v", "kind": "object", "nullable": False},
        {"name": "v.title", "kind": "string", "nullable": False},
        {"name": "v.note", "kind": "string", "nullable": True},
        {"name": "v.status", "kind": "string", "nullable": False},
        {"name": "v.imo", "kind": "int", "nullable": False},
        {"name": "v.tonnage", "kind": "float", "nullable": True},
        {"name": "v.built", "kind": "date", "nullable": True},
        {"name": "v.tags", "kind": "list", "nullable": True, "item_kind": "string"},
        {"name": "v.hull", "kind": "vector", "nullable": True, "vector_dim": 2},
        {"name": "s.joined", "kind": "datetime", "nullable": True},
        {"name": "flag", "kind": "bool", "nullable": False},
        {"name": "wide", "kind": "bigint", "nullable": False},
    ]
    assert found.to_dict()["reads"] == [
        {"kind": "node", "type_name": "Sailor"},
        {"kind": "node", "type_name": "Vessel"},
    ]
