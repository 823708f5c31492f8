"""A key on its way from the environment to its provider: it can be sent, and can't be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

_PLAIN = re.compile(r"[!-~]{1,4096}")


class Secret:
    """Holds a key. Neither its text form nor a copy tells it; two are never equal."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """For the header of a request, and for nothing else."""
        return self._text

    def __repr__(self) -> str:
        return "<secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key stays in its process")


def secret_from(environ: Mapping[str, str], variable: str | None) -> Secret | None:
    """What the variable holds; None if it is unset, empty, or no key: a line break in a header would begin another."""
    text = environ.get(variable, "").strip() if variable else ""
    return Secret(text) if _PLAIN.fullmatch(text) else None
