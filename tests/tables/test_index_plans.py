"""What of an index is built when (history.md 16.2, 16.3): plans over fragment lists, no table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.tables.coverage import ColumnIndex, Segment, coverage
from omnigraph.tables.index_plans import (
    SEGMENTS_MAX,
    UNCOVERED_ROWS_MAX,
    Waiting,
    Wanted,
    Work,
    planned,
    vector_sort,
)

TEXT = Wanted("about", "text")
VECTOR = Wanted("place", "vector", 4)


def index(*segments: set[int], expected: bool = True, name: str = TEXT.name) -> ColumnIndex:
    made = (Segment(f"u{n}", frozenset(each), n, 1) for n, each in enumerate(segments))
    return ColumnIndex(name, "Inverted", (1,), tuple(made), expected)


def work(found: object) -> Work:
    assert isinstance(found, Work)
    return found


def test_an_index_that_is_declared_and_not_there_is_built_over_everything() -> None:
    made = work(planned(TEXT, None, {0: 5, 3: 2}))
    assert (made.fragments, made.rows, made.exists, made.segments_before, made.segments_after) == (
        (0, 3),
        7,
        False,
        0,
        1,
    )


def test_a_table_without_rows_has_nothing_to_index() -> None:
    assert planned(TEXT, None, {}) == Waiting("about", "unbuildable")
    assert planned(VECTOR, None, {0: 0}, vector_bytes_least=0) == Waiting("place", "unbuildable")


def test_an_index_that_covers_everything_is_left_alone() -> None:
    assert planned(TEXT, index({0}, {1}), {0: 5, 1: 5}) is None


@pytest.mark.parametrize(
    ("covered", "uncovered", "built"),
    [
        (1_000_000, UNCOVERED_ROWS_MAX, False),
        (1_000_000, UNCOVERED_ROWS_MAX + 1, True),
        (95, 5, False),
        (94, 6, True),
    ],
)
def test_a_further_segment_is_built_over_many_rows_or_a_great_share(covered: int, uncovered: int, built: bool) -> None:
    found = planned(TEXT, index({0}), {0: covered, 1: uncovered})
    if not built:
        assert found == Waiting("about", "few_rows")
        return
    made = work(found)
    assert (made.fragments, made.rows, made.replaces, made.segments_after) == ((1,), uncovered, (), 2)


def test_segments_whose_rows_are_all_gone_go_with_the_next_build() -> None:
    gone = index({0}, {1})
    made = work(planned(TEXT, gone, {1: 50, 2: 50}))
    assert (made.fragments, made.replaces, made.segments_after) == ((2,), gone.segments[:1], 2)
    made = work(planned(TEXT, gone, {2: 50, 3: 50}))
    assert (made.fragments, made.replaces, made.segments_after) == ((2, 3), gone.segments, 1)


def test_the_ninth_segment_is_joined_with_the_smallest_until_four_are_left() -> None:
    before = index(*({n} for n in range(SEGMENTS_MAX)))
    live = {n: 100 * (n + 1) for n in range(SEGMENTS_MAX)} | {99: 1_000}
    made = work(planned(TEXT, before, live))
    assert made.fragments == (99,)
    assert [each.uuid for each in made.joins] == ["u0", "u1", "u2", "u3", "u4"]
    assert made.replaces == made.joins
    assert made.segments_after == 4


@pytest.mark.parametrize("more", [{}, {99: 9_000}])
def test_vector_segments_are_not_joined_but_trained_anew_as_a_whole(more: dict[int, int]) -> None:
    segments = SEGMENTS_MAX if more else SEGMENTS_MAX + 1
    before = index(*({n} for n in range(segments)), name=VECTOR.name)
    live = dict.fromkeys(range(segments), 5_000) | {0: 100_000} | more
    made = work(planned(VECTOR, before, live, vector_bytes_least=0))
    assert (made.fragments, made.joins, made.segments_after) == (tuple(live), (), 1)


def test_coverage_tells_rows_and_fragments() -> None:
    held = coverage(index({0, 1}, {2}, {7}), {0: 10, 2: 5, 3: 0, 4: 6})
    assert ([each.uuid for each in held.used], held.rows_by_segment) == (["u0", "u1"], (10, 5))
    assert (held.uncovered, held.rows_covered, held.rows_uncovered) == ((4,), 15, 6)


def test_a_full_run_makes_one_segment_unless_that_is_what_there_is_and_nothing_changed_since() -> None:
    live = {0: 1_000, 1: 1}
    assert work(planned(TEXT, index({0}), live, full=True)).fragments == (0, 1)
    assert work(planned(TEXT, index({0}, {1}), live, full=True, fresh=True)).segments_after == 1
    assert work(planned(TEXT, index({0, 1}), live, full=True)).segments_after == 1
    assert planned(TEXT, index({0, 1}), live, full=True, fresh=True) is None


def test_an_index_that_means_something_else_is_built_anew_as_a_whole() -> None:
    other = index({0}, expected=False)
    made = work(planned(TEXT, other, {0: 9, 1: 1}))
    assert (made.fragments, made.replaces, made.joins) == ((0, 1), other.segments, ())


def test_a_vector_index_is_not_built_where_comparing_with_all_is_as_quick() -> None:
    assert planned(VECTOR, None, {0: 100}) == Waiting("place", "small")
    assert planned(VECTOR, None, {0: 100}, full=True) == Waiting("place", "small")
    assert planned(VECTOR, None, {0: 100}, vector_bytes_least=1_601) == Waiting("place", "small")
    assert work(planned(VECTOR, None, {0: 100}, vector_bytes_least=1_600)).fragments == (0,)


def test_a_vector_index_is_trained_anew_at_four_times_the_rows_of_its_training() -> None:
    before = index({0}, name=VECTOR.name)
    assert work(planned(VECTOR, before, {0: 100, 1: 299}, vector_bytes_least=0)).fragments == (1,)
    assert work(planned(VECTOR, before, {0: 100, 1: 300}, vector_bytes_least=0)).fragments == (0, 1)


@pytest.mark.parametrize(
    ("dimension", "vectors", "sort", "sub_vectors"),
    [
        (768, 65_536, "IVF_FLAT", None),
        (768, 65_537, "IVF_PQ", 96),
        (64, 100_000, "IVF_PQ", 8),
        (32, 100_000, "IVF_PQ", 8),
        (30, 100_000, "IVF_SQ", None),
        (100, 100_000, "IVF_SQ", None),
    ],
)
def test_the_sort_of_a_vector_index_follows_from_numbers(
    dimension: int, vectors: int, sort: str, sub_vectors: int | None
) -> None:
    made = vector_sort(dimension, vectors)
    assert (made.sort, made.sub_vectors) == (sort, sub_vectors)


def test_partitions_are_the_root_of_the_vectors_as_far_as_the_library_can_train_them() -> None:
    assert [vector_sort(8, n).partitions for n in (1, 255, 1_024, 65_536, 1_000_000)] == [1, 1, 4, 256, 1_000]


@given(
    live=st.dictionaries(st.integers(0, 12), st.integers(0, 20_000), max_size=12),
    parts=st.lists(st.sets(st.integers(0, 12), min_size=1), max_size=12),
    full=st.booleans(),
    wanted=st.sampled_from([TEXT, VECTOR]),
)
def test_after_the_work_every_row_is_covered_once_and_segments_are_few(
    live: dict[int, int], parts: list[set[int]], full: bool, wanted: Wanted
) -> None:
    taken: set[int] = set()
    segments = [fresh for each in parts if (fresh := each - taken) and not taken.update(each)]
    before = index(*segments) if segments else None
    found = planned(wanted, before, live, full=full, vector_bytes_least=0)
    if not isinstance(found, Work):
        return
    former = () if before is None else before.segments
    kept = [each for each in former if each not in found.replaces]
    merged = set(found.fragments).union(*(each.fragments for each in found.joins))
    after = [*(each.fragments for each in kept), frozenset(merged)]
    held = [number for each in after for number in each if live.get(number)]
    assert sorted(held) == sorted(number for number, rows in live.items() if rows)
    assert len(after) == found.segments_after <= max(SEGMENTS_MAX, 1)
    assert not full or found.segments_after == 1
    assert wanted is TEXT or not found.joins
    if before is not None:
        assert planned(TEXT, replace(before, expected=False), live) == planned(
            TEXT, replace(before, expected=False), live, full=True
        )
