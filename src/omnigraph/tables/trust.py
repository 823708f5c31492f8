"""Whether what this process remembers of a table may be believed.

The versions of a table share files, and the library remembers what it read of them, so damage met in one version casts
doubt on all of them that are open. From then on nothing of that is used again: versions are opened anew, with nothing
remembered, and a file that was put back from a copy is found. Whoever keeps what it read of a version looks at `lost`
before using it again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

_S = TypeVar("_S")

_TABLES_MAX: Final = 4_096


class Trust(Generic[_S]):
    """Shared by the versions of one table that were opened with one memory, `session`. `lost` never becomes false."""

    __slots__ = ("lost", "session")

    def __init__(self, session: _S) -> None:
        self.session = session
        self.lost = False


class TrustInTables(Generic[_S]):
    """The trust in force for each table, by its folder. Thread-safe.

    Forgetting one, which happens to the least recently used of very many, means to begin with `session` again.
    """

    def __init__(self, session: _S, fresh: Callable[[], _S]) -> None:
        self._session = session
        self._fresh = fresh
        self._of: OrderedDict[str, Trust[_S]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, path: str) -> Trust[_S]:
        """What a version that is opened now may rely on: a memory of its own, if damage was met in the table."""
        with self._lock:
            found = self._of.pop(path, None)
            if found is None:
                found = Trust(self._session)
            elif found.lost:
                found = Trust(self._fresh())
            self._of[path] = found
            while len(self._of) > _TABLES_MAX:
                self._of.popitem(last=False)
            return found
