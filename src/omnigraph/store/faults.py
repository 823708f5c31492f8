"""A store that fails on purpose: it wraps another and applies a script, one fault per request, and records every one.

    store = FaultStore(MemoryStore(), [Rule(LoseAfter(), ordinal=3)])          # the third request lands, unanswered
    store = FaultStore(inner, [Rule(Throttle(), verb="create", key="__manifest/", times=2)])

Faults have a direction: before the store acts, or after it has acted. A test that runs an operation once to count its
requests can then run it again for each request and each fault, and look at what storage holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, assert_never

from omnigraph.ambient import Clock, SystemClock
from omnigraph.errors import StorageClass
from omnigraph.store.base import (
    Changed,
    CreateOutcome,
    Exists,
    ObjectInfo,
    Refused,
    ReplaceOutcome,
    Store,
    StoredObject,
    StoreError,
    Unknown,
)

Verb = Literal["read", "head", "list", "list_first", "list_folders", "put_fresh", "create", "replace", "delete"]

T = TypeVar("T")


# --- the faults


@dataclass(frozen=True, slots=True)
class Refuse:
    """The store says no and does nothing. `sent=False`: no connection."""

    cls: StorageClass = StorageClass.DENIED
    sent: bool = True


@dataclass(frozen=True, slots=True)
class LoseBefore:
    """The request is lost: nothing happens, no answer comes."""

    cls: StorageClass = StorageClass.TIMEOUT


@dataclass(frozen=True, slots=True)
class LoseAfter:
    """The store acts, and the answer is lost."""

    cls: StorageClass = StorageClass.CONNECTION


@dataclass(frozen=True, slots=True)
class LandLate:
    """No answer comes. The store acts after `after` more requests were finished, or at `release`."""

    after: int = 1
    cls: StorageClass = StorageClass.TIMEOUT


@dataclass(frozen=True, slots=True)
class Throttle:
    """The store is busy: nothing happens, which a conditional write can't know."""


@dataclass(frozen=True, slots=True)
class FailCondition:
    """409 or 412 although nothing stands there, as S3 answers while another conditional request is under way.

    With `landed` the request was stored first: two copies of it were sent, and the answer is that of the second.
    """

    landed: bool = False


@dataclass(frozen=True, slots=True)
class Delay:
    """The request takes its time, on the clock of the store, then goes its way."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Damage:
    """A read answers other bytes than were stored: every one flipped, the first half of them, or none."""

    kind: Literal["flipped", "half", "empty"] = "flipped"


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Something else happens just before the store acts, or between that and the answer; the request may meet another
    fault besides.
    """

    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    fault: Fault | None = None

    def around(self, request: Callable[[], T]) -> T:
        """The request with what happens before and after it; after it also if it fails."""
        if self.before is not None:
            self.before()
        try:
            return request()
        finally:
            if self.after is not None:
                self.after()


Fault = Refuse | LoseBefore | LoseAfter | LandLate | Throttle | FailCondition | Delay | Damage | Meanwhile


@dataclass(frozen=True, slots=True)
class Rule:
    """Which requests a fault meets: the one with this ordinal (the first request is 1) or those from `since` on, of this
    verb, with `key` as part of their key or a predicate of it; after letting `skip` such requests pass, the next `times`.
    """

    fault: Fault
    ordinal: int | None = None
    verb: Verb | None = None
    key: str | Callable[[str], bool] = ""
    times: int = 1
    skip: int = 0
    since: int = 0

    def matches(self, ordinal: int, verb: Verb, key: str) -> bool:
        of_key = self.key in key if isinstance(self.key, str) else self.key(key)
        return of_key and self.ordinal in (None, ordinal) and ordinal >= self.since and self.verb in (None, verb)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request. `outcome` is the value of a conditional write, or the class of a failure, or None."""

    ordinal: int
    verb: Verb
    key: str
    fault: Fault | None
    outcome: CreateOutcome | ReplaceOutcome | StorageClass | None


@dataclass(slots=True)
class _Late:
    due: int
    act: Callable[[], object]


class Around:
    """What a store that wraps another says of itself: where the inner one lies and what leads there."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def local_path(self) -> str | None:
        return self.inner.local_path

    def lance_uri(self, key: str) -> str:
        return self.inner.lance_uri(key)

    def lance_storage_options(self) -> dict[str, str]:
        return self.inner.lance_storage_options()

    def probe_writable(self) -> None:
        self.inner.probe_writable()


