"""Which rows differ between two versions of a table, by place (history.md 4).

Data files are never rewritten in place and their names never repeat, and a row never changes its place in a fragment.
So a fragment is known across versions and branches by its key file (the data file that stores the ids), and a row
that is live on both sides at the same place is the same row. Every other live row is in one side's answer. No id is
compared and no row read that did not change; whoever wants inserts, updates and deletes joins the two sides on the id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.fragment import FragmentMetadata

from omnigraph.errors import InternalError, StoragePhase
from omnigraph.manifest.model import TablePin
from omnigraph.tables.columns import ROW_ADDRESS
from omnigraph.tables.deletions import positions_gone
from omnigraph.tables.failures import storage_failures
from omnigraph.tables.store import TableStore
from omnigraph.tables.version import Addresses, TableVersion


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Rows that only one of two versions holds.

    `removed` are addresses in the former, ascending; `added` the latter's rows with their `_rowaddr`, ascending.
    `renumbered` are fragments that both hold under different numbers (former, latter): their rows are the same, their
    addresses are not.
    """

    removed: Addresses
    added: pa.Table
    renumbered: tuple[tuple[int, int], ...] = ()


def difference(tables: TableStore, a: TablePin, b: TablePin, columns: Iterable[str | pa.Field]) -> RowDifference:
    """What leads from version `a` to version `b`; of the added rows the columns asked for are read.

    The cost follows the difference: one request for each deletion file not met before, and pages of the added rows.
    Versions in different folders share nothing: all rows of both are in the answer. Raises StorageFailure (phase read).
    """
    former, latter = tables.open(a), tables.open(b)
    wanted = list(columns)
    with storage_failures(StoragePhase.READ, former, latter):
        removed, added, renumbered = _places(tables, former, latter)
    rows = latter.take(added, wanted)
    return RowDifference(removed, rows.append_column(ROW_ADDRESS, pa.array(added)), renumbered)


def _places(
    tables: TableStore, former: TableVersion, latter: TableVersion
) -> tuple[Addresses, Addresses, tuple[tuple[int, int], ...]]:
    before, after = _by_key_file(former), _by_key_file(latter)
    removed = [_live(tables, former, each) for key, each in before.items() if key not in after]
    added = [_live(tables, latter, each) for key, each in after.items() if key not in before]
    renumbered: list[tuple[int, int]] = []
    for key in before.keys() & after.keys():
        left, right = before[key], after[key]
        if left.id != right.id:
            renumbered.append((left.id, right.id))
        if _files(left) != _files(right):  # a column was rewritten: every row may differ
            removed.append(_live(tables, former, left))
            added.append(_live(tables, latter, right))
        elif _deletions(left) != _deletions(right):
            gone_before, gone_after = positions_gone(tables, former, left), positions_gone(tables, latter, right)
            removed.append(_placed(left.id, _positions(gone_after.difference(gone_before))))
            added.append(_placed(right.id, _positions(gone_before.difference(gone_after))))
    return _sorted(removed), _sorted(added), tuple(sorted(renumbered))


def _by_key_file(version: TableVersion) -> dict[str, FragmentMetadata]:
    number = version.id_field
    found: dict[str, FragmentMetadata] = {}
    for fragment in version.fragments():
        key = next((file.path for file in fragment.files if number in file.fields), None)
        if key is None:
            raise InternalError("a fragment without ids was met")
        found[str(key)] = fragment
    return found


def _files(fragment: FragmentMetadata) -> list[tuple[str, tuple[int, ...]]]:
    return sorted((str(file.path), tuple(file.fields)) for file in fragment.files)


def _deletions(fragment: FragmentMetadata) -> tuple[int, int] | None:
    file = fragment.deletion_file
    return None if file is None else (file.read_version, file.id)


def _live(tables: TableStore, version: TableVersion, fragment: FragmentMetadata) -> Addresses:
    live = np.ones(fragment.physical_rows, np.bool_)
    if fragment.deletion_file is not None:
        live[_positions(positions_gone(tables, version, fragment))] = False
    return _placed(fragment.id, np.flatnonzero(live))


def _positions(bitmap: Bitmap) -> npt.NDArray[np.uint32]:
    return np.fromiter(bitmap, np.uint32, len(bitmap))


def _placed(number: int, positions: npt.NDArray[np.integer[Any]]) -> Addresses:
    return positions.astype(np.uint64) + np.uint64(number << 32)


def _sorted(parts: list[Addresses]) -> Addresses:
    return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.uint64)
