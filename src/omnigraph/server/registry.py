"""The graphs of a cluster as this process serves them: opened at boot, ready or blocked, each by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import structlog

from omnigraph.cluster.apply import stored_graphs
from omnigraph.cluster.config import graph_root
from omnigraph.engine.context import Context
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import open_core
from omnigraph.errors import Busy, GraphNotFound, OmnigraphError

_log = structlog.get_logger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class Entry:
    """One graph. A blocked one has no handle and says why."""

    graph_id: str
    uri: str
    graph: Graph | None
    failure: Literal["graph_missing", "open_failed"] | None = None

    def to_dict(self) -> dict[str, Any]:
        ready = self.graph is not None
        body: dict[str, Any] = {
            "graph_id": self.graph_id,
            "uri": self.uri,
            "state": "ready" if ready else "blocked",
            "read_available": ready,
            "write_available": ready,
            "action": "none" if ready else "restart_after_correction",
        }
        if self.failure is not None:
            body["failure"] = self.failure
        return body


class Registry:
    """All graphs below a storage root. `owner`: this process alone writes them."""

    def __init__(self, storage: str, *, owner: bool) -> None:
        self._storage = storage
        self._owner = owner
        self._entries: dict[str, Entry] = {}

    def load(self) -> None:
        """Open every graph. Raises StorageFailure if they can't be listed; one that can't be opened is blocked."""
        for graph_id in stored_graphs(self._storage):
            self._entries[graph_id] = self._opened(graph_id)

    def _opened(self, graph_id: str) -> Entry:
        root = graph_root(self._storage, graph_id)
        try:
            core = open_core(root, owner=self._owner)
        except OmnigraphError as error:
            _log.error("graph blocked", graph_id=graph_id, code=error.code)
            failure = "graph_missing" if isinstance(error, GraphNotFound) else "open_failed"
            return Entry(graph_id, root, None, failure)
        _log.info("graph ready", graph_id=graph_id, head=str(core.head("main").manifest.head_commit.id))
        return Entry(graph_id, core.store.uri, Graph(Context(core)))

    def entries(self) -> list[Entry]:
        return [self._entries[graph_id] for graph_id in sorted(self._entries)]

    def entry(self, graph_id: str) -> Entry:
        """Raises GraphNotFound."""
        found = self._entries.get(graph_id)
        if found is None:
            raise GraphNotFound("There is no such graph.")
        return found

    def graph(self, graph_id: str) -> Graph:
        """Raises GraphNotFound, Busy (`graph_unavailable`) for a blocked one."""
        entry = self.entry(graph_id)
        if entry.graph is None:
            raise Busy(
                f"The graph '{graph_id}' can't be served.",
                code="graph_unavailable",
                status=503,
                retry="recover",
                detail_key="graph_unavailable",
                details={"graph_id": graph_id, "state": "blocked", "action": "restart_after_correction"},
            )
        return entry.graph
