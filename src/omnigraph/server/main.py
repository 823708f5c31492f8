"""`omnigraph-server`: boot from a cluster, serve, drain, end.

Exit codes: 0 after a clean stop; 1 for bad settings or a refused boot, with the reason on stderr; 2 if writes had not
ended when the grace was over.
"""

from __future__ import annotations

import argparse
import ipaddress
import logging
import os
import sys
from typing import Any

import structlog
import uvicorn

from omnigraph._version import __version__
from omnigraph.ambient import SystemClock
from omnigraph.cluster.config import storage_root
from omnigraph.cluster.ownership import Ownership, acquire
from omnigraph.errors import OmnigraphError
from omnigraph.server.app import create_app
from omnigraph.server.operations import Operations
from omnigraph.server.registry import Registry
from omnigraph.server.services import Services

GRACE_SECONDS = 25


def main(argv: list[str] | None = None) -> int:
    """Run the server until it is told to stop; the exit code."""
    options = _parser().parse_args(argv)
    _configure_logs(options.log_format, options.log_level)
    try:
        host, port = _address(options.bind)
        _check_open_mode(options, host)
        if options.cluster is None:
            return _refused("name the cluster with --cluster DIR or OMNIGRAPH_CLUSTER")
        storage = storage_root(options.cluster)
        ownership = acquire(storage)
    except OmnigraphError as error:
        return _refused(f"{error.code}: {error.message}")
    except ValueError as error:
        return _refused(str(error))
    with ownership:
        return _serve(options, storage, ownership, host, port)


def _serve(options: argparse.Namespace, storage: str, ownership: Ownership, host: str, port: int) -> int:
    registry = Registry(storage, owner=ownership.sole)
    try:
        registry.load()
    except OmnigraphError as error:
        return _refused(f"{error.code}: {error.message}")
    blocked = [entry.graph_id for entry in registry.entries() if entry.graph is None]
    if blocked and options.require_all_graphs:
        return _refused(f"graphs can't be opened: {', '.join(blocked)}")
    if options.check:
        sys.stdout.write(f"{len(registry.entries())} graphs, {len(blocked)} blocked\n")
        return 1 if blocked else 0
    operations = Operations()
    services = Services(registry, operations, SystemClock())
    app = create_app(services, hosts=options.public_host, origins=options.allow_origin)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=options.shutdown_grace_seconds,
    )
    server = _Server(config, operations)
    server.run()
    left = operations.drain(float(options.shutdown_grace_seconds))
    if left:
        structlog.get_logger("omnigraph.server").error("writes had not ended when the grace was over", writes=left)
        os._exit(2)
    return 0


class _Server(uvicorn.Server):
    """Closes admission with the first stop signal, before the listener goes."""

    def __init__(self, config: uvicorn.Config, operations: Operations) -> None:
        super().__init__(config)
        self._operations = operations

    def handle_exit(self, sig: int, frame: Any) -> None:
        """The first signal drains, a second one ends at once. Not handed on: this process decides its exit code itself."""
        self._operations.close_admission()
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            address = f"http://{self.config.host}:{self.config.port}"
            structlog.get_logger("omnigraph.server").info("serving", address=address, version=__version__)


def _parser() -> argparse.ArgumentParser:
    env = os.environ
    parser = argparse.ArgumentParser(prog="omnigraph-server", description="Serve the graphs of a cluster over HTTP.")
    parser.add_argument("--cluster", default=env.get("OMNIGRAPH_CLUSTER"), help="configuration folder or storage root")
    parser.add_argument(
        "--bind", default=env.get("OMNIGRAPH_LISTEN_ADDR", "127.0.0.1:8080"), metavar="HOST:PORT", help="listener"
    )
    parser.add_argument(
        "--unauthenticated",
        action="store_true",
        default=env.get("OMNIGRAPH_UNAUTHENTICATED") == "1",
        help="serve without tokens, on loopback only unless --public-host is given",
    )
    parser.add_argument(
        "--require-all-graphs",
        action="store_true",
        default=env.get("OMNIGRAPH_REQUIRE_ALL_GRAPHS") == "1",
        help="a graph that can't be opened fails the start",
    )
    parser.add_argument("--public-host", action="append", metavar="HOST", default=_listed("OMNIGRAPH_PUBLIC_HOSTS"))
    parser.add_argument(
        "--allow-origin", action="append", metavar="ORIGIN", default=_listed("OMNIGRAPH_ALLOWED_ORIGINS")
    )
    parser.add_argument(
        "--shutdown-grace-seconds",
        type=int,
        default=int(env.get("OMNIGRAPH_SHUTDOWN_GRACE_SECONDS", str(GRACE_SECONDS))),
        metavar="N",
        help="how long admitted work may take after a stop signal",
    )
    parser.add_argument("--log-format", choices=("text", "json"), default=env.get("OMNIGRAPH_LOG_FORMAT"))
    parser.add_argument("--log-level", default=env.get("OMNIGRAPH_LOG", "info"))
    parser.add_argument("--check", action="store_true", help="open everything, say what was found, and end")
    parser.add_argument("--version", action="version", version=f"omnigraph-server {__version__}")
    return parser


def _listed(variable: str) -> list[str]:
    return [item for item in os.environ.get(variable, "").split(",") if item]


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"--bind takes HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


def _check_open_mode(options: argparse.Namespace, host: str) -> None:
    if not options.unauthenticated:
        raise ValueError("tokens are not part of this version: start with --unauthenticated to serve openly")
    loopback = host == "localhost"
    if not loopback:
        try:
            loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            loopback = False
    if not loopback and not options.public_host:
        raise ValueError("an open server binds to loopback only; --public-host says that more is meant")


def _configure_logs(form: str | None, level: str) -> None:
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    plain = form == "text" or (form is None and sys.stderr.isatty())
    renderer: Any = structlog.dev.ConsoleRenderer() if plain else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def _refused(reason: str) -> int:
    sys.stderr.write(f"omnigraph-server: {reason}\n")
    return 1
