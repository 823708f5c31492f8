r"""What a terminal is not sent as it is: C0, C1 and bidirectional controls (security.md 3).

A file or a pipe gets the exact bytes; a terminal would obey them. JSON spells them `\u202e` and so stays the same value;
in CSV and in text for people they become visible escapes. The shape of the output (line ends between records) stays.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from omnigraph.escaping import CONTROLS, safe_text

Kind = Literal["json", "csv"]


def shown_text(text: str) -> str:
    r"""Text for people: controls escaped, line ends and tabs kept.

    >>> shown_text("one\n\x1b[2Jtwo")
    'one\n\\x1b[2Jtwo'
    """
    return "".join(part if part in ("\n", "\t") else safe_text(part) for part in re.split(r"([\n\t])", text))


def shown_pieces(pieces: Iterable[bytes], kind: Kind) -> Iterator[bytes]:
    """The same output for a terminal. A piece may end inside a character."""
    inert = _InertCsv().inert if kind == "csv" else _inert_json
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    for piece in pieces:
        yield inert(decoder.decode(piece)).encode("utf-8", "surrogateescape")
    yield inert(decoder.decode(b"", final=True)).encode("utf-8", "surrogateescape")


def _inert_json(text: str) -> str:
    """Line ends between the values stay; in a string JSON has them escaped already."""
    return CONTROLS.sub(lambda found: "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


class _InertCsv:
    """Line ends stay outside quotes only: one inside a field would look like the next record."""

    def __init__(self) -> None:
        self._watched = re.compile(f'"|{CONTROLS.pattern}')
        self._quoted = False

    def inert(self, text: str) -> str:
        return self._watched.sub(self._one, text)

    def _one(self, found: re.Match[str]) -> str:
        character = found[0]
        if character == '"':
            self._quoted = not self._quoted
            return character
        return character if character in "\r\n" and not self._quoted else safe_text(character)
