"""One byte limit, parts counted once, the least recently used entry first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidRequest
from omnigraph.query.residency.budget import MemoryBudget, limit_from_environment


@dataclass
class Entry:
    sizes: dict[int, int] = field(default_factory=dict[int, int])

    def parts(self) -> Iterable[tuple[int, int]]:
        return self.sizes.items()


SIZES = st.dictionaries(st.integers(0, 5), st.just(0), max_size=3)
STEPS = st.lists(st.tuples(st.sampled_from(["put", "grow", "drop", "get"]), st.integers(0, 4), SIZES), max_size=30)


@given(steps=STEPS, limit=st.integers(0, 60))
def test_bytes_are_those_of_the_distinct_parts_and_stay_below_the_limit(
    steps: list[tuple[str, int, dict[int, int]]], limit: int
) -> None:
    budget = MemoryBudget(limit)
    kept: dict[int, Entry] = {}
    order: list[int] = []
    for verb, key, parts in steps:
        sized = {part: 10 + part for part in parts}
        match verb:
            case "put":
                kept[key] = Entry(sized)
                budget.put(key, kept[key], group=key % 2)
            case "grow":
                if budget.get(key) is None:
                    continue
                kept[key].sizes = {**kept[key].sizes, **sized}
                budget.recount(key, kept[key])
            case "drop":
                budget.drop([key])
                kept.pop(key, None)
            case _:
                budget.get(key)
        order = [other for other in order if other != key] + ([key] if key in kept else [])
        while _bytes(kept) > limit and len(kept) > 1:
            kept.pop(order.pop(0))
        assert budget.bytes == _bytes(kept)
        assert budget.bytes <= limit or len(kept) == 1
        for group in (0, 1):
            assert budget.held(group) == [other for other in order if other % 2 == group]


def _bytes(kept: dict[int, Entry]) -> int:
    parts: dict[int, int] = {}
    for entry in kept.values():
        parts.update(entry.sizes)
    return sum(parts.values())


def test_the_limit_is_a_number_of_bytes_or_a_quarter_of_the_memory() -> None:
    assert limit_from_environment({"OMNIGRAPH_CACHE_BYTES": "123"}) == 123
    assert limit_from_environment({}) > 1 << 20
    for text in ("many", "-1", "1.5", " 5"):
        with pytest.raises(InvalidRequest):
            limit_from_environment({"OMNIGRAPH_CACHE_BYTES": text})
