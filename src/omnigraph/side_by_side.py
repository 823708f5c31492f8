"""Work that waits for a network or a disk, done side by side in as many threads as are to be had.

The caller's own thread is one of them, so that a machine which gives no more threads makes it slower and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], items: Iterable[T], *, at_most: int, name: str) -> list[R]:
    """`work` of each item, in order, at most so many at a time; `name` is what the threads are called.

    All that was begun has ended before an error is raised: that of the first item which has one. After an interrupt
    nothing more is begun.
    """
    run = _Run(work, list(items))
    helpers = [threading.Thread(target=run.take, name=f"{name}-{n}") for n in range(min(len(run.items), at_most) - 1)]
    started: list[threading.Thread] = []
    try:
        for each in helpers:
            each.start()
            started.append(each)
    except RuntimeError:  # no more threads are to be had
        pass
    try:
        run.take()
        for each in started:
            each.join()
    except BaseException:  # interrupted between two items, or while the others ended
        run.begin_nothing_more()
        for each in started:
            each.join()
        raise
    for place in sorted(run.errors):
        raise run.errors[place]
    return [run.results[place] for place in range(len(run.items))]


class _Run(Generic[T, R]):
    def __init__(self, work: Callable[[T], R], items: list[T]) -> None:
        self.items = items
        self.results: dict[int, R] = {}
        self.errors: dict[int, BaseException] = {}
        self._work = work
        self._next = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Do what nobody has begun, until nothing is left."""
        while True:
            with self._lock:
                place = self._next
                if place >= len(self.items):
                    return
                self._next += 1
            try:
                self.results[place] = self._work(self.items[place])
            except BaseException as error:  # told by the thread that asked, once all have ended
                self.errors[place] = error
                if not isinstance(error, Exception):
                    self.begin_nothing_more()

    def begin_nothing_more(self) -> None:
        with self._lock:
            self._next = len(self.items)
