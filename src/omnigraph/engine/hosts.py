"""One lane of writers among the processes of a host: a lock file that a process holds while it has writers in the lane.

A courtesy, and no more: it keeps writers from preparing what another process is about to make stale. What keeps them
apart is the publication itself; a lock that can't be had is done without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading

FOLDER = ".lanes"

_PAUSE_SECONDS = 0.002
_PAUSE_SECONDS_MAX = 0.02
_WAIT_SECONDS_MAX = 10.0
_YIELD_SECONDS = 0.05  # longer than another process sleeps between two looks
_CROWDED_MOST = 64

_sleeper = threading.Event()  # never set: for waiting


class HostLock:
    """A lock on one file. Taken and released by one thread at a time.

    A process whose writers keep the lane busy without a gap would keep it for ever: `crowded` counts writers that entered
    beside another, and after so many the process lets go for a moment.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name
        self._descriptor: int | None = None
        self.crowded = 0

    @property
    def should_yield(self) -> bool:
        return self.crowded >= _CROWDED_MOST

    def take(self) -> None:
        """Take the lock, or go on without it: a holder that was stopped must not stop the others."""
        if self.should_yield:
            _sleeper.wait(_YIELD_SECONDS)
            self.crowded = 0
        self.release()  # who took it last may have been interrupted before anybody knew
        self._descriptor = descriptor = _opened(self._folder, self._name)
        pause = _PAUSE_SECONDS
        waited = 0.0
        while descriptor is not None and waited < _WAIT_SECONDS_MAX:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                _sleeper.wait(pause)
                waited += pause
                pause = min(pause * 1.5, _PAUSE_SECONDS_MAX)
            else:
                return

    def release(self) -> None:
        """Let go. Never fails: the write that is over may have been published."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):  # the descriptor is given back, and with it the lock, whatever is said
                os.close(descriptor)


def _opened(folder: str, name: str) -> int | None:
    """None where no lock file can be had: a disk that is full or read-only says so at the write itself."""
    try:
        os.makedirs(folder, exist_ok=True)
        return os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
