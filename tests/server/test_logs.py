"""What stands in the log: one object a line, where a fault happened, and nothing that a lower library said."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.server.frames import frames_of

CHECKOUT = Path(__file__).resolve().parents[2]

LIBRARIES = """
import asyncio, logging
from omnigraph.server.logs import configure_logs
configure_logs({form!r}, "info")
try:
    raise ValueError("s3://hunter2")
except ValueError as error:
    logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=error)
    logging.getLogger("asyncio").error("future: <Task exception=ValueError('s3://hunter2')>", exc_info=error)
logging.getLogger("uvicorn.error").info("chatter")
logging.getLogger("odd").log(35, "of a level of its own")
import structlog
structlog.get_logger("omnigraph").warning("request", req="a\\nb\\x1b[31m")
"""


def printed(form: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LIBRARIES.format(form=form)], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


def test_lines_of_libraries_tell_where_and_not_what() -> None:
    uvicorn, asyncio, odd, ours = map(json.loads, printed("json"))
    assert (odd["level"], odd["source"]) == ("warn", "odd")
    assert (uvicorn["event"], uvicorn["level"]) == ("Exception in ASGI application", "error")
    assert (asyncio["event"], asyncio["source"]) == ("a library reports", "asyncio")
    for line in (uvicorn, asyncio):
        assert line["error_type"] == "ValueError"
        assert line["frames"]
        assert "hunter2" not in str(line)
    assert ours["req"] == "a\nb\x1b[31m"
    assert list(ours) == ["req", "event", "level", "ts"]
    assert ours["level"] == "warn"
    assert dt.datetime.fromisoformat(ours["ts"]).tzinfo is dt.UTC


def test_text_for_people_escapes_what_a_terminal_would_obey() -> None:
    lines = printed("text")
    assert len(lines) == 4
    assert "\\x1b[31m" in lines[3]
    assert "hunter2" not in "".join(lines)


def test_the_frames_are_those_of_the_innermost_error() -> None:
    def inner() -> None:
        raise KeyError("hunter2")

    def outer() -> None:
        try:
            inner()
        except KeyError as error:
            raise RuntimeError("hunter2") from error

    with pytest.raises(RuntimeError) as caught:
        outer()
    told = frames_of(caught.value)
    assert (told["error_type"], told["caused_by"]) == ("RuntimeError", ["KeyError"])
    assert told["frames"][-1].endswith(" inner")
    assert "hunter2" not in str(told)
