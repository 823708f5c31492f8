"""Places: how many requests, bodies and operations may be under way at once (interfaces.md 6.1).

A place is taken at once or refused; nobody queues. Knows no request and no graph.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Literal

from omnigraph.errors import Busy
from omnigraph.server.limits import ServerLimits

Lane = Literal[
    "write_ops",
    "write_bytes",
    "write_ingress",
    "write_ingress_bytes",
    "read_ingress",
    "read_ingress_bytes",
    "read_observers",
    "write_observers",
    "streams",
]

# The words of the wire; what an operator tunes separately a caller need not tell apart.
_WORDS: Mapping[Lane, str] = {
    "write_ingress_bytes": "write_ingress",
    "read_ingress_bytes": "read_ingress",
    "read_observers": "observers",
    "write_observers": "observers",
    "streams": "stream",
}


class Place:
    """Part of a lane, held until `release`. Releasing twice gives back once."""

    def __init__(self, admission: Admission, lane: Lane, amount: int) -> None:
        self._admission = admission
        self._lane: Lane = lane
        self._amount = amount

    def shrink(self, amount: int) -> None:
        """Keep only so much of it."""
        self._admission.give(self._lane, self._amount - amount)
        self._amount = amount

    def release(self) -> None:
        self.shrink(0)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


class Admission:
    """The lanes of one process. Thread-safe: work gives its place back on the thread on which it ends."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits: Mapping[Lane, int] = {
            "write_ops": limits.write_ops,
            "write_bytes": limits.write_bytes,
            "write_ingress": limits.write_ingress,
            "write_ingress_bytes": limits.write_ingress_bytes,
            "read_ingress": limits.read_ingress,
            "read_ingress_bytes": limits.read_ingress_bytes,
            "read_observers": limits.read_observers,
            "write_observers": limits.write_observers,
            "streams": limits.streams,
        }
        self._used: dict[Lane, int] = dict.fromkeys(self._limits, 0)
        self._lock = threading.Lock()

    def take(self, lane: Lane, amount: int = 1) -> Place:
        """Raises Busy (`too_many_requests`, naming the lane)."""
        place = self.try_take(lane, amount)
        if place is None:
            raise self.refusal(lane)
        return place

    def try_take(self, lane: Lane, amount: int = 1) -> Place | None:
        with self._lock:
            limit = self._limits[lane]
            # What is larger than its whole lane may still pass alone, or it could never be sent at all.
            fits = self._used[lane] + amount <= limit or (self._used[lane] == 0 and limit > 0)
            if not fits:
                return None
            self._used[lane] += amount
        return Place(self, lane, amount)

    def give(self, lane: Lane, amount: int) -> None:
        with self._lock:
            self._used[lane] -= amount

    def used(self, lane: Lane) -> int:
        return self._used[lane]

    def refusal(self, lane: Lane) -> Busy:
        return Busy(
            "Too many requests are under way; nothing was started.",
            detail_key="admission",
            details={"lane": _WORDS.get(lane, lane), "limit": self._limits[lane]},
            retry_after=1,
        )
