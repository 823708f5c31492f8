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
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, Protocol, TypeVar

from omnigraph.engine.hosts import FOLDER, HostLock
from omnigraph.manifest.keys import branch_folder
from omnigraph.store.base import Store


class Waiting(Protocol):
    """What a writer wants published. `settled`: somebody has said how it ended."""

    @property
    def settled(self) -> bool: ...


_E = TypeVar("_E", bound=Waiting)


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
        with self._lock:
            lane = self._lanes.get(branch)
            if lane is None:
                lane = self._lanes[branch] = _Lane(self._host(branch))
            ticket = lane.joined()  # before another thread can find the lane empty and take it away
        try:
            lane.admit(ticket)
            if alone:
                ticket.take_alone()
            yield ticket
        finally:
            with self._lock:
                lane.leave(ticket)
                if not lane.tickets:
                    self._lanes.pop(branch, None)

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
    """One writer's place in a lane."""

    def __init__(self, lane: _Lane) -> None:
        self._lane = lane
        self.alone = False
        self.entered = False
        self.waits = False
        self.entry: Waiting | None = None

    def take_alone(self) -> None:
        """Have the lane to oneself until the ticket ends; the place in the order stays."""
        lane = self._lane
        with lane.changed:
            self.alone = True
            lane.wait(self, lambda: lane.tickets[0] is self and not lane.publishing)

    def publish(self, entry: _E, together: Callable[[list[_E]], None]) -> None:
        """Returns when the entry is settled, by this thread or by another.

        `together` gets what is ready, in order, and settles at least the first of it. What it raises comes out here, in
        the thread that ran it.
        """
        lane = self._lane
        while True:
            with lane.changed:
                self.entry = None if entry.settled else entry
                lane.wait(self, lambda: entry.settled or lane.may_publish(self))
                if entry.settled:
                    self.entry = None
                    return
                lane.publishing = True
                ready = lane.ready()
            try:
                together(ready)
            finally:
                with lane.changed:
                    lane.publishing = False
                    lane.changed.notify_all()


class _Lane:
    """The tickets of a branch in this process, oldest first. All that is read or written under `changed`."""

    def __init__(self, host: HostLock | None) -> None:
        self.tickets: list[Ticket] = []
        self.changed = threading.Condition()
        self.publishing = False
        self._host = host
        self._held: Literal["no", "asked", "yes"] = "no"

    def joined(self) -> Ticket:
        with self.changed:
            self.tickets.append(Ticket(self))
            return self.tickets[-1]

    def wait(self, ticket: Ticket, may_go_on: Callable[[], bool]) -> None:
        """Called under `changed`."""
        ticket.waits = True
        try:
            self.changed.wait_for(may_go_on)
        finally:
            ticket.waits = False

    def admit(self, ticket: Ticket) -> None:
        """Returns when the ticket's writer may begin to prepare."""
        with self.changed:
            self.wait(ticket, lambda: self._is_next(ticket))
            if self._host is None or self._held == "yes":
                self._enter(ticket)
                self.wait(ticket, lambda: not self._is_behind_one_alone(ticket))
                return
            self._held = "asked"
        try:
            self._host.take()
        finally:
            with self.changed:
                self._held = "yes"
                self._enter(ticket)

    def _is_next(self, ticket: Ticket) -> bool:
        """Those before it are inside, and the process need not let others have a turn first."""
        if not all(other.entered for other in self.tickets[: self.tickets.index(ticket)]):
            return False
        return self._host is None or self._held == "no" or (self._held == "yes" and not self._host.should_yield)

    def _enter(self, ticket: Ticket) -> None:
        ticket.entered = True
        if self._host is not None and len(self.tickets) > 1:
            self._host.crowded += 1
        self.changed.notify_all()

    def _is_behind_one_alone(self, ticket: Ticket) -> bool:
        return any(other.alone for other in self.tickets[: self.tickets.index(ticket)])

    def may_publish(self, ticket: Ticket) -> bool:
        return not self.publishing and not self._is_behind_one_alone(ticket)

    def ready(self) -> list[Any]:
        """Entries that wait, oldest first, up to the first writer that wants the lane to itself."""
        found: list[Waiting] = []
        for ticket in self.tickets:
            if ticket.alone and ticket is not self.tickets[0]:
                break
            if ticket.entry is not None and not ticket.entry.settled:
                found.append(ticket.entry)
            if ticket.alone:
                break
        return found

    def waiting(self) -> int:
        with self.changed:
            return sum(ticket.waits for ticket in self.tickets)

    def leave(self, ticket: Ticket) -> None:
        with self.changed:
            self.tickets.remove(ticket)
            if self._host is not None and self._held == "yes" and not any(each.entered for each in self.tickets):
                self._host.release()
                self._held = "no"
            self.changed.notify_all()


def lanes_of(store: Store) -> Lanes:
    """The lanes of a root, the same for every handle of this process."""
    return _lanes(store.uri, store.local_path)


@cache
def _lanes(uri: str, local_path: str | None) -> Lanes:
    return Lanes(None if local_path is None else os.path.join(local_path, FOLDER))
