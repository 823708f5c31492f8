"""What a store promises (storage.md 2).

An outcome of `create` and `replace` is a value; the store reports evidence and never decides whether to try again.
Keys are relative to the store's root, parts separated by `/`, taken as they are (never percent-decoded).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from omnigraph.errors import StorageClass


class StoreError(Exception):
    """A read, list, fresh put or delete failed. Carries the class of the failure and never a storage client's message.

    `StorageClass.NOT_FOUND` means that the object is not there, which is an answer; every other class proves nothing.
    """

    def __init__(self, cls: StorageClass) -> None:
        super().__init__(f"storage request failed: {cls}")
        self.cls = cls


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    key: str
    size: int
    etag: str | None
    last_modified: dt.datetime  # the store's own clock, UTC


@dataclass(frozen=True, slots=True)
class StoredObject:
    data: bytes
    info: ObjectInfo


# --- outcomes of a conditional write, one attempt each


@dataclass(frozen=True, slots=True)
class Created:
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """412 or 409: read back before believing anything."""


@dataclass(frozen=True, slots=True)
class Replaced:
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """The object is no longer the one that was named: read back before believing anything."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Definite for this attempt: nothing was stored by it. `sent` is False if no request left (could not connect)."""

    cls: StorageClass
    sent: bool = True


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been stored, now or later."""

    cls: StorageClass


CreateOutcome = Created | Exists | Refused | Unknown
ReplaceOutcome = Replaced | Changed | Refused | Unknown


class Store(Protocol):
    """One root of objects. Thread-safe. Every method may raise StoreError except the two conditional writes."""

    @property
    def uri(self) -> str:
        """The canonical root without credentials, for people."""
        ...

    @property
    def local_path(self) -> str | None:
        """The folder, if this is a local root."""
        ...

    def lance_uri(self, key: str) -> str:
        """The address under which Lance opens the dataset at `key`: encoded as Lance decodes it."""
        ...

    def lance_storage_options(self) -> dict[str, str]:
        """What Lance needs beside the address, from the settings of this store. May hold credentials: never shown."""
        ...

    def probe_writable(self) -> None:
        """What can be known about writing here without a storage request: a local root needs hard links.

        Raises StoreError. `omnigraph.store.probe` asks an object store, with requests.
        """
        ...

    def read(self, key: str) -> StoredObject:
        """The whole object. Retried. Raises StoreError(NOT_FOUND) if it is not there."""
        ...

    def head(self, key: str) -> ObjectInfo:
        """Size and time of an object; the ETag may be missing here and in listings. Raises as `read`."""
        ...

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        """Objects below the folder `prefix` (whole path parts, recursive).

        Those of one folder come in byte order of their names. What lies in folders inside it comes together, in the
        same order, at a place that depends on the store (some real ones do not sort across folders).
        `start_after` goes on behind an object in the order of this listing. Fetched a page of 1,000 at a time as the
        iterator is consumed. Keys are relative to the root. Temporary files are skipped, and so is what somebody else put
        here under a name that can't be a key: nobody could ask for it.
        """
        ...

    def list_first(self, prefix: str) -> ObjectInfo | None:
        """The first object below `prefix` in the order of `list`, by one LIST request; None if there is none."""
        ...

    def list_folders(self, prefix: str) -> list[str]:
        """Names of the folders directly below `prefix` (delimiter listing), in byte order; skips as `list`."""
        ...

    def put_fresh(self, key: str, data: bytes) -> None:
        """Store under a key that nobody else ever writes. Retried; `already there` counts as stored."""
        ...

    def create(self, key: str, data: bytes) -> CreateOutcome:
        """Store if the key is absent. One attempt."""
        ...

    def replace(self, key: str, data: bytes, *, etag: str) -> ReplaceOutcome:
        """Store if the object still has this ETag (from `read`, `create` or `replace`). One attempt.

        An object that is not there is `Refused(NOT_FOUND)` or `Changed`, as the store likes it.
        """
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; absent ones count as removed. Retried."""
        ...
