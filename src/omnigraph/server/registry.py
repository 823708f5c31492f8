"""The graphs of a cluster as this process serves them: opened after the start, ready or blocked, each by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from omnigraph.cluster.inventory import stored_graphs
from omnigraph.cluster.layout import graph_root
from omnigraph.engine.core import GraphCore
from omnigraph.engine.graph import Graph
from omnigraph.engine.logs import log_event
from omnigraph.engine.opening import open_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import Busy, GraphNotFound, OmnigraphError
from omnigraph.manifest.publish import FenceOpen, FenceState
from omnigraph.server.frames import frames_of

OPENING_MAX = 4
_STARTING_SECONDS = 2

_LOGGER = "omnigraph.server"

State = Literal["loading", "ready", "blocked", "stopping"]
_ACTIONS = {
    "ready": "none",
    "loading": "wait_for_startup",
    "blocked": "restart_after_correction",
    "stopping": "wait_for_restart",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One graph. Only a ready one has a handle; a blocked one says why."""

    graph_id: str
    uri: str
    graph: Graph | None = None
    failure: Literal["graph_missing", "open_failed"] | None = None

    @property
    def state(self) -> State:
        if self.graph is not None:
            return "ready"
        return "loading" if self.failure is None else "blocked"

    def to_dict(self, *, stopping: bool = False) -> dict[str, Any]:
        state = "stopping" if stopping else self.state
        body: dict[str, Any] = {
            "graph_id": self.graph_id,
            "uri": self.uri,
            "state": state,
            "read_available": state == "ready",
            "write_available": state == "ready",
            "action": _ACTIONS[state],
        }
        if self.failure is not None:
            body["failure"] = self.failure
        return body


class Registry:
    """All graphs below a storage root. `owner`: this process alone writes them. `fence`: whether it still may. `opening`
    opens one.
    """

    def __init__(
        self,
        storage: str,
        *,
        owner: bool,
        fence: Callable[[], FenceState] = FenceOpen,
        opening: Callable[..., GraphCore] = open_core,
    ) -> None:
        self._storage = storage
        self._owner = owner
        self._fence = fence
        self._opening = opening
        self._entries: dict[str, Entry] = {}
        self.loaded = False

    def load(self, *, together: bool = False, writable: bool = True) -> None:
        """Open every graph, a few at a time. One that can't be opened is blocked and stops no other.

        `together`: all become ready at once, after the last was opened. Raises StorageFailure if they can't be listed.
        """
        graph_ids = stored_graphs(self._storage)
        self._entries = {g: Entry(g, graph_root(self._storage, g)) for g in graph_ids}
        with ThreadPoolExecutor(OPENING_MAX, thread_name_prefix="omnigraph-open") as pool:
            opened: list[Entry] = []
            for entry in pool.map(partial(self._opened, writable), graph_ids):
                opened.append(entry)
                if not together:
                    self._entries[entry.graph_id] = entry
        self._entries = {entry.graph_id: entry for entry in opened}
        self.loaded = True

    def _opened(self, writable: bool, graph_id: str) -> Entry:
        root = graph_root(self._storage, graph_id)
        try:
            core = self._opening(root, owner=self._owner, writable=writable, fence=self._fence)
            core.called(graph_id)
            head = core.head("main").manifest.head_commit.id
        except OmnigraphError as error:
            log_event(_LOGGER, "error", "graph blocked", graph=graph_id, failure=error.code, detail=error.details)
            return Entry(graph_id, root, None, "graph_missing" if isinstance(error, GraphNotFound) else "open_failed")
        except Exception as error:  # a fault of ours, met by one graph: the others are served
            log_event(_LOGGER, "error", "graph blocked", graph=graph_id, failure="internal", **frames_of(error))
            return Entry(graph_id, root, None, "open_failed")
        log_event(_LOGGER, "info", "graph ready", graph=graph_id, head=str(head))
        return Entry(graph_id, core.store.uri, Graph(Context(core, capped=True)))

    def entries(self) -> Sequence[Entry]:
        entries = self._entries
        return [entries[graph_id] for graph_id in sorted(entries)]

    def graph(self, graph_id: str) -> Graph:
        """Raises GraphNotFound, Busy (`graph_unavailable`) for one that is not ready."""
        entry = self._entries.get(graph_id)
        if entry is None and self.loaded:
            raise GraphNotFound("There is no such graph.")
        if entry is None or entry.graph is None:
            raise _unavailable(graph_id, "loading" if entry is None else entry.state)
        return entry.graph

    def entry(self, graph_id: str) -> Entry:
        """One that is ready. Raises as `graph`."""
        self.graph(graph_id)
        return self._entries[graph_id]


def _unavailable(graph_id: str, state: State) -> Busy:
    blocked = state == "blocked"
    return Busy(
        "This graph can't be served." if blocked else "This graph is not open yet.",
        code="graph_unavailable",
        status=503,
        retry="recover" if blocked else "retry",
        retry_after=None if blocked else _STARTING_SECONDS,
        detail_key="graph_unavailable",
        details={"graph_id": graph_id, "state": state, "action": _ACTIONS[state]},
    )
