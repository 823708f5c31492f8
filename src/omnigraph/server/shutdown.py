"""How the process ends (interfaces.md 11.4, cluster.md 10).

The first stop signal closes admission and starts one deadline, which nothing extends. At the deadline, or with a second
signal, a thread that waits for nothing else ends the process with 2: a blocked event loop can't hold it off.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType

import structlog

from omnigraph.server.operations import Operations

CUT_OFF = 2

_log = structlog.get_logger("omnigraph.server")


class Shutdown:
    """Owns the stop signals of the process. To be made in the main thread."""

    def __init__(self, grace_seconds: int) -> None:
        self._grace_seconds = grace_seconds
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()  # its `put` may be called in a signal handler
        self._operations: Operations | None = None
        self._stop: Callable[[], None] | None = None
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self._signalled)

    def watch(self, operations: Operations, stop: Callable[[], None]) -> None:
        """From now on signals drain. `stop` is called in the signal handler: it may set flags and take no lock."""
        self._operations, self._stop = operations, stop
        threading.Thread(target=self._watch, name="omnigraph-watchdog", daemon=True).start()

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._operations is None or self._stop is None:
            raise SystemExit(0)  # nothing was admitted yet; the lock goes with the process
        self._operations.draining = True
        self._stop()
        self._signals.put(number)

    def _watch(self) -> None:
        self._signals.get()
        _log.info("shutdown started", grace_seconds=self._grace_seconds)
        try:
            self._signals.get(timeout=self._grace_seconds)
            reason = "a second signal"
        except queue.Empty:
            reason = "the grace is over"
        assert self._operations is not None
        unfinished = [{"kind": each.kind, "seconds": round(each.seconds, 1)} for each in self._operations.unfinished()]
        _log.error("shutdown cutoff", reason=reason, unfinished=unfinished)
        os._exit(CUT_OFF)
