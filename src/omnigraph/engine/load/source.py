"""Load input as chunks of whole lines, whatever it came as.

    for chunk in chunks("words.jsonl.gz", limits): …      a path, bytes, a binary or text file, an iterable of records

Gzip is told by its first two bytes and bounded by its expanded size. A path is read one chunk ahead in a thread of its
own; files and iterables that belong to the caller are read in the caller's thread. Knows lines, not what they say; that
a chunk is UTF-8 is for the reader to judge.
"""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike, fspath, fstat
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from omnigraph.engine.load.limits import LoadLimits, expanded_too_far, line_too_long
from omnigraph.errors import InvalidData, InvalidRequest
from omnigraph.lang.values import BASE64_PREFIX

LoadSource = (
    str
    | PathLike[str]
    | bytes
    | bytearray
    | memoryview
    | IO[bytes]
    | IO[str]
    | Iterable[str | bytes | Mapping[str, Any]]
)

CHUNK_BYTES = 32 << 20
_BLOCK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines, each with its line end. `bytes_read` is how far the source has been read, `bytes_total` its size."""

    data: bytes
    first_line: int
    bytes_read: int
    bytes_total: int | None


def chunks(
    source: LoadSource, limits: LoadLimits, *, accept_gzip: bool = True, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """The lines of a source in chunks of about `chunk_bytes`. A `str` is a path. A byte order mark is skipped.

    Raises LimitExceeded for a line longer than `limits.line_bytes` and gzip input that expands beyond
    `limits.expanded_bytes`, InvalidData for damaged gzip data and items that are no records, InvalidRequest for a path
    that can't be read.
    """
    match source:
        case str() | PathLike():
            yield from _one_ahead(_path_chunks(Path(fspath(source)), limits, accept_gzip, chunk_bytes))
        case bytes() | bytearray() | memoryview():
            data = memoryview(source)
            yield from _file_chunks(io.BytesIO(data), data.nbytes, limits, accept_gzip, chunk_bytes)
        case _ if hasattr(source, "read"):
            file = cast("IO[bytes] | IO[str]", source)
            yield from _file_chunks(file, None, limits, accept_gzip, chunk_bytes)
        case _:
            yield from _item_chunks(cast("Iterable[str | bytes | Mapping[str, Any]]", source), limits, chunk_bytes)


def _one_ahead(ready: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same chunks, the next one being read while the present one is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-load") as reader:
        coming = reader.submit(next, ready, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, ready, None)
            yield chunk


def _path_chunks(path: Path, limits: LoadLimits, accept_gzip: bool, chunk_bytes: int) -> Iterator[Chunk]:
    try:
        with path.open("rb") as file:
            yield from _file_chunks(file, fstat(file.fileno()).st_size, limits, accept_gzip, chunk_bytes)
    except OSError as error:
        what = f"the load input {path.name!r} can't be read: {error.strerror}"
        raise InvalidRequest(what, effects="none") from None


class _Counted:
    """A file as blocks of bytes that counts what it gave."""

    def __init__(self, file: IO[bytes] | IO[str]) -> None:
        self._file = file
        self.count = 0

    def block(self, size: int) -> bytes:
        block = self._file.read(size)
        data = block.encode("utf-8", "surrogatepass") if isinstance(block, str) else block
        self.count += len(data)
        return data


def _file_chunks(
    file: IO[bytes] | IO[str], total: int | None, limits: LoadLimits, accept_gzip: bool, chunk_bytes: int
) -> Iterator[Chunk]:
    counted = _Counted(file)
    head = counted.block(_BLOCK_BYTES)
    blocks = _plain_blocks(head, counted)
    if accept_gzip and head.startswith(_GZIP_MAGIC):
        blocks = _expanded_blocks(head, counted, limits.expanded_bytes)
    for data, first_line in _whole_lines(blocks, limits.line_bytes, chunk_bytes):
        yield Chunk(data, first_line, counted.count, total)


def _plain_blocks(head: bytes, counted: _Counted) -> Iterator[bytes]:
    while head:
        yield head
        head = counted.block(_BLOCK_BYTES)


def _expanded_blocks(head: bytes, counted: _Counted, limit: int) -> Iterator[bytes]:
    """Gzip members one after another; zeros may stand behind the last."""
    expanded = 0
    while head:
        stream = zlib.decompressobj(31)
        while not stream.eof:
            try:
                block = stream.decompress(head, _BLOCK_BYTES)
            except zlib.error:
                raise _damaged() from None
            expanded += len(block)
            if expanded > limit:
                raise expanded_too_far(limit, expanded)
            if block:
                yield block
            head = stream.unconsumed_tail
            if not (head or stream.eof or len(block) == _BLOCK_BYTES):  # a full block may leave output behind
                head = counted.block(_BLOCK_BYTES)
                if not head:
                    raise _damaged()
        head = stream.unused_data.lstrip(b"\0")
        while not head and (block := counted.block(_BLOCK_BYTES)):
            head = block.lstrip(b"\0")


def _damaged() -> InvalidData:
    return InvalidData("the gzip data is damaged or ends too early", data_code="W010")


def _whole_lines(blocks: Iterator[bytes], line_bytes: int, chunk_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Blocks as chunks that end where a line ends, each with the number of its first line."""
    line = 1
    pending: list[bytes] = []
    size = 0
    open_from = 0  # where in `pending` the line begins that has no end yet
    first = True
    for block in blocks:
        if first:
            block, first = block.removeprefix(_BYTE_ORDER_MARK), False
        end = block.rfind(b"\n") + 1
        pending.append(block)
        size += len(block)
        if end:
            open_from = size - len(block) + end
        if size - open_from > line_bytes + 2:
            raise line_too_long(line + sum(map(_newlines, pending)), line_bytes, size - open_from)
        if end and size >= chunk_bytes:
            data = b"".join([*pending[:-1], block[:end]])
            yield data, line
            line += _newlines(data)
            pending, size, open_from = [block[end:]], len(block) - end, 0
    data = b"".join(pending)
    if data:
        yield data if data.endswith(b"\n") else data + b"\n", line


