"""Logs: structured lines on stderr, JSON unless a person reads them.

Lines of libraries come through the same pipe, with the place of an exception and without its message.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from omnigraph.server.frames import frames_of

LEVELS = ("debug", "info", "warning", "error", "critical")


def configure_logs(form: str | None, level: str) -> None:
    """`form`: text or json; None is text on a terminal."""
    number = logging.getLevelNamesMapping()[level.upper()]
    plain = form == "text" or (form is None and sys.stderr.isatty())
    renderer: Any = (
        structlog.dev.ConsoleRenderer(repr_native_str=True) if plain else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    root = logging.getLogger()
    root.handlers[:] = [_Forwarding()]
    root.setLevel(max(number, logging.WARNING))


class _Forwarding(logging.Handler):
    """From the standard library's records to ours."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        fields = {} if error is None else frames_of(error)
        # Other libraries' messages quote what they meet; uvicorn's formats are its own text.
        event = str(record.msg).strip() if record.name.startswith("uvicorn") else "a library reports"
        structlog.get_logger(record.name).log(record.levelno, event, source=record.name, **fields)
