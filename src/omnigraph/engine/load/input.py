"""What a caller may hand to `load`: records in any form that can be read as lines, or a frame of one type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, cast

import pyarrow as pa

from omnigraph.engine.arguments import check_text
from omnigraph.engine.load.source import LoadSource, Source
from omnigraph.errors import InvalidData, InvalidRequest

LoadInput = LoadSource | pa.Table | pa.RecordBatch | pa.RecordBatchReader | Any


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of one type, named as its properties; edges also `@src`, `@dst`; `@id` for ids. `index` names those columns
    that were the index of a pandas frame.
    """

    type: str
    table: pa.Table
    index: tuple[str, ...] = ()


LoadData = Source | Frame

_ACCEPTED = "a path, bytes, an open file, an iterable of records or of lines of JSON, or a frame (with its `type`)"


def load_source(data: LoadInput, type: str | None) -> LoadSource | Frame:
    """Raises InvalidRequest for what is no load input, a frame without `type`, and `type` with records, which name their
    own; InvalidData (W010) for a frame whose columns are none.
    """
    check_text(type, "type")
    if _is_of(data, "polars", "LazyFrame"):
        raise InvalidRequest("A lazy frame has no rows yet: give what its `collect()` gives.", effects="none")
    if hasattr(data, "__arrow_c_stream__"):
        if type is None:
            raise InvalidRequest("A frame does not say of which type its rows are: give `type`.", effects="none")
        frame = _pandas_frame(data, type) if _is_of(data, "pandas", "DataFrame") else Frame(type, _table(data))
        _check_values(frame.table)
        return frame
    if type is not None:
        raise _not_with_type(data)
    if isinstance(data, (str, PathLike, memoryview, Sequence)) or hasattr(data, "read"):
        return cast("LoadSource", data)  # a list stays one: it can be read again
    if isinstance(data, Mapping):
        what = "One record is a mapping, a load is many: give a list of them, or columns as a frame with its `type`."
        raise InvalidRequest(what, effects="none")
    try:
        return iter(data)
    except TypeError:
        what = f"A load takes {_ACCEPTED}, not {data.__class__.__name__}."
        raise InvalidRequest(what, effects="none") from None


def _is_of(data: object, library: str, name: str) -> bool:
    """Whether it is of a class of a library that need not be there."""
    return any(each.__name__ == name and each.__module__.split(".")[0] == library for each in type(data).__mro__)


def _not_with_type(data: object) -> InvalidRequest:
    if isinstance(data, Mapping):
        return InvalidRequest("A mapping of columns is no frame: give `pyarrow.table(columns)`.", effects="none")
    what = "`type` goes with frames; records name their types themselves."
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes, bytearray)):
        what += " Rows of one type become a frame by `pyarrow.Table.from_pylist(rows)`."
    return InvalidRequest(what, effects="none")


def _table(data: Any) -> pa.Table:
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:
        raise InvalidRequest("A frame is a table; a single column has no name.", effects="none") from None
    return reader.read_all()  # what its source raises is its source's to say


def _check_values(table: pa.Table) -> None:
    """Raises InvalidRequest for text that is no UTF-8, for offsets that lead nowhere: what built the table has not looked,
    and stored, it would harm whoever reads it.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_temporal(column.type):
            continue  # a time of day or a date that is none is refused with its row
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            what = f"The column '{name}' holds what its type can't, such as text that is no UTF-8."
            raise InvalidRequest(what, effects="none") from None


# --- pandas, whose frames have an index beside their columns


def _pandas_frame(data: Any, type: str) -> Frame:
    """With its index as columns where that has names. An unnamed one of integers are the numbers of rows, as they are
    counted, sorted and filtered; unnamed labels of any other kind would be lost.
    """
    names = cast("list[object]", list(data.index.names))
    if names == [None] and data.index.inferred_type in ("integer", "empty"):
        return Frame(type, _pandas_table(data))
    if None in names:
        fix = "name it by `rename_axis(…)`, or drop it by `reset_index(drop=True)`"
        raise InvalidRequest(f"The index of this frame has labels and no name: {fix}.", effects="none")
    twice = next((name for name in names if name in data.columns or names.count(name) > 1), None)
    if twice is not None:
        fix = "drop the index by `reset_index(drop=True)`"
        raise _no_column(f"the index is named as a column is; {fix}", twice)
    return Frame(type, _pandas_table(data.reset_index()), tuple(map(str, names)))


def _pandas_table(data: Any) -> pa.Table:
    twice = next((name for name in data.columns[data.columns.duplicated()]), None)
    if twice is not None:
        raise _no_column("the column comes twice", twice)
    try:
        return pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise _no_column("its values have no common type", _mixed(data)) from None


def _mixed(data: Any) -> object:
    """The first column that Arrow has no type for."""
    for name, values in data.items():
        try:
            pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return name
    return None


def _no_column(what: str, name: object) -> InvalidData:
    return InvalidData(f"column '{name}': {what}.", data_code="W010", property_name=str(name))
