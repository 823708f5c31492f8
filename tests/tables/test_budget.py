"""One byte limit, parts counted once, the least recently used entry first."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidRequest
from omnigraph.tables.budget import MemoryBudget, Shelf, limit_from_environment


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


def test_shelves_of_one_budget_have_keys_of_their_own_and_share_its_limit() -> None:
    budget = MemoryBudget(10)
    one: Shelf[str, list[int]] = Shelf(budget)
    other: Shelf[str, list[int]] = Shelf(budget)
    values = [[n] for n in range(4)]
    one.put("a", values[0], 4)
    other.put("a", values[1], 4)
    assert (one.get("a"), other.get("a")) == (values[0], values[1])
    one.put("b", values[2], 4)
    assert (one.get("a"), other.get("a"), one.get("b")) == (None, values[1], values[2])
    one.put("b", values[3], 5)
    assert (one.get("b"), budget.bytes) == (values[3], 9)
    one.put("c", values[3], 5)
    assert (len(one), budget.bytes) == (2, 9), "a part that two values share is counted once"
    one.clear()
    assert (len(one), len(other), budget.bytes) == (0, 1, 4)
    other.drop(["a", "nowhere"])
    assert budget.bytes == 0


def test_what_stands_on_a_shelf_goes_with_it() -> None:
    budget = MemoryBudget(10)
    shelf: Shelf[str, object] = Shelf(budget)
    shelf.put("a", object(), 4)
    del shelf
    gc.collect()
    assert budget.bytes == 0


def test_a_shelf_may_go_in_the_middle_of_anything_that_its_budget_does() -> None:
    """The collector runs whenever it likes, on a thread that may have the budget's lock."""
    budget = MemoryBudget(10)
    shelves: list[Shelf[str, object]] = [Shelf(budget)]
    shelves[0].put("a", object(), 4)

    class Key:
        def __hash__(self) -> int:
            shelves.clear()
            gc.collect()
            return 1

    done = threading.Thread(target=lambda: budget.get(Key()), daemon=True)
    done.start()
    done.join(20)
    assert not done.is_alive()
    assert budget.bytes == 0
    assert budget.groups() == []
