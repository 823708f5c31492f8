"""Which graphs a storage root holds, and what is said of one that it does not hold. Loads no engine."""

from __future__ import annotations

from pathlib import PurePath

from omnigraph.cluster.layout import GRAPH_SUFFIX, GRAPHS_FOLDER, graph_id_of
from omnigraph.errors import GraphNotFound, StorageFailure, StoragePhase
from omnigraph.lang.query.faults import nearest_name
from omnigraph.store.base import StoreError
from omnigraph.store.open import open_store

_NAMES_SHOWN = 20


def stored_graphs(storage: str) -> list[str]:
    """Ids of the graphs below a root, in byte order. One LIST. Raises StorageFailure."""
    try:
        folders = open_store(storage).list_folders(GRAPHS_FOLDER)
    except StoreError as error:
        raise StorageFailure("The list of graphs can't be read.", cls=error.cls, phase=StoragePhase.READ) from None
    return [graph_id for folder in folders if (graph_id := graph_id_of(folder)) is not None]


def not_there(storage: str, uri: str) -> GraphNotFound:
    """As `not_held`, of the graph that an address in the cluster names."""
    return not_held(storage, PurePath(uri).name.removesuffix(GRAPH_SUFFIX))


def not_held(storage: str, graph_id: str) -> GraphNotFound:
    """What is said of a graph that a cluster does not hold: which it holds, the nearest name first, and what makes more.
    One LIST. Raises StorageFailure.
    """
    held = [name for name in stored_graphs(storage) if name != graph_id]  # its folder may be there without a graph
    near = nearest_name(graph_id, held)
    names = held if near is None else [near, *(name for name in held if name != near)]
    shown = [*names[:_NAMES_SHOWN], *(["…"] if len(names) > _NAMES_SHOWN else [])]
    return GraphNotFound(
        f"This cluster holds no graph '{graph_id}'; it holds {', '.join(shown) or 'none'}."
        " `omnigraph cluster apply` makes what its folder declares."
    )
