"""A whole column of texts through the analyzer at once.

Each distinct piece between ASCII separators is analyzed once, wherever and however often it stands. A piece of ASCII
letters and digits is one token or none; any other may be several, since the analyzer knows more separators than ASCII has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InternalError
from omnigraph.query.codes import ranges
from omnigraph.tables.analysis import placed_tokens

_SEPARATORS = r"[\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+"
_MARK = "q0z"
"""A token that every analyzer leaves as it is; lengthened until no text holds it."""
_MARK_LENGTH_MAX = 36


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Every token of a column of texts. `vocabulary`: the distinct tokens. `token[i]` of them stands in text `text[i]`."""

    vocabulary: list[str]
    token: np.ndarray  # int64
    text: np.ndarray  # int64


def occurrences(texts: pa.Array, analyzer: Mapping[str, Any]) -> Occurrences:
    """The tokens of each text; a null text has none."""
    parts = pc.split_pattern_regex(texts, pattern=_SEPARATORS)
    lengths = pc.list_value_length(parts).fill_null(0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(texts)), lengths)
    coded = parts.flatten().dictionary_encode()
    vocabulary, offsets, made = _analyzed(coded.dictionary, analyzer)
    piece = coded.indices.to_numpy(zero_copy_only=False)
    counts = np.diff(offsets)[piece]
    return Occurrences(vocabulary, made[ranges(offsets[piece], counts)], np.repeat(owners, counts))


def _analyzed(pieces: pa.Array, analyzer: Mapping[str, Any]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Distinct tokens, and for each piece which of them it becomes: a list of numbers cut by offsets."""
    ascii_only = pc.string_is_ascii(pieces).to_numpy(zero_copy_only=False)
    empty = pc.equal(pc.binary_length(pieces), 0).to_numpy(zero_copy_only=False)
    plain, others = np.flatnonzero(ascii_only & ~empty), np.flatnonzero(~ascii_only)
    found: list[str] = []
    owners: list[np.ndarray] = []
    if len(plain):
        made = _of_plain(pieces.take(pa.array(plain)), analyzer)
        found += [token for token, _ in made]
        owners.append(plain[[place for _, place in made]])
    if len(others):
        parted = _of_others(pieces.take(pa.array(others)).to_pylist(), analyzer)
        found += [token for each in parted for token in each]
        owners.append(np.repeat(others, [len(each) for each in parted]))
    coded = pa.array(found, pa.string()).dictionary_encode()
    owner = np.concatenate(owners).astype(np.int64) if owners else np.empty(0, np.int64)
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=len(pieces))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    numbers = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return coded.dictionary.to_pylist(), offsets, numbers[order]


def _of_plain(pieces: pa.Array, analyzer: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The token of each piece that has one, with the piece's number: all in one text, where places count pieces."""
    made = placed_tokens(f"{_MARK} {' '.join(pieces.to_pylist())}", analyzer)
    return [(token, place - 1) for token, place in made[1:]]


def _of_others(pieces: Sequence[str], analyzer: Mapping[str, Any]) -> list[list[str]]:
    """The tokens of each piece: all in one text, with a mark between two pieces."""
    mark = _MARK
    while len(mark) < _MARK_LENGTH_MAX:
        made = [token for token, _ in placed_tokens(f"{mark} " + f" {mark} ".join(pieces) + f" {mark}", analyzer)]
        cuts = [at for at, token in enumerate(made) if token == mark]
        if len(cuts) == len(pieces) + 1:
            return [made[first + 1 : last] for first, last in pairwise(cuts)]
        mark += "q0z"
    raise InternalError("a text holds every mark that could part it from another")
