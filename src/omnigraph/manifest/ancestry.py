"""Which commits two heads have in common, and what each has alone (history.md 2.5).

Pure: records come from a look-up that the caller passes in. A descendant always has the greater generation, so commits
are taken greatest first and each is seen once, with all its marks. Second parents count like first ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from omnigraph.manifest.ids import CommitId

_LEFT, _RIGHT, _OLD = 1, 2, 4
_COMMON = _LEFT | _RIGHT


class Ancestor(Protocol):
    """What this module needs of a commit record."""

    @property
    def generation(self) -> int: ...
    @property
    def created_at(self) -> int: ...
    @property
    def parents(self) -> tuple[CommitId, ...]: ...


@dataclass(frozen=True, slots=True)
class Ancestry:
    """How two commits are related. Every commit counts as its own ancestor."""

    bases: tuple[CommitId, ...]  # common ancestors that are no proper ancestor of another one; newest first
    left_only: frozenset[CommitId]  # ancestors of the left commit that the right one lacks
    right_only: frozenset[CommitId]


def best(a: CommitId, b: CommitId, record: Callable[[CommitId], Ancestor]) -> tuple[CommitId, ...]:
    """The best common ancestors of a and b, by (generation, created_at, id) descending.

    `record` gives the record of a commit and raises what it likes if there is none.
    """
    return compared(a, b, record).bases


def compared(left: CommitId, right: CommitId, record: Callable[[CommitId], Ancestor]) -> Ancestry:
    """The best common ancestors of two commits, and what each of them alone has behind it.

    Looks up the commits whose generation is at least that of the lowest base, both sides, and no others below.
    """
    mark: dict[CommitId, int] = {left: _LEFT}
    mark[right] = mark.get(right, 0) | _RIGHT  # left == right: both marks at once
    heap: list[tuple[int, int, _Descending, CommitId]] = []
    waiting: set[CommitId] = set()
    young = 0  # commits that wait without the OLD mark: the loop's end, kept as a number

    def put(commit: CommitId) -> None:
        found = record(commit)
        heapq.heappush(heap, (-found.generation, -found.created_at, _Descending(str(commit)), commit))
        waiting.add(commit)

    for commit in {left: None, right: None}:
        put(commit)
        young += 1
    bases: list[CommitId] = []
    left_only: set[CommitId] = set()
    right_only: set[CommitId] = set()
    while young:
        commit = heapq.heappop(heap)[3]
        waiting.discard(commit)
        give = mark[commit]
        if not give & _OLD:
            young -= 1
            if give & _COMMON == _COMMON:
                bases.append(commit)
            else:
                (left_only if give & _LEFT else right_only).add(commit)
        if give & _COMMON == _COMMON:
            give |= _OLD  # everything below is common, but not best
            if not young:
                break  # nothing is left to tell apart: the records below need not be read
        for parent in record(commit).parents:
            before = mark.get(parent, 0)
            mark[parent] = before | give
            if parent not in waiting:
                put(parent)
                young += not mark[parent] & _OLD
            elif not before & _OLD and give & _OLD:
                young -= 1
    return Ancestry(tuple(bases), frozenset(left_only), frozenset(right_only))


class _Descending:
    """Text that sorts backwards, so that ties leave a heap greatest first."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __lt__(self, other: _Descending) -> bool:
        return self._text > other._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
