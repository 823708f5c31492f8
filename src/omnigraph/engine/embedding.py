"""A query's text as a vector: what the search room asks of the graph's provider.

Asked only when a query that ranks by a text is run; nothing is embedded by `explain`.
"""

from __future__ import annotations

import numpy as np

from omnigraph.embed.embedder import embed_query
from omnigraph.engine.core import GraphCore
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.query.expressions import Embedder


def query_embedder(core: GraphCore, timeout_ms: int) -> Embedder:
    """Waits for the provider no longer than the query may run; `timeout_ms` counts from now."""
    deadline = core.clock.boot_seconds() + timeout_ms / 1000

    def embed(text: str, entity: NodeType, name: str) -> np.ndarray:
        """Raises EmbeddingFailed."""
        found = entity.property(name)
        assert found is not None
        model = None if found.embed is None else found.embed.model
        made = embed_query(core.embedder, text, model=model, dimensions=found.type.dimension, deadline=deadline)
        return np.array(made, np.float32)

    return embed
