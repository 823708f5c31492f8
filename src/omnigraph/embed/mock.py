"""`mock-v1`: made-up vectors for tests. Equal texts have equal vectors, and nothing else means anything."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import shake_256

from omnigraph.embed.outcomes import Failed, Role, Vector, Vectors
from omnigraph.embed.vectors import unit_vector

MOCK_MODEL = "mock-v1"


class MockProvider:
    """Needs no network and no key."""

    costly = False

    def embed(self, texts: Sequence[str], role: Role, dimensions: int, until: float) -> Vectors | Failed:
        """Every text has a vector. The role makes no difference."""
        return Vectors(tuple(mock_vector(text, dimensions) for text in texts))

    def close(self) -> None:
        """Nothing is held."""


def mock_vector(text: str, dimensions: int) -> Vector:
    """The first 32-bit words, little-endian, of SHAKE-256 of the text, spread over (−1, 1), L2-normalised.

    >>> mock_vector("a", 2) == mock_vector("a", 2), mock_vector("a", 2) == mock_vector("b", 2)
    (True, False)
    """
    words = struct.unpack(f"<{dimensions}I", shake_256(text.encode()).digest(4 * dimensions))
    vector = unit_vector([(2 * word + 1) / 2**32 - 1 for word in words], dimensions)
    assert vector is not None  # none of the numbers is zero
    return vector
