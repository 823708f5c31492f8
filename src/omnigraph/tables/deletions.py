"""Rows that go: deletion files for the fragments they lie in, and no others.

A removal is prepared on one pinned version and is right for that version only. Addresses that are not live there are a
mistake of the caller and refused, since a silent miss would double an id.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from lance.fragment import FragmentMetadata, LanceFragment

from omnigraph.errors import InternalError
from omnigraph.tables.filters import address_filter
from omnigraph.tables.store import Addresses, TableVersion, fragment_bytes


@dataclass(frozen=True, slots=True)
class Removal:
    """Fragments with more deletions than before, numbers of fragments that go whole, live rows and bytes that go."""

    updated: tuple[FragmentMetadata, ...] = ()
    removed: tuple[int, ...] = ()
    rows: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.updated or self.removed)

    @property
    def files(self) -> tuple[str, ...]:
        """The deletion files, relative to the table's folder."""
        return tuple(_deletion_file(each) for each in self.updated)


def removal_of_all(version: TableVersion) -> Removal:
    """Every fragment goes; no file is written."""
    numbers = tuple(version.dataset.fragment_ids())
    return Removal(removed=numbers, rows=version.rows, bytes=version.bytes)


def removal_of(version: TableVersion, addresses: Addresses) -> Removal:
    """Writes one deletion file for each fragment that keeps some rows; a fragment that keeps none goes whole.

    Raises InternalError if an address is not live in this version or given twice.
    """
    in_order = np.sort(addresses)
    numbers, starts = np.unique(in_order >> np.uint64(32), return_index=True)
    updated: list[FragmentMetadata] = []
    removed: list[int] = []
    size = 0
    for number, here in zip(numbers.tolist(), np.split(in_order, starts[1:]), strict=True):
        fragment = version.dataset.get_fragment(number)
        if fragment is None:
            raise InternalError("row addresses of another table version were to be deleted")
        before = fragment.metadata
        after = _without(fragment, before, here)
        if after is None:
            removed.append(number)
            size += fragment_bytes(before)
        else:
            updated.append(after)
    return Removal(tuple(updated), tuple(removed), len(addresses), size)


def _without(fragment: LanceFragment, before: FragmentMetadata, addresses: Addresses) -> FragmentMetadata | None:
    after = fragment.delete(address_filter(addresses))
    gone = before.num_rows - (0 if after is None else after.num_rows)
    if gone != len(addresses):
        raise InternalError("row addresses that are not live were to be deleted")
    return after


def _deletion_file(fragment: FragmentMetadata) -> str:
    file = fragment.deletion_file
    assert file is not None
    suffix = "bin" if file.file_type == "bitmap" else "arrow"
    return f"_deletions/{fragment.id}-{file.read_version}-{file.id}.{suffix}"
