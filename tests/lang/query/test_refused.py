"""Every rule of `.gq` refuses what breaks it, with its code, at its place (`parse_refused.cases`, `check_refused.cases`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic, SourceText, Span
from omnigraph.lang.query.check import check
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.schema.catalog import Catalog
from support.cases import Case, read_cases, refusal

HERE = Path(__file__).parent
PARSE_CASES = read_cases(HERE / "parse_refused.cases")
CHECK_CASES = read_cases(HERE / "check_refused.cases")

PARSE_CODES = {"Q001", "Q002", "Q004", "Q005"}
# All codes of languages.md 16.5 but `T18` and `T51`, which never occur.
TYPE_CODES = {
    f"T{number}" for number in (*range(1, 18), *range(19, 26), 27, 32, 33, *range(35, 51), 52, 53, *range(60, 69))
}


def refused(source: str | bytes, catalog: Catalog | None = None) -> Diagnostic:
    with pytest.raises(InvalidQuery) as caught:
        _ = parse_file(source) if catalog is None else check(source, catalog)
    assert isinstance(caught.value.diagnostic, Diagnostic)
    return caught.value.diagnostic


def assert_refused(case: Case, found: Diagnostic) -> None:
    wanted = refusal(case)
    place = SourceText(wanted.text).positions(Span(wanted.start, wanted.end))
    assert (found.code, found.position, found.end) == (wanted.code, *place), found
    assert wanted.expected is None or found.expected == wanted.expected
    assert wanted.fix is None or found.fix == wanted.fix
    assert not (wanted.no_fix and found.fix)
    assert "\n" not in found.message + (found.expected or "") + (found.fix or "")


@pytest.mark.parametrize("case", PARSE_CASES, ids=lambda case: case.title)
def test_a_text_is_refused_with_code_and_place(case: Case) -> None:
    wanted = refusal(case)
    found = refused(wanted.text)
    assert_refused(case, found)
    assert found.stage == "parse"
    assert found.message.startswith(f"parse error: {wanted.code}: ")


@pytest.mark.parametrize("case", CHECK_CASES, ids=lambda case: case.title)
def test_a_query_is_refused_with_code_and_place(case: Case, catalog: Catalog) -> None:
    wanted = refusal(case)
    found = refused(wanted.text, catalog)
    assert_refused(case, found)
    if wanted.code == "Q003":
        assert (found.stage, found.message[:22]) == ("settings", "settings error: Q003: ")
    elif wanted.code == "N001":
        assert found.stage == "typecheck"
        assert found.message.startswith("not available yet: N001: ")
        assert found.message.endswith(" is not part of this version")
    elif wanted.code != "Q005":
        assert found.stage == "typecheck"
        assert found.message.startswith(f"type error: {wanted.code}: ")


def test_every_code_has_a_case() -> None:
    assert {refusal(case).code for case in PARSE_CASES} == PARSE_CODES
    raised = {refusal(case).code for case in CHECK_CASES}
    assert raised == TYPE_CODES | {"Q003", "Q005", "N001"}


def test_the_diagnostic_object_is_the_one_of_the_chapter(catalog: Catalog) -> None:
    source = "query heavy() {\n  match { $v: Vessel  $v.tonnes > 1 }\n  return { $v.title }\n}\n"
    assert refused(source, catalog).to_dict() == {
        "code": "T6",
        "stage": "typecheck",
        "query": "heavy",
        "position": {"line": 2, "column": 23, "byte": 38},
        "end": {"line": 2, "column": 32, "byte": 47},
        "message": "type error: T6: type `Vessel` has no property `tonnes`",
        "expression": "$v.tonnes",
        "expected": "a property of `Vessel`: built, draught, hull, imo, note, papers, status, tags, title, tonnage",
        "fix": "$v.tonnage",
        "suggestion": {
            "applicability": "needs_review",
            "edits": [{"start": 41, "end": 47, "replacement": "tonnage"}],
        },
    }


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('$v "a\nb\u2028c" $w', "there is no edge type `a\\nb\\u2028c`"),
        ('$v.built = date("a\r\nb\t")', '"a\\r\\nb\t" is no date'),
    ],
)
def test_a_message_is_one_line_whatever_was_written(written: str, shown: str, catalog: Catalog) -> None:
    found = refused(f"query q() {{ match {{ $v: Vessel  {written} }} return {{ $v }} }}", catalog)
    assert found.message.endswith(shown)
