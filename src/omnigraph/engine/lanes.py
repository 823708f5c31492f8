"""The writers of one branch, in the order they came: some prepare side by side and publish together, some run alone.

    with lanes.enter("main") as ticket:
        ...                                    # prepare
        ticket.publish(entry, together)        # one of those who wait runs `together` for all that are ready

While a publication is under way, what is ready waits; when it ends, the first thread that wakes publishes all of it. There
is no timer: where nobody is publishing, a writer publishes at once (history.md 9.2, G4). A writer that can't share has
the lane to itself: everyone before it has ended, and nobody after it publishes.

Knows order and threads; neither what is written nor how.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Protocol, TypeVar

from omnigraph.engine.hosts import FOLDER, HostLock
from omnigraph.manifest.keys import branch_folder
from omnigraph.store.base import Store


class Waiting(Protocol):
    """What a writer wants published. `settled`: somebody has said how it ended."""

    @property
    def settled(self) -> bool: ...


_E = TypeVar("_E", bound=Waiting)

_LOOK_SECONDS = 0.5
"""So often who waits looks by himself, which matters only if who was to wake him was interrupted."""


class Lanes:
    """The lanes of one graph root. A lane exists while somebody is in it. `folder`: where lock files may lie, if anywhere."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._lanes: dict[str, _Lane] = {}
        self._hosts: dict[str, HostLock] = {}
        self._lock = threading.Lock()

    @contextmanager
    def enter(self, branch: str, *, alone: bool = False) -> Generator[Ticket]:
        """A place in the lane. Waits for those before it that have the lane to themselves; `alone`: for all before it."""
        ticket = Ticket()
        try:
            with self._lock:
                lane = self._lanes.get(branch)
                if lane is None:
                    lane = self._lanes[branch] = _Lane(self._host(branch))
                lane.join(ticket)  # before another thread can find the lane empty and take it away
            lane.admit(ticket)
            if alone:
                ticket.take_alone()
            yield ticket
        finally:
            ticket.gone = True
            with self._lock:
                lane = self._lanes.get(branch)
                if lane is not None and lane.is_empty():
                    del self._lanes[branch]

    def _host(self, branch: str) -> HostLock | None:
        if self._folder is None:
            return None
        return self._hosts.setdefault(branch, HostLock(self._folder, branch_folder(branch)))

    def waiting(self, branch: str) -> int:
        """How many writers of a branch can't go on before a publication or another writer has ended."""
        with self._lock:
            lane = self._lanes.get(branch)
        return 0 if lane is None else lane.waiting()


class Ticket:
    """One writer's place in a lane. What it says of itself is a plain attribute each, so that an interrupt (which comes between
    any two calls of the main thread) finds it said or not said, and never half: `gone`, it has left; `leads`, it publishes;
    `asks`, it takes the lock of the host.
    """

    def __init__(self) -> None:
        self.alone = False
        self.entered = False
        self.waits = False
        self.gone = False
        self.leads = False
        self.asks = False
        self.entry: Waiting | None = None
        self._lane: _Lane | None = None
        self._wake = threading.Lock()
        self._wake.acquire()

    def placed(self, lane: _Lane) -> None:
        self._lane = lane

    def take_alone(self) -> None:
        """Have the lane to oneself until the ticket ends; the place in the order stays."""
        lane = self._lane
        assert lane is not None
        self.alone = True
        lane.until(self, lambda: lane.is_first(self) and not lane.publishing)

    def publish(self, entry: _E, together: Callable[[list[_E]], None]) -> None:
        """Returns when the entry is settled, by this thread or by another.

        `together` gets what is ready, in order, and settles at least the first of it. What it raises comes out here, in
        the thread that ran it.
        """
        lane = self._lane
        assert lane is not None
        while not entry.settled:
            self.entry = entry
            ready: list[_E] = []
            try:
                lane.until(self, lambda ready=ready: entry.settled or self._leads(lane, ready))
                if self.leads:
                    together(ready)
            finally:
                self.leads = False
                self.entry = None
                lane.wake_all()

    def _leads(self, lane: _Lane, ready: list[Any]) -> bool:
        """Called under the lane's lock: it publishes next, what is ready."""
        if not lane.may_publish(self):
            return False
        ready[:] = lane.ready()
        self.leads = True
        return True

    def wake(self) -> None:
        """It looks again whether it may go on."""
        if self._wake.locked():
            with suppress(RuntimeError):  # somebody else was quicker
                self._wake.release()

    def sleep(self) -> None:
        """Until somebody wakes it; not for ever, since who was to wake it may have been interrupted."""
        self._wake.acquire(timeout=_LOOK_SECONDS)


