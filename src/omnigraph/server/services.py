"""What the routes are given: the graphs, the lanes, the clock."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from omnigraph.ambient import Clock
from omnigraph.engine.graph import Graph
from omnigraph.server.operations import Operations
from omnigraph.server.registry import Registry


@dataclass(frozen=True, slots=True)
class Services:
    registry: Registry
    operations: Operations
    clock: Clock


def services(request: Request) -> Services:
    held = request.app.state.services
    assert isinstance(held, Services)
    return held


def graph_of(request: Request, graph_id: str) -> Graph:
    """Raises GraphNotFound, Busy (`graph_unavailable`)."""
    return services(request).registry.graph(graph_id)
