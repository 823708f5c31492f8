"""What the steps of a run cost: rows that came out of each, its own time, and the edge rows that it examined.

Nothing is measured unless somebody asks for a profile. Knows neither what a step does nor how it is shown; steps are told
apart by identity, so a plan must live as long as its measures.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from omnigraph.lang.query.typed import Pattern
    from omnigraph.query.limits import Spending
    from omnigraph.query.plan import Plan

Part = Literal["step", "scan", "hop", "filter", "argument", "rank", "groups", "order", "limit", "columns"]
"""Of a plan step: all of it, the nodes that it scans for, what its hop leads to, the tests of that; of a block: what it is
asked for; of what follows the match block: its stages.
"""

Way = Literal["counted", "indexed", "reversed", "matrix"]
"""How a hop was walked: its ways counted and not followed, from neighbour to neighbour, the same from the nodes that pass at
the far end, or by products of sparse matrices.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """One node of the physical tree. `of`: the identity of its plan step or block; 0 after the match block."""

    of: int
    part: Part


def place_of(of: object, part: Part) -> Place:
    return Place(id(of), part)


def tail_place(part: Part) -> Place:
    return Place(0, part)


@dataclass(slots=True)
class Measure:
    """Sums over all times that a node ran. `seconds` and `examined` are its own, without those of what feeds it."""

    rows: int = 0
    seconds: float = 0.0
    examined: int = 0
    way: Way | None = None


class Watch(Protocol):
    """Who is told how a run goes."""

    def begins(self, spending: Spending) -> None:
        """Where edge rows are counted; before anything runs."""
        ...

    def planned(self, pattern: Pattern, plan: Plan) -> None:
        """The plan of a block."""
        ...

    def running(self, at: Place) -> AbstractContextManager[None]:
        """Around the work of a node, which may hold that of others."""
        ...

    def passed(self, at: Place, rows: int, way: Way | None = None) -> None:
        """Rows that came out of a node."""
        ...


class Unwatched:
    """Nobody asked."""

    _nothing = nullcontext()

    def begins(self, spending: Spending) -> None:
        del spending

    def planned(self, pattern: Pattern, plan: Plan) -> None:
        del pattern, plan

    def running(self, at: Place) -> AbstractContextManager[None]:
        del at
        return self._nothing

    def passed(self, at: Place, rows: int, way: Way | None = None) -> None:
        del at, rows, way


UNWATCHED = Unwatched()


class Measures:
    """The measures of one run, of one thread. `seconds` is a clock that never goes back."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.of: dict[Place, Measure] = {}
        self.plans: dict[int, Plan] = {}
        self._seconds = seconds
        self._spending: Spending | None = None
        self._open: list[Measure] = []
        self._since = 0.0
        self._examined = 0

    def begins(self, spending: Spending) -> None:
        self._spending = spending

    def planned(self, pattern: Pattern, plan: Plan) -> None:
        self.plans[id(pattern)] = plan

    @contextmanager
    def running(self, at: Place) -> Generator[None]:
        self._charge()
        self._open.append(self.of.setdefault(at, Measure()))
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def passed(self, at: Place, rows: int, way: Way | None = None) -> None:
        measure = self.of.setdefault(at, Measure())
        measure.rows += rows
        if measure.way != "matrix":  # a hop that is walked piece by piece is one of products if any piece was
            measure.way = way or measure.way

    def _charge(self) -> None:
        """Put what has been spent since the last change down to the innermost node that runs."""
        now = self._seconds()
        examined = 0 if self._spending is None else self._spending.work
        if self._open:
            self._open[-1].seconds += now - self._since
            self._open[-1].examined += examined - self._examined
        self._since, self._examined = now, examined
