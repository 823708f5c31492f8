"""One writer at a time for each branch: in arrival order within a process, by a file lock between those of one host.

A courtesy, and no more: it keeps writers from preparing what another is about to make stale, so that none starves. What
keeps them apart is the publication itself; a lane that can't be had is done without.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from omnigraph.manifest.keys import branch_folder
from omnigraph.store.base import Store

FOLDER = ".lanes"

_PAUSE_SECONDS = 0.002
_PAUSE_SECONDS_MAX = 0.02
_WAIT_SECONDS_MAX = 10.0

_sleeper = threading.Event()  # never set: for waiting


class Lanes:
    """The lanes of one graph root. A lane exists while somebody is in it. `folder`: where lock files may lie, if anywhere."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._waiting: dict[str, deque[threading.Event]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def enter(self, branch: str) -> Generator[None]:
        """Waits until every earlier writer of the branch has left."""
        with self._lock:
            queue = self._waiting.get(branch)
            if queue is None:
                self._waiting[branch] = deque()
                turn = None
            else:
                turn = threading.Event()
                queue.append(turn)
        if turn is not None:
            turn.wait()
        try:
            with self._between_processes(branch):
                yield
        finally:
            with self._lock:
                queue = self._waiting[branch]
                if queue:
                    queue.popleft().set()
                else:
                    del self._waiting[branch]

    @contextmanager
    def _between_processes(self, branch: str) -> Generator[None]:
        descriptor = None if self._folder is None else _opened(self._folder, branch_folder(branch))
        if descriptor is None:
            yield
            return
        try:
            _wait_for(descriptor)
            yield
        finally:
            os.close(descriptor)


def lanes_of(store: Store) -> Lanes:
    """The lanes of a root, the same for every handle of this process."""
    return _lanes(store.uri, store.local_path)


@cache
def _lanes(uri: str, local_path: str | None) -> Lanes:
    return Lanes(None if local_path is None else os.path.join(local_path, FOLDER))


def _wait_for(descriptor: int) -> None:
    """Take the lock, or go on without it: a holder that was stopped must not stop the others."""
    pause = _PAUSE_SECONDS
    waited = 0.0
    while waited < _WAIT_SECONDS_MAX:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            _sleeper.wait(pause)
            waited += pause
            pause = min(pause * 1.5, _PAUSE_SECONDS_MAX)
        else:
            return


def _opened(folder: str, name: str) -> int | None:
    """None where no lock file can be had: a disk that is full or read-only says so at the write itself."""
    try:
        os.makedirs(folder, exist_ok=True)
        return os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
