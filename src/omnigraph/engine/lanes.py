"""One writer at a time for each branch, in arrival order.

A lane says nothing about other processes: what keeps those apart is the publication itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager


class Lanes:
    """The lanes of one graph. A lane exists while somebody is in it."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[threading.Event]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def enter(self, branch: str) -> Generator[None]:
        """Waits until every earlier writer of the branch has left."""
        with self._lock:
            queue = self._waiting.get(branch)
            if queue is None:
                self._waiting[branch] = deque()
                turn = None
            else:
                turn = threading.Event()
                queue.append(turn)
        if turn is not None:
            turn.wait()
        try:
            yield
        finally:
            with self._lock:
                queue = self._waiting[branch]
                if queue:
                    queue.popleft().set()
                else:
                    del self._waiting[branch]
