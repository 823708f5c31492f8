"""Values and their spellings: texts of dates, floats in JSON's layout, and the table that every door shares."""

from __future__ import annotations

import base64
import datetime as dt
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.types import Scalar, ValueType, scalar
from omnigraph.lang.values import (
    Refused,
    blob_bytes,
    date_from_days,
    date_from_text,
    date_text,
    datetime_from_milliseconds,
    datetime_from_text,
    datetime_text,
    float_text,
    integer_from_text,
    rounded_to_f32,
    value_from_json,
)

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
whole_milliseconds = st.integers(-62135596800000, 253402300799999)


@given(st.dates())
def test_a_date_reads_back_from_its_text_and_its_day_count(date: dt.date) -> None:
    assert date_from_text(date_text(date)) == date
    assert date_from_days(date.toordinal() - 719163) == date


@given(whole_milliseconds)
def test_a_datetime_reads_back_from_its_text_and_its_millisecond_count(milliseconds: int) -> None:
    instant = datetime_from_milliseconds(milliseconds)
    assert instant is not None
    assert instant - EPOCH == dt.timedelta(milliseconds=milliseconds)
    assert datetime_from_text(datetime_text(instant)) == instant
    assert datetime_from_text(datetime_text(instant) + "Z") == instant


@given(st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1)), st.integers(-1439, 1439))  # noqa: DTZ001 (bounds)
def test_an_offset_is_taken_off(local: dt.datetime, minutes: int) -> None:
    local = local.replace(microsecond=0)
    sign = "-" if minutes < 0 else "+"
    offset = f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    expected = local.replace(tzinfo=dt.UTC) - dt.timedelta(minutes=minutes)
    assert datetime_from_text(local.isoformat() + offset) == expected


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (dt.datetime(2024, 1, 5, 6, 7, 8, tzinfo=dt.UTC), "2024-01-05T06:07:08"),
        (dt.datetime(2024, 1, 5, 6, 7, 8, 250_000, tzinfo=dt.UTC), "2024-01-05T06:07:08.250"),
        (dt.datetime(1, 1, 1, tzinfo=dt.UTC), "0001-01-01T00:00:00"),
    ],
)
def test_a_datetime_has_one_spelling(instant: dt.datetime, text: str) -> None:
    assert datetime_text(instant) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_reads_back_exactly_from_its_text(value: float) -> None:
    text = float_text(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    mantissa, _, exponent = text.partition("e")
    assert "." in mantissa
    assert "+" not in text
    assert bool(exponent) == (value != 0 and not 1e-6 <= abs(value) < 1e10)
    assert len(text.replace("-", "").replace(".", "").partition("e")[0].strip("0")) <= 17


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (9999999999.0, "9999999999.0"),
        (1e10, "1.0e10"),
        (1.25e20, "1.25e20"),
        (1e-5, "0.00001"),
        (1e-6, "0.000001"),
        (1e-7, "1.0e-7"),
        (1.5e-9, "1.5e-9"),
        (-0.0, "-0.0"),
        (1e22, "1.0e22"),
        (123456.789, "123456.789"),
        (5e-324, "5.0e-324"),
    ],
)
def test_floats_are_spelled_as_the_chapter_spells_them(value: float, text: str) -> None:
    assert float_text(value) == text


@given(st.integers(-(10**19), 10**19))
def test_integers_read_back_from_their_digits(number: int) -> None:
    assert integer_from_text(str(number)) == number
    sign, digits = ("-", str(-number)) if number < 0 else ("", str(number))
    assert integer_from_text(f"{sign}000{digits}") == number


def test_more_digits_than_any_type_holds_are_far_outside_all_ranges() -> None:
    assert integer_from_text("-" + "9" * 100_000) == -(10**20)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_32_bit_float_rounds_to_itself(value: float) -> None:
    assert rounded_to_f32(value) == value


def test_what_rounds_to_infinity_has_no_32_bit_float() -> None:
    assert rounded_to_f32(3.4028235677973362e38) == 3.4028234663852886e38
    assert rounded_to_f32(3.4028235677973366e38) is None
    assert rounded_to_f32(-1e300) is None
    assert rounded_to_f32(math.inf) is None


@given(st.binary())
def test_base64_holds_any_bytes(data: bytes) -> None:
    assert blob_bytes(base64.b64encode(data).decode()) == data


def test_an_enum_takes_its_variants() -> None:
    status = ValueType("enum", Scalar.STRING, variants=("active", "laid-up"))
    assert value_from_json(status, "laid-up") == "laid-up"
    refused = value_from_json(status, "sunk")
    assert isinstance(refused, Refused)
    assert (refused.problem, refused.reason) == ("variant", '"sunk" is not one of active, laid-up')
    refused = value_from_json(status, 3)
    assert isinstance(refused, Refused)
    assert refused.problem == "shape"


def test_null_elements_are_for_the_caller_to_admit() -> None:
    numbers = ValueType("list", Scalar.I32)
    assert value_from_json(numbers, [1, None], null_elements=True) == (1, None)
    refused = value_from_json(numbers, [1, None])
    assert isinstance(refused, Refused)
    assert (refused.problem, refused.reason) == ("value", "element 2: null")
    vector = ValueType("vector", Scalar.F32, dimension=2)
    assert isinstance(value_from_json(vector, [1, None], null_elements=True), Refused)


def test_a_refusal_names_the_element() -> None:
    refused = value_from_json(ValueType("list", Scalar.DATE), ["2024-01-01", "2024-13-01"])
    assert isinstance(refused, Refused)
    assert refused.reason == "element 2: a Date is written YYYY-MM-DD"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
value_types = st.one_of(
    st.sampled_from(Scalar).map(scalar),
    st.sampled_from([s for s in Scalar if s is not Scalar.BLOB]).map(lambda s: ValueType("list", s)),
    st.just(ValueType("vector", Scalar.F32, dimension=2)),
    st.just(ValueType("enum", Scalar.STRING, variants=("a", "b"))),
)


@given(value_types, json_values)
def test_any_json_is_a_value_or_refused(of: ValueType, raw: object) -> None:
    found = value_from_json(of, raw)
    if isinstance(found, Refused):
        assert found.reason
        assert "\n" not in found.reason
    else:
        assert isinstance(found, bool | int | float | str | dt.date | tuple)


def test_a_text_of_many_zeros_is_read_once_and_not_once_for_each() -> None:
    assert integer_from_text("0" * 200_000 + "x") is None
    assert integer_from_text("-" + "0" * 200_000 + "7") == -7
    assert integer_from_text("000") == 0
