"""The parameters of a read whose values the check can't know and a search or rank is particular about (languages.md 12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.lang.query.search import SEARCH_EDITS_MAX
from omnigraph.lang.query.typed import Bm25, Expr, Fused, Nearest, Param, Pattern, ReadQuery, TextSearch


@dataclass(frozen=True, slots=True)
class SearchOperand:
    """A parameter by name, in a role that a null can't have. Integers lie between `low` and `high`; None is open."""

    param: str
    role: str
    low: int | None = None
    high: int | None = None

    def admits(self, value: int) -> bool:
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def wanted(self) -> str:
        """The values it takes, in words."""
        if self.low is None:
            return "a value that is not null"
        if self.high is None:
            return f"an integer of at least {self.low}"
        return f"an integer from {self.low} to {self.high}"


def search_operands(query: ReadQuery) -> Iterator[SearchOperand]:
    """The edits of each `fuzzy`, then what the first order key ranks by. What a predicate looks for may be null."""
    yield from _of_pattern(query.pattern)
    if query.order:
        yield from _of_rank(query.order[0].expr)


def _of_pattern(pattern: Pattern) -> Iterator[SearchOperand]:
    for each in pattern.filters:
        if isinstance(each, TextSearch) and isinstance(each.edits, Param):
            yield SearchOperand(each.edits.name, "the number of edits of `fuzzy`", 0, SEARCH_EDITS_MAX)
    for block in pattern.blocks:
        yield from _of_pattern(block.pattern)


def _of_rank(rank: Expr) -> Iterator[SearchOperand]:
    match rank:
        case Nearest(query=Param(name=name)):
            yield SearchOperand(name, "what `nearest` measures from")
        case Bm25(query=Param(name=name)):
            yield SearchOperand(name, "what `bm25` looks for")
        case Fused():
            yield from _of_rank(rank.first)
            yield from _of_rank(rank.second)
            if isinstance(rank.k, Param):
                yield SearchOperand(rank.k.name, "the `k` of `rrf`", 1)
        case _:
            pass
