"""The door of the room: one provider, opened once, asked for vectors, with its failures as `EmbeddingFailed`.

Equal texts are asked for once as long as their vectors are remembered. What a write does with vectors, and when, is decided
elsewhere (history.md 15); `embed_query` is what a query needs (languages.md 12.2).
"""

from __future__ import annotations

import os
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import assert_never

from omnigraph.ambient import Clock, SystemClock, random_bytes
from omnigraph.embed.config import ProviderConfig
from omnigraph.embed.lexical import LEXICAL_MODEL, LexicalProvider
from omnigraph.embed.mock import MockProvider
from omnigraph.embed.multilingual import MultilingualProvider
from omnigraph.embed.outcomes import Failed, Provider, Role, Vector, Vectors
from omnigraph.errors import EmbeddingFailed, InvalidRequest

REMEMBERED_MAX = 10_000
REMEMBERED_BYTES_MAX = 64 << 20


class Embedder:
    """A provider that is ready to be asked; opening it reaches no network. Thread-safe.

    `provider`: another one than the configuration describes, for tests.
    """

    def __init__(
        self,
        config: ProviderConfig,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        randomness: Callable[[int], bytes] = random_bytes,
        provider: Provider | None = None,
    ) -> None:
        self.config = config
        self._clock = clock or SystemClock()
        self._provider = provider or _provider(
            config, os.environ if environ is None else environ, self._clock, randomness
        )
        self._remembered = _Remembered()

    def vector(
        self, text: str, role: Role, *, model: str | None, dimensions: int, deadline: float | None = None
    ) -> Vector:
        """As `embed_query`, for either role."""
        if model is not None and model != self.config.model:
            what = f"has the model {self.config.model}, and the schema records {model}"
            raise self._failed(Failed("model", what))
        data = _encoded(text)
        key = (role, dimensions, sha256(data).digest())
        known = self._remembered.get(key) if self._provider.costly else None
        if known is not None:
            return known
        outcome = self._provider.embed([text], role, dimensions, self._until(deadline))
        match outcome:
            case Failed():
                raise self._failed(outcome)
            case Vectors((vector,)):
                if self._provider.costly:
                    self._remembered.put(key, vector)
                return vector
            case Vectors():
                raise self._failed(Failed("bad_vector", "made more or fewer vectors than one"))
            case _:
                assert_never(outcome)

    def close(self) -> None:
        """Close its connections. It may be asked again, which opens others."""
        self._provider.close()

    def _until(self, deadline: float | None) -> float:
        own = self._clock.boot_seconds() + self.config.patience.deadline_ms / 1_000
        return own if deadline is None else min(own, deadline)

    def _failed(self, failed: Failed) -> EmbeddingFailed:
        return EmbeddingFailed(
            f"the embedding provider {self.config.name} {failed.what}",
            reason=failed.reason,
            provider=self.config.name,
            model=self.config.model,
        )


def embed_query(
    embedder: Embedder | None, text: str, *, model: str | None, dimensions: int, deadline: float | None = None
) -> Vector:
    """The vector of a query's text: embedded as given, of `dimensions` numbers, L2-normalised, each fit for 32 bits.

    `embedder`: None where the graph has no provider. `model`: what `@embed` records; None takes any. `deadline`: a time of
    the clock's `boot_seconds` after which the caller needs no answer; the provider's own deadline holds besides.

    Raises EmbeddingFailed with its reason, also where the caller's deadline ended the waiting; InvalidRequest for a text
    that is no Unicode.
    """
    if embedder is None:
        raise EmbeddingFailed(
            "a text can't be searched for by meaning: this graph has no embedding provider"
            " (OMNIGRAPH_EMBED_PROVIDER), and a vector of numbers needs none",
            reason="no_provider",
            model=model,
        )
    return embedder.vector(text, "query", model=model, dimensions=dimensions, deadline=deadline)


def _provider(
    config: ProviderConfig, environ: Mapping[str, str], clock: Clock, randomness: Callable[[int], bytes]
) -> Provider:
    match config.kind:
        case "mock":
            return MockProvider()
        case "local":
            return LexicalProvider() if config.model == LEXICAL_MODEL else MultilingualProvider()
        case "openai" | "openai-compatible" | "gemini":
            # The client and its trust store are loaded where a provider is reached over the network, and nowhere else.
            from omnigraph.embed.dialects import GeminiDialect, OpenAIDialect
            from omnigraph.embed.http import HttpProvider

            dialect = GeminiDialect() if config.kind == "gemini" else OpenAIDialect()
            return HttpProvider(config, dialect, environ=environ, clock=clock, randomness=randomness)
        case _:
            assert_never(config.kind)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    raise InvalidRequest("a text to embed holds half of a surrogate pair, which is no character", effects="none")


class _Remembered:
    """The vectors last used, by role, size and digest of the text, which is not kept itself."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._vectors: OrderedDict[tuple[Role, int, bytes], bytes] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[Role, int, bytes]) -> Vector | None:
        with self._guard:
            data = self._vectors.get(key)
            if data is None:
                return None
            self._vectors.move_to_end(key)
        return tuple(array("f", data))

    def put(self, key: tuple[Role, int, bytes], vector: Vector) -> None:
        data = array("f", vector).tobytes()
        with self._guard:
            self._bytes += len(data) - len(self._vectors.pop(key, b""))
            self._vectors[key] = data
            while len(self._vectors) > REMEMBERED_MAX or self._bytes > REMEMBERED_BYTES_MAX:
                _, oldest = self._vectors.popitem(last=False)
                self._bytes -= len(oldest)
