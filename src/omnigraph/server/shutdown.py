"""How the process ends (interfaces.md 11.4, cluster.md 9.2 and 10).

The first stop signal closes admission and starts one deadline, which nothing extends; so does a write that ended without
any proof, and then the exit code is 2 however well the drain goes. At the deadline, or with a second signal, a thread
that waits for nothing else ends the process with 2: a blocked event loop can't hold it off, and what has not been sent to
be published by then is not sent any more.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType

from omnigraph.ambient import Clock, SystemClock
from omnigraph.engine.logs import log_event
from omnigraph.server.operations import Operations

CUT_OFF = 2

_CONTAINED = 0  # among the numbers of signals, none of which is 0

_LOGGER = "omnigraph.server"


class Shutdown:
    """Owns the stop signals of the process. To be made in the main thread."""

    def __init__(self, grace_seconds: int, *, clock: Clock | None = None) -> None:
        self._grace_seconds = grace_seconds
        self._clock = clock or SystemClock()
        self._events: queue.SimpleQueue[int] = queue.SimpleQueue()  # its `put` may be called in a signal handler
        self._operations: Operations | None = None
        self._stop: Callable[[], None] | None = None
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self._signalled)

    def watch(self, operations: Operations, stop: Callable[[], None]) -> None:
        """From now on signals and containment drain. `stop` is called in the signal handler: it may set flags and take no
        lock.
        """
        self._operations, self._stop = operations, stop
        operations.on_contained = self._contained
        threading.Thread(target=self._watch, name="omnigraph-watchdog", daemon=True).start()

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._operations is None or self._stop is None:
            raise SystemExit(0)  # nothing was admitted yet; the lock goes with the process
        self._operations.draining = True
        self._stop()
        self._events.put(number)

    def _contained(self) -> None:
        assert self._stop is not None
        self._events.put(_CONTAINED)
        self._stop()

    def _watch(self) -> None:
        first = self._events.get()
        deadline = self._clock.boot_seconds() + self._grace_seconds
        log_event(_LOGGER, "info", "shutdown started", grace_seconds=self._grace_seconds)
        assert self._operations is not None
        reason = self._cutoff(deadline, signals=int(first != _CONTAINED))
        self._operations.cut_off = True  # nobody would be told of what is published from here on
        unfinished = [{"kind": each.kind, "age": round(each.seconds, 1)} for each in self._operations.unfinished()]
        log_event(_LOGGER, "error", "shutdown cutoff", reason=reason, unfinished=unfinished)
        os._exit(CUT_OFF)

    def _cutoff(self, deadline: float, *, signals: int) -> str:
        """Returns when the process must end at once, with why."""
        while True:
            try:
                event = self._events.get(timeout=max(deadline - self._clock.boot_seconds(), 0))
            except queue.Empty:
                return "the grace is over"
            signals += event != _CONTAINED
            if signals > 1:
                return "a second signal"
