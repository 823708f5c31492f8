"""Clocks that tests move themselves."""

from __future__ import annotations

import threading


class SteppingClock:
    """Time passes only while somebody sleeps or the test says so. Thread-safe."""

    def __init__(self, *, now_us: int = 1_767_225_600_000_000) -> None:  # 2026-01-01
        self._guard = threading.Lock()
        self._start_us = now_us
        self._passed = 0.0
        self.slept: list[float] = []

    def now_us(self) -> int:
        with self._guard:
            return self._start_us + round(self._passed * 1_000_000)

    def boot_seconds(self) -> float:
        with self._guard:
            return self._passed

    def sleep(self, seconds: float) -> None:
        with self._guard:
            self.slept.append(seconds)
            self._passed += seconds

    def advance(self, seconds: float) -> None:
        with self._guard:
            self._passed += seconds


class TickingClock(SteppingClock):
    """One microsecond passes with every look at it, so that no two moments are the same."""

    def boot_seconds(self) -> float:
        self.advance(1e-6)
        return super().boot_seconds()
