"""Row changes of one type, written to storage and turned into a new table version.

    staged = stage(tables, kind="node", type_id=..., schema=table_schema(t), base=entry.pin, change=RowChange(rows=...))
    committed = commit(tables, staged, onto=entry.pin, label="main@43")
    sync(tables, [committed])

Two steps, since what is staged may still be moved onto a newer pin. A commit is detached: it takes a version number
that nobody else knows, so nothing here is visible before a manifest names the pin.

The dangerous part. Lance applies a detached commit to whatever version it is given and looks for no conflict: deletion
files prepared on an older version would revive rows that were deleted since, and leave two rows with one id. So
`commit` compares the pin that the files were prepared on with the pin it is to follow, directly before the commit, and
refuses with `PinMoved`. Rows that are only appended name no place in the older version, so they alone may move, and
only inside one folder whose columns have the same numbers.

Knows nothing of keys, uniqueness or branches: who appends has made sure that the ids are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import lance
import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.errors import InternalError, StoragePhase
from omnigraph.manifest.model import TablePin
from omnigraph.tables.deletions import Removal, removal_of, removal_of_all
from omnigraph.tables.detached import detached
from omnigraph.tables.extend import column_numbers, extension, lacking
from omnigraph.tables.failures import storage_failures
from omnigraph.tables.rows import written_rows
from omnigraph.tables.store import LINEAR_VERSION, Kind, TableStore
from omnigraph.tables.version import Addresses, TableVersion, file_names, fragment_bytes

_Operation = lance.LanceOperation


class PinMoved(Exception):
    """The table is no longer at the pin that the files were prepared on: stage again on the new one.

    Nothing was committed. The write path decides what follows; users never see this.
    """


@dataclass(frozen=True, slots=True)
class RowChange:
    """What happens to one type's rows: those at `remove` (addresses in the base) go, then `rows` are appended.

    `rows` may lack columns (they become null) but not `__id` and edge ends. With `overwrite` all rows of the base go.
    """

    rows: pa.Table | pa.RecordBatchReader | None = None
    remove: Addresses | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Staged:
    """Files that stand in storage and belong to no version yet. `folder` is relative to the graph root."""

    base: TablePin | None
    folder: str
    schema: pa.Schema
    fragments: tuple[FragmentMetadata, ...]
    removal: Removal
    overwrite: bool

    @property
    def rows_added(self) -> int:
        return sum(each.physical_rows for each in self.fragments)

    @property
    def rows_delta(self) -> int:
        return self.rows_added - self.removal.rows

    @property
    def is_append(self) -> bool:
        """Only new rows: the one kind that may follow another pin than the one it was staged on."""
        return not (self.overwrite or self.removal)

    @property
    def is_empty(self) -> bool:
        """Nothing to commit."""
        return not (self.fragments or self.removal)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the data files."""
        return tuple(_data_files(self.fragments))


@dataclass(frozen=True, slots=True)
class Committed:
    """A detached version. `appended` are the addresses of the new rows in the order given.

    `files` are the names of the data files that it added, `written` all files that this change wrote, relative to the
    graph root.
    """

    pin: TablePin
    rows: int
    bytes: int
    appended: Addresses
    files: tuple[str, ...]
    written: tuple[str, ...]


def stage(
    tables: TableStore,
    *,
    kind: Kind,
    type_id: str,
    schema: pa.Schema,
    base: TablePin | None,
    change: RowChange,
    line: str = "",
) -> Staged:
    """Writes the files of a change and commits nothing. Callable from several threads at once.

    `schema` is the type's present `table_schema`; `line` names the branch life, so that a type's first rows land in
    the folder that this process already made for it. Raises StorageFailure (phase stage) if a file can't be written,
    InternalError if an address is not live in the base or a column does not fit.
    """
    if base is not None and base.without:
        raise InternalError("rows were to be written onto a part of a version")
    folder = tables.folder(line, kind, type_id, schema) if base is None else base.path
    version = tables.open(base or TablePin(folder, LINEAR_VERSION))
    with storage_failures(StoragePhase.STAGE, version):
        removal, fragments = _files(tables, version, schema, change)
    return Staged(base, folder, schema, tuple(fragments), removal, change.overwrite)


def _files(
    tables: TableStore, version: TableVersion, schema: pa.Schema, change: RowChange
) -> tuple[Removal, list[FragmentMetadata]]:
    """Deletion files and data files, written side by side where each waits for a network."""

    def rows() -> list[FragmentMetadata]:
        return written_rows(tables, version, schema, lacking(version, schema), change.rows)

    if change.overwrite:
        return removal_of_all(version), rows()
    if change.remove is None or len(change.remove) == 0:
        return Removal(), rows()
    addresses = change.remove
    removal, fragments = tables.location.together([lambda: removal_of(tables, version, addresses), rows])
    return cast(Removal, removal), cast("list[FragmentMetadata]", fragments)


