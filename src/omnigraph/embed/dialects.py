"""The two dialects of providers: what is sent for some texts, and which vectors an answer holds.

Pure. Texts from outside go into JSON and nowhere else; of an answer nothing but numbers is taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from omnigraph.embed.outcomes import Failed, Role, Vectors
from omnigraph.embed.secret import Secret
from omnigraph.embed.vectors import judged, not_vectors


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, less the key: `path` goes behind the base address, `body` is JSON."""

    path: str
    body: bytes


class Dialect(Protocol):
    """How one kind of provider is spoken to."""

    def ask(self, model: str, texts: Sequence[str], role: Role, dimensions: int) -> Asked: ...

    def authorization(self, key: Secret) -> tuple[str, str]:
        """The header that carries the key."""
        ...

    def read(self, body: bytes, count: int, dimensions: int) -> Vectors | Failed:
        """The vectors of an answer with status 200."""
        ...


class OpenAIDialect:
    """`POST {base}/embeddings`, which many programs speak. It knows no roles."""

    def ask(self, model: str, texts: Sequence[str], role: Role, dimensions: int) -> Asked:
        body = {"model": model, "input": list(texts), "dimensions": dimensions, "encoding_format": "float"}
        return Asked("/embeddings", _encoded(body))

    def authorization(self, key: Secret) -> tuple[str, str]:
        return "Authorization", f"Bearer {key.reveal()}"

    def read(self, body: bytes, count: int, dimensions: int) -> Vectors | Failed:
        items = _list_in(_decoded(body), "data")
        if len(items) != count or not all(isinstance(item, dict) for item in items):
            return not_vectors(count, dimensions)
        placed: dict[int, object] = {}
        for position, item in enumerate(cast("list[dict[str, Any]]", items)):
            index = item.get("index", position)
            if type(index) is int:
                placed[index] = item.get("embedding")
        if sorted(placed) != list(range(count)):  # one for each text, and none twice
            return not_vectors(count, dimensions)
        return judged([placed[index] for index in range(count)], count, dimensions)


class GeminiDialect:
    """`POST {base}/models/{model}:batchEmbedContents`."""

    def ask(self, model: str, texts: Sequence[str], role: Role, dimensions: int) -> Asked:
        shared = {
            "model": f"models/{model}",
            "taskType": "RETRIEVAL_QUERY" if role == "query" else "RETRIEVAL_DOCUMENT",
            "outputDimensionality": dimensions,
        }
        requests = [{**shared, "content": {"parts": [{"text": text}]}} for text in texts]
        return Asked(f"/models/{model}:batchEmbedContents", _encoded({"requests": requests}))

    def authorization(self, key: Secret) -> tuple[str, str]:
        return "x-goog-api-key", key.reveal()

    def read(self, body: bytes, count: int, dimensions: int) -> Vectors | Failed:
        items = _list_in(_decoded(body), "embeddings")
        values = [cast("dict[str, Any]", item).get("values") for item in items if isinstance(item, dict)]
        return judged(values, count, dimensions)


def _encoded(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _decoded(body: bytes) -> object:
    """The JSON value of a body that was bounded before; None if it is none."""
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):  # not JSON, or not UTF-8; NaN; a number with too many digits; too deep
        return None


def _no_number(text: str) -> float:
    raise ValueError("no JSON number")


def _list_in(value: object, name: str) -> list[object]:
    found = cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
    return cast("list[object]", found) if isinstance(found, list) else []