class _Lane:
    """The tickets of a branch in this process, oldest first. What is read or written of several is so under its lock.

    The lane only knows tickets that somebody has: one that an interrupt left behind, in whatever state, is as if it had
    gone. No condition variable: its methods are Python's, and an interrupt inside one can leave a lock taken for ever.
    """

    def __init__(self, host: HostLock | None) -> None:
        self._tickets: list[weakref.ref[Ticket]] = []
        self._lock = threading.Lock()
        self._host = host
        self._held = False

    @property
    def tickets(self) -> list[Ticket]:
        """Those in the lane, oldest first."""
        return [ticket for ref in self._tickets if (ticket := ref()) is not None and not ticket.gone]

    @property
    def publishing(self) -> bool:
        return any(ticket.leads for ticket in self.tickets)

    def join(self, ticket: Ticket) -> None:
        ticket.placed(self)
        with self._lock:
            self._tickets.append(weakref.ref(ticket))

    def until(self, ticket: Ticket, may_go_on: Callable[[], bool]) -> None:
        """Returns when it holds, asked under the lock and with what it does then."""
        try:
            while True:
                with self._lock:
                    self._sweep()
                    if may_go_on():
                        return
                    ticket.waits = True
                ticket.sleep()
        finally:
            ticket.waits = False

    def wake_all(self) -> None:
        for ticket in self.tickets:
            ticket.wake()

    def admit(self, ticket: Ticket) -> None:
        """Returns when the ticket's writer may begin to prepare."""
        self.until(ticket, lambda: self._is_next(ticket) and self._entered_or_asks(ticket))
        if ticket.asks:
            assert self._host is not None
            try:
                self._host.take()
            finally:
                ticket.asks = False
                with self._lock:
                    self._held = True
                    self._enter(ticket)
        self.wake_all()
        self.until(ticket, lambda: not self._is_behind_one_alone(ticket))

    def _entered_or_asks(self, ticket: Ticket) -> bool:
        if self._host is None or self._held:
            self._enter(ticket)
        else:
            ticket.asks = True
        return True

    def _is_next(self, ticket: Ticket) -> bool:
        """Those before it are inside, and the process need not let others have a turn first."""
        if not all(other.entered for other in self._before(ticket)):
            return False
        if self._host is None:
            return True
        asked = any(other.asks for other in self.tickets)
        return not asked and not (self._held and self._host.should_yield)

    def _before(self, ticket: Ticket) -> list[Ticket]:
        tickets = self.tickets
        return tickets[: tickets.index(ticket)]

    def _enter(self, ticket: Ticket) -> None:
        ticket.entered = True
        if self._host is not None and len(self.tickets) > 1:
            self._host.crowded += 1

    def _is_behind_one_alone(self, ticket: Ticket) -> bool:
        return any(other.alone for other in self._before(ticket))

    def is_first(self, ticket: Ticket) -> bool:
        return self.tickets[0] is ticket

    def may_publish(self, ticket: Ticket) -> bool:
        return not self.publishing and not self._is_behind_one_alone(ticket)

    def ready(self) -> list[Any]:
        """Entries that wait, oldest first, up to the first writer that wants the lane to itself."""
        found: list[Waiting] = []
        tickets = self.tickets
        for ticket in tickets:
            if ticket.alone and ticket is not tickets[0]:
                break
            if ticket.entry is not None and not ticket.entry.settled:
                found.append(ticket.entry)
            if ticket.alone:
                break
        return found

    def waiting(self) -> int:
        with self._lock:
            return sum(ticket.waits for ticket in self.tickets)

    def is_empty(self) -> bool:
        """Whether nobody is in it; lets go of the host's lock if nobody in it has entered."""
        with self._lock:
            self._sweep()
            empty = not self._tickets
        self.wake_all()
        return empty

    def _sweep(self) -> None:
        tickets = self.tickets
        if len(tickets) < len(self._tickets):
            self._tickets = [weakref.ref(ticket) for ticket in tickets]
        if self._host is not None and self._held and not any(each.entered for each in tickets):
            self._held = False
            self._host.release()


def lanes_of(store: Store) -> Lanes:
    """The lanes of a root, the same for every handle of this process."""
    return _lanes(store.uri, store.local_path)


@cache
def _lanes(uri: str, local_path: str | None) -> Lanes:
    return Lanes(None if local_path is None else os.path.join(local_path, FOLDER))
