"""`lexical-v1`: a vector from the words of a text alone, the same on every machine, of any length, without a model.

Texts that share words, pairs of words or parts of words are near each other; it knows no synonyms (history.md 15.3).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise

from omnigraph.embed.outcomes import Failed, Role, Vector, Vectors
from omnigraph.embed.vectors import unit_vector

LEXICAL_MODEL = "lexical-v1"

_WORD, _PAIR, _PART = 1.0, 0.5, 0.25
_PART_LENGTH = 4
_TOP_BIT = 1 << 63


class LexicalProvider:
    """Needs no network and no key."""

    costly = False

    def embed(self, texts: Sequence[str], role: Role, dimensions: int, until: float) -> Vectors | Failed:
        """Every text has a vector. The role makes no difference."""
        return Vectors(tuple(lexical_vector(text, dimensions) for text in texts))

    def close(self) -> None:
        """Nothing is held."""


def lexical_vector(text: str, dimensions: int) -> Vector:
    """The vector of `lexical-v1`. Words are the maximal runs of letters (Unicode L) and decimal digits (Nd) of the text in
    NFKC and case folded. The hash is read big-endian.

    >>> lexical_vector("Red Ship", 4) == lexical_vector("red  ship!", 4)
    True
    >>> lexical_vector("", 4)
    (1.0, 0.0, 0.0, 0.0)
    """
    sums = [0.0] * dimensions
    for (weight, feature), count in Counter(_features(text)).items():
        number = _hash(feature)
        sums[number % dimensions] += (-weight if number & _TOP_BIT else weight) * count
    vector = unit_vector(sums, dimensions)
    if vector is not None:
        return vector
    place = _hash(text) % dimensions
    return tuple(float(index == place) for index in range(dimensions))


def _features(text: str) -> Iterator[tuple[float, str]]:
    words = _words(unicodedata.normalize("NFKC", text).casefold())
    for word in words:
        yield _WORD, f"w{word}"
        marked = f"^{word}$"
        for start in range(len(marked) - _PART_LENGTH + 1):
            yield _PART, f"c{marked[start : start + _PART_LENGTH]}"
    for first, second in pairwise(words):
        yield _PAIR, f"p{first} {second}"


def _words(text: str) -> list[str]:
    return "".join(letter if _belongs_to_a_word(letter) else " " for letter in text).split()


def _belongs_to_a_word(letter: str) -> bool:
    category = unicodedata.category(letter)
    return category[0] == "L" or category == "Nd"


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
