"""Where a store's tables lie, in the words of the table library.

The one adapter between a `Store` and Lance: an address for a folder, and the options a client needs to reach it. On
object storage an address is read as a URL, so names are percent-encoded there; a local folder is a plain path.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol, cast

from omnigraph.store.base import Store


class _CloudStore(Protocol):
    def lance_uri(self, key: str) -> str: ...

    def lance_storage_options(self) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Location:
    """A graph root. Exactly one of `local_path` and `cloud` is set."""

    local_path: str | None
    cloud: _CloudStore | None

    @classmethod
    def of(cls, store: Store) -> Location:
        local = store.local_path
        if local is not None:
            return cls(os.path.abspath(local), None)
        return cls(None, cast(_CloudStore, store))

    def uri(self, key: str) -> str:
        """The address of the folder `key` (relative to the root)."""
        if self.cloud is not None:
            return self.cloud.lance_uri(key)
        assert self.local_path is not None
        return os.path.join(self.local_path, key)

    def storage_options(self) -> dict[str, str] | None:
        """Options for the object store client; None for a local root."""
        return None if self.cloud is None else self.cloud.lance_storage_options()
