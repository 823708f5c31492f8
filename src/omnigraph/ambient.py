"""The one place that asks the machine for the time and for randomness.

Everything else receives a clock, a time or random bytes as an argument, so that a test can repeat any run from its
inputs; the linter's banned-api rule keeps it so. This module knows no graph and makes no decision.

>>> ulid(0, bytes(10))
'00000000000000000000000000'
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Protocol

ULID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O, U
ULID_LENGTH = 26
ULID_RANDOM_BYTES = 10

_ULID_MS_LIMIT = 1 << 48

NOW_US_MAX = 253_399_622_400_000_000
"""9999-12-01 UTC: a month before the end of what dates can say, since commits must go on rising from it."""


class Clock(Protocol):
    """What code that depends on time receives. Thread-safe."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC, from 0 to `NOW_US_MAX`.

        May jump in either direction; good for labels, not for durations.
        """
        ...

    def boot_seconds(self) -> float:
        """Seconds on a clock that never goes back and keeps counting while the machine sleeps; for durations."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block the calling thread."""
        ...


def _boot_clock() -> Callable[[], float]:
    if sys.platform == "linux":
        return lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":  # there CLOCK_MONOTONIC is the one that counts sleep; time.monotonic() stops
        return lambda: time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic


class SystemClock:
    """The machine's clocks."""

    __slots__ = ("_boot",)

    def __init__(self) -> None:
        self._boot = _boot_clock()

    def now_us(self) -> int:
        # A clock set before 1970 or after 9999 is wrong, and no date or ULID can tell its time. Work goes on under the
        # nearest time that can be told, since a time is a label here and decides nothing.
        return min(max(time.time_ns() // 1_000, 0), NOW_US_MAX)

    def boot_seconds(self) -> float:
        return self._boot()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def random_bytes(count: int) -> bytes:
    """`count` bytes from the operating system's generator."""
    return os.urandom(count)


def random_hex(count: int) -> str:
    """`count` random hexadecimal digits, lower case.

    >>> len(random_hex(16))
    16
    """
    return os.urandom((count + 1) // 2).hex()[:count]


def ulid(now_ms: int, randomness: bytes) -> str:
    """A ULID of a time in milliseconds since 1970 and ten random bytes: 26 characters that sort by time.

    Pure: the caller brings the time and the randomness. Raises ValueError if either does not fit.

    >>> ulid(1_469_918_176_385, bytes(range(10)))
    '01ARYZ6S41000G40R40M30E209'
    """
    if not 0 <= now_ms < _ULID_MS_LIMIT:
        raise ValueError("a ULID holds 48 bits of milliseconds")
    if len(randomness) != ULID_RANDOM_BYTES:
        raise ValueError(f"a ULID takes {ULID_RANDOM_BYTES} random bytes")
    number = now_ms << 80 | int.from_bytes(randomness)
    return "".join(ULID_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def ulid_time_us(text: str) -> int | None:
    """The time that a ULID was made at, microseconds since 1970; None for a text that is no ULID.

    >>> ulid_time_us("01ARYZ6S41000G40R40M30E209")
    1469918176385000
    """
    if len(text) != 26 or text[0] > "7" or set(text) - set(ULID_ALPHABET):
        return None
    milliseconds = 0
    for letter in text[:10]:
        milliseconds = milliseconds << 5 | ULID_ALPHABET.index(letter)
    return milliseconds * 1_000


def fresh_ulid(clock: Clock) -> str:
    """A new ULID at the clock's time, with 80 random bits from the operating system."""
    return ulid(clock.now_us() // 1_000, random_bytes(ULID_RANDOM_BYTES))
