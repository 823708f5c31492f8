"""Rows of one table version as numbers, and the columns that queries asked for, in memory.

A row number means a place in a contiguous base or in the small tail behind it: `0 … base`, then the tail. Versions that
follow each other share the base. A column is read from storage when it is first asked for and not before; a `take` from
two chunks costs fifty times more than from one, so a base column is always one array.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa

from omnigraph.query.sources import TableSource
from omnigraph.tables.budget import growth
from omnigraph.tables.columns import ROW_ADDRESS

_OFFSETS_MAX = 2**31 - 2**20

_FEW_ROWS_MAX = 64
_FEW_SHARE = 64  # few are at most one row in so many
_ROWS_A_LOOK = 65_536  # so many rows of a column are read in about the time of one look-up
_LOOKS_LEAST = 4
_REMEMBERED_MAX = 8


class AddressBlock:
    """Row addresses by row number, searchable the other way round."""

    def __init__(self, addresses: np.ndarray) -> None:
        self.addresses = addresses

    def __len__(self) -> int:
        return len(self.addresses)

    @cached_property
    def _order(self) -> np.ndarray | None:
        """What sorts the addresses; None if they ascend, as those of a table without rewrites do."""
        values = self.addresses
        return None if bool((values[1:] > values[:-1]).all()) else np.argsort(values, kind="stable")

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """int64 row numbers, −1 for an address that is not here."""
        if len(self.addresses) == 0 or len(wanted) == 0:
            return np.full(len(wanted), -1, np.int64)
        order = self._order
        at = np.searchsorted(self.addresses, wanted, sorter=order)
        at = np.minimum(at, len(self.addresses) - 1)
        rows = at if order is None else order[at]
        return np.where(self.addresses[rows] == wanted, rows, -1)


@dataclass(frozen=True)
class RowSpace:
    """The rows of one version: base block, then tail. Rows that the version no longer has keep their numbers."""

    base: AddressBlock
    tail: AddressBlock

    def __len__(self) -> int:
        return len(self.base) + len(self.tail)

    def find(self, addresses: np.ndarray) -> np.ndarray:
        """Row number by address, −1 if absent. The tail wins: it is younger."""
        rows = self.base.find(addresses)
        if len(self.tail):
            late = self.tail.find(addresses)
            rows = np.where(late >= 0, late + len(self.base), rows)
        return rows

    def addresses(self, rows: np.ndarray) -> np.ndarray:
        if len(self.tail) == 0:
            return self.base.addresses[rows]
        return split_take(self.base.addresses, self.tail.addresses, rows)

    def extended(self, addresses: np.ndarray) -> RowSpace:
        """With more rows at the end. The same space if there are none."""
        if len(addresses) == 0:
            return self
        return RowSpace(self.base, AddressBlock(np.concatenate([self.tail.addresses, addresses])))


def split_take(base: np.ndarray, tail: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """`concatenate([base, tail])[rows]` without the concatenation."""
    if len(tail) == 0:
        return base[rows]
    late = rows >= len(base)
    out = np.empty(len(rows), base.dtype)
    out[~late] = base[rows[~late]]
    out[late] = tail[rows[late] - len(base)]
    return out


@dataclass(frozen=True, slots=True)
class Column:
    base: pa.Array
    tail: pa.Array

    def take(self, rows: np.ndarray) -> pa.Array:
        """The values at these row numbers."""
        size = len(self.base)
        if len(self.tail) == 0:
            return self.base.take(pa.array(rows))
        late = rows >= size
        if not late.any():
            return self.base.take(pa.array(rows))
        ours = self.base.take(pa.array(rows[~late]))
        theirs = self.tail.take(pa.array(rows[late] - size))
        order = np.empty(len(rows), np.int64)
        order[~late] = np.arange(len(ours))
        order[late] = np.arange(len(ours), len(rows))
        return pa.concat_arrays([ours, theirs]).take(pa.array(order))


class Derived(Protocol):
    """Something made of a column's values, kept as long as they are."""

    @property
    def nbytes(self) -> int:
        """Beyond the bytes of the column."""
        ...


_D = TypeVar("_D", bound=Derived)


