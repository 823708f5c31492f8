"""Schedules on real S3: the same operations behind a proxy that breaks requests, those that Lance sends included.

Their numbers are `2 OO w RR FF 00 h`, as in `schedules`, but RR counts the requests that differ in verb, room or place
among those of their kind, since the order of what is sent side by side is not fixed.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from faults.lab import Answer, Done, Lab, by_itself, explained
from faults.operations import BY_NUMBER as OPERATIONS_BY_NUMBER
from faults.operations import KEY, OPERATIONS, Operation
from faults.schedules import AFTER, REQUESTS_MAX, Judged
from faults.truth import Held, held, require
from faults.worlds import World, world
from omnigraph.ambient import Clock
from omnigraph.engine.core import GraphCore
from omnigraph.manifest.model import TablePin
from omnigraph.store.base import Store
from omnigraph.store.cloud import CloudStore
from omnigraph.store.s3_settings import S3Settings
from omnigraph.store.settings import StoreSettings
from omnigraph.store.uri import S3Root, parse_root
from omnigraph.tables.store import TableStore, new_session
from support.proxy import (
    Exchange,
    Fault,
    S3Proxy,
    answer_after,
    corrupt,
    delay,
    empty,
    land_late,
    lose_after,
    lose_before,
    refuse,
    truncate,
)
from support.seaweed import S3Server

REQUEST_SECONDS = 2
"""The time limit of a request, and less than a request that times out is held up."""

ROOMS = (
    "__graph",
    "__probe",
    "__manifest",
    "__schema",
    "__lineage",
    "_transactions",
    "_versions",
    "_deletions",
    "_indices",
    "/data/",
)
"""What the keys of a graph root's objects contain, by kind of object; each request is of the first that fits."""

_BEYOND = 100


@dataclass(frozen=True, eq=False)
class S3Kind:
    """`times`: so many of these requests in a row. `absorbed`: repeats or re-issues settle it."""

    number: int
    name: str
    fault: Callable[[], Fault] = field(repr=False)
    verbs: tuple[str, ...] = ("GET", "HEAD", "LIST", "PUT", "POST", "DELETE")
    rooms: tuple[str, ...] = ROOMS
    times: int = 1
    absorbed: bool = False
    rival: str | None = None
    late: bool = False

    def applies(self, operation: Operation, request: S3Request) -> bool:
        if request.verb not in self.verbs or request.room not in self.rooms:
            return False
        return self.rival is None or self.rival in operation.rivals


@dataclass(frozen=True)
class S3Request:
    """The `place`-th request of an operation with this verb into this room."""

    verb: str
    room: str
    place: int


_CHAIN = ("__manifest",)
_OURS = ("__manifest", "__schema", "__lineage")  # what has a digest of its own
_LANCE = ("_transactions", "_versions", "_deletions", "_indices", "/data/")

S3_KINDS: tuple[S3Kind, ...] = (
    S3Kind(1, "403", lambda: refuse(403, "AccessDenied")),
    S3Kind(2, "503 once", lambda: refuse(503), absorbed=True),
    S3Kind(3, "503, 3 times", lambda: refuse(503), times=3, absorbed=True),
    S3Kind(4, "503 beyond every repeat", lambda: refuse(503), times=_BEYOND),
    S3Kind(5, "500 once", lambda: refuse(500, "InternalError"), absorbed=True),
    S3Kind(6, "429 once", lambda: refuse(429, "TooManyRequests")),
    S3Kind(7, "reset before", lose_before),
    S3Kind(8, "reset after", lose_after),
    S3Kind(9, "reset for ever", lose_before, times=_BEYOND),
    S3Kind(10, "timed out", lambda: delay(REQUEST_SECONDS + 0.6)),
    S3Kind(11, "502 after it was done", lambda: answer_after(502), verbs=("PUT",)),
    S3Kind(12, "held back", land_late, verbs=("PUT",), late=True),
    S3Kind(13, "all held back", land_late, verbs=("PUT",), rooms=_CHAIN, times=_BEYOND, late=True),
    S3Kind(14, "half an answer", truncate, verbs=("GET",)),
    S3Kind(15, "corrupt", corrupt, verbs=("GET",), rooms=_OURS),
    S3Kind(16, "409, nothing stored", lambda: refuse(409, "ConditionalRequestConflict"), verbs=("PUT",), rooms=_CHAIN),
    S3Kind(17, "412 of one's own write", lambda: answer_after(412), verbs=("PUT",), rooms=_CHAIN),
    S3Kind(18, "reset after, then never answered", lose_after, verbs=("PUT",), rooms=_CHAIN, times=_BEYOND),
    S3Kind(19, "unrelated write before", lambda: _never, verbs=("PUT",), rooms=_CHAIN, rival="unrelated"),
    S3Kind(20, "related write before", lambda: _never, verbs=("PUT",), rooms=_CHAIN, rival="related"),
    S3Kind(21, "conflicting write before", lambda: _never, verbs=("PUT",), rooms=_CHAIN, rival="conflicting"),
    S3Kind(22, "nothing, as if it went well", empty, verbs=("GET", "LIST", "PUT")),
    S3Kind(23, "corrupt, of a table", corrupt, verbs=("GET",), rooms=_LANCE),
)
S3_BY_NUMBER = {kind.number: kind for kind in S3_KINDS}


