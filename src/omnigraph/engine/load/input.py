"""What a caller may hand to `load`: records in any form that can be read as lines, or a frame of one type."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from os import PathLike
from typing import Any

import pyarrow as pa

from omnigraph.engine.load.limits import LoadLimits
from omnigraph.engine.load.source import LoadSource, chunks
from omnigraph.errors import InvalidRequest

LoadInput = LoadSource | pa.Table | pa.RecordBatch | pa.RecordBatchReader | Any


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of one type, named as its properties; edges also `@src`, `@dst`; `@id` for ids."""

    type: str
    table: pa.Table


LoadData = LoadSource | Frame


def load_source(data: LoadInput, type: str | None) -> LoadData:
    """Raises InvalidRequest if a frame comes without `type`, or `type` with records that name their own."""
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
    return data


def digest_of(data: LoadData, limits: LoadLimits) -> tuple[LoadData, str]:
    """The data, readable once more, and the SHA-256 of what it says."""
    hashed = hashlib.sha256()
    if isinstance(data, Frame):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, data.table.schema) as writer:
            writer.write_table(data.table)
        hashed.update(data.type.encode())
        hashed.update(sink.getvalue())
        return data, hashed.hexdigest()
    if isinstance(data, (str, PathLike)):
        try:
            with open(data, "rb") as file:
                return data, hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise InvalidRequest(f"The input can't be read: {error.strerror}.", effects="none") from None
    whole = b"".join(chunk.data for chunk in chunks(data, limits))
    hashed.update(whole)
    return whole, hashed.hexdigest()
