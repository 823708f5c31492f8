"""Bring a cluster's storage to what its folder declares: graphs that are missing are made, schemas that differ applied.

Every step is one publication and can be repeated; a run that was cut short is finished by the next. Graphs that the
folder no longer declares are left alone and reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.cluster.config import ClusterConfig, GraphConfig, read_config
from omnigraph.cluster.inventory import stored_graphs
from omnigraph.cluster.layout import graph_root
from omnigraph.cluster.ownership import acquire
from omnigraph.engine.graph import Graph, init_graph, open_graph
from omnigraph.errors import AlreadyExists, GraphNotFound, OmnigraphError

Change = Literal["created", "schema_changed", "unchanged", "undeclared", "failed"]


@dataclass(frozen=True, slots=True)
class GraphApplied:
    """What became of one graph."""

    graph_id: str
    change: Change
    commit_id: str | None = None
    error: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {"graph_id": self.graph_id, "change": self.change, "graph_commit_id": self.commit_id}
        if self.error is not None:
            body["error"] = self.error
        return body


@dataclass(frozen=True, slots=True)
class ApplyReport:
    storage: str
    graphs: tuple[GraphApplied, ...]

    @property
    def outcome(self) -> Literal["done", "partial", "failed"]:
        failed = sum(graph.change == "failed" for graph in self.graphs)
        if not failed:
            return "done"
        changed = any(graph.change in ("created", "schema_changed") for graph in self.graphs)
        return "partial" if changed else "failed"

    def to_dict(self) -> dict[str, Any]:
        return {"outcome": self.outcome, "storage": self.storage, "graphs": [g.to_dict() for g in self.graphs]}


def apply(
    config_dir: str | os.PathLike[str],
    *,
    actor: str | None = None,
    allow_data_loss: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ApplyReport:
    """Apply a folder. Holds the root's lock meanwhile. `progress` is told how many of how many graphs are done.

    Raises InvalidConfig before anything is touched, LockHeld, StorageFailure. What goes wrong with one graph is told in
    the report and does not stop the others.
    """
    config = read_config(config_dir)
    with acquire(config.storage):
        declared: list[GraphApplied] = []
        progress(0, len(config.graphs))
        for graph in config.graphs:
            declared.append(_applied(config, graph, actor, allow_data_loss))
            progress(len(declared), len(config.graphs))
        known = {graph.id for graph in config.graphs}
        others = [GraphApplied(g, "undeclared") for g in stored_graphs(config.storage) if g not in known]
    return ApplyReport(config.storage, (*declared, *others))


def _applied(config: ClusterConfig, declared: GraphConfig, actor: str | None, allow_data_loss: bool) -> GraphApplied:
    try:
        graph, created = _opened_or_made(graph_root(config.storage, declared.id), declared.schema, actor)
        if created:
            return GraphApplied(declared.id, "created", _head(graph))
        result = graph.schema.apply(declared.schema, allow_data_loss=allow_data_loss)
        return GraphApplied(declared.id, "schema_changed" if result else "unchanged", _head(graph))
    except OmnigraphError as error:
        error.of_write(staged=True)  # which step it was is not known here
        return GraphApplied(declared.id, "failed", error=error.to_dict())


def _opened_or_made(root: str, schema: str, actor: str | None) -> tuple[Graph, bool]:
    """The graph, and whether it was made here: on object storage another apply may make it at the same time."""
    try:
        return open_graph(root, actor=actor), False
    except GraphNotFound:
        pass
    try:
        return init_graph(root, schema=schema, actor=actor), True
    except AlreadyExists:
        return open_graph(root, actor=actor), False


def _head(graph: Graph) -> str:
    return graph.head.graph_commit_id


__all__ = ["ApplyReport", "GraphApplied", "apply", "stored_graphs"]
