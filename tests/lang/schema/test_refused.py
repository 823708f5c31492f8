"""Every rule of `.pg` refuses what breaks it, with its code, at its place (`refused.cases`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import InvalidSchema
from omnigraph.lang.diagnostics import Diagnostic, SourceText, Span
from omnigraph.lang.schema.compile import compile_schema
from support.cases import Case, read_cases, refusal
from support.schemas import counter

CASES = read_cases(Path(__file__).parent / "refused.cases")


def refused(source: str | bytes) -> Diagnostic:
    with pytest.raises(InvalidSchema) as caught:
        compile_schema(source, mint=counter())
    assert isinstance(caught.value.diagnostic, Diagnostic)
    return caught.value.diagnostic


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_schema_is_refused_with_code_and_place(case: Case) -> None:
    wanted = refusal(case)
    found = refused(wanted.text)
    place = SourceText(wanted.text).positions(Span(wanted.start, wanted.end))
    assert (found.code, found.position, found.end) == (wanted.code, *place), found
    assert wanted.expected is None or found.expected == wanted.expected
    assert wanted.fix is None or found.fix == wanted.fix
    assert not (wanted.no_fix and found.fix)
    assert found.stage == ("parse" if wanted.code == "S001" else "schema")
    assert found.message.startswith(f"{found.stage} error: {wanted.code}: ")
    assert "\n" not in found.message


def test_every_code_has_a_case() -> None:
    assert {refusal(case).code for case in CASES} == {f"S{number:03}" for number in range(1, 12)}


def test_bytes_that_are_not_utf8_are_refused_at_their_offset() -> None:
    found = refused(b'node A @description("\xc3\xa9\xff") { }')
    assert found.code == "S001"
    assert found.position is not None
    assert (found.position.line, found.position.column, found.position.byte) == (1, 23, 23)


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert refused("node A { }\n\ud800").code == "S001"


def test_positions_count_code_points_and_bytes_and_lines() -> None:
    found = refused('node A @description("é\n𝄞\r\n\t") { a: Strin }')
    assert found.position is not None
    assert found.end is not None
    assert (found.position.line, found.position.column, found.position.byte) == (3, 10, 39)
    assert (found.end.column, found.end.byte) == (15, 44)


def test_a_byte_order_mark_counts_as_bytes_and_as_nothing_else() -> None:
    found = refused("\ufeffnode A { a: Strin }".encode())
    assert found.position is not None
    assert (found.position.line, found.position.column, found.position.byte) == (1, 13, 15)


def test_a_fix_comes_with_the_edit_that_makes_it() -> None:
    source = 'node A @description("é") { a: Strin }'
    found = refused(source)
    assert found.suggestion is not None
    assert found.suggestion.applicability == "needs_review"
    (edit,) = found.suggestion.edits
    data = source.encode()
    assert (data[: edit.start] + edit.replacement.encode() + data[edit.end :]).decode() == source.replace(
        "Strin", "String"
    )
    assert found.expression == "Strin"


def test_a_refusal_says_which_type_and_property() -> None:
    found = refused("node Vessel { _a: I32 }").to_dict()
    assert (found["type"], found["property"]) == ("Vessel", "_a")


def test_an_integer_bound_that_no_float_reaches_is_refused() -> None:
    assert refused(f"node A {{ a: F64 @range(a, 0..{'9' * 310}) }}").code == "S009"
    assert refused(f"node A {{ a: F64 @range(a, -{'9' * 5000}..0) }}").code == "S009"


def test_the_first_fault_is_reported_names_before_bodies() -> None:
    assert refused("node A { _a: I32 } node A { }").code == "S002"
    assert refused("node A { a: Foo } interface I { b: Bar }").expression == "Bar"
    assert refused("edge E: B -> B { } node A { a: Foo }").code == "S003"
