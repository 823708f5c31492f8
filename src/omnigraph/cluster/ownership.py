"""Who may write a local root: the process that holds the OS lock on `__cluster/.oslock`.

The lock goes with the process that holds it, however that ends. Roots on object storage have no such lock in this
version: there every process asks storage for the head at each read and write, which is safe and costs a request.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from omnigraph.cluster.layout import CLUSTER_FOLDER, GRAPH_SUFFIX, GRAPHS_FOLDER
from omnigraph.engine.logs import log_event
from omnigraph.errors import LockHeld, StorageClass, StorageFailure, StoragePhase
from omnigraph.store.reused import Kind, PoisonedKeys
from omnigraph.store.uri import LocalRoot, parse_root

_LOGGER = "omnigraph.cluster"

LOCK_KEY = f"{CLUSTER_FOLDER}/.oslock"


class Ownership:
    """The right to write a root, held until `release`. `sole` says whether no other process can have it too.

    `poisoned`: reused keys of the root whose last write is undecided. With one of them the lock is not released, not by an
    end in good order either (cluster.md 8): it goes with the process.
    """

    def __init__(self, descriptor: int | None) -> None:
        self.poisoned = PoisonedKeys(_tell_poisoned)
        self._descriptor = descriptor
        self._retained = False

    @property
    def sole(self) -> bool:
        return self._descriptor is not None

    def release(self) -> bool:
        """Let others have it, unless it was retained or a key is poisoned. Whether they can have it now."""
        if len(self.poisoned):
            self.retain("poisoned key")
        if self._descriptor is not None and not self._retained:
            os.close(self._descriptor)
            self._descriptor = None
        return not self._retained

    def retain(self, reason: str) -> None:
        """Keep it for as long as this process lives: what it sent last may still act."""
        if not self._retained:
            self._retained = True
            log_event(_LOGGER, "warning", "cluster lock retained", reason=reason, poisoned_keys=len(self.poisoned))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


def _tell_poisoned(kind: Kind, cls: StorageClass) -> None:
    phase = StoragePhase.LOCK if kind == "lock" else StoragePhase.LEDGER
    fields = {"kind": kind, "class": str(cls), "phase": str(phase)}
    log_event(_LOGGER, "warning", "storage key poisoned", **fields)


def acquire(storage: str) -> Ownership:
    """Take the root; a local one is made if it is missing.

    Raises LockHeld at once if anybody has it, this process included; InvalidRequest for a bad address; StorageFailure.
    """
    address = parse_root(storage)
    if not isinstance(address, LocalRoot):
        return Ownership(None)
    path = Path(address.path) / LOCK_KEY
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        raise _unusable() from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    except BlockingIOError:
        holder = _holder(descriptor)
        os.close(descriptor)
        raise LockHeld(
            f"Another process holds this cluster{holder}. Stop it, or send this work to it.", effects="none"
        ) from None
    except OSError:
        os.close(descriptor)
        raise _unusable() from None
    return Ownership(descriptor)


def _unusable() -> StorageFailure:
    return StorageFailure(
        "The cluster's lock can't be taken here.",
        cls=StorageClass.LOCAL_IO,
        phase=StoragePhase.LOCK,
        effects="none",
    )


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return f" (process {text})" if text.isdigit() else ""


# --- programs that open a graph of a cluster by its address


def cluster_of(graph: str | os.PathLike[str]) -> str | None:
    """The local root that a graph at this address would belong to, however it is spelled; None if it can't.

    >>> cluster_of("/srv/quay/graphs/atlas.omni"), cluster_of("/srv/atlas.omni")
    ('/srv/quay', None)
    """
    address = parse_root(graph)
    if not isinstance(address, LocalRoot):
        return None
    path = Path(address.path)
    belongs = path.parent.name == GRAPHS_FOLDER and path.name.endswith(GRAPH_SUFFIX)
    return str(path.parent.parent) if belongs else None


class _Shared:
    """One lock for all threads of this process that write a root at the same time. One that is retained stays with the
    process, for its later writes too.
    """

    def __init__(self) -> None:
        self._held: dict[str, tuple[Ownership, int]] = {}
        self._lock = threading.Lock()

    def enter(self, root: str) -> Ownership:
        with self._lock:
            ownership, users = self._held.get(root) or (acquire(root), 0)
            self._held[root] = (ownership, users + 1)
            return ownership

    def leave(self, root: str) -> None:
        with self._lock:
            ownership, users = self._held.pop(root)
            if users > 1 or not ownership.release():
                self._held[root] = (ownership, users - 1)


_shared = _Shared()


@contextmanager
def shared(root: str) -> Generator[Ownership | None]:
    """The root's lock for the length of one write, shared with other such writes of this process.

    A root that no cluster was ever made of is not locked: None. Raises LockHeld at once, StorageFailure; nothing was done.
    """
    if not os.path.isdir(os.path.join(root, CLUSTER_FOLDER)):
        yield None
        return
    ownership = _shared.enter(root)
    try:
        yield ownership
    finally:
        _shared.leave(root)
