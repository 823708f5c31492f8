"""What counts as a vector, and how it is normalised."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.embed.vectors import unit_vector

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**300), 10**300)


@given(st.lists(NUMBERS, min_size=1, max_size=40).filter(any))
def test_finite_numbers_become_a_vector_of_length_one_in_their_direction(values: list[float]) -> None:
    vector = unit_vector(values, len(values))
    assert vector is not None
    assert math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-5)
    largest = max(map(abs, values))
    for value, made in zip(values, vector, strict=True):
        assert made == 0 or (made > 0) == (value > 0)
        assert math.isclose(made / max(map(abs, vector)), value / largest, abs_tol=1e-6)


@given(st.lists(NUMBERS, min_size=1, max_size=8).filter(any))
def test_each_number_fits_32_bits(values: list[float]) -> None:
    vector = unit_vector(values, len(values))
    assert vector is not None
    assert struct.unpack(f"{len(vector)}f", struct.pack(f"{len(vector)}f", *vector)) == vector


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0, 2.0, 3.0],
        [0.0, 0.0],
        [0, -0.0],
        [1.0, math.nan],
        [1.0, math.inf],
        [-math.inf, 1.0],
        [10**400, 1],
        [True, 1.0],
        [1.0, None],
        [1.0, "2"],
        [1.0, [2.0]],
        "12",
        None,
        {"0": 1.0, "1": 2.0},
        1.0,
    ],
    ids=repr,
)
def test_anything_but_two_finite_numbers_that_are_not_all_zero_is_no_vector_of_two(values: object) -> None:
    assert unit_vector(values, 2) is None


def test_huge_and_tiny_numbers_neither_overflow_nor_vanish() -> None:
    assert unit_vector([1.7e308] * 4, 4) == (0.5,) * 4
    assert unit_vector([5e-324] * 4, 4) == (0.5,) * 4
