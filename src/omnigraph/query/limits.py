"""What one query may spend: edge rows examined, result rows, time. Each limit has a name, a unit and a typed error.

Knows no query and no clock of its own: seconds are asked of the function it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import LimitExceeded, QueryTimeout

Traversal = Literal["auto", "indexed", "matrix"]
FTS_SCRATCH_ROWS = 200_000
QUERY_MEMORY_BYTES = 1 << 30
MEMORY_VARIABLE = "OMNIGRAPH_QUERY_MEMORY_BYTES"

_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """The settings of languages.md 19 that running a read depends on. Beside the limits only those of search can make a
    difference to an answer: `ann_nprobes` (0: no cap) and `exact_nearest` to which rows an indexed `nearest` finds,
    `fts_scratch_rows` to whether a full-text index that is yet to be built is done without.

    `memory_bytes`: what one step of a query may make at once; the process's own to say. `fixed`: limits that no request can
    raise, only the environment of the process.
    """

    traversal: Traversal = "auto"
    traversal_work_limit: int = 100_000_000
    query_timeout_ms: int = 60_000
    max_result_rows: int = 1_000_000
    ann_nprobes: int = 20
    exact_nearest: bool = False
    fts_scratch_rows: int = FTS_SCRATCH_ROWS
    memory_bytes: int = QUERY_MEMORY_BYTES
    fixed: frozenset[str] = frozenset()

    @property
    def probes(self) -> int | None:
        """Of how many partitions a vector index looks at; 0: at all; None: it is not asked."""
        return None if self.exact_nearest else self.ann_nprobes

    def raising(self, name: str) -> str:
        """What someone does who needs more of a limit."""
        return f"have {variable_of(name)} raised where the graph is served" if name in self.fixed else f"raise {name}"


def variable_of(setting: str) -> str:
    """The variable that holds the process's default of a setting.

    >>> variable_of("max_result_rows")
    'OMNIGRAPH_MAX_RESULT_ROWS'
    """
    return f"OMNIGRAPH_{setting.upper()}"


def _no_time() -> None:
    """Nobody's time is limited."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What searching a text is held to: of how many rows at most an index is made in memory, and whom to ask now and then
    whether there is time left, who raises QueryTimeout.
    """

    scratch_rows: int = FTS_SCRATCH_ROWS
    check_time: Callable[[], None] = _no_time


class Spending:
    """The account of one query. `seconds` is a clock that never goes back, or None where time is not limited."""

    def __init__(self, settings: QuerySettings, seconds: Callable[[], float] | None = None) -> None:
        self.settings = settings
        self.work = 0
        self.products = 0  # of sparse matrices; no limit is about them
        self._seconds = seconds
        self._began = 0.0 if seconds is None else seconds()

    @property
    def of_search(self) -> SearchLimits:
        return SearchLimits(self.settings.fts_scratch_rows, self.check_time)

    def examine(self, edge_rows: int) -> None:
        """Count edge rows that are about to be examined, or rows that a cross product is about to make.

        Raises LimitExceeded (`traversal_work`) before they are, and QueryTimeout.
        """
        self.work += edge_rows
        limit = self.settings.traversal_work_limit
        if self.work > limit:
            raise LimitExceeded(
                f"the query would examine more than {limit:,} edge rows: bind an end more closely, lower the hop bounds,"
                f" or {self.settings.raising('traversal_work_limit')}",
                resource="traversal_work",
                limit=limit,
                actual=self.work,
            )
        self.check_time()

    def make(self, rows: int, numbers: int) -> None:
        """Count what a step is about to make: so many rows of so many numbers, and a place for each. Raises LimitExceeded
        (`query_memory`) before it is made.
        """
        limit, needed = self.settings.memory_bytes, rows * (numbers + 1) * _NUMBER_BYTES
        if needed > limit:
            raise out_of_memory(
                f"the query would make {rows:,} rows at once, of {needed:,} bytes, and may take {limit:,}",
                limit,
                needed,
            )

    def check_time(self) -> None:
        """Raises QueryTimeout if the query has run for longer than it may."""
        if self._seconds is None:
            return
        limit = self.settings.query_timeout_ms
        elapsed = int((self._seconds() - self._began) * 1000)
        if elapsed > limit:
            raise QueryTimeout(
                f"the query ran for longer than {limit:,} ms: narrow it or {self.settings.raising('query_timeout_ms')}",
                resource="query_timeout_ms",
                limit=limit,
                actual=elapsed,
            )

    def check_rows(self, rows: int) -> None:
        """Raises LimitExceeded (`max_result_rows`): an answer is never cut silently."""
        limit = self.settings.max_result_rows
        if rows > limit:
            raise LimitExceeded(
                f"the answer has {rows:,} rows, more than {limit:,}: add a limit or"
                f" {self.settings.raising('max_result_rows')}",
                resource="max_result_rows",
                limit=limit,
                actual=rows,
            )


def out_of_memory(what: str, limit: int, actual: int) -> LimitExceeded:
    """The refusal of a query that needs more memory than it may take, or than there is."""
    return LimitExceeded(
        f"{what}: bind an end more closely, lower the hop bounds, or have {MEMORY_VARIABLE} raised where the graph is opened",
        resource="query_memory",
        limit=limit,
        actual=actual,
    )
