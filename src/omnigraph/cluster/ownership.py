"""Who may write a local root: the process that holds the OS lock on `__cluster/.oslock`.

The lock goes with the process that holds it, however that ends. Roots on object storage have no such lock in this
version: there every process asks storage for the head at each read and write, which is safe and costs a request.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from omnigraph.errors import LockHeld, StorageClass, StorageFailure, StoragePhase
from omnigraph.store.uri import LocalRoot, parse_root

LOCK_KEY = "__cluster/.oslock"


class Ownership:
    """The right to write a root, held until `release`. `sole` says whether no other process can have it too."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    @property
    def sole(self) -> bool:
        return self._descriptor is not None

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


def acquire(storage: str) -> Ownership:
    """Take the root. Raises LockHeld at once if another process of this host has it, StorageFailure."""
    address = parse_root(storage)
    if not isinstance(address, LocalRoot):
        return Ownership(None)
    path = Path(address.path) / LOCK_KEY
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        raise StorageFailure(
            "The cluster's lock file can't be opened.",
            cls=StorageClass.LOCAL_IO,
            phase=StoragePhase.LOCK,
            effects="none",
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = _holder(descriptor)
        os.close(descriptor)
        raise LockHeld(
            f"Another process holds this cluster{holder}. Stop it, or send this work to it.", effects="none"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return Ownership(descriptor)


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return f" (process {text})" if text.isdigit() else ""
