"""Times taken so that their ratio means something on a busy machine: in turns, several times, compared by medians."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)


def in_turns(
    contestants: Mapping[str, Callable[[], object]], *, rounds: int, settle: Callable[[], object] = gc.collect
) -> dict[str, Times]:
    """Run each once in every round, beginning with another one each time; what disturbs one round disturbs all alike.

    `settle` comes before each, so that nobody pays for what the one before left to be done.
    """
    names = list(contestants)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            settle()
            began = time.perf_counter()
            contestants[name]()
            taken[name].append(time.perf_counter() - began)
    return {name: Times(tuple(seconds)) for name, seconds in taken.items()}


def ratio(one: Times, other: Times) -> float:
    """The median of the ratios of the rounds: how many times longer `one` took."""
    return statistics.median(a / b for a, b in zip(one.seconds, other.seconds, strict=True))


def shown(seconds: float) -> str:
    """Three digits with a fitting unit.

    >>> shown(0.00123), shown(0.45), shown(12.3)
    ('1.23 ms', '450 ms', '12.3 s')
    """
    if seconds < 1:
        ms = seconds * 1000
        return f"{ms:.2f} ms" if ms < 10 else f"{ms:.1f} ms" if ms < 100 else f"{ms:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
