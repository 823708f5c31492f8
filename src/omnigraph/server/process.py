"""One server process: serve while graphs open, drain, let go (cluster.md 10, 11)."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from omnigraph._version import __version__
from omnigraph.ambient import SystemClock
from omnigraph.engine.logs import log_event
from omnigraph.errors import OmnigraphError
from omnigraph.server.app import create_app
from omnigraph.server.boot import Owned, Refused
from omnigraph.server.frames import frames_of
from omnigraph.server.limits import ServerLimits
from omnigraph.server.operations import Operations
from omnigraph.server.options import Options
from omnigraph.server.protocol import HEAD_BYTES_MAX, Protocol
from omnigraph.server.registry import Registry
from omnigraph.server.services import Services
from omnigraph.server.shutdown import CUT_OFF, Shutdown

KEEP_ALIVE_SECONDS = 75

_LOGGER = "omnigraph.server"


def check(storage: str) -> int:
    """Open every graph and say what was found; the exit code. Takes no lock and writes nothing."""
    registry = Registry(storage, owner=False)
    registry.load(writable=False)
    sys.stdout.write(f"{len(registry.entries())} graphs\n")
    for entry in registry.entries():
        sys.stdout.write(f"{entry.graph_id}: {entry.state}\n")
    return 1 if any(entry.graph is None for entry in registry.entries()) else 0


def serve(options: Options, owned: Owned, shutdown: Shutdown) -> int:
    """The exit code: 0 after a stop in good order, 2 if a write ended without any proof. Raises Refused for a start that
    was refused.
    """
    operations = Operations(ServerLimits.from_environment(os.environ), SystemClock())
    registry = Registry(owned.storage, owner=owned.ownership.sole, fence=operations.fence)
    server = _Server(options, Services(registry, operations, SystemClock()), owned.listener)
    shutdown.watch(operations, server.stop)
    server.run(sockets=[owned.listener])
    if server.refusal is not None:
        raise Refused(server.refusal)
    operations.finish()
    if operations.contained is not None:
        owned.ownership.retain("containment")
        return CUT_OFF
    if operations.cut_off:  # what was waited for ended while the process was being ended
        return CUT_OFF
    log_event(_LOGGER, "info", "stopped")
    return 0


class _Server(uvicorn.Server):
    """Serves from the start; graphs are opened beside it."""

    def __init__(self, options: Options, services: Services, listener: socket.socket) -> None:
        self._options = options
        self._services = services
        self._listener = listener
        self.refusal: str | None = None
        super().__init__(
            uvicorn.Config(
                create_app(services, hosts=options.public_hosts, origins=options.allowed_origins),
                http=Protocol,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                h11_max_incomplete_event_size=HEAD_BYTES_MAX,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )

    def stop(self) -> None:
        """End in good order. Sets a flag, so it may be called in a signal handler."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """The signals are not uvicorn's: `shutdown` has them."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        host, port = self._listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        log_event(_LOGGER, "info", "serving", address=f"http://{shown}:{port}", version=__version__)
        threading.Thread(target=self._open_graphs, name="omnigraph-boot", daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._services.stopping.set()
        await super().shutdown(sockets=sockets)

    def _open_graphs(self) -> None:
        registry = self._services.registry
        try:
            registry.load(together=self._options.require_all_graphs)
            blocked = [entry.graph_id for entry in registry.entries() if entry.graph is None]
            if blocked and self._options.require_all_graphs:
                self.refusal = f"graphs can't be opened: {', '.join(blocked)}"
            elif blocked and len(blocked) == len(registry.entries()):
                self.refusal = f"cluster_no_healthy_graphs: no graph can be opened: {', '.join(blocked)}"
            else:
                log_event(_LOGGER, "info", "ready", graphs=len(registry.entries()), blocked=len(blocked))
        except OmnigraphError as error:
            self.refusal = f"{error.code}: {error.message}"
        except Exception as error:  # a fault of ours: it ends the start instead of a thread nobody looks at
            log_event(_LOGGER, "error", "start failed", **frames_of(error))
            self.refusal = "internal: the start met a fault of this program"
        if self.refusal is not None:
            self.stop()
