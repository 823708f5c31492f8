"""How long a write waits before it is prepared again: longer with each attempt, a second at most, and by chance, so that rivals part."""

from __future__ import annotations

from omnigraph.ambient import Clock, random_hex

_PAUSE_SECONDS = (0.005, 0.05)
_PAUSE_SECONDS_MAX = 1.0


def pause_before_again(clock: Clock, attempt: int) -> None:
    """`attempt`: how often it was prepared again already."""
    low, high = _PAUSE_SECONDS
    jitter = low + (high - low) * int(random_hex(8), 16) / 2**32
    clock.sleep(min(jitter * 2.0 ** min(attempt, 8), _PAUSE_SECONDS_MAX))