def commit(
    tables: TableStore, staged: Staged, onto: TablePin | None, *, label: str, more: Sequence[Staged] = ()
) -> Committed:
    """One detached commit of what was staged, following `onto`; `label` becomes its property `omnigraph.base`.

    `more`: rows staged by others for the same type, appended in this order after those of `staged`; then all of them are
    appends. The new version is open and warm afterwards. A table that lacks columns of the staged schema gets all of
    them first, by one more commit in the same line. Raises PinMoved if `onto` is not the pin it was staged on (appended
    rows alone may follow any pin of their folder), StorageFailure (phase stage) otherwise: nothing is visible then.
    """
    base = _base_to_follow(tables, staged, onto)
    if more:
        for each in more:
            _base_to_follow(tables, each, onto)
        staged = _joined(staged, more)
    if staged.is_empty:
        raise InternalError("a commit without a change was asked for")
    written = [f"data/{name}" for name in _data_files(staged.fragments)] + list(staged.removal.files)
    with storage_failures(StoragePhase.STAGE, base):
        missing = lacking(base, staged.schema)
        if missing:
            base, files = detached(tables, base, extension(base, missing), label=label, rows=base.rows, size=base.bytes)
            written.extend(files)
        version, files = detached(
            tables,
            base,
            _operation(staged),
            label=label,
            rows=base.rows + staged.rows_delta,
            size=base.bytes - staged.removal.bytes + sum(map(fragment_bytes, staged.fragments)),
        )
        written.extend(files)
        appended = _addresses(version, staged.fragments)
    return Committed(
        version.pin,
        version.rows,
        version.bytes,
        appended,
        staged.files,
        tuple(f"{staged.folder}/{each}" for each in written),
    )


def leave_out(tables: TableStore, pin: TablePin, *, label: str) -> Committed:
    """A version of its own for a state that is a part of one: what `pin.without` names is gone from it. Two requests.

    Raises StorageFailure (phase read or stage).
    """
    whole = tables.open(TablePin(pin.path, pin.version))
    without = set(pin.without)
    gone = [each for each in whole.fragments() if without.intersection(file_names(each))]
    state = tables.open(pin)
    rows, size = state.rows, state.bytes
    with storage_failures(StoragePhase.STAGE, whole):
        operation = _Operation.Delete([], [each.id for each in gone], "")
        version, files = detached(tables, whole, operation, label=label, rows=rows, size=size)
    written = tuple(f"{pin.path}/{each}" for each in files)
    return Committed(version.pin, rows, size, np.empty(0, np.uint64), (), written)


def _base_to_follow(tables: TableStore, staged: Staged, onto: TablePin | None) -> TableVersion:
    """The version to commit on; PinMoved if what was staged is not right for it."""
    if onto == staged.base:
        return tables.open(onto or TablePin(staged.folder, LINEAR_VERSION))
    if not staged.is_append or onto is None or onto.path != staged.folder:
        raise PinMoved
    written_on = tables.open(staged.base or TablePin(staged.folder, LINEAR_VERSION))
    base = tables.open(onto)
    assumed = column_numbers(written_on, lacking(written_on, staged.schema))
    found = column_numbers(base, lacking(base, staged.schema))
    if any(found.get(name) != number for name, number in assumed.items()):
        raise PinMoved
    return base


def _joined(first: Staged, more: Sequence[Staged]) -> Staged:
    """Appends of one type as one."""
    everyone = (first, *more)
    if not all(each.is_append and each.folder == first.folder and each.schema == first.schema for each in everyone):
        raise PinMoved
    return replace(first, fragments=tuple(fragment for each in everyone for fragment in each.fragments))


def _operation(staged: Staged) -> lance.LanceOperation.BaseOperation:
    new, removal = list(staged.fragments), staged.removal
    if not removal:
        return _Operation.Append(new)
    if not new:
        return _Operation.Delete(list(removal.updated), list(removal.removed), "")
    return _Operation.Update(
        removed_fragment_ids=list(removal.removed), updated_fragments=list(removal.updated), new_fragments=new
    )


def _addresses(version: TableVersion, fragments: Sequence[FragmentMetadata]) -> Addresses:
    """Where the new rows lie: the library numbers new fragments upwards, in the order given."""
    if not fragments:
        return np.empty(0, np.uint64)
    numbers = sorted(version.dataset.fragment_ids())[-len(fragments) :]
    parts = [
        np.arange(each.physical_rows, dtype=np.uint64) + np.uint64(number << 32)
        for number, each in zip(numbers, fragments, strict=True)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _data_files(fragments: Sequence[FragmentMetadata]) -> list[str]:
    return [name for each in fragments for name in file_names(each)]
