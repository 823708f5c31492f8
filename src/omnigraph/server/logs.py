"""Logs: structured lines on stderr, JSON unless a person reads them.

Lines of libraries come through the same pipe, with the place of an exception and without its message. Whatever is wrong
with stderr concerns the log and nothing else (cluster.md 9.4): full, closed, never there, or read by nobody any more.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
from collections.abc import MutableMapping
from contextlib import suppress
from typing import IO, Any

import structlog

from omnigraph.server.frames import frames_of

LEVELS = ("debug", "info", "warning", "error", "critical")

_PATIENCE_MS = 100
_STANDARD = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)  # all that structlog knows


def configure_logs(form: str | None, level: str) -> None:
    """`form`: text or json; None is text on a terminal."""
    number = logging.getLevelNamesMapping()[level.upper()]
    lines = Lines(sys.stderr)
    plain = form == "text" or (form is None and lines.on_terminal)
    renderer: Any = (
        structlog.dev.ConsoleRenderer(repr_native_str=True) if plain else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            _with_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp" if plain else "ts"),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: lines,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Forwarding()]
    root.setLevel(max(number, logging.WARNING))


def _with_level(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["level"] = "warn" if method == "warning" else method
    return event


class Lines:
    """The logger at the end of the pipe: each record is one line. Never raises and never waits for long. Thread-safe.

    It writes to the descriptor, since a buffer would keep what could not be written and fail with it at the end of the
    process. A reader that takes nothing is waited for once; from then on lines are dropped until it reads again.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self.on_terminal = False
        self._descriptor: int | None = None
        with suppress(OSError, ValueError, AttributeError):  # closed, replaced by something without one, or none at all
            self._descriptor = stream.fileno()  # type: ignore[union-attr]
            self.on_terminal = os.isatty(self._descriptor)
        self._lock = threading.Lock()
        self._within_a_line = False
        self._stalled = False

    def msg(self, message: str) -> None:
        data = f"{message}\n".encode("utf-8", "backslashreplace")
        with self._lock, suppress(OSError, ValueError):
            self._write(b"\n" + data if self._within_a_line else data)

    log = debug = info = warning = error = critical = msg

    def _write(self, data: bytes) -> None:
        descriptor = self._descriptor
        while descriptor is not None and data and self._is_taken(descriptor):
            written = os.write(descriptor, data[: select.PIPE_BUF])  # what a pipe that is ready takes without waiting
            data = data[written:]
            self._within_a_line = bool(data)

    def _is_taken(self, descriptor: int) -> bool:
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        self._stalled = not ready.poll(0 if self._stalled else _PATIENCE_MS)
        return not self._stalled


class _Forwarding(logging.Handler):
    """From the standard library's records to ours."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        fields = {} if error is None else frames_of(error)
        # Other libraries' messages quote what they meet; uvicorn's formats are its own text.
        event = str(record.msg).strip() if record.name.startswith("uvicorn") else "a library reports"
        level = max((each for each in _STANDARD if each <= record.levelno), default=logging.DEBUG)
        structlog.get_logger(record.name).log(level, event, source=record.name, **fields)
