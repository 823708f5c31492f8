"""What a caller may hand to `load`: records in any form that can be read as lines, or a frame of one type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, cast

import pyarrow as pa

from omnigraph.engine.load.source import LoadSource, Source
from omnigraph.errors import InvalidRequest

LoadInput = LoadSource | pa.Table | pa.RecordBatch | pa.RecordBatchReader | Any


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of one type, named as its properties; edges also `@src`, `@dst`; `@id` for ids."""

    type: str
    table: pa.Table


LoadData = Source | Frame

_ACCEPTED = "a path, bytes, an open file, an iterable of records or of lines of JSON, or a frame (with its `type`)"


def load_source(data: LoadInput, type: str | None) -> LoadSource | Frame:
    """Raises InvalidRequest for what is no load input, a frame without `type`, and `type` with records, which name their
    own.
    """
    if hasattr(data, "__arrow_c_stream__"):
        if type is None:
            raise InvalidRequest("A frame does not say of which type its rows are: give `type`.", effects="none")
        try:
            stream = pa.RecordBatchReader.from_stream(data)
        except pa.ArrowInvalid:
            raise InvalidRequest("A frame is a table; a single column has no name.", effects="none") from None
        return Frame(type, pa.table(stream.read_all()))
    if type is not None:
        raise InvalidRequest("`type` goes with frames; records name their types themselves.", effects="none")
    if isinstance(data, (str, PathLike, memoryview, Sequence)) or hasattr(data, "read"):
        return cast("LoadSource", data)  # a list stays one: it can be read again
    if isinstance(data, Mapping):
        raise InvalidRequest("One record is a mapping, a load is many: give a list of them.", effects="none")
    try:
        return iter(data)
    except TypeError:
        what = f"A load takes {_ACCEPTED}, not {data.__class__.__name__}."
        raise InvalidRequest(what, effects="none") from None
