"""What search indexes a table version has, and how much of the table they cover: descriptions as values.

    described(dataset)["about_terms"].covers([0, 1, 2])

Read of the version's own metadata; no index file and no row is looked at. Which index is worth building is for
`index_plans` to say, what one answers for `searching`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import lance

from omnigraph.tables.analysis import TERMS

Kind = Literal["text", "vector"]

_NAMES: Final[Mapping[Kind, str]] = {"text": "_terms", "vector": "_vectors"}

_REST: Final[Mapping[str, Any]] = {
    "custom_stop_words": None,
    "split_identifiers": False,
    "split_on_numerics": False,
    "preserve_original": False,
    "index_operators": False,
    "document_granularity": "row",
}
"""What a text index may have recorded beside `TERMS`, and must not have otherwise."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an index that was built in one go, over these fragments as they were at that version. Some may be gone."""

    uuid: str
    fragments: frozenset[int]
    built_on: int
    index_version: int


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """One index of one column. `sort`: what the library calls it. `expected`: it means what this program means by such an
    index; a text index with other settings of its analyzer does not, and is not used.
    """

    name: str
    sort: str
    fields: tuple[int, ...]
    segments: tuple[Segment, ...]
    expected: bool

    @property
    def fragments(self) -> frozenset[int]:
        return frozenset[int]().union(*(each.fragments for each in self.segments))


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a table's live rows an index covers. `uncovered` are fragments that have a live row. `rows_by_segment`: as
    the segments are ordered; `used` are those with a fragment that is still there.
    """

    used: tuple[Segment, ...]
    rows_by_segment: tuple[int, ...]
    uncovered: tuple[int, ...]
    rows_covered: int
    rows_uncovered: int


def coverage(index: ColumnIndex, live: Mapping[int, int]) -> Coverage:
    """`live`: the live rows of each fragment of the version."""
    fragments = index.fragments
    used = tuple(each for each in index.segments if each.fragments & live.keys())
    uncovered = tuple(number for number in sorted(live) if number not in fragments and live[number])
    rows = sum(live[number] for number in uncovered)
    by_segment = tuple(sum(live.get(number, 0) for number in each.fragments) for each in used)
    return Coverage(used, by_segment, uncovered, sum(live.values()) - rows, rows)


def search_index_name(column: str, kind: Kind) -> str:
    """The name under which a column's index for search is kept."""
    return f"{column}{_NAMES[kind]}"


def described(dataset: lance.LanceDataset) -> dict[str, ColumnIndex]:
    """The indexes of a version by name. Raises what the library raises."""
    return {each.name: _described(each) for each in dataset.describe_indices()}


def _described(index: Any) -> ColumnIndex:
    segments = tuple(
        Segment(str(each.uuid), frozenset(each.fragment_ids), each.dataset_version_at_last_update, each.index_version)
        for each in index.segments
    )
    return ColumnIndex(index.name, index.index_type, tuple(index.fields), segments, _expected(index))


def _expected(index: Any) -> bool:
    """Whether an index was made with the settings that this program makes such an index with."""
    sort = str(index.index_type).upper()
    if sort == "INVERTED":
        recorded: Mapping[str, Any] = index.details
        as_wanted = all(recorded.get(name) == value for name, value in TERMS.items())
        return as_wanted and all(recorded.get(name, value) == value for name, value in _REST.items())
    return not sort.startswith("IVF") or index.details.get("metric_type") == "L2"
