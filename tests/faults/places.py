"""Where a random history happens: on a folder, or in a bucket, where each writer has a proxy of its own.

On a folder the faults are of our own store's requests; in a bucket they meet what Lance sends, too.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from faults import s3
from faults.lab import HOUR
from faults.worlds import BEGAN_US
from omnigraph.ambient import SystemClock
from omnigraph.errors import StorageClass
from omnigraph.store.base import Store
from omnigraph.store.cloud import CloudStore
from omnigraph.store.faults import (
    Damage,
    FailCondition,
    Fault,
    FaultStore,
    LandLate,
    LoseAfter,
    LoseBefore,
    Meanwhile,
    Refuse,
    Rule,
    Throttle,
)
from omnigraph.store.open import open_store
from support.clocks import SteppingClock
from support.faulty import MANIFEST
from support.proxy import S3Proxy
from support.seaweed import S3Server


def happens(draw: random.Random, share: float) -> bool:
    """In so many of the cases. Not if 0.0 is drawn, which is what a failing run is shrunk to."""
    return draw.random() > 1 - share


class Way:
    """How one writer reaches the store, until somebody stands in the way."""

    def __init__(self, inner: Store, clock: SteppingClock) -> None:
        self.store = FaultStore(inner, clock=clock)

    def disturb(self, draw: random.Random) -> None:
        """Some of the next requests go wrong, perhaps."""
        raise NotImplementedError

    def interpose(
        self, draw: random.Random, before: Callable[[], None] | None, after: Callable[[], None] | None
    ) -> None:
        """Something else happens in the middle of one of the next requests."""
        ordinal = len(self.store.requests) + draw.randint(1, 5)
        self.store.add(Rule(Meanwhile(before=before, after=after), ordinal=ordinal))

    def heal(self) -> None:
        """Nothing more goes wrong; what was held back still is."""
        self.store.heal()

    def release(self) -> None:
        """What was held back lands."""
        self.store.release()


class Place(Protocol):
    """`jumps`: seconds by which the clock may move on, and objects' times still agree with it. `names`: what a history
    of a seed is called.
    """

    names: str
    root: str
    began_us: int
    jumps: tuple[float, ...]

    def store(self) -> Store:
        """What lies below everything."""
        ...

    def way(self, witness: Store, clock: SteppingClock) -> Way: ...

    def close(self) -> None: ...


# --- a folder

_ON_CREATE: tuple[Fault, ...] = (
    LoseBefore(),
    LoseAfter(),
    Throttle(),
    FailCondition(),
    FailCondition(landed=True),
    Refuse(),
    Refuse(StorageClass.CONNECTION, sent=False),
    LandLate(after=2),
    LandLate(after=9),
    LandLate(after=60),
)
_ON_ANY: tuple[Fault, ...] = (
    Throttle(),
    LoseAfter(),
    Refuse(StorageClass.SERVER_ERROR),
    Damage("flipped"),
    Damage("half"),
    Damage("empty"),
)


class _WayToAFolder(Way):
    def disturb(self, draw: random.Random) -> None:
        if happens(draw, 0.5):
            fault = draw.choice(_ON_CREATE)
            times = draw.choice([1, 1, 2, 5, 6])
            self.store.add(Rule(fault, verb="create", key=MANIFEST, times=times))
        elif happens(draw, 0.3):
            ordinal = len(self.store.requests) + draw.randint(1, 6)
            fault = draw.choice(_ON_ANY)
            self.store.add(Rule(fault, ordinal=ordinal, verb="read" if isinstance(fault, Damage) else None))


class Folder:
    """A root on a file system, whose times are those of the run's own clock."""

    names = "history {}"
    began_us = BEGAN_US
    jumps = (1.0, 1.0, 700.0, 13 * HOUR)

    def __init__(self, root: str) -> None:
        self.root = root

    def store(self) -> Store:
        return open_store(self.root)

    def way(self, witness: Store, clock: SteppingClock) -> Way:
        return _WayToAFolder(witness, clock)

    def close(self) -> None:
        pass


# --- a bucket

_FAULTS = tuple(kind for kind in s3.S3_KINDS if kind.rival is None)
_ON_PUBLISH = tuple(kind for kind in _FAULTS if "PUT" in kind.verbs and "__manifest" in kind.rooms)
_LAND_SHARE = 0.3


class _WayToABucket(Way):
    def __init__(self, proxy: S3Proxy, store: CloudStore, clock: SteppingClock) -> None:
        super().__init__(store, clock)
        self._proxy = proxy

    def disturb(self, draw: random.Random) -> None:
        if happens(draw, _LAND_SHARE):
            self.release()
        if happens(draw, 0.5):
            self._break(draw.choice(_ON_PUBLISH), "PUT", "__manifest", 0)
        elif happens(draw, 0.3):
            kind = draw.choice(_FAULTS)
            self._break(kind, draw.choice(kind.verbs), draw.choice(kind.rooms), draw.randint(0, 2))

    def _break(self, kind: s3.S3Kind, verb: str, room: str, skip: int) -> None:
        self._proxy.break_next(kind.fault(), method=verb, key=room, times=kind.times, skip=skip)

    def heal(self) -> None:
        super().heal()
        self._proxy.heal()

    def release(self) -> None:
        super().release()
        self._proxy.release()


class InABucket:
    """A fresh root on a server, whose times are real: the clock of the run begins with them and makes no jumps."""

    names = "s3:{}"
    jumps = (1.0,)

    def __init__(self, server: S3Server) -> None:
        self.root = f"s3://{server.bucket}/{os.urandom(8).hex()}"
        self.began_us = SystemClock().now_us()
        self._server = server
        self._proxies = ExitStack()

    def store(self) -> Store:
        return s3.store_at(self._server, self.root, self._server.endpoint)

    def way(self, witness: Store, clock: SteppingClock) -> Way:
        proxy = self._proxies.enter_context(S3Proxy(self._server.endpoint))
        return _WayToABucket(proxy, s3.store_at(self._server, self.root, proxy.endpoint, clock), clock)

    def close(self) -> None:
        self._proxies.close()