def _newlines(data: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")))


def _item_chunks(
    items: Iterable[str | bytes | Mapping[str, Any]], limits: LoadLimits, chunk_bytes: int
) -> Iterator[Chunk]:
    """Items as lines, one each. A line of a text file keeps its place, so that numbers are those of the iterable."""
    pending: list[bytes] = []
    size = 0
    done = 0
    first_line = 1
    for number, item in enumerate(items, 1):
        data = _item_line(item, number)
        if len(data) > limits.line_bytes:
            raise line_too_long(number, limits.line_bytes, len(data))
        pending.append(data)
        size += len(data) + 1
        if size >= chunk_bytes:
            done += size
            yield Chunk(b"\n".join([*pending, b""]), first_line, done, None)
            pending, size, first_line = [], 0, number + 1
    if pending:
        yield Chunk(b"\n".join([*pending, b""]), first_line, done + size, None)


def _item_line(item: str | bytes | Mapping[str, Any], number: int) -> bytes:
    match item:
        case str():
            data = item.encode("utf-8", "surrogatepass")
        case bytes():
            data = item
        case Mapping():
            return _record_json(item, number)
        case _:
            what = f"a record is a mapping or a line of JSON, not a {type(item).__name__}"
            raise InvalidData(f"record {number}: {what}", data_code="W010", line_number=number)
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    if b"\n" in data:
        raise InvalidData(f"record {number}: a record is one line", data_code="W010", line_number=number)
    return data


def _record_json(record: Mapping[str, Any], number: int) -> bytes:
    """A record of Python values as JSON; dates, datetimes, bytes and numpy values as languages.md 20.4 takes them."""
    try:
        plain = record if isinstance(record, dict) else dict(record)
        return json.dumps(plain, separators=(",", ":"), default=_json_value).encode("ascii")
    except (TypeError, ValueError, OverflowError, RecursionError):
        what = "it holds a value that no record can hold"
        raise InvalidData(f"record {number}: {what}", data_code="W010", line_number=number) from None


def _json_value(value: object) -> object:
    match value:
        case dt.datetime():
            zoned = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
            return zoned.replace(tzinfo=None).isoformat()
        case dt.date():
            return value.isoformat()
        case bytes():
            return BASE64_PREFIX + base64.b64encode(value).decode("ascii")
        case np.generic() | np.ndarray():
            return cast(Any, value).tolist()
        case Mapping():
            return dict(cast("Mapping[str, object]", value))
        case _:
            raise TypeError(type(value).__name__)
