"""Where a store's tables lie, and files put there besides those that the table library writes itself.

The one adapter between a `Store` and Lance: an address for a folder, the options a client needs to reach it, and one
way to add a file of the table format. On a local root such a file is written plainly: its durability is `sync`'s
matter, like that of the library's own files, and a half-written one is named by nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from omnigraph.errors import StorageFailure, StoragePhase
from omnigraph.side_by_side import side_by_side
from omnigraph.store.base import Store, StoreError

_REQUESTS_AT_ONCE = 16

T = TypeVar("T")


class Location:
    """A graph root. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.local_path = store.local_path
        self.storage_options: dict[str, str] | None = store.lance_storage_options() or None

    def uri(self, key: str) -> str:
        """The address of the folder `key` (relative to the root)."""
        return self._store.lance_uri(key)

    def put(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Adds files under keys that nobody else ever writes. Raises StorageFailure (phase stage) or OSError."""
        put = self._put_object if self.local_path is None else self._put_local
        self.together([lambda key=key, data=data: put(key, data) for key, data in files])

    def together(self, requests: Sequence[Callable[[], T]]) -> list[T]:
        """Runs all, side by side where each waits for a network; their results in order.

        The first failure is raised once all have ended, so that no file appears after the caller has given up.
        """
        if self.local_path is not None or len(requests) < 2:
            return [request() for request in requests]
        return side_by_side(lambda request: request(), requests, at_most=_REQUESTS_AT_ONCE, name="tables")

    def _put_object(self, key: str, data: bytes) -> None:
        try:
            self._store.put_fresh(key, data)
        except StoreError as error:
            message = f"a table request failed ({error.cls})"
            raise StorageFailure(message, cls=error.cls, phase=StoragePhase.STAGE, effects="none") from None

    def _put_local(self, key: str, data: bytes) -> None:
        assert self.local_path is not None
        path = os.path.join(self.local_path, key)
        try:
            descriptor = os.open(path, _NEW, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(path, _NEW, 0o666)
        with open(descriptor, "wb") as file:
            file.write(data)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
