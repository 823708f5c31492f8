"""What a text holds, by the analyzer of the table library: the terms of full-text search, and the words of `fuzzy`.

The settings are written out in full wherever they are used, so that a later version of the library can't change what an
index of an earlier one means (languages.md 12.3). The engine has no analyzer of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import lance

TERMS: Final[Mapping[str, Any]] = {
    "base_tokenizer": "simple",
    "language": "English",
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "ascii_folding": True,
}
"""Lower case, English stems, no stop words, folded to ASCII; pieces of 40 bytes and more are dropped."""

WORDS: Final[Mapping[str, Any]] = {
    "base_tokenizer": "simple",
    "language": "English",
    "max_token_length": None,
    "lower_case": True,
    "stem": False,
    "remove_stop_words": False,
    "ascii_folding": True,
}
"""Runs of letters and digits, in lower case and folded to ASCII."""


def tokens(text: str, analyzer: Mapping[str, Any]) -> list[str]:
    """What the analyzer makes of a text, in the order of the text, repeats included."""
    return [token.text for token in lance.tokenize(text, **analyzer)]


def placed_tokens(text: str, analyzer: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The same, each with its place among all pieces of the text, those counted that the analyzer drops. Places begin
    with that of the first token that is left.
    """
    return [(token.text, token.position) for token in lance.tokenize(text, **analyzer)]
