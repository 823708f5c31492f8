"""A store in a dictionary, for tests of the rooms above. Promises no more than the weakest real store."""

from __future__ import annotations

import datetime as dt
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace as changed

from omnigraph.errors import StorageClass
from omnigraph.store.base import (
    Changed,
    Created,
    CreateOutcome,
    Exists,
    ObjectInfo,
    Refused,
    Replaced,
    ReplaceOutcome,
    StoredObject,
    StoreError,
)
from omnigraph.store.keys import checked_folder, checked_key


class MemoryStore:
    """Objects of one process. `now` is the store's clock; by default it stands still."""

    def __init__(self, *, now: Callable[[], dt.datetime] = lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC)) -> None:
        self._now = now
        self._objects: dict[str, StoredObject] = {}
        self._guard = threading.Lock()

    @property
    def uri(self) -> str:
        return "memory:"

    @property
    def local_path(self) -> str | None:
        return None

    def lance_uri(self, key: str) -> str:
        """Lance's own memory store: datasets there are not shared with this dictionary."""
        return f"memory://{checked_key(key)}"

    def lance_storage_options(self) -> dict[str, str]:
        return {}

    def probe_writable(self) -> None:
        return

    def read(self, key: str) -> StoredObject:
        with self._guard:
            stored = self._objects.get(checked_key(key))
        if stored is None:
            raise StoreError(StorageClass.NOT_FOUND)
        return stored

    def head(self, key: str) -> ObjectInfo:
        return changed(self.read(key).info, etag=None)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        below = _below(prefix)
        with self._guard:
            found = sorted(
                (stored.info for key, stored in self._objects.items() if key.startswith(below)), key=lambda i: i.key
            )
        return (changed(info, etag=None) for info in found if start_after is None or info.key > start_after)

    def list_first(self, prefix: str) -> ObjectInfo | None:
        return next(self.list(prefix), None)

    def list_folders(self, prefix: str) -> list[str]:
        below = _below(prefix)
        with self._guard:
            rests = [key[len(below) :] for key in self._objects if key.startswith(below)]
        return sorted({rest.partition("/")[0] for rest in rests if "/" in rest})

    def put_fresh(self, key: str, data: bytes) -> None:
        self.create(key, data)

    def create(self, key: str, data: bytes) -> CreateOutcome:
        with self._guard:
            if checked_key(key) in self._objects:
                return Exists()
            return Created(self._put(key, data))

    def replace(self, key: str, data: bytes, *, etag: str) -> ReplaceOutcome:
        with self._guard:
            stored = self._objects.get(checked_key(key))
            if stored is None:
                return Refused(StorageClass.NOT_FOUND)
            if stored.info.etag != etag:
                return Changed()
            return Replaced(self._put(key, data))

    def delete(self, keys: Iterable[str]) -> None:
        with self._guard:
            for key in keys:
                self._objects.pop(checked_key(key), None)

    def _put(self, key: str, data: bytes) -> str:
        etag = hashlib.sha256(data).hexdigest()
        self._objects[key] = StoredObject(bytes(data), ObjectInfo(key, len(data), etag, self._now()))
        return etag


def _below(prefix: str) -> str:
    folder = checked_folder(prefix)
    return f"{folder}/" if folder else ""
