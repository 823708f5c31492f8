"""Writes of several threads that are sure to wait for one publication, so that the next one is theirs together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from omnigraph.store.faults import Meanwhile, Rule
from support.faulty import MANIFEST, Faulty

Work = Callable[[], Any]

_PATIENCE_SECONDS = 60


class Together:
    """Runs `first`, and the others from threads while its publication is under way: each is ready before the next starts.

    `results` has what each of the others returned or raised, in their order.
    """

    def __init__(self, faulty: Faulty, first: Work, others: Sequence[Work], *, branch: str = "main") -> None:
        self.results: list[Any] = [None] * len(others)
        self._faulty = faulty
        self._branch = branch
        self._threads = [
            threading.Thread(target=self._run, args=(place, work), daemon=True) for place, work in enumerate(others)
        ]
        faulty.store.add(Rule(Meanwhile(before=self._start), verb="create", key=MANIFEST))
        self.first = first()
        for thread in self._threads:
            thread.join(_PATIENCE_SECONDS)
            assert not thread.is_alive(), "a write never ended"

    def _run(self, place: int, work: Work) -> None:
        try:
            self.results[place] = work()
        except BaseException as error:
            self.results[place] = error

    def _start(self) -> None:
        waiting = self._faulty.core.lanes.waiting(self._branch)
        for thread in self._threads:
            thread.start()
            waiting += 1
            while thread.is_alive() and self._faulty.core.lanes.waiting(self._branch) < waiting:
                thread.join(0.001)
