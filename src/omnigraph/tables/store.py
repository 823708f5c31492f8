"""Opening tables at pinned versions, and reading them.

    version = tables.open(entry.pin)
    version.read(["__id", "title"], with_row_address=True)

A version is immutable, so an opened one is kept (by path and version) and never checked again. Knows pins and columns;
which pin is the right one is the manifest's matter.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, Literal, cast

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance.blob import BlobType
from lance.fragment import FragmentMetadata
from lance.lance import _Session as Session  # pyright: ignore[reportPrivateUsage] - lance.Session

from omnigraph.ambient import Clock, SystemClock, fresh_ulid
from omnigraph.errors import InternalError, StoragePhase
from omnigraph.manifest.model import TablePin
from omnigraph.store.base import Store
from omnigraph.tables.columns import ROW_ADDRESS, fields_of, is_blob
from omnigraph.tables.failures import RAISED_BELOW, storage_failures, translated
from omnigraph.tables.filters import address_filter
from omnigraph.tables.location import Location

Addresses = npt.NDArray[np.uint64]
Filter = str | pc.Expression
Kind = Literal["node", "edge"]

INDEX_CACHE_BYTES: Final = 256 << 20
METADATA_CACHE_BYTES: Final = 256 << 20
OPEN_VERSIONS: Final = 1024
LINEAR_VERSION: Final = 1
"""The empty version that every table folder starts with; pins are always detached versions."""

_FOLDERS: Final[dict[Kind, str]] = {"node": "nodes", "edge": "edges"}
_SCAN_SHARE: Final = 64  # one wanted row in so many: reading everything is cheaper than a list of addresses


def new_session(
    *, index_cache_bytes: int = INDEX_CACHE_BYTES, metadata_cache_bytes: int = METADATA_CACHE_BYTES
) -> Session:
    """The caches that all tables of a process share, with their byte limits."""
    return Session(index_cache_size_bytes=index_cache_bytes, metadata_cache_size_bytes=metadata_cache_bytes)


class TableVersion:
    """One table at one pin. Immutable and thread-safe; every read may raise StorageFailure (phase read)."""

    def __init__(
        self,
        pin: TablePin,
        dataset: lance.LanceDataset,
        *,
        rows: int | None = None,
        size: int | None = None,
        stored: pa.Schema | None = None,
    ) -> None:
        self.pin = pin
        self.dataset = dataset
        """The library's handle; only this room looks at it."""
        if rows is not None:
            self.__dict__["rows"] = rows
        if size is not None:
            self.__dict__["bytes"] = size
        if stored is not None:
            self.__dict__["stored"] = stored

    @cached_property
    def rows(self) -> int:
        return self.dataset.count_rows()  # pyright: ignore[reportUnknownMemberType]

    @cached_property
    def bytes(self) -> int:
        """Size of the data files, from the version's own metadata."""
        return sum(fragment_bytes(each) for each in self.fragments())

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns as the table stores them, dropped properties included."""
        return self.dataset.schema

    @cached_property
    def schema(self) -> pa.Schema:
        """The stored columns as readers see them: a Blob is `large_binary`."""
        return pa.schema([pa.field(f.name, visible_type(f.type), f.nullable) for f in fields_of(self.stored)])

    @cached_property
    def column_names(self) -> frozenset[str]:
        return frozenset(self.stored.names)

    def fragments(self) -> list[FragmentMetadata]:
        """Metadata of all fragments, in order. No request."""
        return [each.metadata for each in self.dataset.get_fragments()]  # pyright: ignore[reportUnknownMemberType]

    def read(
        self, columns: Iterable[str | pa.Field], *, filter: Filter | None = None, with_row_address: bool = False
    ) -> pa.Table:
        """All rows that match, in table order. See `scan` for the columns."""
        wanted = self._projection(columns)
        with storage_failures(StoragePhase.READ):
            found = self._scanner(wanted, filter=filter, with_row_address=with_row_address).to_table()
        return wanted.completed_table(found, with_row_address)

    def scan(
        self,
        columns: Iterable[str | pa.Field],
        *,
        filter: Filter | None = None,
        with_row_address: bool = False,
        batch_size: int | None = None,
    ) -> pa.RecordBatchReader:
        """Rows that match, in table order, read as the reader is consumed.

        A column is a name or a field; a schema is a list of fields. A field that the table does not store yet (a
        property added later) reads as nulls of its type; a mere name that is not stored is refused. Blob columns read
        as nulls. `filter` is a pyarrow expression (values stay values) or a text built by `filters`; it may name
        stored columns only. With `with_row_address` the last column is `_rowaddr` (uint64).
        """
        wanted = self._projection(columns)
        with storage_failures(StoragePhase.READ):
            reader = self._scanner(
                wanted, filter=filter, with_row_address=with_row_address, batch_size=batch_size
            ).to_reader()
        return _guarded(reader, wanted, with_row_address)

    def take(self, addresses: Addresses, columns: Iterable[str | pa.Field]) -> pa.Table:
        """The rows at these addresses in the order asked, repeats allowed; all must be live in this version.

        Raises InternalError if one is not: the caller took addresses from another pin.
        """
        wanted = self._projection(columns)
        if len(addresses) == 0:
            return wanted.schema(False).empty_table()
        distinct, places = np.unique(addresses, return_inverse=True)
        with storage_failures(StoragePhase.READ):
            found, live = self._at(distinct, wanted)
        table = wanted.completed_table(found.drop_columns([ROW_ADDRESS]), False)
        if not np.array_equal(live, distinct):
            raise InternalError("row addresses of another table version were used")
        in_order = len(addresses) == len(distinct) and np.array_equal(places, np.arange(len(distinct)))
        return table if in_order else table.take(pa.array(places))

    def _at(self, distinct: Addresses, wanted: _Projection) -> tuple[pa.Table, Addresses]:
        """Rows at sorted addresses, with the addresses found."""
        touched = np.unique(distinct >> np.uint64(32))
        found = (self.dataset.get_fragment(int(number)) for number in touched)
        fragments = [each for each in found if each is not None]
        if len(fragments) != len(touched):
            raise InternalError("row addresses of another table version were used")
        held = sum(each.physical_rows for each in fragments)
        everything = len(distinct) * _SCAN_SHARE >= held and len(distinct) > _SCAN_SHARE
        found = self._scanner(
            wanted,
            filter=None if everything else address_filter(distinct),
            with_row_address=True,
            fragments=fragments,
        ).to_table()
        live = cast(Addresses, found.column(ROW_ADDRESS).to_numpy())
        if not everything:
            return found, live
        at = np.searchsorted(live, distinct)
        at = at[at < len(live)]
        return found.take(pa.array(at)), live[at]

    def _projection(self, columns: Iterable[str | pa.Field]) -> _Projection:
        return _Projection(self.stored, columns)

    def _scanner(self, wanted: _Projection, *, filter: Filter | None, with_row_address: bool, **options: Any) -> Any:
        # without a single column the library needs the address column to know that rows are asked for at all
        return self.dataset.scanner(  # pyright: ignore[reportUnknownMemberType]
            columns=wanted.stored_names,
            filter=filter,
            with_row_address=with_row_address or not wanted.stored_names,
            **options,
        )


class _Projection:
    """Columns asked of a version: which are read, and how the rest is filled in."""

    def __init__(self, stored: pa.Schema, columns: Iterable[str | pa.Field]) -> None:
        self.fields: list[pa.Field] = []
        self.stored_names: list[str] = []
        self.complete = True
        for column in columns:
            name = column if isinstance(column, str) else column.name
            index = stored.get_field_index(name)
            if index < 0:
                if isinstance(column, str):
                    raise InternalError("a column was asked for that the table does not have")
                self.fields.append(pa.field(name, visible_type(column.type)))
                self.complete = False
                continue
            kept = stored.field(index)
            visible = visible_type(kept.type)
            self.fields.append(pa.field(name, visible, kept.nullable))
            if visible is kept.type:
                self.stored_names.append(name)
            else:
                self.complete = False

    def schema(self, with_row_address: bool) -> pa.Schema:
        return pa.schema([*self.fields, pa.field(ROW_ADDRESS, pa.uint64())] if with_row_address else self.fields)

    def columns_of(self, found: pa.Table | pa.RecordBatch, with_row_address: bool) -> list[Any]:
        read = dict(zip(found.schema.names, found.columns, strict=True))
        columns = [
            read[field.name] if field.name in read else pa.nulls(found.num_rows, field.type) for field in self.fields
        ]
        return [*columns, read[ROW_ADDRESS]] if with_row_address else columns

    def completed_table(self, found: pa.Table, with_row_address: bool) -> pa.Table:
        if self.complete and self.stored_names:
            return found
        return pa.Table.from_arrays(self.columns_of(found, with_row_address), schema=self.schema(with_row_address))


def _guarded(reader: pa.RecordBatchReader, wanted: _Projection, with_row_address: bool) -> pa.RecordBatchReader:
    """A reader whose failures are ours and whose missing columns are there."""
    as_read = wanted.complete and bool(wanted.stored_names)
    schema = reader.schema if as_read else wanted.schema(with_row_address)

    def batches() -> Iterable[pa.RecordBatch]:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except RAISED_BELOW as error:
                raise translated(error, StoragePhase.READ) from None
            yield (
                batch
                if as_read
                else pa.RecordBatch.from_arrays(wanted.columns_of(batch, with_row_address), schema=schema)
            )

    return pa.RecordBatchReader.from_batches(schema, batches())


class TableStore:
    """The tables of one graph root in one process. Thread-safe.

    `session` is shared by all graphs of a process; `local_sync` is `OMNIGRAPH_LOCAL_SYNC`; `clock` dates new folders' names.
    """

    def __init__(
        self,
        store: Store,
        *,
        session: Session | None = None,
        open_versions: int = OPEN_VERSIONS,
        local_sync: Literal["full", "off"] = "full",
        clock: Clock | None = None,
    ) -> None:
        self.location = Location.of(store)
        self.local_sync: Literal["full", "off"] = local_sync
        self.session = session or new_session()
        self._clock: Clock = clock or SystemClock()
        self._options = self.location.storage_options()
        self._kept: OrderedDict[tuple[str, int], TableVersion] = OrderedDict()
        self._kept_limit = open_versions
        self._lock = threading.Lock()
        self._folders: dict[tuple[str, str], str] = {}
        self._folder_locks: dict[tuple[str, str], threading.Lock] = {}
        self._creation_files: dict[str, tuple[str, ...]] = {}
        self.synced_folders: set[str] = set()
        """Folders whose own names are known to survive a power cut (see `sync`)."""

    def open(self, pin: TablePin) -> TableVersion:
        """The table at a pin, from memory if it was opened or committed here before.

        Raises StorageFailure (phase read): class `not_found` if the version is not there any more.
        """
        key = (pin.path, pin.version)
        with self._lock:
            version = self._kept.get(key)
            if version is not None:
                self._kept.move_to_end(key)
                return version
        with storage_failures(StoragePhase.READ):
            dataset = lance.LanceDataset(
                self.location.uri(pin.path),
                version=pin.version,
                storage_options=self._options,
                session=self.session,
            )
        return self.keep(TableVersion(pin, dataset))

    def keep(self, version: TableVersion) -> TableVersion:
        """Remembers an opened version; least recently used ones are forgotten, which costs time only."""
        key = (version.pin.path, version.pin.version)
        with self._lock:
            kept = self._kept.setdefault(key, version)
            self._kept.move_to_end(key)
            while len(self._kept) > self._kept_limit:
                self._kept.popitem(last=False)
        return kept

    def create_folder(self, kind: Kind, type_id: str, schema: pa.Schema) -> str:
        """A fresh table folder, `nodes/<type id>-<ulid>`, holding an empty linear version 1 with stable row ids.

        Raises StorageFailure (phase stage).
        """
        path = f"{_FOLDERS[kind]}/{type_id}-{fresh_ulid(self._clock)}"
        with storage_failures(StoragePhase.STAGE):
            dataset = lance.write_dataset(
                stored_schema(schema).empty_table(),
                self.location.uri(path),
                mode="create",
                enable_stable_row_ids=True,
                storage_options=self._options,
                session=self.session,
            )
        self.keep(TableVersion(TablePin(path, dataset.version), dataset, rows=0, size=0))
        if self.location.local_path is not None:
            self._creation_files[path] = _files_below(self.location.local_path, path)
        return path

    def creation_files(self, path: str) -> tuple[str, ...]:
        """Files of version 1 of a folder made by this process on a local root, until it was synced."""
        return self._creation_files.get(path, ())

    def note_synced(self, folders: Iterable[str]) -> None:
        """These folders and what they hold are safe."""
        for folder in folders:
            self.synced_folders.add(folder)
            self._creation_files.pop(folder, None)

    def folder(self, line: str, kind: Kind, type_id: str, schema: pa.Schema) -> str:
        """The folder in which this process writes the first rows of a type on one line of history.

        `line` names the branch life; the folder is made when first asked for. Raises StorageFailure (phase stage).
        """
        key = (line, type_id)
        with self._lock:
            lock = self._folder_locks.setdefault(key, threading.Lock())
        with lock:
            path = self._folders.get(key)
            if path is None:
                path = self._folders[key] = self.create_folder(kind, type_id, schema)
            return path


def _files_below(root: str, path: str) -> tuple[str, ...]:
    return tuple(
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(os.path.join(root, path))
        for name in names
    )


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Columns as Lance gets them when a table is made: Blobs as Lance blobs, no metadata of ours."""
    return pa.schema([stored_field(field) for field in fields_of(schema)])


def stored_field(field: pa.Field) -> pa.Field:
    """One column as Lance gets it."""
    if is_blob(field):
        return lance.blob_field(field.name)
    return pa.field(field.name, field.type, field.nullable)


def visible_type(stored: pa.DataType) -> pa.DataType:
    """The type that readers see of a stored column."""
    return pa.large_binary() if isinstance(stored, BlobType) else stored


def fragment_bytes(fragment: FragmentMetadata) -> int:
    """Size of a fragment's data files."""
    return sum(each.file_size_bytes or 0 for each in fragment.files)
