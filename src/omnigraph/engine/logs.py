"""Lines for operators from a library: to the program's own logging, or to the pipe that a front has configured.

A library must not write to standard output nor configure anybody's logging. The server and the command line configure
structlog; where nobody did, lines go to the standard library's logger of the same name.
"""

from __future__ import annotations

import logging
from typing import Literal

import structlog

Level = Literal["info", "warning", "error"]


def log_event(name: str, level: Level, event: str, **fields: str | int) -> None:
    """`event` is a fixed text; what varies stands in the fields. Never a message of a lower layer."""
    if structlog.is_configured():
        structlog.get_logger(name).log(logging.getLevelNamesMapping()[level.upper()], event, **fields)
        return
    shown = " ".join(f"{key}={value}" for key, value in fields.items())
    logging.getLogger(name).log(
        logging.getLevelNamesMapping()[level.upper()], "%s %s", event, shown, extra=_extra(fields)
    )


def _extra(fields: dict[str, str | int]) -> dict[str, object]:
    """For handlers that format fields themselves."""
    return {"omnigraph": dict(fields)}