class Columns:
    """The resident columns of one version. Thread-safe; columns are added, never changed."""

    def __init__(
        self,
        source: TableSource | None,
        space: RowSpace,
        held: Mapping[str, Column] | None = None,
        looks: dict[str, int] | None = None,
    ) -> None:
        self.source = source
        self.space = space
        self._held: dict[str, Column] = dict(held or {})
        self._looks: dict[str, int] = {} if looks is None else looks  # shared with the versions before and after
        self._derived: dict[tuple[str, str], tuple[pa.Array, Derived]] = {}
        self._derived_of_tail: dict[tuple[str, str], Derived] = {}
        self._remembered: dict[tuple[object, ...], Derived] = {}  # least recently asked for first
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        return name in self._held

    @property
    def doubtful(self) -> bool:
        """Whether damage was met in the table that columns are read from."""
        return self.source is not None and self.source.doubtful

    def get(self, name: str) -> Column:
        return self._held[name]

    def fields(self) -> list[pa.Field]:
        """The resident columns."""
        return [pa.field(name, column.base.type) for name, column in self._held.items()]

    def values(self, field: pa.Field, rows: np.ndarray) -> pa.Array:
        """The values of one column at these rows, all of them live in this version. Raises StorageFailure.

        A few rows of a large table are looked up where they lie, one request a column, until so many look-ups were made
        that the whole column would have been read in that time; then it becomes resident.
        """
        if field.name not in self._held and self.source is not None and self._is_few(len(rows)):
            looks = self._looks.get(field.name, 0)
            if looks < max(_LOOKS_LEAST, len(self.space) // _ROWS_A_LOOK):
                self._looks[field.name] = looks + 1  # two threads may count once: what is counted is a rough cost
                return one_array(self.source.take(self.space.addresses(rows), [field]).column(field.name))
        self.load([field])
        return self.get(field.name).take(rows)

    def peek(self, field: pa.Field, rows: np.ndarray) -> pa.Array:
        """The values of one column at these rows, all of them live, without making it resident. Raises StorageFailure."""
        if field.name in self._held or self.source is None:
            return self.values(field, rows)
        return one_array(self.source.take(self.space.addresses(rows), [field]).column(field.name))

    def _is_few(self, count: int) -> bool:
        return count <= min(_FEW_ROWS_MAX, len(self.space) // _FEW_SHARE)

    def load(self, fields: Sequence[pa.Field]) -> bool:
        """Make these columns resident, all that are missing in one scan. True if any was. Raises StorageFailure."""
        if all(field.name in self._held for field in fields):
            return False
        with self._lock:
            missing = [field for field in fields if field.name not in self._held]
            if missing:
                self._held = {**self._held, **self._read(missing)}
                growth.note()
        return bool(missing)

    def derived(self, field: pa.Field, kind: str, make: Callable[[pa.Array], _D]) -> tuple[_D, _D]:
        """What `make` makes of the values of the base rows, and of the tail rows; made once for each. That of a base serves
        the versions after this one too. The values of rows that are gone are among them. Raises StorageFailure.
        """
        self.load([field])
        column, key = self.get(field.name), (field.name, kind)
        with self._lock:
            of_base = self._derived.get(key)
            if of_base is None or of_base[0] is not column.base:
                of_base = self._derived[key] = (column.base, make(column.base))
                growth.note()
            of_tail = self._derived_of_tail.get(key)
            if of_tail is None:
                of_tail = self._derived_of_tail[key] = make(column.tail)
                growth.note()
        return cast(_D, of_base[1]), cast(_D, of_tail)

    def remembered(self, what: tuple[object, ...], find: Callable[[], _D]) -> _D:
        """What `find` found for this version, kept until a few others were asked for. Raises what it raises."""
        with self._lock:
            found = self._remembered.pop(what, None)
            if found is not None:
                self._remembered[what] = found
                return cast(_D, found)
        made = find()
        with self._lock:
            self._remembered[what] = made
            while len(self._remembered) > _REMEMBERED_MAX:
                self._remembered.pop(next(iter(self._remembered)))
        growth.note()
        return made

    def _read(self, fields: Sequence[pa.Field]) -> dict[str, Column]:
        size, base = len(self.space), len(self.space.base)
        if self.source is None:
            return {f.name: Column(pa.nulls(base, f.type), pa.nulls(size - base, f.type)) for f in fields}
        table = self.source.scan(fields, with_row_address=True).read_all()
        addresses = table.column(ROW_ADDRESS).to_numpy()
        if size == base and np.array_equal(addresses, self.space.base.addresses):
            return {f.name: Column(one_array(table.column(f.name)), pa.nulls(0, f.type)) for f in fields}
        place = np.full(size, -1, np.int64)
        place[self.space.find(addresses)] = np.arange(len(addresses))
        at = pa.array(place, mask=place < 0)
        columns: dict[str, Column] = {}
        for field in fields:
            values = one_array(table.column(field.name)).take(at)
            columns[field.name] = Column(values.slice(0, base), values.slice(base))
        return columns

    def extended(self, source: TableSource | None, space: RowSpace, rows: pa.Table) -> Columns:
        """The columns of the version that follows, whose rows `rows` stand behind ours."""
        held: dict[str, Column] = {}
        for name, column in self._held.items():
            if name in rows.column_names:
                added = one_array(rows.column(name).cast(column.base.type))
            else:
                added = pa.nulls(rows.num_rows, column.base.type)
            tail = pa.concat_arrays([column.tail, added]) if len(added) else column.tail
            held[name] = Column(column.base, tail)
        following = Columns(source, space, held, self._looks)
        following._derived = self._derived
        return following

    def gathered(self, space: RowSpace, rows: np.ndarray) -> Columns:
        """The same values under new row numbers: row i of the new space is row `rows[i]` of this one."""
        held = self._held
        columns = {name: Column(each.take(rows), pa.nulls(0, each.base.type)) for name, each in held.items()}
        return Columns(self.source, space, columns, self._looks)

    def parts(self) -> Iterable[tuple[int, int]]:
        held = self._held
        space = self.space
        yield id(space.base), space.base.addresses.nbytes
        yield id(space.tail), space.tail.addresses.nbytes
        for column in held.values():
            yield id(column.base), column.base.nbytes
            yield id(column.tail), column.tail.nbytes
        for each in (
            *(of_base for _, of_base in self._derived.copy().values()),
            *self._derived_of_tail.copy().values(),
            *self._remembered.copy().values(),
        ):
            yield id(each), each.nbytes


def one_array(values: pa.ChunkedArray) -> pa.Array:
    """A column as one array. Strings that 32-bit offsets can't address become large strings."""
    if values.num_chunks == 1:
        return values.chunk(0)
    if values.type == pa.string() and values.nbytes > _OFFSETS_MAX:
        values = values.cast(pa.large_string())
    return values.combine_chunks() if values.num_chunks else pa.array([], values.type)