def _never(exchange: Exchange) -> bytes | None:
    raise AssertionError("a rival takes this place")


@dataclass(frozen=True)
class S3Schedule:
    operation: Operation
    owner: bool
    request: int
    kind: S3Kind
    after: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.request <= REQUESTS_MAX:
            raise ValueError(f"request {self.request} of {self.operation.name} has no number of two digits")

    @property
    def number(self) -> int:
        return int(f"2{self.operation.number:02}{int(self.owner)}{self.request:02}{self.kind.number:02}00{self.after}")

    @property
    def name(self) -> str:
        return (
            f"schedule {self.number} on S3: {self.operation.name}, {'owner' if self.owner else 'no owner'},"
            f" request {self.request}: {self.kind.name}; {AFTER[self.after]}"
        )


def of_number(number: int) -> S3Schedule:
    """The schedule of a number. Raises KeyError, ValueError for what is none."""
    text = str(number)
    if len(text) != 11 or text[0] != "2":
        raise ValueError(f"{number} is no number of a schedule on S3")
    operation = OPERATIONS_BY_NUMBER[int(text[1:3])]
    return S3Schedule(operation, text[3] == "1", int(text[4:6]), S3_BY_NUMBER[int(text[6:8])], int(text[10]))


# --- the laboratory on S3


def store_at(server: S3Server, root: str, endpoint: str, clock: Clock | None = None) -> CloudStore:
    """The root at the server, or at a proxy before it. With a clock: as a subject reaches it, which gives up soon."""
    address = parse_root(root)
    assert isinstance(address, S3Root)
    settings = S3Settings.read(address.bucket, server.env, {"aws_endpoint": endpoint})
    limits = StoreSettings(request_timeout_seconds=30 if clock is None else REQUEST_SECONDS, local_sync="off")
    return CloudStore(address, settings, limits, clock=clock)


class Bucket:
    """One server, one proxy in front of it, and the roots that are put there. For one run at a time."""

    def __init__(self, server: S3Server, proxy: S3Proxy, folder: str) -> None:
        self.server = server
        self.proxy = proxy
        self.folder = folder
        self._traces: dict[tuple[int, bool], tuple[S3Request, ...]] = {}

    def begun(self, operation: Operation, *, owner: bool) -> S3Lab:
        """A fresh root that holds the operation's world."""
        begun = world(operation.world, self.folder)
        root = f"s3://{self.server.bucket}/{os.urandom(8).hex()}"
        store = store_at(self.server, root, self.server.endpoint)
        files = _files(begun.root)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: store.put_fresh(key, files[key]), files))
        lab = S3Lab(root, begun, self, owner=owner, cold=operation.cold)
        lab.deeds.update(operation.deeds)
        return lab

    def requests(self, operation: Operation, *, owner: bool) -> tuple[S3Request, ...]:
        """The requests of the operation when nothing goes wrong."""
        known = self._traces.get((operation.number, owner))
        if known is not None:
            return known
        lab = self.begun(operation, owner=owner)
        self.proxy.heal()
        self.proxy.forget()
        for label, answer in operation.act(lab, KEY).items():
            require(isinstance(answer, Done), f"{operation.name}: {label} fails on S3 without a fault: {answer}")
        places: Counter[tuple[str, str]] = Counter()
        found: list[S3Request] = []
        for seen in sorted(self.proxy.requests, key=lambda each: each.ordinal):
            room = next((room for room in ROOMS if room in seen.key), None)
            if room is not None:
                found.append(S3Request(seen.verb, room, places[seen.verb, room]))
                places[seen.verb, room] += 1
        self._traces[operation.number, owner] = tuple(
            sorted(found, key=lambda each: (each.verb, each.room, each.place))
        )
        return self._traces[operation.number, owner]

    def schedules(self, operations: Sequence[Operation] = OPERATIONS) -> Iterator[S3Schedule]:
        """Every operation, request and kind."""
        for operation in operations:
            for owner in (False, True):
                for number, request in enumerate(self.requests(operation, owner=owner), start=1):
                    for kind in S3_KINDS:
                        if kind.applies(operation, request):
                            for after in range(2 if kind.late and not operation.reads else 1):
                                yield S3Schedule(operation, owner, number, kind, after)

    def run(self, schedule: S3Schedule) -> None:
        """Run it on a root of its own. Raises Violation with the story."""
        requests = self.requests(schedule.operation, owner=schedule.owner)
        lab = self.begun(schedule.operation, owner=schedule.owner)
        answers: dict[str, Answer] = {}
        with explained(lab, schedule.name, answers):
            S3Run(lab, schedule, requests[schedule.request - 1], answers).run()


