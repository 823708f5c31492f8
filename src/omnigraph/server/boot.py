"""The start up to the point where this process owns its root: resolve it, bind the listener, take the lock.

Loads no engine, so a start that is refused is refused at once.
"""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnigraph.cluster.config import ClusterRoot, resolve_root
from omnigraph.cluster.inventory import stored_graphs
from omnigraph.cluster.layout import CLUSTER_FOLDER
from omnigraph.cluster.ownership import Ownership, acquire
from omnigraph.errors import InvalidRequest
from omnigraph.server.options import Options


class Refused(Exception):
    """The start was refused, and nothing uncertain happened. Says why."""


@dataclass(frozen=True, slots=True)
class Owned:
    """What a server stands on: its root, the right to write it, a bound socket."""

    storage: str
    ownership: Ownership
    listener: socket.socket


def applied_root(address: str) -> str:
    """The storage root of a cluster that something was made of.

    Raises InvalidConfig, InvalidRequest (`cluster_root_unresolved`, `cluster_state_missing`), StorageFailure.
    """
    root = resolve_root(address)
    if not stored_graphs(root.storage) and not _may_be_empty(root):
        raise InvalidRequest("no graph was made here yet: run omnigraph cluster apply", code="cluster_state_missing")
    return root.storage


def _may_be_empty(root: ClusterRoot) -> bool:
    if root.declared is not None:
        return not root.declared
    return "://" not in root.storage and (Path(root.storage) / CLUSTER_FOLDER).is_dir()


@contextmanager
def owning(storage: str, options: Options) -> Generator[Owned]:
    """Until the block ends. Raises Refused if the address can't be had, LockHeld, StorageFailure."""
    with _listening(options) as listener, acquire(storage) as ownership:
        yield Owned(storage, ownership, listener)


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
