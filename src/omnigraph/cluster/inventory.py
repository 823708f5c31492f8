"""Which graphs a storage root holds. Loads no engine."""

from __future__ import annotations

from omnigraph.cluster.layout import GRAPHS_FOLDER, graph_id_of
from omnigraph.errors import StorageFailure, StoragePhase
from omnigraph.store.base import StoreError
from omnigraph.store.open import open_store


def stored_graphs(storage: str) -> list[str]:
    """Ids of the graphs below a root, in byte order. One LIST. Raises StorageFailure."""
    try:
        folders = open_store(storage).list_folders(GRAPHS_FOLDER)
    except StoreError as error:
        raise StorageFailure("The list of graphs can't be read.", cls=error.cls, phase=StoragePhase.READ) from None
    return [graph_id for folder in folders if (graph_id := graph_id_of(folder)) is not None]
