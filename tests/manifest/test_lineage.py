"""The log: window, segments, reading back, walking."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.samples import draft, first_version, follow, fork, head, nonce, put
from omnigraph.errors import StorageClass, StorageFailure
from omnigraph.manifest.builder import next_version
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.codec import digest
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.lineage import LogReader, SegmentToWrite, appended, log_length, truncated
from omnigraph.manifest.model import Commit, Lineage
from omnigraph.store.faults import Damage, FaultStore, Refuse, Rule
from omnigraph.store.memory import MemoryStore


def record(number: int, created_at: int | None = None) -> Commit:
    """A commit of a straight line."""
    parents = (CommitId("main", number, nonce(number - 1)),) if number else ()
    at = number * 10 if created_at is None else created_at
    return Commit(CommitId("main", number + 1, nonce(number)), parents, number, "mutation", "ann", at)


def straight(count: int) -> list[Commit]:
    return [record(number) for number in range(count)]


def store_of(segments: list[SegmentToWrite]) -> FaultStore:
    store = FaultStore(MemoryStore())
    for segment in segments:
        store.inner.put_fresh(segment.key, segment.data)
    return store


def grown(count: int, *steps: int) -> tuple[Lineage, FaultStore, list[Commit]]:
    """A straight log, appended to in steps of these sizes."""
    records, lineage, written, place = straight(count), Lineage(()), [], 0
    for step in [*steps, *[1] * count]:
        if place < count:
            lineage, segments = appended(lineage, records[place : place + step], branch="main", nonce=f"n{place}")
            written += segments
            place += step
    return lineage, store_of(written), records


def test_the_window_keeps_all_while_there_are_fewer_than_192() -> None:
    lineage, store, records = grown(191)
    assert lineage == Lineage(tuple(records))
    assert list(store.list("__lineage")) == []


def test_at_192_the_oldest_128_become_a_segment() -> None:
    lineage, store, records = grown(192)
    assert lineage.window == tuple(records[128:])
    (segment,) = lineage.segments
    assert segment.name == "__lineage/main/0-127-n191.json"
    assert (segment.records, segment.generations, segment.created) == (128, (0, 127), (0, 1270))
    assert segment.sha256 == digest(store.read(segment.name).data)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 900), st.lists(st.integers(1, 300), max_size=6))
def test_the_log_is_the_records_in_order_whatever_the_steps(count: int, steps: list[int]) -> None:
    lineage, store, records = grown(count, *steps)
    assert min(count, 64) <= len(lineage.window) <= 191
    assert all(segment.records == 128 for segment in lineage.segments)
    assert log_length(lineage) == count
    reader = LogReader(store)
    assert reader.newest(lineage, 10_000) == tuple(records)
    assert list(reader.walk(lineage)) == records[::-1]


@pytest.mark.parametrize(("wanted", "read"), [(1, 0), (64, 0), (65, 1), (192, 1), (193, 2), (320, 2), (999, 2)])
def test_reading_back_m_records_costs_a_get_for_each_128_beyond_the_window(wanted: int, read: int) -> None:
    lineage, store, records = grown(320)
    assert len(lineage.window) == 64
    assert LogReader(store).newest(lineage, wanted) == tuple(records[-wanted:])
    assert store.count("read") == read


def test_a_segment_is_read_once() -> None:
    lineage, store, _ = grown(500)
    reader = LogReader(store)
    for _ in range(3):
        reader.newest(lineage, 500)
    assert store.count("read") == len(lineage.segments)


def test_what_is_kept_of_segments_is_bounded() -> None:
    lineage, store, records = grown(700)
    reader = LogReader(store, records_kept_max=256)
    assert reader.newest(lineage, 700) == tuple(records)
    assert reader.newest(lineage, 700) == tuple(records)
    assert store.count("read") > len(lineage.segments)
    only_one = LogReader(store, records_kept_max=1)
    assert only_one.segment(lineage.segments[0]) == only_one.segment(lineage.segments[0])


def test_files_are_no_part_of_the_log() -> None:
    commit = replace(record(0), files={"t": ("f",)})
    lineage, _ = appended(Lineage(()), [commit], branch="main", nonce="n")
    assert lineage.window == (record(0),)


def test_a_fork_shares_segments_by_reference_and_appends_under_its_own_name() -> None:
    lineage, _, _ = grown(200)
    forked = Lineage(lineage.window, lineage.segments)
    more = [record(number) for number in range(200, 330)]
    longer, written = appended(forked, more, branch="Side", nonce="s")
    assert longer.segments[0] == lineage.segments[0]
    assert [segment.key for segment in written] == ["__lineage/%53ide/128-255-s.json"]


def test_a_walk_can_begin_and_end_at_times_and_skips_segments_outside() -> None:
    lineage, store, records = grown(700)
    reader = LogReader(store)
    found = list(reader.walk(lineage, since=2_600, until=2_700))
    assert found == records[260:271][::-1]
    assert store.count("read") == 1
    assert list(LogReader(store).walk(lineage, since=10**9)) == []
    assert store.count("read") == 1
    assert list(reader.walk(lineage, until=-1)) == []


def test_a_walk_reads_only_as_far_as_it_is_followed() -> None:
    lineage, store, records = grown(700)
    walk = LogReader(store).walk(lineage)
    assert [next(walk) for _ in range(len(lineage.window) + 1)][-1] == records[-len(lineage.window) - 1]
    assert store.count("read") == 1


def test_a_commit_is_found_wherever_it_is_and_a_stranger_nowhere() -> None:
    lineage, store, records = grown(450)
    reader = LogReader(store)
    for wanted in (0, 127, 128, 300, 449):
        assert reader.find(lineage, records[wanted].id) == records[wanted]
    assert not reader.contains(lineage, record(451).id)


def test_an_attempt_is_looked_for_only_where_its_generation_and_time_fit() -> None:
    lineage, store, _ = grown(700)
    stranger = replace(record(650), id=CommitId("main", 651, nonce(9)))
    assert not LogReader(store).contains(lineage, stranger.id, like=stranger)
    assert store.count("read") == 0
    old = record(200)
    assert LogReader(store).contains(lineage, old.id, like=old)
    assert store.count("read") == 1


def test_records_by_id_are_read_as_far_back_as_they_are_asked_for() -> None:
    lineage, store, records = grown(3_000)
    by_id = LogReader(store).records_of(lineage)
    assert by_id(records[2_999].id) == records[2_999]
    assert store.count("read") == 0
    assert by_id(records[-200].id) == records[-200]
    assert store.count("read") <= 2
    assert by_id(records[0].id) == records[0]
    assert store.count("read") == len(lineage.segments)
    with pytest.raises(KeyError):
        by_id(record(4_000).id)


def test_a_log_can_be_cut_at_a_commit_of_its_window() -> None:
    lineage, _, records = grown(200)
    assert truncated(lineage, records[190].id) == Lineage(tuple(records[128:191]), lineage.segments)
    with pytest.raises(ValueError, match="does not hold"):
        truncated(lineage, records[3].id)


def test_a_damaged_or_missing_segment_is_a_typed_error() -> None:
    lineage, store, _ = grown(200)
    damages = (Damage("flipped"), Damage("half"), Damage("empty"))
    for damage in damages:
        store.add(Rule(damage, verb="read"))
        with pytest.raises(StorageFailure, match="part of the history") as caught:
            LogReader(store).newest(lineage, 200)
        assert caught.value.cls is StorageClass.CORRUPT
        assert "backup" in caught.value.message
        assert "__lineage" not in caught.value.message
    store.add(Rule(Refuse(StorageClass.NOT_FOUND), verb="read"))
    with pytest.raises(StorageFailure) as caught:
        LogReader(store).newest(lineage, 200)
    assert caught.value.cls is StorageClass.NOT_FOUND


def test_a_segment_that_was_exchanged_is_not_believed() -> None:
    lineage, store, _ = grown(330)
    first, second = lineage.segments
    store.inner.delete([second.name])
    store.inner.put_fresh(second.name, store.inner.read(first.name).data)
    with pytest.raises(StorageFailure, match="digest"):
        LogReader(store).segment(second)


def test_segments_of_a_real_chain_are_written_before_the_version_that_names_them() -> None:
    store = MemoryStore()
    base: KnownHead = head(first_version())
    put(store, first_version())
    for number in range(1, 400):
        built = follow(base, number, now_us=number)
        for segment in built.segments:
            assert segment.key in {ref.name for ref in built.manifest.lineage.segments}
        put(store, built)
        base = head(built)
    records = LogReader(store).newest(base.manifest.lineage, 1_000)
    assert [each.id.version for each in records] == list(range(1, 401))
    side = head(fork("side", base.manifest))
    assert side.manifest.lineage == base.manifest.lineage
    one_go = next_version(side, [draft(900 + n) for n in range(300)], now_us=0, nonce="z" * 16)
    assert len({segment.key for segment in one_go.segments}) == len(one_go.segments) >= 2
    assert json.loads(one_go.segments[0].data)["format"] == 1