class FaultStore(Around):
    """The inner store with a script of faults. `requests` is what the rooms above asked for, in order of asking.

    A late request that lands is no request of its own. A `list` is one request whatever its length; `delete` is one,
    under its first key.
    """

    def __init__(self, inner: Store, rules: Iterable[Rule] = (), *, clock: Clock | None = None) -> None:
        super().__init__(inner)
        self._clock = clock or SystemClock()
        self._guard = threading.Lock()
        self._rules: list[Rule] = list(rules)
        self._records: list[Recorded] = []
        self._late: list[_Late] = []

    # --- the test's side

    @property
    def requests(self) -> Sequence[Recorded]:
        with self._guard:
            return tuple(self._records)

    def count(self, verb: Verb | None = None, *, key: str = "") -> int:
        return sum(1 for each in self.requests if verb in (None, each.verb) and key in each.key)

    def add(self, *rules: Rule) -> None:
        with self._guard:
            self._rules.extend(rules)

    def heal(self) -> None:
        """No more faults. Late requests stay late."""
        with self._guard:
            self._rules.clear()

    def release(self) -> int:
        """Lets every late request land now, in the order in which they were sent; how many there were."""
        return self._land(None)

    # --- the store's side

    def read(self, key: str) -> StoredObject:
        return self._plain("read", key, lambda: self.inner.read(key))

    def head(self, key: str) -> ObjectInfo:
        return self._plain("head", key, lambda: self.inner.head(key))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        # read to its end at once, so that what comes before and after the request really does
        return self._plain("list", prefix, lambda: iter([*self.inner.list(prefix, start_after=start_after)]))

    def list_first(self, prefix: str) -> ObjectInfo | None:
        return self._plain("list_first", prefix, lambda: self.inner.list_first(prefix))

    def list_folders(self, prefix: str) -> list[str]:
        return self._plain("list_folders", prefix, lambda: self.inner.list_folders(prefix))

    def put_fresh(self, key: str, data: bytes) -> None:
        self._plain("put_fresh", key, lambda: self.inner.put_fresh(key, data))

    def delete(self, keys: Iterable[str]) -> None:
        named = tuple(keys)
        self._plain("delete", named[0] if named else "", lambda: self.inner.delete(named))

    def create(self, key: str, data: bytes) -> CreateOutcome:
        return self._conditional("create", key, lambda: self.inner.create(key, data), Exists())

    def replace(self, key: str, data: bytes, *, etag: str) -> ReplaceOutcome:
        return self._conditional("replace", key, lambda: self.inner.replace(key, data, etag=etag), Changed())

    def _conditional(self, verb: Verb, key: str, act: Callable[[], T], failed: T) -> T | Refused | Unknown:
        ordinal, fault = self._begin(verb, key)
        outcome = self._outcome(ordinal, fault, act, failed)
        self._finish(ordinal, outcome)  # pyright: ignore[reportArgumentType]
        return outcome

    def _outcome(self, ordinal: int, fault: Fault | None, act: Callable[[], T], failed: T) -> T | Refused | Unknown:
        match fault:
            case Refuse(cls, sent):
                return Refused(cls, sent)
            case LoseBefore(cls):
                return Unknown(cls)
            case Throttle():
                return Unknown(StorageClass.THROTTLED)
            case LoseAfter(cls):
                act()
                return Unknown(cls)
            case LandLate(after, cls):
                self._hold(ordinal + after, act)
                return Unknown(cls)
            case FailCondition(landed):
                if landed:
                    act()
                return failed
            case Damage():
                raise ValueError("only a read can be damaged")
            case Delay(seconds):
                self._clock.sleep(seconds)
                return act()
            case Meanwhile():
                return fault.around(lambda: self._outcome(ordinal, fault.fault, act, failed))
            case None:
                return act()
            case _:
                assert_never(fault)

    def _plain(self, verb: Verb, key: str, act: Callable[[], T]) -> T:
        ordinal, fault = self._begin(verb, key)
        try:
            result = self._answered(ordinal, fault, act)
        except StoreError as error:
            self._finish(ordinal, error.cls)
            raise
        self._finish(ordinal, None)
        return result

    def _answered(self, ordinal: int, fault: Fault | None, act: Callable[[], T]) -> T:
        match fault:
            case Refuse(cls, _) | LoseBefore(cls):
                raise StoreError(cls)
            case Throttle():
                raise StoreError(StorageClass.THROTTLED)
            case LoseAfter(cls):
                act()
                raise StoreError(cls)
            case LandLate(after, cls):
                self._hold(ordinal + after, act)
                raise StoreError(cls)
            case Damage(kind):
                return _damaged(act(), kind)
            case FailCondition():
                raise ValueError("only create and replace have a condition")
            case Delay(seconds):
                self._clock.sleep(seconds)
                return act()
            case Meanwhile():
                return fault.around(lambda: self._answered(ordinal, fault.fault, act))
            case None:
                return act()
            case _:
                assert_never(fault)

    def _begin(self, verb: Verb, key: str) -> tuple[int, Fault | None]:
        with self._guard:
            ordinal = len(self._records) + 1
            fault = self._next_fault(ordinal, verb, key)
            self._records.append(Recorded(ordinal, verb, key, fault, None))
            return ordinal, fault

    def _next_fault(self, ordinal: int, verb: Verb, key: str) -> Fault | None:
        """The fault of the first rule that matches. A rule that lets a request pass leaves it to the rules after it."""
        for index, rule in enumerate(self._rules):
            if not rule.times or not rule.matches(ordinal, verb, key):
                continue
            if rule.skip:
                self._rules[index] = replace(rule, skip=rule.skip - 1)
                continue
            self._rules[index] = replace(rule, times=rule.times - 1)
            return rule.fault
        return None

    def _finish(self, ordinal: int, outcome: CreateOutcome | ReplaceOutcome | StorageClass | None) -> None:
        with self._guard:
            self._records[ordinal - 1] = replace(self._records[ordinal - 1], outcome=outcome)
        self._land(ordinal)

    def _hold(self, due: int, act: Callable[[], object]) -> None:
        with self._guard:
            self._late.append(_Late(due, act))

    def _land(self, finished: int | None) -> int:
        with self._guard:
            landing = [late for late in self._late if finished is None or late.due <= finished]
            self._late = [late for late in self._late if late not in landing]
        for late in landing:
            late.act()
        return len(landing)


def _damaged(answer: T, kind: Literal["flipped", "half", "empty"]) -> T:
    if not isinstance(answer, StoredObject):
        raise ValueError("only a read can be damaged")
    match kind:
        case "flipped":
            data = bytes(byte ^ 0xFF for byte in answer.data)
        case "half":
            data = answer.data[: len(answer.data) // 2]
        case "empty":
            data = b""
    return replace(answer, data=data)
