"""Ids that keys give are spelled as languages.md 4.6 says."""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.identity import KeyValue, derived_id, entity_id, float_spelling, key_spelling
from omnigraph.lang.types import Scalar, ValueType, scalar
from support.schemas import HARBOUR, counter

CATALOG = compile_schema(HARBOUR, mint=counter())


def test_a_key_of_several_members_is_an_array_in_the_order_of_their_names() -> None:
    assert entity_id(CATALOG.nodes["Port"], {"country": "NO", "code": "BGO"}) == '["BGO","NO"]'


def test_a_key_of_one_member_is_its_spelling() -> None:
    assert entity_id(CATALOG.nodes["Vessel"], {"imo": 9_074_729}) == "9074729"


def test_a_keyed_edge_is_named_by_its_ends_first() -> None:
    assert entity_id(CATALOG.edges["Tows"], {"@src": "1", "@dst": "2"}) == '["1","2"]'
    edge = compile_schema("node A { } edge E: A -> A { a: I32 @key(a, @dst, @src) }", mint=counter()).edges["E"]
    assert entity_id(edge, {"a": 7, "@src": '["x","y"]', "@dst": "2"}) == '["[\\"x\\",\\"y\\"]","2","7"]'


def test_a_type_without_key_derives_nothing() -> None:
    with pytest.raises(ValueError):
        entity_id(CATALOG.nodes["Sailor"], {})


UTC = dt.UTC


@pytest.mark.parametrize(
    ("of", "value", "spelling"),
    [
        (Scalar.STRING, ' a"\\\né ', ' a"\\\né '),
        (Scalar.BOOL, True, "true"),
        (Scalar.BOOL, False, "false"),
        (Scalar.I32, -7, "-7"),
        (Scalar.U64, 2**64 - 1, "18446744073709551615"),
        (Scalar.DATE, dt.date(1970, 1, 1), "0"),
        (Scalar.DATE, dt.date(1969, 12, 31), "-1"),
        (Scalar.DATE, dt.date(1, 1, 1), "-719162"),
        (Scalar.DATE, dt.date(9999, 12, 31), "2932896"),
        (Scalar.DATETIME, dt.datetime(2024, 1, 1, tzinfo=UTC), "1704067200000"),
        (Scalar.DATETIME, dt.datetime(1, 1, 1, tzinfo=UTC), "-62135596800000"),
        (Scalar.DATETIME, dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), "253402300799999"),
        (Scalar.DATETIME, dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), "-1"),
        (Scalar.F64, 1e21, "1000000000000000000000"),
        (Scalar.F64, 1.0, "1"),
        (Scalar.F64, -0.0, "0"),
        (Scalar.F64, 0.1, "0.1"),
        (Scalar.F64, -1e-7, "-0.0000001"),
        (Scalar.F64, 5e-324, "0." + "0" * 323 + "5"),
        (Scalar.F64, 9007199254740993.0, "9007199254740992"),
        (Scalar.F32, 0.10000000149011612, "0.1"),
        (Scalar.F32, 16777216.0, "16777216"),
        (Scalar.F32, 3.4028234663852886e38, "340282350000000000000000000000000000000"),
        (Scalar.F32, -1.401298464324817e-45, "-0." + "0" * 44 + "1"),
        (Scalar.F32, 2854276.25, "2854276.2"),
    ],
)
def test_each_type_has_one_canonical_spelling(of: Scalar, value: KeyValue, spelling: str) -> None:
    assert key_spelling(scalar(of), value) == spelling


def test_an_enum_is_spelled_verbatim() -> None:
    assert key_spelling(ValueType("enum", Scalar.STRING, variants=("laid-up",)), "laid-up") == "laid-up"


def test_controls_are_escaped_shortly_and_other_characters_stand_as_they_are() -> None:
    assert derived_id(["\b\f\n\r\t\x00\x1f\x7f", 'é/"\\𝄞']) == '["\\b\\f\\n\\r\\t\\u0000\\u001f\x7f","é/\\"\\\\𝄞"]'


@given(st.lists(st.text(), min_size=2))
def test_an_id_of_several_components_holds_them_exactly(spellings: list[str]) -> None:
    assert json.loads(derived_id(spellings)) == spellings


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(2.0**-44)
@example(2.0**89)
def test_a_double_is_spelled_by_the_digits_of_repr_without_exponent(value: float) -> None:
    spelling = float_spelling(value, single=False)
    assert float(spelling) == value
    assert Decimal(spelling) == abs(Decimal(repr(value))) * (-1 if value < 0 else 1)
    assert set(spelling) <= set("-.0123456789")
    assert "." not in spelling or spelling[-1] not in ".0"


def neighbours(value: float) -> tuple[Fraction, Fraction]:
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    below, above = (struct.unpack("<f", struct.pack("<I", bits + step))[0] for step in (-1, 1))
    ends = sorted((Fraction(below), Fraction(above)))
    return (ends[0] + Fraction(value)) / 2, (ends[1] + Fraction(value)) / 2


@given(st.floats(width=32, allow_nan=False, allow_infinity=False).filter(lambda value: abs(value) < 3e38))
@example(2.0**-24)
@example(-(2.0**90))
def test_a_single_is_spelled_by_the_fewest_digits_that_read_back(value: float) -> None:
    spelling = float_spelling(value, single=True)
    if value == 0:
        assert spelling == "0"
        return
    low, high = neighbours(value)
    assert low <= Fraction(spelling) <= high
    digits = len(spelling.lstrip("-").replace(".", "").strip("0"))
    scale = Fraction(10) ** (math.floor(math.log10(abs(value))) - digits + 2)
    if digits > 1:  # no decimal with one digit less lies between the neighbours
        shorter = [Fraction(math.floor(Fraction(value) / scale) + step) * scale for step in (0, 1)]
        assert not any(low < candidate < high for candidate in shorter)
