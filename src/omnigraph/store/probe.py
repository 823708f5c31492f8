"""Can this store do what publication rests on? Asked with a few requests, before anything of value is written.

Some S3-compatible stores accept the headers of a conditional write and ignore them; some answer "exists" for a name
that was deleted. On such a store two writers could both believe that they won, or none ever could.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.ambient import Clock, SystemClock, fresh_ulid
from omnigraph.errors import StorageClass
from omnigraph.store.base import (
    Changed,
    Created,
    CreateOutcome,
    Exists,
    Refused,
    ReplaceOutcome,
    Store,
    StoreError,
    Unknown,
)

ATTEMPTS = 3

_NO_SUCH_ETAG = '"00000000000000000000000000000000"'


@dataclass(frozen=True, slots=True)
class Capable:
    """The store honours conditions."""


@dataclass(frozen=True, slots=True)
class Incapable:
    """It does not; `reason` is for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unproven:
    """It could not be found out: the store said no (`definite`), or did not answer in three attempts."""

    cls: StorageClass
    definite: bool


ProbeOutcome = Capable | Incapable | Unproven


def probe(store: Store, folder: str, *, clock: Clock | None = None) -> ProbeOutcome:
    """Writes fresh names below `folder` and removes them again.

    create (stored), create again (refused), replace with an ETag that nothing has (refused), delete, create (stored),
    delete: six requests. Whatever disappoints is tried again under another name, three times at most, since a store
    may fail a condition for a moment that it honours.
    """
    source = clock or SystemClock()
    outcome: ProbeOutcome = Unproven(StorageClass.TIMEOUT, definite=False)
    for _ in range(ATTEMPTS):
        key = f"{folder}/{fresh_ulid(source)}"
        outcome = _probed(store, key)
        _removed(store, key)
        if outcome == Capable() or (isinstance(outcome, Unproven) and outcome.definite):
            break
    return outcome


def _probed(store: Store, key: str) -> ProbeOutcome:
    expected = (
        (lambda: store.create(key, b"1"), Created, "it refuses to create a new object under a condition"),
        (lambda: store.create(key, b"2"), Exists, "it does not honour If-None-Match: an existing object was replaced"),
        (
            lambda: store.replace(key, b"3", etag=_NO_SUCH_ETAG),
            Changed,
            "it does not honour If-Match: an object was replaced under another ETag",
        ),
    )
    for request, wanted, reason in expected:
        failed = _failed(request(), wanted, reason)
        if failed is not None:
            return failed
    removed = _removed(store, key)
    if removed is not None:
        return Unproven(removed, definite=False)
    reason = "it keeps refusing a name whose object was deleted"
    return _failed(store.create(key, b"4"), Created, reason) or Capable()


def _failed(
    outcome: CreateOutcome | ReplaceOutcome, wanted: type[CreateOutcome | ReplaceOutcome], reason: str
) -> ProbeOutcome | None:
    if isinstance(outcome, wanted):
        return None
    match outcome:
        case Refused(StorageClass.UNSUPPORTED) | Unknown(StorageClass.UNSUPPORTED):
            return Incapable("it does not know conditional writes")
        case Refused(cls):
            return Unproven(cls, definite=True)
        case Unknown(cls):
            return Unproven(cls, definite=False)
        case _:
            return Incapable(reason)


def _removed(store: Store, key: str) -> StorageClass | None:
    try:
        store.delete([key])
    except StoreError as error:
        return error.cls
    return None
