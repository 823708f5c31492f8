"""The columns of a frame as stored columns, where no value changes; and which value does not let itself be stored.

A value that does not fit has the code that it would have in a record: `W010` for the wrong shape, `W009` for what lies
outside its type (languages.md 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.columns import list_array
from omnigraph.engine.load.exact import RefusedRecord
from omnigraph.errors import OmnigraphError
from omnigraph.lang.query.faults import NOT_AVAILABLE
from omnigraph.lang.schema.catalog import EntityType, Property
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.lang.values import Refused, value_from_json
from omnigraph.tables.columns import arrow_type

_ITEMS_MAX: Final = 2**31 - 1  # of one array of lists


@dataclass(frozen=True, slots=True)
class Misfit:
    """The first value of a column that does not fit: its row, from 0, and what a record with it would be told."""

    row: int
    code: str
    name: str
    what: str

    def error(self, entity: EntityType, ids: pa.ChunkedArray | None) -> OmnigraphError:
        """To be raised. `ids` are those that the frame gave."""
        entity_id = None if ids is None else _value(ids, self.row)
        shown_id = entity_id if isinstance(entity_id, str) else None
        what = f"{entity.name}.{self.name}: {self.what}"
        return RefusedRecord(self.code, what, entity, property=self.name, entity_id=shown_id).error(self.row + 1)


@dataclass(frozen=True, slots=True)
class WrongColumn:
    """A column whose values are of another kind, all of them."""

    name: str
    what: str


Column = pa.ChunkedArray | Misfit | WrongColumn


def id_column(name: str, values: pa.ChunkedArray, *, may_be_null: bool) -> Column:
    """`@id`, `@src` or `@dst`: texts that are not empty."""
    texts = _column(name, ValueType("scalar", Scalar.STRING), values)
    if not isinstance(texts, pa.ChunkedArray):
        return texts
    bad = pc.equal(texts, "") if may_be_null else pc.fill_null(pc.equal(texts, ""), True)
    row = pc.index(bad, True).as_py()
    return texts if row < 0 else Misfit(row, "W010", name, "it must be a string that is not empty")


def value_column(of: Property, values: pa.ChunkedArray) -> Column:
    """The values of a property."""
    if of.type.scalar is Scalar.BLOB:
        row = pc.index(pc.is_valid(values), True).as_py()
        if row >= 0:
            return Misfit(row, NOT_AVAILABLE, of.name, "Blob values are not part of this version")
        return pa.chunked_array([pa.nulls(len(values), arrow_type(of.type))])
    return _column(of.name, of.type, values)


def _column(name: str, of: ValueType, values: pa.ChunkedArray) -> Column:
    if not _same_kind(values.type, arrow_type(of)):
        return WrongColumn(name, f"a column of {values.type} does not fit {of.spelling()}")
    stored = _stored(of, values)
    if isinstance(stored, pa.ChunkedArray):
        return stored
    refused = _reason(of, values, stored)
    return Misfit(stored, "W010" if refused.problem == "shape" else "W009", name, refused.reason)


def _same_kind(kind: pa.DataType, to: pa.DataType) -> bool:
    """Whether values of an Arrow type may be values of another, if each of them fits."""
    if pa.types.is_dictionary(kind):
        return _same_kind(kind.value_type, to)
    if _is_list(to):
        return pa.types.is_null(kind) or (_is_list(kind) and _same_kind(kind.value_type, to.value_type))
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return (
        pa.types.is_null(kind)
        or kind == to
        or (text and pa.types.is_string(to))
        or (number and pa.types.is_floating(to))
        or (number and pa.types.is_integer(to))  # pandas keeps integers with nulls as floats
        or (pa.types.is_date(kind) and pa.types.is_date(to))
        or (pa.types.is_timestamp(kind) and pa.types.is_timestamp(to))
    )


def _stored(of: ValueType, values: pa.ChunkedArray) -> pa.ChunkedArray | int:
    """The values in the stored type, or the place of the first that does not fit."""
    to = arrow_type(of)
    if pa.types.is_null(values.type):
        return pa.chunked_array([pa.nulls(len(values), to)])
    parts: list[pa.Array] = []
    done = 0
    for chunk in values.chunks:
        found = _lists(of, chunk) if _is_list(to) else _scalars(to, chunk)
        if isinstance(found, int):
            return done + found
        parts += found
        done += len(chunk)
    return pa.chunked_array(parts, type=to)


def _scalars(to: pa.DataType, values: pa.Array) -> list[pa.Array] | int:
    """In parts if texts are more than one array can hold.

    Arrow says only that some value does not fit: halves are tried, in order, until it stands alone. That is twice the
    work of one attempt at most.
    """
    whole = _cast(to, values)
    if whole is not None:
        return [whole]
    return _by_halves(values, lambda half: _scalars(to, half))


def _cast(to: pa.DataType, values: pa.Array) -> pa.Array | None:
    """None if some value does not fit."""
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_timestamp(values.type) and values.type.tz is None:
            values = values.cast(pa.timestamp(values.type.unit, "UTC"))
        return values.cast(to, safe=not pa.types.is_floating(to))  # numbers become the nearest float
    except pa.ArrowInvalid:
        return None


def _lists(of: ValueType, lists: pa.Array) -> list[pa.Array] | int:
    """Item by item: what a null or a list outside this part of an array holds is no matter."""
    to = arrow_type(of)
    items = pc.list_flatten(lists)
    if len(items) > _ITEMS_MAX and len(lists) > 1:
        return _by_halves(lists, lambda half: _lists(of, half))
    lengths = pc.list_value_length(lists)
    stored = _scalars(to.value_type, items)
    bad: list[int] = []  # the first list of each kind
    if isinstance(stored, int):
        bad.append(_list_with(lengths, stored))
    if of.kind == "vector":
        wrong = pc.index(pc.not_equal(lengths, of.dimension), True).as_py()
        null = pc.index(pc.is_null(items), True).as_py() if items.null_count else -1
        bad += [wrong] if wrong >= 0 else []
        bad += [_list_with(lengths, null)] if null >= 0 else []
    if bad:
        return min(bad)
    assert not isinstance(stored, int)
    return [list_array(lists, pa.concat_arrays(stored)).cast(to)]


def _list_with(lengths: pa.Array, item: int) -> int:
    """The place of the list that holds an item."""
    return int(np.searchsorted(np.cumsum(pc.fill_null(lengths, 0).to_numpy()), item, side="right"))


def _by_halves(values: pa.Array, convert: Callable[[pa.Array], list[pa.Array] | int]) -> list[pa.Array] | int:
    if len(values) <= 1:
        return 0
    middle = len(values) // 2
    left = convert(values.slice(0, middle))
    if isinstance(left, int):
        return left
    right = convert(values.slice(middle))
    return middle + right if isinstance(right, int) else left + right


def _reason(of: ValueType, values: pa.ChunkedArray, row: int) -> Refused:
    """What is wrong with a value that could not be cast."""
    if of.scalar is Scalar.DATETIME:
        return Refused("value", "a DateTime is a whole millisecond of the years 1 to 9999")
    if of.scalar is Scalar.DATE:
        return Refused("value", "a Date is a whole day of the years 1 to 9999")
    found = value_from_json(of, _plain(_value(values, row)), null_elements=True)
    return found if isinstance(found, Refused) else Refused("value", f"it does not fit {of.spelling()}")


def _value(values: pa.ChunkedArray, row: int) -> object:
    return cast("object", values.slice(row, 1).to_pylist()[0])


def _plain(value: object) -> object:
    """A value as JSON would spell it: here a whole number is an integer, also where a frame keeps it as a float."""
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[object]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
