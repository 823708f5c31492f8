"""Schema changes are planned as languages.md 5 says (`migration.cases`, `renames.cases`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given

from omnigraph.errors import InvalidSchema
from omnigraph.lang.diagnostics import Diagnostic, SourceText, Span
from omnigraph.lang.schema.catalog import Catalog, NodeType, Property
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.printing import schema_text
from omnigraph.lang.schema.steps import MigrationPlan, with_row_warnings
from support.cases import Case, read_cases, refusal
from support.schemas import HARBOUR, counter, schema_texts

FOLDER = Path(__file__).parent
MIGRATIONS = read_cases(FOLDER / "migration.cases")
RENAMES = read_cases(FOLDER / "renames.cases")


def compiled(text: str) -> Catalog:
    return compile_schema(text, mint=counter())


def planned(accepted: str, desired: str) -> MigrationPlan:
    return plan_migration(compiled(accepted), accepted, desired, mint=counter(1000))


def applied(*texts: str) -> Catalog:
    """The catalog after a first text and migrations to each of the others."""
    catalog, source = compiled(texts[0]), texts[0]
    for number, text in enumerate(texts[1:], start=1):
        plan = plan_migration(catalog, source, text, mint=counter(1000 * number))
        assert plan.catalog is not None, plan.to_list()
        catalog, source = plan.catalog, text
    return catalog


def columns(catalog: Catalog, of: str = "A") -> dict[str, str]:
    return {declared.name: declared.column for declared in catalog.nodes[of].properties}


@pytest.mark.parametrize("case", MIGRATIONS, ids=lambda case: case.title)
def test_a_change_has_these_steps(case: Case) -> None:
    texts, _, wanted = case.body.partition("\n--")
    accepted, _, desired = texts.partition("\n=>\n")
    plan = planned(accepted, desired)
    assert [f"{s.kind} {s.entity} {s.code or ''}".strip() for s in plan.steps] == wanted.strip().splitlines()
    assert all(step.supported == (step.code is None) for step in plan.steps)
    assert plan.supported == all(step.supported for step in plan.steps)
    assert (plan.catalog is None) == (not plan.supported)
    assert plan.text_changed
    assert all(step.reason and "\n" not in step.reason for step in plan.steps)


def test_every_refusing_code_of_the_table_has_a_case() -> None:
    codes = {word for case in MIGRATIONS for word in case.body.split() if word.startswith("OG-")}
    reached = {"OG-MF-103", "OG-MF-106", "OG-MF-201", "OG-CD-201", "OG-ED-201", "OG-ED-202", "OG-VE-201"}
    assert codes == reached | {"OG-BC-201", "OG-BC-202", "OG-BC-203"}


@pytest.mark.parametrize("case", RENAMES, ids=lambda case: case.title)
def test_a_note_that_leads_nowhere_is_refused(case: Case) -> None:
    accepted, _, rest = case.body.partition("\n=>\n")
    wanted = refusal(replace(case, body=rest))
    with pytest.raises(InvalidSchema) as caught:
        planned(accepted, wanted.text)
    found = caught.value.diagnostic
    assert isinstance(found, Diagnostic)
    place = SourceText(wanted.text).positions(Span(wanted.start, wanted.end))
    assert (found.code, found.position, found.end) == ("S012", *place), found
    assert found.stage == "migration"
    assert wanted.expected is None or found.expected == wanted.expected
    assert wanted.fix is None or found.fix == wanted.fix
    assert not (wanted.no_fix and found.fix)


def test_the_identical_text_changes_nothing_at_all() -> None:
    catalog = compiled(HARBOUR)
    plan = plan_migration(catalog, HARBOUR, HARBOUR, mint=counter())
    assert plan == MigrationPlan((), HARBOUR, catalog, text_changed=False)


def test_a_faulty_text_is_an_error_and_no_plan() -> None:
    with pytest.raises(InvalidSchema) as caught:
        planned("node A { } edge E: A -> A", "edge E: A -> A")
    assert caught.value.diagnostic.code == "S003"


def test_case_forty() -> None:
    changes = [
        ("tonnage: F64?", "tonnage: F64", "OG-MF-106"),
        ("scrapped)", "scrapped, sold)", None),
        ("  tags: [String]?\n", "", "OG-DS-104"),
        ("code: String", "code: String @unique", "OG-MF-201"),
    ]
    together = HARBOUR
    for old, new, code in changes:
        together = together.replace(old, new)
        plan = planned(HARBOUR, HARBOUR.replace(old, new))
        (step,) = with_row_warnings(plan, lambda _: 3, lambda *_: True).steps
        assert (step.code, step.supported) == (code, code in (None, "OG-DS-104"))
    plan = planned(HARBOUR, together)
    assert (len(plan.steps), plan.supported, plan.catalog) == (4, False, None)


# --- what is kept


def test_ids_survive_renames_and_everything_else() -> None:
    before = compiled("interface I { i: I32 } node A implements I { a: I32 } edge E: A -> A { e: I32 }")
    after = applied(
        "interface I { i: I32 } node A implements I { a: I32 } edge E: A -> A { e: I32 }",
        """edge F: B -> B @rename_from("E") { f: I32 @rename_from("e") }
        node B @rename_from("A") implements I { b: I32 @rename_from("a") n: I32? }
        interface I { j: I32 @rename_from("i") }""",
    )

    def ids(of: NodeType) -> dict[str, str]:
        return {declared.name: declared.id for declared in of.properties}

    assert after.nodes["B"].id == before.nodes["A"].id
    assert after.edges["F"].id == before.edges["E"].id
    assert after.interfaces["I"].id == before.interfaces["I"].id
    old, new = ids(before.nodes["A"]), ids(after.nodes["B"])
    assert (new["b"], new["j"]) == (old["a"], old["i"])
    assert new["n"] not in old.values()
    assert after.edges["F"].properties[0].id == before.edges["E"].properties[0].id
    assert after.interfaces["I"].properties[0].id == before.interfaces["I"].properties[0].id


def test_a_column_keeps_its_first_name() -> None:
    after = applied("node A { a: I32 }", 'node A { b: I32 @rename_from("a") }', 'node A { c: I32 @rename_from("b") }')
    assert columns(after) == {"c": "a"}


def test_a_property_that_comes_back_is_a_new_one_in_a_new_column() -> None:
    texts = ["node A { a: I32? b: I32? }", "node A { b: I32? }", "node A { b: I32? a: I32? }"]
    first, last = compiled(texts[0]), applied(*texts)
    assert columns(last) == {"b": "b", "a": "a__2"}
    assert last.nodes["A"].retired == ("a",)
    assert last.nodes["A"].properties[1].id != first.nodes["A"].properties[0].id
    again = applied(*texts, "node A { b: I32? }", "node A { b: I32? a: String? }")
    assert columns(again)["a"] == "a__3"
    assert again.nodes["A"].retired == ("a", "a__2")


def test_a_new_property_avoids_every_column_that_was_ever_used() -> None:
    renamed = 'node A { b: I32? @rename_from("a") }'
    after = applied("node A { a: I32? }", renamed, renamed.replace("}", "a: I32? a__2: I32? }"))
    assert columns(after) == {"b": "a", "a": "a__2", "a__2": "a__2__2"}


def test_a_type_that_comes_back_is_a_new_one() -> None:
    texts = ["node A { a: I32 }", "", "node A { a: I32 }"]
    first, last = compiled(texts[0]), applied(*texts)
    assert last.nodes["A"].id != first.nodes["A"].id
    assert columns(last) == {"a": "a"}
    assert last.nodes["A"].retired == ()


def test_the_order_of_a_key_is_that_of_its_creation() -> None:
    after = applied(
        "node A { a: I32 b: I32 @key(b, a) } edge E: A -> A { a: I32 b: I32 @key(@src, @dst, a, b) }",
        """node A { b: I32 z: I32 @rename_from("a") @key(b, z) }
        edge E: A -> A { z: I32 @rename_from("a") b: I32 @key(b, z, @src, @dst) }""",
    )
    assert after.nodes["A"].key == ("z", "b")
    assert after.edges["E"].key == ("@src", "@dst", "z", "b")


def test_a_new_layout_changes_the_catalog_only_in_its_order() -> None:
    after = applied("node A { a: I32 b: I32? } node B { }", "node B { } node A { b: I32? a: I32 }")
    assert list(after.nodes) == ["B", "A"]
    assert list(columns(after)) == ["b", "a"]


def test_a_widened_enum_and_a_new_index_are_in_the_new_catalog() -> None:
    after = applied("node A { a: enum(x) b: String }", 'node A { a: enum(y, x) b: String @index @description("t") }')
    first, second = after.nodes["A"].properties
    assert first.type.variants == ("x", "y")
    assert (second.indexed, second.description) == (True, "t")


# --- rows


def test_dropping_what_holds_rows_or_values_is_a_warning() -> None:
    accepted = "node A { a: I32 v: Vector(2)? } node B { } edge E: A -> A { e: I32? } edge F: A -> B"
    plan = planned(accepted, "node A { } edge E: A -> A")
    before = compiled(accepted)
    asked: list[tuple[str, ...]] = []

    def rows(type_id: str) -> int:
        asked.append((type_id,))
        return 2

    def values(type_id: str, column: str) -> bool:
        asked.append((type_id, column))
        return True

    warned = with_row_warnings(plan, rows, values)
    assert [(step.kind, step.entity, step.code) for step in warned.steps] == [
        ("drop_property", "node:A.a", "OG-DS-104"),
        ("drop_property", "node:A.v", "OG-DS-104"),
        ("warning", "node:A.v", "OG-DS-105"),
        ("drop_node", "node:B", "OG-DS-102"),
        ("drop_property", "edge:E.e", "OG-DS-104"),
        ("drop_edge", "edge:F", "OG-DS-103"),
    ]
    assert all(step.severity == "warning" and step.supported for step in warned.steps)
    assert warned.loses_data
    assert warned.supported
    a, b, e, f = before.nodes["A"].id, before.nodes["B"].id, before.edges["E"].id, before.edges["F"].id
    assert asked == [(a, "a"), (a, "v"), (b,), (e, "e"), (f,)]
    assert len(plan.drops) == 5


def test_dropping_what_is_empty_is_no_warning() -> None:
    plan = planned("node A { v: Vector(2)? } node B { }", "node A { }")
    assert with_row_warnings(plan, lambda _: 0, lambda *_: False) == plan
    assert not plan.loses_data


def test_a_drop_names_the_column_that_holds_the_values() -> None:
    first = 'node A { b: I32? @rename_from("a") }'
    plan = plan_migration(applied("node A { a: I32? }", first), first, "node A { }", mint=counter())
    (drop,) = plan.drops
    assert drop.column == "a"


def test_a_dropped_property_of_an_interface_holds_nothing_itself() -> None:
    plan = planned("interface I { a: I32 } node A implements I { }", "interface I { } node A implements I { }")
    assert [step.drop is None for step in plan.steps] == [True, False]


def test_a_step_on_the_wire_has_no_nulls() -> None:
    plan = planned("node A { a: I32 }", 'node B @rename_from("A") { a: I64 }')
    assert plan.to_list() == [
        {
            "entity": "node:B",
            "kind": "rename_node",
            "reason": "renamed from A",
            "renamed_from": "A",
            "severity": "info",
            "supported": True,
        },
        {
            "entity": "node:B.a",
            "kind": "change_type",
            "reason": "I32 becomes I64",
            "code": "OG-MF-106",
            "severity": "refused",
            "supported": False,
        },
    ]


# --- completeness


@dataclass(frozen=True, slots=True)
class LaterNode(NodeType):
    """A node type as a later program may write it."""

    retention: str = "forever"


@dataclass(frozen=True, slots=True)
class LaterProperty(Property):
    unit: str = "m"


def test_a_difference_that_no_rule_explains_is_refused() -> None:
    catalog = compiled("node A { a: I32 }")
    node = catalog.nodes["A"]
    odd = LaterProperty(**{name: getattr(node.properties[0], name) for name in Property.__dataclass_fields__})
    fields = {name: getattr(node, name) for name in NodeType.__dataclass_fields__ if name != "kind"}
    later = replace(catalog, nodes={"A": LaterNode(**{**fields, "properties": (odd,)})})
    plan = plan_migration(later, "node A { a: I32 }", "node A { a: I32 } // x", mint=counter())
    assert [(step.entity, step.code) for step in plan.steps] == [("node:A", "OG-XX-999"), ("node:A.a", "OG-XX-999")]
    assert plan.catalog is None


@given(schema_texts())
def test_a_schema_migrates_to_itself_without_steps(text: str) -> None:
    catalog = compiled(text)
    printed = schema_text(catalog) + "// layout\n"
    plan = plan_migration(catalog, text, printed, mint=counter(1000))
    assert plan.steps == ()
    assert repr(plan.catalog) == repr(catalog)


@given(schema_texts(), schema_texts())
def test_a_plan_that_is_supported_leads_to_the_desired_schema(accepted: str, desired: str) -> None:
    before = compiled(accepted)
    plan = plan_migration(before, accepted, desired, mint=counter(1000))
    if plan.catalog is None:
        return
    after, fresh = plan.catalog, compiled(desired)
    assert schema_text(after) == schema_text(fresh)
    for kind_before, kind_after in ((before.nodes, after.nodes), (before.edges, after.edges)):
        for name, of in kind_after.items():
            stored = [*(declared.column for declared in of.properties), *of.retired]
            assert len(stored) == len(set(stored))
            if name in kind_before:
                used = {declared.id: declared.column for declared in kind_before[name].properties}
                assert all(used.get(d.id, d.column) == d.column for d in of.properties)
                assert set(used.values()) <= set(stored)
