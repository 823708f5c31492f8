"""Lines for operators from a library: to the program's own logging, or to the pipe that a front has configured.

No outcome hangs on whether a line can be written: a sink that is full, closed or at fault concerns the log and nothing
else (cluster.md 9.4).

A library must not write to standard output nor configure anybody's logging. The server and the command line configure
structlog; where nobody did, lines go to the standard library's logger of the same name.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import IO, Any, Literal, cast

import structlog

Level = Literal["info", "warning", "error"]


def log_event(name: str, level: Level, event: str, /, **fields: object) -> None:
    """`event` is a fixed text; what varies stands in the fields. Never a message of a lower layer. Raises nothing."""
    with suppress(
        Exception
    ):  # pipes and handlers are other people's code: what they meet changes no outcome of a write
        _tell(name, logging.getLevelNamesMapping()[level.upper()], event, fields)


def _tell(name: str, level: int, event: str, fields: dict[str, Any]) -> None:
    if structlog.is_configured():
        structlog.get_logger(name).log(level, event, **fields)
        return
    shown = " ".join(f"{key}={value}" for key, value in fields.items())
    # `extra` is for handlers that format fields themselves
    logging.getLogger(name).log(level, "%s %s", event, shown, extra={"omnigraph": dict(fields)})


class _Notes:
    """A stream that takes everything and hands on what its owner takes."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def notes() -> IO[str] | None:
    """Standard error for a bar that shows the progress of a write, which must not fail with it. None if there is none."""
    return None if sys.stderr is None else cast("IO[str]", _Notes(sys.stderr))
