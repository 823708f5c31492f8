r"""Text from outside, made fit to be shown: what would steer a terminal or turn the order of letters is spelled out
(security.md 3). Knows neither markup nor where the text goes.
"""

from __future__ import annotations

import re

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C0, C1 and bidirectional controls, and the separators of lines and paragraphs."""

_LINE_ENDS = re.compile("[\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]")


def safe_text(text: str) -> str:
    r"""The text in one line, with all of `CONTROLS` spelled as escapes.

    >>> safe_text("a\x1b[31m")
    'a\\x1b[31m'
    """
    return CONTROLS.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""The text with the ends of its lines, and nothing else, spelled as escapes.

    >>> one_line("a\r\nb\tc")
    'a\\r\\nb\tc'
    """
    return _LINE_ENDS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    if named is not None:
        return named
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
