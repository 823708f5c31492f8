"""`lexical-v1` and `mock-v1`: the vectors that history.md 15.3 defines, against a second writing of the definition."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.embed.lexical import lexical_vector
from omnigraph.embed.mock import mock_vector

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
SIZES = st.sampled_from([1, 2, 3, 8, 64, 1536])


def normalised(sums: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in sums))
    return [value / length for value in sums]


def hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def lexical_by_the_book(text: str, size: int) -> list[float]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    words, word = [], ""
    for letter in f"{folded} ":
        if unicodedata.category(letter) in {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"}:
            word += letter
        elif word:
            words.append(word)
            word = ""
    features = [(1.0, "w" + word) for word in words]
    features += [(0.5, f"p{words[at]} {words[at + 1]}") for at in range(len(words) - 1)]
    for word in words:
        features += [(0.25, "c" + part) for part in re.findall(r"(?=(.{4}))", f"^{word}$", re.DOTALL)]
    sums = [0.0] * size
    for weight, feature in features:
        number = hashed(feature)
        sums[number % size] += -weight if number >> 63 else weight
    if not any(sums):
        return [float(place == hashed(text) % size) for place in range(size)]
    return normalised(sums)


@given(TEXTS, SIZES)
def test_a_lexical_vector_is_the_one_that_the_definition_gives(text: str, size: int) -> None:
    assert lexical_vector(text, size) == pytest.approx(lexical_by_the_book(text, size), abs=1e-6)


def test_lexical_vectors_stay_as_they_are() -> None:
    # Vectors that were stored are compared with those made later: these numbers may never change.
    assert lexical_vector("The Alma, 3 ships; the alma!", 8) == KEPT_LEXICAL
    assert mock_vector("The Alma", 4) == KEPT_MOCK


KEPT_LEXICAL = (
    -0.5803809762001038,
    0.07254762202501297,
    0.5078333616256714,
    -0.14509524405002594,
    -0.435285747051239,
    0.0,
    -0.435285747051239,
    0.0,
)
KEPT_MOCK = (0.8480212092399597, -0.07854057103395462, -0.12249283492565155, -0.5095949172973633)


def similarity(first: str, second: str) -> float:
    return sum(a * b for a, b in zip(lexical_vector(first, 1536), lexical_vector(second, 1536), strict=True))


def test_texts_that_share_words_are_nearer_than_those_that_do_not() -> None:
    log = "grain from Odessa, delayed by ice"
    assert similarity("ice delayed the grain", log) > 0.3 > similarity("a crew of nine", log)
    assert similarity("GRAIN — odessa", log) == pytest.approx(similarity("grain odessa", log))
    assert similarity("delays", "delayed") > 0.1  # parts of words


@given(TEXTS, SIZES)
def test_a_mock_vector_is_the_one_that_the_definition_gives(text: str, size: int) -> None:
    stream = hashlib.shake_256(text.encode()).digest(4 * size)
    words = [int.from_bytes(stream[4 * place : 4 * place + 4], "little") for place in range(size)]
    spread = [(word + 0.5) / 2**31 - 1 for word in words]
    assert mock_vector(text, size) == pytest.approx(normalised(spread), abs=1e-6)
