"""Schema plan and apply on graphs with rows: what each step does to them, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import InvalidQuery, InvalidSchema, SchemaChangeRefused
from omnigraph.tables.version import TableVersion

FIRST = """
node Vessel { imo: U32 @key  title: String  tonnage: F64?  status: enum(active, sold) }
node Port { code: String @key }
edge CallsAt: Vessel -> Port { berth: String? }
"""


@pytest.fixture
def graph(any_root: str) -> Graph:
    graph = omnigraph.init(any_root, schema=FIRST)
    graph.load(
        [
            {"type": "Vessel", "data": {"imo": 1, "title": "Alma", "tonnage": 5.0, "status": "active"}},
            {"type": "Port", "data": {"code": "BGO"}},
            {"edge": "CallsAt", "from": "1", "to": "BGO", "data": {"berth": "A"}},
        ],
        mode="append",
    )
    return graph


def vessels(
    graph: Graph, *properties: str, type_name: str = "Vessel", snapshot: str | None = None
) -> list[dict[str, object]]:
    items = ", ".join(f"$v.{p} as {p}" for p in properties)
    return list(
        graph.query(
            f"query q() {{ match {{ $v: {type_name} }} return {{ {items} }} order {{ $v.@id }} }}", snapshot=snapshot
        )
    )


def test_a_new_property_is_null_in_old_rows_and_writable_at_once(graph: Graph) -> None:
    before = graph.head.graph_commit_id
    result = graph.schema.apply(FIRST.replace("tonnage: F64?", "tonnage: F64?  flag: String?"), message="flags")
    assert result.commit is not None
    assert (result.commit.kind, result.commit.message) == ("schema", "flags")
    assert vessels(graph, "title", "flag") == [{"title": "Alma", "flag": None}]
    graph.mutate('query m() { insert Vessel { imo: 2, title: "Brig", status: "sold", flag: "NO" } }')
    graph.mutate('query m() { update Vessel set { flag: "PT" } where imo = 1 }')
    assert vessels(graph, "title", "flag", "tonnage") == [
        {"title": "Alma", "flag": "PT", "tonnage": 5.0},
        {"title": "Brig", "flag": "NO", "tonnage": None},
    ]
    with pytest.raises(InvalidQuery):
        vessels(graph, "flag", snapshot=before)
    assert vessels(graph, "title", snapshot=before) == [{"title": "Alma"}]
    again = omnigraph.open(graph.uri)
    assert vessels(again, "flag") == [{"flag": "PT"}, {"flag": "NO"}]


def test_renames_keep_rows_ids_and_edges(graph: Graph) -> None:
    renamed = """
    node Ship @rename_from("Vessel") { imo: U32 @key  name: String @rename_from("title")  tonnage: F64?  status: enum(active, sold) }
    node Port { code: String @key }
    edge Visits: Ship -> Port @rename_from("CallsAt") { berth: String? }
    """
    result = graph.schema.apply(renamed)
    assert [(s["kind"], s["entity"]) for s in result.steps] == [
        ("rename_node", "node:Ship"),
        ("rename_property", "node:Ship.name"),
        ("rename_edge", "edge:Visits"),
    ]
    found = graph.query(
        "query q() { match { $s: Ship  $s visits $p } return { $s.name as n, $p.code as c, $s.@id as i } }"
    )
    assert list(found) == [{"n": "Alma", "c": "BGO", "i": "1"}]
    graph.mutate('query m() { update Ship set { name: "Alma II" } where imo = 1 }')
    graph.load([{"edge": "Visits", "from": "1", "to": "BGO"}], mode="append")
    assert vessels(graph, "name", "imo", type_name="Ship") == [{"name": "Alma II", "imo": 1}]
    assert graph.schema.apply(renamed).commit is None


def test_a_dropped_property_comes_back_as_null(graph: Graph) -> None:
    without = FIRST.replace("tonnage: F64?  ", "")
    with pytest.raises(SchemaChangeRefused) as caught:
        graph.schema.apply(without)
    assert [s["code"] for s in caught.value.steps if "code" in s] == ["OG-DS-104"]
    assert graph.schema.plan(without).supported
    graph.schema.apply(without, allow_data_loss=True)
    with pytest.raises(InvalidQuery):
        vessels(graph, "tonnage")
    graph.schema.apply(FIRST)
    assert vessels(graph, "title", "tonnage") == [{"title": "Alma", "tonnage": None}]
    graph.mutate("query m() { update Vessel set { tonnage: 7.0 } where imo = 1 }")
    assert vessels(graph, "tonnage") == [{"tonnage": 7.0}]


@pytest.mark.parametrize(
    ("of", "value"),
    [
        ("String", ""),
        ("Bool", False),
        ("I32", 0),
        ("I64", -1),
        ("U32", 2**32 - 1),
        ("U64", 2**64 - 1),
        ("F32", 0.0),
        ("F64", -0.0),
        ("Date", "0001-01-01"),
        ("DateTime", "2020-01-01T00:00:00.001"),
        ("enum(a, b)", "b"),
        ("[U64]", []),
        ("[String]", [None]),
        ("Vector(2)", [0, 1]),
        ("Blob", None),
    ],
)
def test_a_drop_says_whether_some_row_holds_a_value(tmp_path: Path, of: str, value: object) -> None:
    kept = "node K { k: String @key  l: [U32]? }"
    graph = omnigraph.init(tmp_path / "g", schema=kept.replace("l:", f"v: {of}?  l:"))

    def codes() -> list[object]:
        return [step["code"] for step in graph.schema.plan(kept).steps if "code" in step]

    assert codes() == []
    graph.load([{"type": "K", "data": {"k": "a"}}], mode="append")
    assert codes() == []
    if value is None:  # no Blob can be stored yet
        graph.schema.apply(kept)
        return
    graph.load([{"type": "K", "data": {"k": "b", "v": value}}], mode="append")
    lost = ["OG-DS-104", "OG-DS-105"] if of.startswith("Vector") else ["OG-DS-104"]
    assert codes() == lost
    with pytest.raises(SchemaChangeRefused) as caught:
        graph.schema.apply(kept)
    assert [step["code"] for step in caught.value.steps if "code" in step] == lost
    graph.schema.apply(kept, allow_data_loss=True)
    assert graph.query("query q() { match { $k: K } return { count($k) as n } }").scalar() == 2


def test_a_drop_reads_no_further_than_the_first_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = omnigraph.init(tmp_path / "g", schema="node K { v: I64?  w: I64? }")
    rows = pa.table({"v": [*[None] * 20_000, *range(40_000)], "w": pa.nulls(60_000, pa.int64())})
    graph.load(rows, mode="append", type="K")
    read: dict[str, int] = {}
    scan = TableVersion.scan

    def counted(self: TableVersion, columns: list[str], **options: Any) -> pa.RecordBatchReader:
        reader = scan(self, columns, **options)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                name = batch.schema.names[0]
                read[name] = read.get(name, 0) + batch.num_rows
                yield batch

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    monkeypatch.setattr(TableVersion, "scan", counted)
    graph.schema.plan("node K { w: I64? }")
    graph.schema.plan("node K { v: I64? }")
    assert sorted(read.values())[0] < 40_000 < sorted(read.values())[1] == 60_000


def test_a_dropped_type_is_gone_and_readable_in_the_past(graph: Graph) -> None:
    before = graph.head.graph_commit_id
    only_vessels = FIRST[: FIRST.index("node Port")]
    graph.schema.apply(only_vessels, allow_data_loss=True)
    assert [d.type_name for d in graph.summary().datasets] == ["Vessel"]
    found = graph.query("query q() { match { $v callsAt $p } return { $p.code as c } }", snapshot=before)
    assert found.scalars() == ["BGO"]
    graph.schema.apply(FIRST)
    assert graph.query("query q() { match { $p: Port } return { count($p) as n } }").scalar() == 0


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("tonnage: F64?", "tonnage: F64", "OG-MF-106"),
        ("title: String", "title: String  flag: String", "OG-MF-103"),
        ("code: String @key", "code: String @key  name: String? @unique", "OG-MF-201"),
        ("CallsAt: Vessel -> Port", "CallsAt: Port -> Vessel", "OG-ED-201"),
    ],
)
def test_what_the_rows_might_not_bear_is_refused_and_changes_nothing(
    graph: Graph, old: str, new: str, code: str
) -> None:
    head = graph.head.graph_commit_id
    text = FIRST.replace(old, new)
    plan = graph.schema.plan(text)
    assert not plan.supported
    assert code in [step.get("code") for step in plan.steps]
    with pytest.raises(SchemaChangeRefused):
        graph.schema.apply(text, allow_data_loss=True)
    assert graph.head.graph_commit_id == head


def test_a_widened_enum_takes_the_new_variant(graph: Graph) -> None:
    graph.schema.apply(FIRST.replace("enum(active, sold)", "enum(active, scrapped, sold)"))
    graph.mutate('query m() { update Vessel set { status: "scrapped" } where imo = 1 }')
    assert vessels(graph, "status") == [{"status": "scrapped"}]


def test_a_comment_is_recorded_and_the_same_text_commits_nothing(graph: Graph) -> None:
    text = FIRST + "// reviewed\n"
    result = graph.schema.apply(text)
    assert (result.steps, result.applied) == ((), True)
    assert graph.schema.source == text
    assert not graph.schema.apply(text)


def test_a_text_at_fault_is_refused_with_its_place(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(InvalidSchema) as caught:
        graph.schema.apply("node A { x: Strin }")
    assert caught.value.diagnostic.to_dict()["position"] == {"line": 1, "column": 13, "byte": 12}
    with pytest.raises(InvalidSchema):
        omnigraph.init(tmp_path / "new", schema="node A { x: Strin }")
    assert not (tmp_path / "new").exists()


def test_a_branch_has_the_schema_of_its_head(graph: Graph) -> None:
    graph.branches.create("b")
    graph.on("b").schema.apply(FIRST.replace("tonnage: F64?", "tonnage: F64?  flag: String?"))
    assert vessels(graph.on("b"), "flag") == [{"flag": None}]
    with pytest.raises(InvalidQuery):
        vessels(graph, "flag")
    graph.branches.merge("b")
    assert vessels(graph, "flag") == [{"flag": None}]


RENAMED = """
node Ship @rename_from("Vessel") { imo: U32 @key  name: String @rename_from("title") }
node Port { code: String @key }
edge Visits: Ship -> Port @rename_from("CallsAt") { place: String? @rename_from("berth") }
"""


@pytest.mark.parametrize(
    ("body", "code", "misfit", "then", "fix"),
    [
        ("match { $p: Port  $b: Ship } return { $p, $b.imo }", "T1", "Ship", "Vessel", "Vessel"),
        ("match { $v visits $p } return { $p.code }", "T4", "visits", "callsAt", "callsAt"),
        ("match { $v: Vessel } return { $v.name }", "T6", "name", "title", "$v.title"),
        ('match { $v: Vessel { name: "Alma" } } return { $v.imo }', "T2", "name", "title", "title"),
        ("match { $v $c:callsAt $p } return { $c.place }", "T6", "place", "berth", "$c.berth"),
    ],
)
def test_a_query_for_the_present_schema_is_told_the_name_that_the_past_had(
    tmp_path: Path, body: str, code: str, misfit: str, then: str, fix: str
) -> None:
    past = "node Vessel { imo: U32 @key  title: String } node Port { code: String @key }"
    graph = omnigraph.init(tmp_path / "g", schema=past + " edge CallsAt: Vessel -> Port { berth: String? }")
    before = graph.head
    graph.schema.apply(RENAMED)
    source = f"\ufeff// \u6f22\nquery q() {{ {body} }}"
    for ask in (graph.at(before).query, graph.at(before.created_at).query):
        with pytest.raises(InvalidQuery) as caught:
            ask(source)
        found = caught.value.diagnostic.to_dict()
        assert (found["code"], found["fix"]) == (code, fix)
        assert found["message"].endswith(f"; it was called `{then}` then")
        (edit,) = found["suggestion"]["edits"]
        text = source.encode()
        assert text[edit["start"] : edit["end"]].decode() == misfit
        mended = text[: edit["start"]] + edit["replacement"].encode() + text[edit["end"] :]
        assert graph.query(mended.decode(), snapshot=str(before)).columns


def test_only_a_rename_explains_an_old_name(graph: Graph) -> None:
    before = graph.head
    graph.schema.apply(FIRST + " node Buoy { name: String @key }")
    for name in ("Buoy", "Nothing"):
        source = f"query q() {{ match {{ $b: {name} }} return {{ $b }} }}"
        with pytest.raises(InvalidQuery) as caught:
            graph.query(source, snapshot=str(before))
        assert "it was called" not in caught.value.message
    with pytest.raises(InvalidQuery) as caught:
        graph.query("query q() { match { $v: Vesel } return { $v } }", snapshot=str(before))
    assert caught.value.diagnostic.to_dict()["fix"] == "Vessel"
