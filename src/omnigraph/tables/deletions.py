"""Rows that go: deletion files for the fragments they lie in, and no others.

A deletion file lists *all* rows of a fragment that are gone, so whoever writes one must know those that went before.
The library reads the former file for that, one request and a scan for each touched fragment. Here the rows that this
process saw go are remembered by the name of the file that lists them, and the new file is written directly in the
table format's own form (a portable Roaring bitmap under `_deletions/`); only a fragment met for the first time is
read. Other readers see files like any others.

A removal is prepared on one pinned version and is right for that version only. Addresses that are not live there are a
mistake of the caller and refused, since a silent miss would double an id.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.fragment import DeletionFile, FragmentMetadata

from omnigraph.ambient import random_bytes
from omnigraph.errors import InternalError
from omnigraph.tables.store import TableStore
from omnigraph.tables.version import Addresses, TableVersion, fragment_bytes

_ENTRY_BYTES: Final = 512  # what a remembered bitmap takes besides its content


@dataclass(frozen=True, slots=True)
class Removal:
    """Fragments with more deletions than before, numbers of fragments that go whole, live rows and bytes that go.

    `files` are the deletion files written, relative to the table's folder.
    """

    updated: tuple[FragmentMetadata, ...] = ()
    removed: tuple[int, ...] = ()
    rows: int = 0
    bytes: int = 0
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.updated or self.removed)


def removal_of_all(version: TableVersion) -> Removal:
    """Every fragment goes; no file is written."""
    return Removal(removed=tuple(version.dataset.fragment_ids()), rows=version.rows, bytes=version.bytes)


def removal_of(tables: TableStore, version: TableVersion, addresses: Addresses) -> Removal:
    """Writes one deletion file for each fragment that keeps some rows; a fragment that keeps none goes whole.

    Raises InternalError if an address is not live in this version or given twice, else what the library or the store
    raises.
    """
    updated: list[FragmentMetadata] = []
    removed: list[int] = []
    files: list[tuple[str, bytes, Bitmap]] = []
    size = 0
    for number, positions in _by_fragment(addresses):
        before = _metadata(version, number)
        gone = positions_gone(tables, version, before).union(Bitmap(pa.array(positions)))
        if len(gone) != before.num_deletions + len(positions) or int(positions.max()) >= before.physical_rows:
            raise InternalError("row addresses that are not live were to be deleted")
        if len(gone) == before.physical_rows:
            removed.append(number)
            size += fragment_bytes(before)
        else:
            file = _new_file(version, len(gone))
            updated.append(dataclasses.replace(before, deletion_file=file))
            files.append((file.path(number), _serialized(gone), gone))
    _write(tables, version, files)
    return Removal(tuple(updated), tuple(removed), len(addresses), size, tuple(name for name, _, _ in files))


def _by_fragment(addresses: Addresses) -> list[tuple[int, npt.NDArray[np.uint32]]]:
    """Fragment numbers with the positions in each."""
    if len(addresses) == 1:  # one row is the commonest change
        return [(int(addresses[0]) >> 32, addresses.astype(np.uint32))]
    in_order = np.sort(addresses)
    numbers, starts = np.unique(in_order >> np.uint64(32), return_index=True)
    positions = np.split(in_order.astype(np.uint32), starts[1:])
    return list(zip(numbers.tolist(), positions, strict=True))


def _metadata(version: TableVersion, number: int) -> FragmentMetadata:
    fragment = version.dataset.get_fragment(number)
    if fragment is None:
        raise InternalError("row addresses of another table version were to be deleted")
    return fragment.metadata


def positions_gone(tables: TableStore, version: TableVersion, fragment: FragmentMetadata) -> Bitmap:
    """Positions that are deleted in a fragment; read (one request) if this process does not know them."""
    file = fragment.deletion_file
    if file is None:
        return Bitmap()
    path = f"{version.pin.path}/{file.path(fragment.id)}"
    known = tables.deleted.get(path)
    if known is None:
        known = Bitmap(pa.array(_read_positions_gone(version, fragment)))
        tables.deleted.put(path, known, _ENTRY_BYTES + len(_serialized(known)))
    return known


def _read_positions_gone(version: TableVersion, fragment: FragmentMetadata) -> npt.NDArray[np.uint32]:
    live = version.live_positions(fragment.id)
    gone = np.ones(fragment.physical_rows, np.bool_)
    gone[live] = False
    return np.flatnonzero(gone).astype(np.uint32)


def _new_file(version: TableVersion, count: int) -> DeletionFile:
    return DeletionFile(version.pin.version, int.from_bytes(random_bytes(8)), "bitmap", count, None)


def _serialized(bitmap: Bitmap) -> bytes:
    """The portable Roaring form, which the class itself offers through pickling only."""
    return cast("tuple[object, tuple[bytes]]", bitmap.__reduce__())[1][0]


def _write(tables: TableStore, version: TableVersion, files: list[tuple[str, bytes, Bitmap]]) -> None:
    tables.location.put([(f"{version.pin.path}/{name}", data) for name, data, _ in files])
    for name, data, gone in files:
        tables.deleted.put(f"{version.pin.path}/{name}", gone, _ENTRY_BYTES + len(data))
