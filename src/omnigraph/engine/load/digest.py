"""The digest of what a load was given, for its idempotency key (interfaces.md 5.4): SHA-256 of the bytes as given.

One definition for all doors: a path, the same file opened, its bytes and standard input say the same. What comes as
records has no bytes of its own; the lines that they are read as stand for them.

A key is looked up before anything is planned, and what it is compared with is the digest. So it has to be known before
the first record is read:

- A regular file is hashed first and read again for its records, which costs a pass over bytes that the system still
  holds, and no memory. It is hashed while it is read, too, so that a file that changed in between is refused.
- What can be read once only (a pipe, standard input, an open file, an iterator) is read here and held in memory as it
  came, packed if it was packed, and forgotten block by block as its records are read.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from os import PathLike
from typing import IO, cast

import pyarrow as pa

from omnigraph.engine.limits import LoadLimits
from omnigraph.engine.load.input import Frame, LoadData
from omnigraph.engine.load.source import (
    CHUNK_BYTES,
    Blocks,
    Chunk,
    DigestedFile,
    HeldLines,
    HeldStream,
    LoadSource,
    chunks,
    is_gzip,
    opened,
    path_of,
    plain_blocks,
    whole_lines,
)

_BATCH_ROWS = 1 << 16


def digest_of(data: LoadSource | Frame, limits: LoadLimits, *, accept_gzip: bool = True) -> tuple[LoadData, str]:
    """The data, still to be read, and their digest in hex. Nothing is expanded here.

    Raises InvalidRequest for a path that can't be read; of what is held also LimitExceeded for a line that is too long,
    InvalidData for items that are no records.
    """
    match data:
        case Frame():
            return data, _frame_digest(data)
        case str() | PathLike():
            path = path_of(data)
            with opened(path) as (file, size):
                if size is None:
                    return _held(Blocks(file, hashed=True), limits, accept_gzip)
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            return DigestedFile(path, sha256), sha256
        case bytes() | bytearray() | memoryview():
            whole = data if not isinstance(data, memoryview) or data.c_contiguous else bytes(data)
            return whole, hashlib.sha256(whole).hexdigest()
        case _ if hasattr(data, "read"):
            return _held(Blocks(cast("IO[bytes] | IO[str]", data), hashed=True), limits, accept_gzip)
        case _:
            return _held_lines(chunks(data, limits))


def _held(blocks: Blocks, limits: LoadLimits, accept_gzip: bool) -> tuple[HeldStream, str]:
    """A plain stream is refused as soon as a line is too long, so that one without line ends is not held for ever."""
    head = blocks.head()
    held: deque[bytes] = deque()
    coming = _kept(plain_blocks(head, blocks), held)
    for _ in coming if is_gzip(head, accept_gzip) else whole_lines(coming, limits.line_bytes, CHUNK_BYTES):
        pass
    return HeldStream(held), blocks.sha256


def _kept(blocks: Iterator[bytes], held: deque[bytes]) -> Iterator[bytes]:
    for block in blocks:
        held.append(block)
        yield block


def _held_lines(coming: Iterator[Chunk]) -> tuple[HeldLines, str]:
    hashed = hashlib.sha256()
    held: deque[Chunk] = deque()
    for chunk in coming:
        hashed.update(chunk.data)
        held.append(chunk)
    return HeldLines(held), hashed.hexdigest()


class _Hashing:
    """A file that keeps nothing of what is written to it but its digest."""

    closed = False

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return len(data)


def _frame_digest(frame: Frame) -> str:
    """Of the type's name and the columns, the same however the rows are cut into chunks. A batch at a time is copied."""
    sink = _Hashing()
    sink.write(frame.type.encode())
    table = frame.table.replace_schema_metadata()  # what libraries note there changes with their versions
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), table.schema) as writer:
        for start in range(0, table.num_rows, _BATCH_ROWS):
            writer.write_table(table.slice(start, _BATCH_ROWS).combine_chunks())
    return sink.hash.hexdigest()
