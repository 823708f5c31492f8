"""The log of a branch: a window of the newest records in the manifest, older ones in immutable segments.

The log is the head commit and all its ancestors, each once, parents before children (history.md 2.3, L1 to L6). It is
append-only, so `segments + window` of any version is a run that later versions only continue; a fork shares the
segments by reference. A segment is written before the manifest that names it; if that publication fails it is garbage.

The functions that only build are pure. `LogReader` is what reads segments: in parallel, and kept, since they never
change. Nothing here knows what a commit did.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from omnigraph.manifest.codec import digest, segment_from_bytes, segment_to_bytes
from omnigraph.manifest.failures import reading
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import segment_key
from omnigraph.manifest.model import Commit, Lineage, SegmentRef
from omnigraph.side_by_side import side_by_side
from omnigraph.store.base import Store

WINDOW_MIN = 64
"""A manifest carries at least so many of the newest records (all, while there are fewer)."""

SEGMENT_RECORDS = 128
"""So many records leave the window together."""

WINDOW_LIMIT = WINDOW_MIN + SEGMENT_RECORDS
"""When so many records are outside segments, the oldest 128 of them become one."""

_READS_AT_A_TIME = 32


@dataclass(frozen=True, slots=True)
class SegmentToWrite:
    """A segment that must be stored (a fresh put) before the manifest that names it is published."""

    key: str
    data: bytes


def appended(
    lineage: Lineage, new_records: Sequence[Commit], *, branch: str, nonce: str
) -> tuple[Lineage, tuple[SegmentToWrite, ...]]:
    """The log with these records at its end, and the segments to store first.

    `branch` and `nonce` name the segment objects; the nonce must be fresh, as no one else may ever write these keys.
    """
    window = lineage.window + tuple(replace(record, files={}) if record.files else record for record in new_records)
    segments = list(lineage.segments)
    to_write: list[SegmentToWrite] = []
    first = sum(segment.records for segment in segments)
    while len(window) >= WINDOW_LIMIT:
        run, window = window[:SEGMENT_RECORDS], window[SEGMENT_RECORDS:]
        data = segment_to_bytes(run)
        key = segment_key(branch, first, first + len(run) - 1, nonce)
        segments.append(described(key, data, run))
        to_write.append(SegmentToWrite(key, data))
        first += len(run)
    return Lineage(window, tuple(segments)), tuple(to_write)


def log_length(lineage: Lineage) -> int:
    """How many commits the log holds."""
    return len(lineage.window) + sum(segment.records for segment in lineage.segments)


def truncated(lineage: Lineage, last: CommitId) -> Lineage:
    """The log as it was when `last` was its newest commit, for a commit inside the window.

    Raises ValueError if the window lacks it. The window may become shorter than 64 records: a run of the log it stays.
    """
    for index in range(len(lineage.window) - 1, -1, -1):
        if lineage.window[index].id == last:
            return Lineage(lineage.window[: index + 1], lineage.segments)
    raise ValueError(f"the window does not hold {last}")


class LogReader:
    """Reads segments: verified against their digests, several at a time, the last used ones kept in memory.

    Thread-safe. Every method may raise StorageFailure (phase `read`) or FormatMismatch.
    """

    def __init__(self, store: Store, *, records_kept_max: int = 16_384) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[Commit, ...]] = OrderedDict()
        self._kept_records = 0
        self._kept_records_max = records_kept_max
        self._lock = Lock()

    def segment(self, ref: SegmentRef) -> tuple[Commit, ...]:
        """The records of one segment, oldest first."""
        with self._lock:
            records = self._kept.get(ref.sha256)
            if records is not None:
                self._kept.move_to_end(ref.sha256)
                return records
        with reading("a part of the history"):
            data = self._store.read(ref.name).data
        records = segment_from_bytes(data, ref)
        self.keep(ref, records)
        return records

    def keep(self, ref: SegmentRef, records: tuple[Commit, ...]) -> None:
        """Remember the records of a segment that is about to be stored."""
        with self._lock:
            if ref.sha256 not in self._kept:
                self._kept[ref.sha256] = records
                self._kept_records += len(records)
            while self._kept_records > self._kept_records_max and len(self._kept) > 1:
                self._kept_records -= len(self._kept.popitem(last=False)[1])

    def segments(self, refs: Sequence[SegmentRef]) -> list[tuple[Commit, ...]]:
        """The records of several segments, in the order asked, read in parallel."""
        with self._lock:
            missing = sum(ref.sha256 not in self._kept for ref in refs)
        return side_by_side(self.segment, refs, at_most=min(max(missing, 1), _READS_AT_A_TIME), name="lineage")

    def newest(self, lineage: Lineage, count: int) -> tuple[Commit, ...]:
        """The newest `count` records (all, if there are fewer), oldest of them first."""
        missing = count - len(lineage.window)
        wanted = 0
        while missing > 0 and wanted < len(lineage.segments):
            wanted += 1
            missing -= lineage.segments[-wanted].records
        older = self.segments(lineage.segments[len(lineage.segments) - wanted :]) if wanted else []
        records = tuple(record for run in older for record in run) + lineage.window
        return records[max(0, len(records) - count) :]

    def walk(self, lineage: Lineage, *, since: int | None = None, until: int | None = None) -> Iterator[Commit]:
        """The log from its newest record back, those with `since <= created_at <= until`. Segments that can't hold
        one are not read; the others are read as the iterator reaches them.
        """
        for record in reversed(lineage.window):
            if _within(record.created_at, since, until):
                yield record
        for segment in reversed(lineage.segments):
            oldest, newest = segment.created
            if (since is not None and newest < since) or (until is not None and oldest > until):
                continue
            for record in reversed(self.segment(segment)):
                if _within(record.created_at, since, until):
                    yield record

    def find(self, lineage: Lineage, commit_id: CommitId, *, like: Commit | None = None) -> Commit | None:
        """The record of a commit, or None if the log does not hold it.

        `like` is what the commit would look like (an attempt of one's own): segments that can't hold it are not read.
        """
        for record in reversed(lineage.window):
            if record.id == commit_id:
                return record
        for segment in reversed(lineage.segments):
            if like is not None and not _may_hold(segment, like):
                continue
            for record in reversed(self.segment(segment)):
                if record.id == commit_id:
                    return record
        return None

    def contains(self, lineage: Lineage, commit_id: CommitId, *, like: Commit | None = None) -> bool:
        """Whether the log holds this commit."""
        return self.find(lineage, commit_id, like=like) is not None

    def records_of(self, *lineages: Lineage) -> Callable[[CommitId], Commit]:
        """A look-up of records by id over one or more logs, for `ancestry`. It reads segments, newest first, only as
        far back as it is asked; ever more at a time, so that a far look-up takes few rounds.

        The look-up raises KeyError for a commit that none of the logs holds.
        """
        return _Records(self, lineages).record


class _Records:
    """Records by id of several logs, read from their newest end. For one thread."""

    def __init__(self, reader: LogReader, lineages: Sequence[Lineage]) -> None:
        self._reader = reader
        self._known = {record.id: record for lineage in lineages for record in lineage.window}
        by_digest = {segment.sha256: segment for lineage in lineages for segment in lineage.segments}
        self._unread = sorted(by_digest.values(), key=lambda segment: segment.generations)
        self._step = 1

    def record(self, commit_id: CommitId) -> Commit:
        while commit_id not in self._known:
            if not self._unread:
                raise KeyError(commit_id)
            batch, self._unread = self._unread[-self._step :], self._unread[: -self._step]
            for run in self._reader.segments(batch):
                self._known.update((record.id, record) for record in run)
            self._step = min(2 * self._step, _READS_AT_A_TIME)
        return self._known[commit_id]


def described(key: str, data: bytes, run: Sequence[Commit]) -> SegmentRef:
    """What a manifest says of a segment with these bytes and records."""
    generations = [record.generation for record in run]
    created = [record.created_at for record in run]
    return SegmentRef(
        name=key,
        sha256=digest(data),
        records=len(run),
        generations=(min(generations), max(generations)),
        created=(min(created), max(created)),
    )


def _within(created_at: int, since: int | None, until: int | None) -> bool:
    return (since is None or created_at >= since) and (until is None or created_at <= until)


def _may_hold(segment: SegmentRef, like: Commit) -> bool:
    return (
        segment.generations[0] <= like.generation <= segment.generations[1]
        and segment.created[0] <= like.created_at <= segment.created[1]
    )
