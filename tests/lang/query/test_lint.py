"""What lint says of queries and schemas that are legal (languages.md 17): `lint.cases`, and what has no place in a text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lang.query.test_random_queries import Writer
from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import SourceText, Span
from omnigraph.lang.query.check import check, check_query
from omnigraph.lang.query.lint.findings import SEVERITIES, Finding, in_order
from omnigraph.lang.query.lint.rules import file_findings, query_findings, schema_findings
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.parse import parse_schema
from support.cases import Case, read_cases, refusal
from support.schemas import HARBOUR, counter

CASES = read_cases(Path(__file__).parent / "lint.cases")


def of_queries(source: str, catalog: Catalog) -> list[Finding]:
    file = parse_file(source)
    text = SourceText(file.text)
    return [
        found
        for query in file.queries
        for found in query_findings(query, check_query(query, catalog, text), catalog, text)
    ]


def of_file(source: str, catalog: Catalog) -> list[Finding]:
    file = parse_file(source)
    return file_findings(file.queries, catalog, SourceText(file.text))


def of_schema(source: str) -> list[Finding]:
    return schema_findings(parse_schema(source), compile_schema(source, mint=counter()))


def rewritten(source: str, findings: list[Finding]) -> str:
    """The source with the edits of findings that do not overlap, the last first."""
    text = source.encode()
    edits = [edit for found in findings if found.suggestion is not None for edit in found.suggestion.edits]
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.replacement.encode() + text[edit.end :]
    return text.decode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_query_is_warned_of_at_its_place(case: Case, catalog: Catalog) -> None:
    wanted = refusal(case)
    (found,) = of_queries(wanted.text, catalog)
    assert (found.code, found.severity, found.queries) == (wanted.code, SEVERITIES[wanted.code], ("q",))
    if wanted.start >= 0:
        place = SourceText(wanted.text).positions(Span(wanted.start, wanted.end))
        assert (found.position, found.end) == place
    else:
        assert found.position is None
    assert wanted.fix is None or found.fix == wanted.fix
    assert not (wanted.no_fix and found.fix)
    assert "\n" not in found.message


def test_every_rule_of_a_query_has_a_case() -> None:
    assert {refusal(case).code for case in CASES} == set(SEVERITIES) - {"L201", "L204", "L208", "L209"}


@pytest.mark.parametrize(
    "source",
    [
        'query q($t: String) { match { $v: Vessel  contains($v.title, $t)  "a" in $v.tags } return { $v.title } }',
        'query q() { match { $v: Vessel  $v.status = "active"  contains($v.status, "sunk") } return { $v.title } }',
        "query q() { match { $v: Vessel  $v.draught = 0.5  $v.draught < 0.1  $v.tonnage = 0.1 } return { $v.title } }",
        "query q($d: F32) { match { $v: Vessel { draught: $d }  $d != 0.1  $v.draught = 16777217 } return { $v.title } }",
        "query q($n: I64) { match { $v: Vessel } return { $v.title } order { $v.imo } limit $n }",
        "query q($n: U32) { delete Vessel where imo = $n }",
        "query q($a: String, $b: String) { insert Sailor { name: $a, rank: 1 } update Sailor set { name: $b } where true }",
        (
            "query q($a: F32) { match { $v: Vessel  count { $v callsAt $_ } > 2  avg($w.draught) { $v follows $w } > $a }"
            " return { nearest($v.hull, [0.1, 1]) } order { nearest($v.hull, [0.1, 1]) } limit 3 }"
        ),
    ],
)
def test_nothing_is_said_of_what_was_meant(source: str, catalog: Catalog) -> None:
    assert of_queries(source, catalog) == []


def test_a_parameter_that_only_a_block_or_a_list_uses_is_used(catalog: Catalog) -> None:
    source = (
        "query q($a: String, $b: I64, $c: String) { match { $p: Port  count { $v callsAt $p  $v.title in [$a] } > $b"
        "  exists { $w callsAt $p  search($w.title, $c) } } return { $p.title } }"
    )
    assert of_queries(source, catalog) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.title.endswith("L202")], ids=lambda case: case.title)
def test_the_edit_of_an_infix_test_changes_no_meaning(case: Case, catalog: Catalog) -> None:
    source = refusal(case).text
    again = rewritten(source, of_queries(source, catalog))
    assert of_queries(again, catalog) == []
    if "where" not in source:  # whose spans tell where it is written
        assert check(again, catalog) == check(source, catalog)


@pytest.mark.parametrize("seed", range(4))
def test_the_rules_judge_random_queries_and_their_sure_edits_change_no_meaning(seed: int, catalog: Catalog) -> None:
    writer = Writer(random.Random(seed))
    edited = 0
    for _ in range(150):
        tests = [writer.test(), f"{writer.operand()} {writer.one('contains', 'starts_with')} {writer.operand()}"]
        source = (
            f"query q($p: String?, $n: I64) {{ match {{ $a: Vessel  $b: Vessel  $c: Port  $d: Sailor  $a $e:follows $b"
            f"  {writer.rnd.choice(tests)} }} return {{ $a.title }} order {{ $a.imo }} limit $n }}"
        )
        try:
            known = check(source, catalog)[0]
        except InvalidQuery:
            continue
        findings = of_queries(source, catalog)
        assert {found.code for found in findings} <= {"L202", "L205", "L206", "L210"}
        infix = [found for found in findings if found.code == "L202"]
        again = check(rewritten(source, infix), catalog)[0]
        assert isinstance(known, ReadQuery)
        assert isinstance(again, ReadQuery)
        assert again.pattern == known.pattern
        edited += bool(infix)
    assert edited


# --- files


PROMOTE = """query busy($least: I64) {
  match { $p: Port  count { $v callsAt $p } >= $least }
  return { $p.title }
}
query promote() { update Sailor set { rank: 4 } where name = "Otto" }
"""


def test_a_nullable_property_that_no_update_of_the_file_sets_is_told_with_the_updates(catalog: Catalog) -> None:
    (found,) = of_file(PROMOTE, catalog)
    assert found.to_dict() == {
        "severity": "warning",
        "code": "L201",
        "message": "Sailor.joined is never set by an update in this file",
        "type_name": "Sailor",
        "property": "joined",
        "query_names": ["promote"],
    }
    both = PROMOTE + "query join() { update Sailor set { joined: now() } where true }"
    assert of_file(both, catalog) == []
    again = PROMOTE + 'query rename() { update Sailor set { name: "x" } where nope = 1 }'
    assert [found.queries for found in of_file(again, catalog)] == [("promote", "rename")]


def test_neither_keys_nor_embedded_vectors_nor_required_properties_wait_for_an_update(catalog: Catalog) -> None:
    schema = """node A { k: I32 @key  text: String  other: String?  v: Vector(2)? @embed("text") }"""
    found = of_file('query q() { update A set { text: "x" } where true }', compile_schema(schema, mint=counter()))
    assert [each.property_name for each in found] == ["other"]
    assert of_file('query q() { update Nothing set { a: 1 } where true  insert Sailor { name: "x" } }', catalog) == []


# --- schemas


def test_bare_ends_of_an_edge_are_old_spellings() -> None:
    source = "node A { }\nedge E: A -> A { @key(src, dst)\n@unique(@src, dst) }"
    findings = of_schema(source)
    assert [(found.code, found.fix, found.type_name) for found in findings] == [
        ("L204", "@src", "E"),
        ("L204", "@dst", "E"),
        ("L204", "@dst", "E"),
    ]
    again = rewritten(source, findings)
    assert of_schema(again) == []
    assert compile_schema(again, mint=counter()) == compile_schema(source, mint=counter())
    assert findings[0].to_dict()["source"] == "schema"


def test_a_property_called_src_is_no_end() -> None:
    assert of_schema("node A { src: I32?  @index(src) } edge E: A -> A { src: I32?  @unique(src) }") == []


def test_names_that_queries_reserve_are_told() -> None:
    found = of_schema(
        "interface I { not: I32? } node A implements I { is: I32  id: I32 } edge In: A -> A { true: Bool }"
    )
    assert [(each.severity, each.code, each.type_name, each.property_name) for each in in_order(found)] == [
        ("info", "L208", "A", "is"),
        ("info", "L208", "A", "not"),
        ("info", "L208", "In", None),
        ("info", "L208", "In", "true"),
    ]


def test_a_name_of_a_node_type_and_an_edge_type_is_told() -> None:
    (found,) = of_schema("node Log { } edge Log: Log -> Log")
    assert (found.severity, found.code, found.type_name) == ("warning", "L209", "Log")


def test_the_harbour_is_as_it_should_be() -> None:
    assert of_schema(HARBOUR) == []


# --- findings


def test_findings_come_by_severity_type_property_code_and_message() -> None:
    def made(code: str, of: str | None, prop: str | None, message: str = "m") -> Finding:
        return Finding(code, message, type_name=of, property_name=prop)

    wanted = [
        made("L203", None, None),
        made("L209", "A", None),
        made("L201", "A", "a"),
        made("L205", "A", "a", "m"),
        made("L205", "A", "a", "n"),
        made("L201", "B", "a"),
        made("L206", None, None),
        made("L207", None, None),
        made("L208", "A", "b"),
    ]
    shuffled = list(wanted)
    random.Random(1).shuffle(shuffled)
    assert list(in_order(shuffled)) == wanted


def test_a_finding_is_shown_with_its_place_and_fix(catalog: Catalog) -> None:
    source = 'query q() {\n  match { $v: Vessel  $v.title contains "é" } return { $v.title }\n}'
    (found,) = of_queries(source, catalog)
    assert found.render("harbour.gq") == (
        'warning[L202]: `contains` between its operands is an old spelling: contains($v.title, "é")\n'
        "  --> harbour.gq:2:23\n"
        '  fix: contains($v.title, "é")'
    )
    assert found.to_dict()["suggestion"] == {
        "applicability": "machine_applicable",
        "edits": [{"start": 34, "end": 56, "replacement": 'contains($v.title, "é")'}],
    }
