"""What may come of asking a provider, as values. They become `EmbeddingFailed` at the door of the room, and not before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from omnigraph.errors import EmbeddingReason

Role = Literal["query", "document"]
"""What a text is to retrieval: models that know the difference place a question near its answers."""

Vector = tuple[float, ...]
"""Of length 1, each number exactly representable in 32 bits."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """One for each text, in the order of the texts."""

    vectors: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """`what` goes on a sentence that begins with the provider's name, in our words only."""

    reason: EmbeddingReason
    what: str


class Provider(Protocol):
    """Makes vectors. Thread-safe.

    `costly`: worth remembering what it made.
    """

    costly: bool

    def embed(self, texts: Sequence[str], role: Role, dimensions: int, until: float) -> Vectors | Failed:
        """`until`: the time of the clock's `boot_seconds` at which waiting for an answer ends."""
        ...

    def close(self) -> None:
        """Release what it holds; it may be asked again, at the price of a new start."""
        ...
