"""One table at one pin: reading it.

    version.read(["__id", "title"], with_row_address=True)

A version is immutable and everything asked of it is an answer about that pin alone: an address found here means
nothing in another version. Fills in what the table does not store yet, so that a schema may run ahead of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, cast

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance.blob import BlobType
from lance.fragment import FragmentMetadata, LanceFragment

from omnigraph.errors import InternalError, StoragePhase
from omnigraph.manifest.model import TablePin
from omnigraph.tables.columns import ID, ROW_ADDRESS, fields_of
from omnigraph.tables.failures import storage_failures
from omnigraph.tables.filters import address_filter
from omnigraph.tables.searching import SearchIndexes
from omnigraph.tables.trust import Trust

Addresses = npt.NDArray[np.uint64]
Filter = str | pc.Expression

_OTHER_VERSION: Final = "row addresses of another table version were used"
_SCAN_SHARE: Final = 64  # one wanted row in so many: reading a fragment whole is cheaper than a list of addresses


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
        trust: Trust[Any] | None = None,
    ) -> None:
        self.pin = pin
        self.trust: Trust[Any] = trust or Trust(None)
        self.dataset = dataset
        """The library's handle; only this room looks at it."""
        self._rows = rows
        self._size = size
        self._schema: pa.Schema | None = None
        if stored is not None:
            self.__dict__["stored"] = stored

    @property
    def doubtful(self) -> bool:
        """Damage was met in this version or another one of the table; who opens it again gets it opened anew."""
        return self.trust.lost

    def doubt(self) -> None:
        self.trust.lost = True

    # properties, and not cached ones, where the query room's protocol asks for them

    @property
    def rows(self) -> int:
        if self._rows is None:
            with storage_failures(StoragePhase.READ, self):
                counted = self._parts() if self.pin.without else [self.dataset]
                self._rows = sum(int(each.count_rows()) for each in counted)  # pyright: ignore[reportUnknownMemberType]
        return self._rows

    @property
    def bytes(self) -> int:
        """Size of the data files, from the version's own metadata."""
        if self._size is None:
            self._size = sum(fragment_bytes(each) for each in self.fragments())
        return self._size

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns as the table stores them, dropped properties included."""
        return self.dataset.schema

    @property
    def schema(self) -> pa.Schema:
        """The stored columns as readers see them: a Blob is `large_binary`."""
        if self._schema is None:
            fields = [pa.field(f.name, visible_type(f.type), f.nullable) for f in fields_of(self.stored)]
            self._schema = pa.schema(fields)
        return self._schema

    @cached_property
    def column_names(self) -> frozenset[str]:
        return frozenset(self.stored.names)

    def fragments(self) -> list[FragmentMetadata]:
        """Metadata of all fragments that belong to the state, in order. No request."""
        return [each.metadata for each in self._parts()]

    def _parts(self) -> list[LanceFragment]:
        found: list[LanceFragment] = list(self.dataset.get_fragments())  # pyright: ignore[reportUnknownMemberType]
        without = set(self.pin.without)
        return [each for each in found if not without.intersection(file_names(each.metadata))] if without else found

    @property
    def search_indexes(self) -> SearchIndexes:
        """What was built to search the rows by."""
        return self._search_indexes

    @cached_property
    def _search_indexes(self) -> SearchIndexes:
        kept = {each.metadata.id for each in self._parts()} if self.pin.without else set[int]()
        left_out = [each for each in self.dataset.fragment_ids() if each not in kept] if self.pin.without else ()
        return SearchIndexes(self.dataset, self, left_out)

    @cached_property
    def id_field(self) -> int:
        """The number of the id column: the data file that holds it is the fragment's key file."""
        return next(each.id() for each in self.dataset.lance_schema.fields() if each.name() == ID)

    @cached_property
    def weight(self) -> int:
        """Roughly how many bytes of memory an open version takes."""
        return 4096 + 1024 * len(self.dataset.fragment_ids())

    def live_positions(self, fragment: int) -> npt.NDArray[np.uint32]:
        """Positions of the live rows of one fragment: one request, for its deletion file. Raises what Lance raises."""
        found = self.dataset.get_fragment(fragment)
        if found is None:
            raise InternalError("a fragment of another table version was asked for")
        table = found.scanner(columns=[], with_row_address=True).to_table()  # pyright: ignore[reportUnknownMemberType]
        return table.column(ROW_ADDRESS).to_numpy().astype(np.uint32)

    def read(
        self, columns: Iterable[str | pa.Field], *, filter: Filter | None = None, with_row_address: bool = False
    ) -> pa.Table:
        """All rows that match, in table order. See `scan` for the columns."""
        wanted = self._projection(columns)
        with storage_failures(StoragePhase.READ, self):
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
        with storage_failures(StoragePhase.READ, self):
            reader = self._scanner(
                wanted, filter=filter, with_row_address=with_row_address, batch_size=batch_size
            ).to_reader()
        return _guarded(reader, wanted, with_row_address, self)

    def take(self, addresses: Addresses, columns: Iterable[str | pa.Field]) -> pa.Table:
        """The rows at these addresses in the order asked, repeats allowed; all must be live in this version.

        Raises InternalError if one is not: the caller took addresses from another pin.
        """
        wanted = self._projection(columns)
        if len(addresses) == 0:
            return wanted.schema(False).empty_table()
        distinct, places = np.unique(addresses, return_inverse=True)
        with storage_failures(StoragePhase.READ, self):
            table = wanted.completed_table(self._at(distinct, wanted), False)
        in_order = len(addresses) == len(distinct) and bool(np.all(places[1:] > places[:-1]))
        return table if in_order else table.take(pa.array(places))

    def _at(self, distinct: Addresses, wanted: _Projection) -> pa.Table:
        """Stored columns of the rows at sorted addresses."""
        numbers, counts = np.unique(distinct >> np.uint64(32), return_counts=True)
        dense: list[LanceFragment] = []
        sparse: list[LanceFragment] = []
        in_dense: list[int] = []
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            fragment = self.dataset.get_fragment(number)
            if fragment is None:
                raise InternalError(_OTHER_VERSION)
            if count > 1 and count * _SCAN_SHARE >= fragment.physical_rows:
                dense.append(fragment)
                in_dense.append(number)
            else:
                sparse.append(fragment)
        if not dense:
            return self._picked(distinct, sparse, wanted)
        belongs = np.isin(distinct >> np.uint64(32), np.array(in_dense, np.uint64))
        found = self._sifted(distinct[belongs], dense, wanted)
        if not sparse:
            return found
        both = pa.concat_tables([found, self._picked(distinct[~belongs], sparse, wanted)])
        order = np.argsort(np.concatenate([distinct[belongs], distinct[~belongs]]))
        return both.take(pa.array(order))

    def _picked(self, distinct: Addresses, fragments: list[LanceFragment], wanted: _Projection) -> pa.Table:
        """A few rows of each fragment."""
        if len(fragments) == 1 and wanted.stored_names and fragments[0].metadata.deletion_file is None:
            if int(distinct[-1] & np.uint64(0xFFFF_FFFF)) >= fragments[0].physical_rows:
                raise InternalError(_OTHER_VERSION)
            positions = distinct.astype(np.uint32).tolist()
            return fragments[0].take(positions, columns=wanted.stored_names)  # pyright: ignore[reportUnknownMemberType]
        return self._sifted(distinct, fragments, wanted, address_filter(distinct))

    def _sifted(
        self, distinct: Addresses, fragments: list[LanceFragment], wanted: _Projection, filter: str | None = None
    ) -> pa.Table:
        """The rows at these addresses out of a scan of their fragments."""
        found = self._scanner(wanted, filter=filter, with_row_address=True, fragments=fragments).to_table()
        met = cast(Addresses, found.column(ROW_ADDRESS).to_numpy())
        found = found.drop_columns([ROW_ADDRESS]) if wanted.stored_names else found
        if np.array_equal(met, distinct):
            return found
        order = np.argsort(met)
        at = np.searchsorted(met, distinct, sorter=order)
        at = order[at[at < len(met)]]
        if not np.array_equal(met[at], distinct):
            raise InternalError(_OTHER_VERSION)
        return found.take(pa.array(at))

    def _projection(self, columns: Iterable[str | pa.Field]) -> _Projection:
        return _Projection(self.stored, columns)

    def _scanner(self, wanted: _Projection, *, filter: Filter | None, with_row_address: bool, **options: Any) -> Any:
        if self.pin.without and "fragments" not in options:
            options |= {"fragments": self._parts(), "use_scalar_index": False}
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


