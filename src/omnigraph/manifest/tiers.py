"""Joining log segments, so that a manifest names few of them however long the history (history.md 2.3, L5).

Upkeep does this, not writers. Where 32 segments of one size stand next to each other they become one with the same
records; then 32 of those become one, and so on. The old segments stay: manifests below still name them.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.manifest.codec import segment_to_bytes
from omnigraph.manifest.keys import segment_key
from omnigraph.manifest.lineage import LogReader, SegmentToWrite, described
from omnigraph.manifest.model import Lineage, SegmentRef

JOINED_AT_A_TIME = 32


def joinable(segments: Sequence[SegmentRef]) -> bool:
    """Whether 32 segments of one size stand next to each other."""
    return _first_run(segments) is not None


def joined(
    history: LogReader, lineage: Lineage, *, branch: str, nonce: str
) -> tuple[Lineage, tuple[SegmentToWrite, ...]]:
    """The same log with every such run joined, and the segments to store before a manifest names them.

    `branch` and the fresh `nonce` name the new objects. Reads the segments that are joined; raises StorageFailure
    (phase `read`) or FormatMismatch.
    """
    segments = list(lineage.segments)
    to_write: dict[str, SegmentToWrite] = {}
    while (first := _first_run(segments)) is not None:
        run = segments[first : first + JOINED_AT_A_TIME]
        records = tuple(record for part in history.segments(run) for record in part)
        start = sum(segment.records for segment in segments[:first])
        key = segment_key(branch, start, start + len(records) - 1, nonce)
        data = segment_to_bytes(records)
        segments[first : first + JOINED_AT_A_TIME] = [described(key, data, records)]
        history.keep(segments[first], records)
        to_write[key] = SegmentToWrite(key, data)
    named = {segment.name for segment in segments}
    return Lineage(lineage.window, tuple(segments)), tuple(part for key, part in to_write.items() if key in named)


def _first_run(segments: Sequence[SegmentRef]) -> int | None:
    """Where the first 32 neighbours of one size begin."""
    length = 0
    for place, segment in enumerate(segments):
        length = length + 1 if place and segment.records == segments[place - 1].records else 1
        if length == JOINED_AT_A_TIME:
            return place - JOINED_AT_A_TIME + 1
    return None
