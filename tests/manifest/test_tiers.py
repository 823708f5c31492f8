"""Joining segments: the log stays what it was, and a manifest names few objects."""

from __future__ import annotations

import math

import pytest

from manifest.samples import draft, first_version, head, put
from omnigraph.manifest.builder import next_version
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.codec import to_bytes
from omnigraph.manifest.lineage import LogReader, log_length
from omnigraph.manifest.model import Lineage, SegmentRef
from omnigraph.manifest.tiers import joinable, joined
from omnigraph.store.faults import FaultStore
from omnigraph.store.memory import MemoryStore


def grown(store: MemoryStore, commits: int) -> KnownHead:
    put(store, first_version())
    base = head(first_version())
    for start in range(1, commits, 1_000):
        drafts = [draft(number) for number in range(start, min(start + 1_000, commits))]
        built = next_version(base, drafts, now_us=start, nonce=f"n{start}")
        put(store, built)
        base = head(built)
    return base


def ref(records: int) -> SegmentRef:
    return SegmentRef("x", "y", records, (0, 0), (0, 0))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([128] * 31, False), ([128] * 32, True), ([128] * 31 + [4096] + [128] * 31, False), ([4096, *[128] * 32], True)],
)
def test_32_neighbours_of_one_size_can_be_joined(sizes: list[int], expected: bool) -> None:
    assert joinable([ref(size) for size in sizes]) is expected


def test_joining_keeps_every_record_in_its_place_and_writers_go_on_from_there() -> None:
    store = MemoryStore()
    base = grown(store, 9_000)
    before = base.manifest.lineage
    history = LogReader(store)
    all_records = history.newest(before, 10_000)
    lineage, to_write = joined(history, before, branch="main", nonce="j")
    assert [segment.records for segment in lineage.segments[:3]] == [4096, 4096, 128]
    assert len(lineage.segments) <= 32 * (1 + math.log(9_000 / 128, 32))
    assert log_length(lineage) == log_length(before) == 9_000
    assert [part.key for part in to_write] == ["__lineage/main/0-4095-j.json", "__lineage/main/4096-8191-j.json"]
    upkeep = next_version(base, [draft(9_001, kind="optimize")], now_us=0, nonce="u", log=lineage)
    for part in to_write:
        store.put_fresh(part.key, part.data)
    put(store, upkeep)
    assert len(to_bytes(upkeep.manifest)) < len(to_bytes(base.manifest))
    fresh = LogReader(FaultStore(store))
    assert fresh.newest(upkeep.manifest.lineage, 20_000) == (*all_records, *upkeep.manifest.commits)
    assert fresh.newest(before, 20_000) == all_records  # versions below read as ever


def test_only_segments_that_are_named_in_the_end_are_to_be_written() -> None:
    store = MemoryStore()
    base = grown(store, 5_000)
    history = LogReader(store, records_kept_max=1_000_000)
    lineage = base.manifest.lineage
    small = lineage.segments[:32]
    longer = Lineage(lineage.window, small * 32)  # as long as a million commits, of which each 4,096 are the same
    again, to_write = joined(history, longer, branch="main", nonce="j")
    assert [segment.records for segment in again.segments] == [32 * 4096]
    assert [part.key for part in to_write] == ["__lineage/main/0-131071-j.json"]


def test_a_log_that_is_not_the_bases_is_refused() -> None:
    base = head(first_version())
    other = Lineage(base.manifest.lineage.window, (ref(128),))
    with pytest.raises(ValueError, match="not the log of the base"):
        next_version(base, [draft(1)], now_us=0, nonce="n", log=other)
