"""Writes to keys that are used again: the ledger, a lock with a lease, a deployment record (cluster.md 3).

Such a key holds one object after another, each swapped in by one conditional request. A request whose answer was lost may
land as long as the object it names still stands, so a second request would be a second chance for the first:

 1. One attempt. Not connected means not sent, and only then is it tried again.
 2. "Exists" and "changed" are questions: the object is read back. Every version holds a value never used before, so equal
    bytes are the writer's own; any other object than the one it named means that the request can't land any more. What
    is read must be whole to count (all of these are JSON): damaged bytes would look like another's.
 3. If the object still stands (or there still is none), the request may be under way. For ten seconds it is looked for.
 4. After that the key is poisoned: this process writes it no more, whatever later reads show, and says so at once. Other
    keys are not affected, and neither are reads. A process with a poisoned key keeps its lock when it ends, so that the
    quiet before the next owner gives the request time to land or to die.

The steps are a generator without I/O, run by `ReusedKeys` against a store and by tests in every order. The request that
takes a lock does not go this way: it has a state machine of its own, which settles its doubt before anything is owned.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from omnigraph.ambient import Clock
from omnigraph.errors import KeyOutcomeUnknown, StorageClass
from omnigraph.store.base import (
    Changed,
    Created,
    CreateOutcome,
    Exists,
    Refused,
    Replaced,
    ReplaceOutcome,
    Store,
    StoredObject,
    StoreError,
    Unknown,
)

Kind = Literal["lock", "ledger", "deployment"]

CONNECTS_AGAIN_MAX = 3
CONNECT_PAUSE_SECONDS = 1.0
LOOK_PAUSES_SECONDS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 2.5)
"""Before each look at a key after an unanswered write: ten seconds in all."""


# --- what the steps want; each is answered by the type named


@dataclass(frozen=True, slots=True)
class Send:
    """The conditional request, one attempt. Answer: CreateOutcome or ReplaceOutcome."""


@dataclass(frozen=True, slots=True)
class Look:
    """Read the key. Answer: StoredObject, None if nothing is there, or StoreError."""


@dataclass(frozen=True, slots=True)
class MayWrite:
    """Whether this process may still write. Answer: bool."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Answer: None."""

    seconds: float


Step = Send | Look | MayWrite | Wait


# --- how it ends


@dataclass(frozen=True, slots=True)
class Stored:
    """The object stands; its ETag is good for the next swap."""

    etag: str | None


@dataclass(frozen=True, slots=True)
class Taken:
    """Definite: another object stands there, so this one never will."""

    found: StoredObject


@dataclass(frozen=True, slots=True)
class NotStored:
    """Definite: the store refused, or could not be reached (`sent` False)."""

    cls: StorageClass
    sent: bool = True