@cache
def _files(root: str) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and not path.relative_to(root).as_posix().startswith(".lanes")
    }


class S3Lab(Lab):
    """A root on S3. The subject, Lance included, goes through the proxy; the others and the judge do not."""

    def __init__(self, root: str, begun: World, bucket: Bucket, *, owner: bool, cold: bool) -> None:
        self.bucket = bucket
        super().__init__(root, begun, owner=owner, cold=cold)

    def _plain_store(self) -> Store:
        return store_at(self.bucket.server, self.root, self.bucket.server.endpoint)

    def _subject_store(self) -> Store:
        return store_at(self.bucket.server, self.root, self.bucket.proxy.endpoint, self.clock)

    def _opened(self) -> GraphCore:
        core = super()._opened()
        # with connections of its own: what is kept of the others must not spare it a request
        core.tables = TableStore(core.store, session=new_session(), local_sync="off", clock=self.clock)
        return by_itself(core)

    def held(self) -> Held:
        return held(self.witness, seen=self._seen)  # what landed late came by no way that would have noted it

    def held_anew(self) -> Held:
        return held(self.witness)

    def _lasting(self) -> Collection[TablePin]:
        return ()

    def story(self) -> str:
        lines = ["requests at the proxy:"]
        for seen in sorted(self.bucket.proxy.requests, key=lambda each: each.ordinal):
            lines.append(
                f"  {seen.ordinal} {seen.verb} {seen.key}: {seen.status}{'' if seen.passed else ' (not passed)'}"
            )
        return "\n".join([*lines, super().story()])


class S3Run(Judged):
    """A schedule in which the faults are in front of the bucket."""

    def __init__(self, lab: S3Lab, schedule: S3Schedule, request: S3Request, answers: dict[str, Answer]) -> None:
        super().__init__(lab, schedule.operation, answers, after=schedule.after)
        self._s3 = lab
        self._kind = schedule.kind
        self._request = request
        self._times_met = 0

    def _disturb(self) -> None:
        proxy, kind, request = self._s3.bucket.proxy, self._kind, self._request
        proxy.heal()
        proxy.forget()
        method, key, skip = request.verb, request.room, request.place
        proxy.break_next(self._noted(kind), method=method, key=key, times=kind.times, skip=skip)

    def _noted(self, kind: S3Kind) -> Fault:
        fault = kind.fault()

        def play(exchange: Exchange) -> bytes | None:
            self._times_met += 1
            if kind.rival is None:
                return fault(exchange)
            self._operation.rivals[kind.rival](self._lab)
            message = exchange.forward()
            exchange.keep = message.keeps_connection
            return message.head + message.body

        return play

    def _heal_faults(self) -> None:
        self._s3.bucket.proxy.heal()

    def _met(self) -> bool:
        return self._times_met > 0

    def _late(self) -> int:
        return len(self._s3.bucket.proxy.release())

    def _check_absorbed(self, label: str, answer: Answer) -> None:
        if self._kind.absorbed:
            require(
                isinstance(answer, Done),
                f"{label} is not done, though repeats within their bounds would have settled it",
            )


@contextmanager
def bucket(server: S3Server, folder: str) -> Iterator[Bucket]:
    """A bucket behind a proxy of its own, until the block ends."""
    os.makedirs(folder, exist_ok=True)
    with S3Proxy(server.endpoint) as proxy:
        yield Bucket(server, proxy, folder)
    shutil.rmtree(folder, ignore_errors=True)
