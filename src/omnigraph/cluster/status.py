"""What a cluster's storage holds: its graphs, and the head of each. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.cluster.apply import stored_graphs
from omnigraph.cluster.config import graph_root
from omnigraph.engine.graph import open_graph
from omnigraph.errors import GraphNotFound, OmnigraphError


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """One graph; a blocked one can't be opened, and `error` says why."""

    graph_id: str
    state: Literal["ready", "blocked"]
    head_commit_id: str | None = None
    error: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "graph_id": self.graph_id,
            "state": self.state,
            "head_commit_id": self.head_commit_id,
        }
        if self.error is not None:
            body["error"] = self.error
        return body


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    storage: str
    graphs: tuple[GraphStatus, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"storage": self.storage, "graphs": [graph.to_dict() for graph in self.graphs]}


def status(storage: str) -> ClusterStatus:
    """The graphs below a root, in byte order; one that can't be opened does not stop the others.

    Raises StorageFailure if they can't be listed.
    """
    return ClusterStatus(storage, tuple(_status(storage, graph_id) for graph_id in stored_graphs(storage)))


def _status(storage: str, graph_id: str) -> GraphStatus:
    try:
        graph = open_graph(graph_root(storage, graph_id), mode="r")
        return GraphStatus(graph_id, "ready", graph.head.graph_commit_id)
    except GraphNotFound:
        unfinished = GraphNotFound("The folder of this graph holds none yet: `omnigraph cluster apply` makes it.")
        return GraphStatus(graph_id, "blocked", error=unfinished.to_dict())
    except OmnigraphError as error:
        return GraphStatus(graph_id, "blocked", error=error.to_dict())
