"""One server process: resolve the root, bind, own, serve while graphs open, drain, let go (cluster.md 10, 11)."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import structlog
import uvicorn

from omnigraph._version import __version__
from omnigraph.ambient import SystemClock
from omnigraph.cluster.apply import stored_graphs
from omnigraph.cluster.config import ClusterRoot, resolve_root
from omnigraph.cluster.layout import CLUSTER_FOLDER
from omnigraph.cluster.ownership import acquire
from omnigraph.errors import InvalidRequest, OmnigraphError
from omnigraph.server.app import create_app
from omnigraph.server.frames import frames_of
from omnigraph.server.limits import ServerLimits
from omnigraph.server.operations import Operations
from omnigraph.server.options import Options
from omnigraph.server.protocol import HEAD_BYTES_MAX, Protocol
from omnigraph.server.registry import Registry
from omnigraph.server.services import Services
from omnigraph.server.shutdown import Shutdown

KEEP_ALIVE_SECONDS = 75

_log = structlog.get_logger("omnigraph.server")


class Refused(Exception):
    """The start was refused, and nothing uncertain happened. Says why."""


def serve(options: Options) -> int:
    """The exit code after a stop in good order. Raises Refused, OmnigraphError for a start that was refused."""
    shutdown = Shutdown(options.grace_seconds)
    for variable in options.unknown_variables:
        _log.warning("variable not known", variable=variable)
    root = resolve_root(options.cluster)
    _check_applied(root)
    return _checked(root) if options.check else _run(options, root.storage, shutdown)


def _check_applied(root: ClusterRoot) -> None:
    """Nothing is served from where nothing was ever made. Raises InvalidRequest (`cluster_state_missing`)."""
    if stored_graphs(root.storage) or root.declared == ():
        return
    is_root = "://" not in root.storage and (Path(root.storage) / CLUSTER_FOLDER).is_dir()
    if root.declared is None and is_root:
        return
    raise InvalidRequest("no graph was made here yet: run omnigraph cluster apply", code="cluster_state_missing")


def _checked(root: ClusterRoot) -> int:
    """What `--check` finds; takes no lock and writes nothing."""
    registry = Registry(root.storage, owner=False)
    registry.load(writable=False)
    sys.stdout.write(f"{len(registry.entries())} graphs\n")
    for entry in registry.entries():
        sys.stdout.write(f"{entry.graph_id}: {entry.state}\n")
    return 1 if any(entry.graph is None for entry in registry.entries()) else 0


def _run(options: Options, storage: str, shutdown: Shutdown) -> int:
    with _listening(options) as listener, acquire(storage) as ownership:
        registry = Registry(storage, owner=ownership.sole)
        operations = Operations(ServerLimits.from_environment(os.environ), SystemClock())
        server = _Server(options, Services(registry, operations, SystemClock()), listener)
        shutdown.watch(operations, server.stop)
        server.run(sockets=[listener])
        if server.refusal is not None:
            raise Refused(server.refusal)
        operations.finish()
    _log.info("stopped")
    return 0


@contextmanager
def _listening(options: Options) -> Generator[socket.socket]:
    """The socket, bound before anything is owned; it listens when there is somebody to answer.

    Raises Refused if the address can't be had.
    """
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, number)
    except OSError as error:
        raise _not_listening(options, error) from None
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise _not_listening(options, error) from None
        yield listener


def _not_listening(options: Options, error: OSError) -> Refused:
    return Refused(f"can't listen on {options.host}:{options.port}: {error.strerror}")


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
        _log.info("serving", address=f"http://{shown}:{port}", version=__version__)
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
                _log.info("ready", graphs=len(registry.entries()), blocked=len(blocked))
        except OmnigraphError as error:
            self.refusal = f"{error.code}: {error.message}"
        except Exception as error:  # a fault of ours: it ends the start instead of a thread nobody looks at
            _log.error("start failed", **frames_of(error))
            self.refusal = "internal: the start met a fault of this program"
        if self.refusal is not None:
            self.stop()
