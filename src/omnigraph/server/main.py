"""`omnigraph-server`: boot from a cluster, serve, drain, end.

Exit codes: 0 after a clean stop; 1 for bad settings or a refused boot, with the reason on stderr; 2 if admitted work had
not ended when the grace was over, or at a second signal.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Generator, Sequence
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
from omnigraph.server.logs import configure_logs
from omnigraph.server.operations import Operations
from omnigraph.server.options import BadOptions, Options, read_options
from omnigraph.server.protocol import HEAD_BYTES_MAX, Protocol
from omnigraph.server.registry import Registry
from omnigraph.server.services import Services
from omnigraph.server.shutdown import Shutdown

REFUSED = 1
KEEP_ALIVE_SECONDS = 75
_BACKLOG = 2_048

_log = structlog.get_logger("omnigraph.server")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it is told to stop; the exit code. To be called in the main thread of a process."""
    try:
        options = read_options(arguments, os.environ)
        configure_logs(options.log_format, options.log_level)
        shutdown = Shutdown(options.grace_seconds)
        for variable in options.unknown_variables:
            _log.warning("variable not known", variable=variable)
        root = resolve_root(options.cluster)
        _check_applied(root)
        return _checked(root) if options.check else _run(options, root.storage, shutdown)
    except BadOptions as error:
        return _refused(str(error))
    except OmnigraphError as error:
        return _refused(f"{error.code}: {error.message}")


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
    for entry in registry.entries():
        sys.stdout.write(f"{entry.graph_id}: {entry.state}\n")
    return REFUSED if any(entry.graph is None for entry in registry.entries()) else 0


def _run(options: Options, storage: str, shutdown: Shutdown) -> int:
    with _listening(options) as listener, acquire(storage) as ownership:
        registry = Registry(storage, owner=ownership.sole)
        operations = Operations(ServerLimits.from_environment(os.environ), SystemClock())
        server = _Server(options, Services(registry, operations, SystemClock()), listener)
        shutdown.watch(operations, server.stop)
        server.run(sockets=[listener])
        if server.refusal is not None:
            return _refused(server.refusal)
        operations.finish()
    _log.info("stopped")
    return 0


@contextmanager
def _listening(options: Options) -> Generator[socket.socket]:
    """The socket, bound before anything is owned. Raises BadOptions if the address can't be had."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise BadOptions(f"can't listen on {options.host}:{options.port}: {error.strerror}") from None
    with listener:
        yield listener


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


def _refused(reason: str) -> int:
    sys.stderr.write(f"omnigraph-server: {reason}\n")
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