def _guarded(
    reader: pa.RecordBatchReader, wanted: _Projection, with_row_address: bool, version: TableVersion
) -> pa.RecordBatchReader:
    """A reader whose failures are ours and whose missing columns are there."""
    as_read = wanted.complete and bool(wanted.stored_names)
    schema = reader.schema if as_read else wanted.schema(with_row_address)

    def batches() -> Iterable[pa.RecordBatch]:
        while True:
            with storage_failures(StoragePhase.READ, version):
                batch = next(reader, None)
            if batch is None:
                return
            yield (
                batch
                if as_read
                else pa.RecordBatch.from_arrays(wanted.columns_of(batch, with_row_address), schema=schema)
            )

    return pa.RecordBatchReader.from_batches(schema, batches())


def file_names(fragment: FragmentMetadata) -> list[str]:
    """Names of a fragment's data files, unique in their table."""
    return [file._path for file in fragment.files]  # pyright: ignore[reportPrivateUsage] - .path builds a class on each call


def visible_type(stored: pa.DataType) -> pa.DataType:
    """The type that readers see of a stored column."""
    return pa.large_binary() if isinstance(stored, BlobType) else stored


def fragment_bytes(fragment: FragmentMetadata) -> int:
    """Size of a fragment's data files."""
    return sum(each.file_size_bytes or 0 for each in fragment.files)
