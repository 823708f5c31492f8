"""What the command knows of the terminal: whether there is one, how wide it is, whether colour is wanted."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import IO, Literal

Color = Literal["auto", "always", "never"]


def is_terminal(stream: IO[str] | None) -> bool:
    """False for a closed or replaced stream as well, and for one that the process was started without."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def stdout_is_terminal() -> bool:
    return is_terminal(sys.stdout)


def stderr_is_terminal() -> bool:
    return is_terminal(sys.stderr)


def say(text: str, *, end: str = "\n") -> None:
    """A line on stderr. Where nobody can be told, the exit code and stdout still speak."""
    with suppress(OSError, ValueError, AttributeError):  # full, closed, or never there
        sys.stderr.write(text + end)
        sys.stderr.flush()


def can_ask() -> bool:
    """Whether there is a person: both what is asked and what is answered must pass a terminal."""
    return is_terminal(sys.stdin) and stderr_is_terminal()


def width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def height() -> int:
    return shutil.get_terminal_size((100, 24)).lines


def wants_color(choice: Color, stream: IO[str] | None) -> bool:
    """`auto`: on a terminal, unless NO_COLOR is set to anything or the terminal is dumb."""
    if choice != "auto":
        return choice == "always"
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