@dataclass(frozen=True, slots=True)
class Fenced:
    """Definite: this process may not write any more; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """It may have been stored, or may be yet: the key is poisoned."""

    cls: StorageClass


@dataclass(frozen=True, slots=True)
class Poisoned:
    """Nothing was sent: an earlier write to this key is undecided."""


Written = Stored | Taken | NotStored | Fenced | Undecided
Answer = Written | Poisoned


def steps(data: bytes, *, etag: str | None) -> Generator[Step, Any, Written]:
    """One write of a reused key: its creation if `etag` is None, else a swap. The bytes were never stored before."""
    for attempt in range(CONNECTS_AGAIN_MAX + 1):
        if attempt:
            yield Wait(CONNECT_PAUSE_SECONDS)
        may: bool = yield MayWrite()
        if not may:
            return Fenced()
        outcome: CreateOutcome | ReplaceOutcome = yield Send()
        match outcome:
            case Created() | Replaced():
                return Stored(outcome.etag)
            case Refused(cls, sent) if sent or attempt == CONNECTS_AGAIN_MAX:
                return NotStored(cls, sent)
            case Refused():
                continue
            case Exists() | Changed():
                return (yield from _looked_for(data, etag, StorageClass.SERVER_ERROR))
            case Unknown(cls):
                return (yield from _looked_for(data, etag, cls))
            case _:
                assert_never(outcome)
    raise AssertionError("unreachable")


def _looked_for(data: bytes, etag: str | None, cls: StorageClass) -> Generator[Step, Any, Stored | Taken | Undecided]:
    for pause in LOOK_PAUSES_SECONDS:
        if pause:
            yield Wait(pause)
        found: StoredObject | StoreError | None = yield Look()
        if not isinstance(found, StoredObject) or not _whole(found.data):
            continue  # nothing there, which the request may change yet; or a failed look, which proves nothing
        if found.data == data:
            return Stored(found.info.etag)
        if etag is None or found.info.etag != etag:
            return Taken(found)
    return Undecided(cls)


def _whole(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False


class PoisonedKeys:
    """The keys of a root that this process may write no more. Only grows. Thread-safe.

    `told` hears of each of them, once, with the kind of the key and the class of the failure: whoever poisons a key can't
    keep it from operators.
    """

    def __init__(self, told: Callable[[Kind, StorageClass], None]) -> None:
        self._told = told
        self._keys: set[str] = set()
        self._lock = threading.Lock()

    def add(self, key: str, kind: Kind, cls: StorageClass) -> None:
        with self._lock:
            if key in self._keys:
                return
            self._keys.add(key)
        self._told(kind, cls)

    def __contains__(self, key: str) -> bool:
        with self._lock:
            return key in self._keys

    def __len__(self) -> int:
        with self._lock:
            return len(self._keys)


class ReusedKeys:
    """The one way to write reused keys of a root, one write of a key at a time. Thread-safe.

    `may_write` is the fence.
    """

    def __init__(
        self,
        store: Store,
        poisoned: PoisonedKeys,
        *,
        clock: Clock,
        may_write: Callable[[], bool],
    ) -> None:
        self._store = store
        self._poisoned = poisoned
        self._clock = clock
        self._may_write = may_write
        self._turns: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def create(self, key: str, data: bytes, *, kind: Kind) -> Answer:
        """Store under a key that holds nothing."""
        return self._write(key, data, None, kind, lambda: self._store.create(key, data))

    def replace(self, key: str, data: bytes, *, etag: str, kind: Kind) -> Answer:
        """Store in place of the object with this ETag."""
        return self._write(key, data, etag, kind, lambda: self._store.replace(key, data, etag=etag))

    def _write(
        self, key: str, data: bytes, etag: str | None, kind: Kind, send: Callable[[], CreateOutcome | ReplaceOutcome]
    ) -> Answer:
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            if key in self._poisoned:
                return Poisoned()
            sent = False

            def sending() -> CreateOutcome | ReplaceOutcome:
                nonlocal sent
                sent = True
                return send()

            try:
                outcome = self._driven(steps(data, etag=etag), key, sending)
            except BaseException:  # interrupted, or a fault of ours: nobody saw how a request ended, if one was sent
                if sent:
                    self._poisoned.add(key, kind, StorageClass.SERVER_ERROR)
                raise
            if isinstance(outcome, Undecided):
                self._poisoned.add(key, kind, outcome.cls)
            return outcome

    def _driven(
        self,
        running: Generator[Step, Any, Written],
        key: str,
        send: Callable[[], CreateOutcome | ReplaceOutcome],
    ) -> Written:
        answer: object = None
        while True:
            try:
                step = running.send(answer)
            except StopIteration as done:
                written: Written = done.value
                return written
            match step:
                case Send():
                    answer = send()
                case Look():
                    answer = self._look(key)
                case MayWrite():
                    answer = self._may_write()
                case Wait(seconds):
                    answer = self._clock.sleep(seconds)
                case _:
                    assert_never(step)

    def _look(self, key: str) -> StoredObject | StoreError | None:
        try:
            return self._store.read(key)
        except StoreError as error:
            return None if error.cls is StorageClass.NOT_FOUND else error


def key_outcome_unknown(kind: Kind) -> KeyOutcomeUnknown:
    """The refusal of a write to a poisoned key."""
    return KeyOutcomeUnknown(
        f"An earlier write of the {kind} is unsettled, so nothing was sent. Restart this process when it suits you."
    )
