"""The store below everything: it does what it is told, and remembers when each object came, on the clock of the run.

What storage says of an object's time has to agree with the clocks of the writers, or a version that came 25 hours late
would not look late. And what clean-up removed is kept here, since an invariant speaks about the whole chain.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.ambient import Clock
from omnigraph.store.base import Created, CreateOutcome, ObjectInfo, ReplaceOutcome, Store, StoredObject
from omnigraph.store.faults import Around

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Witness(Around):
    """`began_us`: the time of the objects that were there before. `landed`: boot seconds by key, of those that came."""

    def __init__(self, inner: Store, clock: Clock, began_us: int) -> None:
        super().__init__(inner)
        self.landed: dict[str, float] = {}
        self.removed: dict[str, bytes] = {}
        self.changes = 0
        self._clock = clock
        self._began_us = began_us
        self._came_us: dict[str, int] = {}

    def clean_up(self, key: str) -> None:
        """What the removal of an old version does, which nobody reports to the writers."""
        self.removed[key] = self.inner.read(key).data
        self.inner.delete([key])
        self.changes += 1

    def _timed(self, info: ObjectInfo) -> ObjectInfo:
        came = self._came_us.get(info.key, self._began_us)
        return replace(info, last_modified=_EPOCH + dt.timedelta(microseconds=came))

    def _note(self, key: str) -> None:
        self.changes += 1
        self.landed[key] = self._clock.boot_seconds()
        self._came_us[key] = self._clock.now_us()

    def read(self, key: str) -> StoredObject:
        found = self.inner.read(key)
        return replace(found, info=self._timed(found.info))

    def head(self, key: str) -> ObjectInfo:
        return self._timed(self.inner.head(key))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        return (self._timed(info) for info in self.inner.list(prefix, start_after=start_after))

    def list_first(self, prefix: str) -> ObjectInfo | None:
        found = self.inner.list_first(prefix)
        return None if found is None else self._timed(found)

    def list_folders(self, prefix: str) -> list[str]:
        return self.inner.list_folders(prefix)

    def put_fresh(self, key: str, data: bytes) -> None:
        self.inner.put_fresh(key, data)
        self._note(key)

    def create(self, key: str, data: bytes) -> CreateOutcome:
        outcome = self.inner.create(key, data)
        if isinstance(outcome, Created):
            self._note(key)
        return outcome

    def replace(self, key: str, data: bytes, *, etag: str) -> ReplaceOutcome:
        return self.inner.replace(key, data, etag=etag)

    def delete(self, keys: Iterable[str]) -> None:
        self.inner.delete(keys)
