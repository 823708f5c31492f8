"""Writes of several threads that are sure to wait for one publication, so that the next one is theirs together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from omnigraph.engine.core import GraphCore
from omnigraph.manifest.publish import FenceState

Work = Callable[[], Any]

_PATIENCE_SECONDS = 60


class OneWriter(Protocol):
    """Whose writes they are."""

    @property
    def core(self) -> GraphCore: ...


class Together:
    """Runs `first`, and the others from threads while its publication is under way: each is ready, or waits for its turn
    to prepare, before the next starts.

    The others start when the first is about to send its request, whatever becomes of that; if it never comes so far, they
    start when it has ended. `results` has what each of the others returned or raised, in their order.
    """

    def __init__(self, writer: OneWriter, first: Work, others: Sequence[Work], *, branch: str = "main") -> None:
        self.results: list[Any] = [None] * len(others)
        self._core = writer.core
        self._branch = branch
        self._begun = False
        self._threads = [
            threading.Thread(target=self._run, args=(place, work), daemon=True) for place, work in enumerate(others)
        ]
        fence = self._core.fence

        def asked() -> FenceState:
            self._start()
            return fence()

        self._core.fence = asked
        try:
            self.first = first()
        finally:
            self._core.fence = fence
            self._start()
            for thread in self._threads:
                thread.join(_PATIENCE_SECONDS)
        assert not any(thread.is_alive() for thread in self._threads), "a write never ended"

    def _run(self, place: int, work: Work) -> None:
        try:
            self.results[place] = work()
        except BaseException as error:
            self.results[place] = error

    def _start(self) -> None:
        """Called by whoever publishes first, and once more at the end."""
        if self._begun:
            return
        self._begun = True
        lanes = self._core.lanes
        for thread in self._threads:
            waiting = lanes.waiting(self._branch)
            thread.start()
            while thread.is_alive() and lanes.waiting(self._branch) <= waiting:
                thread.join(0.001)
