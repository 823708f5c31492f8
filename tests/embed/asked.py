"""What the tests of providers share: a configuration that leads to a server of their own, and answers of its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from omnigraph.embed.config import KEY_VARIABLE, ProviderConfig, provider_from_environment
from omnigraph.embed.embedder import Embedder, embed_query
from support.clocks import SteppingClock
from support.listening import Listening
from support.wire import Message

KEY = "canary-key-4b1d"
MODEL = "small-embed-2"
TEXT = "canary text: the Alma leaves at dawn"


def config_for(server: Listening, **more: str) -> ProviderConfig:
    """From the environment, as a program has it; `more` without its prefix."""
    environ = {
        "OMNIGRAPH_EMBED_PROVIDER": "openai-compatible",
        "OMNIGRAPH_EMBED_BASE_URL": f"{server.endpoint}/v1",
        "OMNIGRAPH_EMBED_MODEL": MODEL,
        **{f"OMNIGRAPH_EMBED_{name}": value for name, value in more.items()},
    }
    found = provider_from_environment(environ)
    assert found is not None
    return found


def embedder_for(
    server: Listening,
    *,
    clock: SteppingClock | None = None,
    environ: Mapping[str, str] | None = None,
    **more: str,
) -> Embedder:
    return Embedder(
        config_for(server, **more),
        environ={KEY_VARIABLE: KEY} if environ is None else environ,
        clock=clock or SteppingClock(),
        randomness=lambda count: b"\xff" * count,
    )


def ask(embedder: Embedder, text: str = TEXT, dimensions: int = 2, **more: Any) -> tuple[float, ...]:
    return embed_query(embedder, text, **{"model": MODEL, "dimensions": dimensions, **more})


def openai(*vectors: object, **more: object) -> str:
    items = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    return json.dumps({"object": "list", "data": items, "model": "whatever", **more})


def sent(request: Message) -> Any:
    return json.loads(request.body)
