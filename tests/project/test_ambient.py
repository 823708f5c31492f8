"""Clock, randomness and ULIDs."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph import ambient

TIMES = st.integers(0, 2**48 - 1)
RANDOMNESS = st.binary(min_size=10, max_size=10)


def decoded(text: str) -> int:
    number = 0
    for character in text:
        number = number * 32 + ambient.ULID_ALPHABET.index(character)
    return number


@given(TIMES, RANDOMNESS)
def test_a_ulid_holds_exactly_its_time_and_randomness(now_ms: int, randomness: bytes) -> None:
    text = ambient.ulid(now_ms, randomness)
    assert len(text) == 26
    assert decoded(text) == (now_ms << 80) + int.from_bytes(randomness)


@given(TIMES, RANDOMNESS, TIMES, RANDOMNESS)
def test_ulids_sort_by_time_then_randomness(
    earlier_ms: int, earlier_random: bytes, later_ms: int, later_random: bytes
) -> None:
    in_order = sorted([(earlier_ms, earlier_random), (later_ms, later_random)])
    texts = [ambient.ulid(now_ms, randomness) for now_ms, randomness in in_order]
    assert texts == sorted(texts)


@pytest.mark.parametrize(("now_ms", "randomness"), [(-1, bytes(10)), (2**48, bytes(10)), (0, bytes(9)), (0, bytes(11))])
def test_a_time_or_randomness_that_does_not_fit_is_refused(now_ms: int, randomness: bytes) -> None:
    with pytest.raises(ValueError, match="ULID"):
        ambient.ulid(now_ms, randomness)


@pytest.mark.parametrize("count", [0, 1, 15, 16])
def test_random_hex_has_the_length_asked(count: int) -> None:
    text = ambient.random_hex(count)
    assert len(text) == count
    assert set(text) <= set("0123456789abcdef")


def test_two_fresh_ulids_differ_and_carry_the_clock_s_time() -> None:
    class Fixed:
        def now_us(self) -> int:
            return 1_000_999

        def boot_seconds(self) -> float:
            return 0.0

        def sleep(self, seconds: float) -> None: ...

    first, second = ambient.fresh_ulid(Fixed()), ambient.fresh_ulid(Fixed())
    assert first != second
    assert decoded(first) >> 80 == decoded(second) >> 80 == 1_000


def test_the_duration_clock_never_goes_back() -> None:
    clock = ambient.SystemClock()
    before = clock.boot_seconds()
    clock.sleep(0)
    assert clock.boot_seconds() >= before
    assert clock.now_us() > 0


def test_the_examples_run() -> None:
    result = doctest.testmod(ambient)
    assert result.attempted >= 3
    assert result.failed == 0
