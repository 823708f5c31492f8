"""Load input as chunks of whole lines, whatever it came as.

    for chunk in chunks("words.jsonl.gz", limits): …      a path, bytes, a binary or text file, an iterable of records

Gzip is told by its first two bytes and bounded by its expanded size. A path is read one chunk ahead in a thread of its
own; files and iterables that belong to the caller are read in the caller's thread. What was read before for its digest
(`digest`) comes as `DigestedFile`, `HeldStream` or `HeldLines`. Knows lines, not what they say; that a chunk is UTF-8 is
for the reader to judge.
"""

from __future__ import annotations

import hashlib
import io
import stat
import zlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, fsdecode, fsencode, fstat
from pathlib import Path
from typing import IO, Any, Protocol, cast

import numpy as np

from omnigraph.engine.limits import LoadLimits, expanded_too_far, line_too_long
from omnigraph.engine.load.natives import Example, Natives, Place, RecordLines
from omnigraph.errors import InvalidData, InvalidRequest, ReadSetConflict

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
_HEAD_BYTES_MIN = 3  # what tells gzip and a byte order mark


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines, each with its line end. `bytes_read` is how far the source has been read, `bytes_total` its size.
    `natives` are the values in them that were no JSON before.
    """

    data: bytes
    first_line: int
    bytes_read: int
    bytes_total: int | None
    natives: Natives = field(default_factory=dict[Place, Example])


@dataclass(frozen=True, slots=True)
class DigestedFile:
    """A regular file and the SHA-256 of what it held; it has to hold the same when it is read."""

    path: Path
    sha256: str


class HeldStream:
    """The bytes of a stream that could be read once only, as they came. Each block is given once and then forgotten."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = deque(blocks)
        self.size = sum(map(len, self._blocks))

    def read(self, size: int, /) -> bytes:
        """The next block, whatever its size."""
        return self._blocks.popleft() if self._blocks else b""


@dataclass(frozen=True, slots=True)
class HeldLines:
    """The lines of an iterable that could be gone through once only. Each chunk is given once and then forgotten."""

    chunks: deque[Chunk]


Source = LoadSource | DigestedFile | HeldStream | HeldLines


def chunks(
    source: Source, limits: LoadLimits, *, accept_gzip: bool = True, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """The lines of a source in chunks of about `chunk_bytes`. A `str` is a path. A byte order mark is skipped.

    Raises LimitExceeded for a line longer than `limits.line_bytes` and gzip input that expands beyond
    `limits.expanded_bytes`, InvalidData for damaged gzip data and items that are no records, InvalidRequest for a path
    that can't be read, ReadSetConflict for a file that changed since its digest was taken.
    """
    match source:
        case str() | PathLike():
            yield from _one_ahead(_path_chunks(path_of(source), limits, accept_gzip, chunk_bytes))
        case DigestedFile(path, sha256):
            yield from _one_ahead(_path_chunks(path, limits, accept_gzip, chunk_bytes, sha256))
        case bytes() | bytearray() | memoryview():
            data = memoryview(source)
            yield from _file_chunks(Blocks(io.BytesIO(data)), data.nbytes, limits, accept_gzip, chunk_bytes)
        case HeldStream():
            yield from _file_chunks(Blocks(source), source.size, limits, accept_gzip, chunk_bytes)
        case HeldLines():
            while source.chunks:
                yield source.chunks.popleft()
        case _ if hasattr(source, "read"):
            file = cast("IO[bytes] | IO[str]", source)
            yield from _file_chunks(Blocks(file), None, limits, accept_gzip, chunk_bytes)
        case _:
            yield from _item_chunks(cast("Iterable[str | bytes | Mapping[str, Any]]", source), limits, chunk_bytes)


def can_be_read_again(source: object) -> bool:
    """Whether a second reading gives the records of the first: not so for open files and what is gone through once.

    A pipe has a path too, and is empty the second time.
    """
    if isinstance(source, str | PathLike):
        return path_of(cast("str | PathLike[str]", source)).is_file()
    return isinstance(source, DigestedFile | Sequence)


def _one_ahead(ready: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same chunks, the next one being read while the present one is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-load") as reader:
        coming = reader.submit(next, ready, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, ready, None)
            yield chunk


def path_of(given: str | PathLike[str]) -> Path:
    """Raises InvalidRequest for a text that no file can be named by."""
    path = fsdecode(given)
    try:
        named = b"\0" not in fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair
        named = False
    if not named:
        raise InvalidRequest("the load input can't be read: this is no path", effects="none")
    return Path(path)


@contextmanager
def opened(path: Path) -> Generator[tuple[io.BufferedReader, int | None]]:
    """The file, and its size if it is a regular one. Raises InvalidRequest if it can't be opened or read."""
    try:
        with path.open("rb") as file:
            found = fstat(file.fileno())
            yield file, found.st_size if stat.S_ISREG(found.st_mode) else None
    except OSError as error:
        what = f"the load input {path.name!r} can't be read: {error.strerror}"
        raise InvalidRequest(what, effects="none") from None


def _path_chunks(
    path: Path, limits: LoadLimits, accept_gzip: bool, chunk_bytes: int, sha256: str | None = None
) -> Iterator[Chunk]:
    """Hashes what it reads if `sha256` says what that should be: the time of a file tells less than its bytes."""
    with opened(path) as (file, size):
        blocks = Blocks(file, hashed=sha256 is not None)
        yield from _file_chunks(blocks, size, limits, accept_gzip, chunk_bytes)
    if sha256 is not None and blocks.sha256 != sha256:
        raise ReadSetConflict(
            f"The load input {path.name!r} changed while it was being read.",
            member="data",
            expected=sha256,
            actual=blocks.sha256,
        )


class _Readable(Protocol):
    def read(self, size: int, /) -> object: ...


class Blocks:
    """A file as blocks of bytes that counts what it gave, and hashes it if asked to. Text is given as UTF-8."""

    def __init__(self, file: _Readable, *, hashed: bool = False) -> None:
        self._file = file
        self._hash = hashlib.sha256() if hashed else None
        self.count = 0

    @property
    def sha256(self) -> str:
        """Of all bytes given so far."""
        assert self._hash is not None
        return self._hash.hexdigest()

    def next(self) -> bytes:
        """The next block; empty at the end. Raises InvalidRequest for a file that gives something else."""
        block = self._file.read(_BLOCK_BYTES)
        if isinstance(block, (bytes, bytearray)):
            data = bytes(block)
        elif isinstance(block, str):
            data = block.encode("utf-8", "surrogatepass")
        else:
            what = f"an open file gives bytes or text, not {type(block).__name__}"
            raise InvalidRequest(f"the load input can't be read: {what}", effects="none")
        self.count += len(data)
        if self._hash is not None:
            self._hash.update(data)
        return data

    def head(self) -> bytes:
        """The beginning, as much of it as tells what comes; a pipe may give its first bytes one by one."""
        head = self.next()
        while len(head) < _HEAD_BYTES_MIN and (more := self.next()):
            head += more
        return head


def is_gzip(head: bytes, accept_gzip: bool) -> bool:
    return accept_gzip and head.startswith(_GZIP_MAGIC)


def _file_chunks(
    blocks: Blocks, total: int | None, limits: LoadLimits, accept_gzip: bool, chunk_bytes: int
) -> Iterator[Chunk]:
    head = blocks.head()
    plain = plain_blocks(head, blocks)
    if is_gzip(head, accept_gzip):
        plain = _expanded_blocks(head, blocks, limits.expanded_bytes)
    for data, first_line in whole_lines(plain, limits.line_bytes, chunk_bytes):
        yield Chunk(data, first_line, blocks.count, total)


def plain_blocks(head: bytes, blocks: Blocks) -> Iterator[bytes]:
    """The head and all that follows it."""
    while head:
        yield head
        head = blocks.next()


class _Damaged(Exception):
    """Gzip data that can't be expanded further. Everything that stands before was given."""


def _expanded_blocks(head: bytes, blocks: Blocks, limit: int) -> Iterator[bytes]:
    """Gzip members one after another; zeros may stand behind the last. Raises _Damaged."""
    expanded = 0
    while head:
        stream = zlib.decompressobj(31)
        while not stream.eof:
            before = stream.copy()
            try:
                block = stream.decompress(head, _BLOCK_BYTES)
            except zlib.error:
                yield from _expanded_before_damage(before, head)
                raise _Damaged from None
            expanded += len(block)
            if expanded > limit:
                raise expanded_too_far(limit, expanded)
            if block:
                yield block
            head = stream.unconsumed_tail
            if not (head or stream.eof or len(block) == _BLOCK_BYTES):  # a full block may leave output behind
                head = blocks.next()
                if not head:
                    raise _Damaged
        head = stream.unused_data.lstrip(b"\0")
        while not head and (block := blocks.next()):
            head = block.lstrip(b"\0")


def _expanded_before_damage(
    stream: zlib._Decompress,  # pyright: ignore[reportPrivateUsage] - the stub's name of what has no public one
    head: bytes,
) -> Iterator[bytes]:
    """What stands before the damage: a call that meets it gives nothing, so that ever smaller ones have to be made.

    First ever less is taken out, so that no call gives much; then, as a call looks ahead of what it gives, ever less is
    put in.
    """
    sizes = [_BLOCK_BYTES >> shift for shift in range(1, _BLOCK_BYTES.bit_length())]
    for size in sizes:
        trial = stream.copy()
        try:
            block = trial.decompress(head, size)
        except zlib.error:  # the damage is nearer than that
            continue
        yield block
        stream, head = trial, trial.unconsumed_tail
    for size in sizes:
        trial = stream.copy()
        try:
            block = trial.decompress(head[:size])
        except zlib.error:
            continue
        if block:
            yield block
        stream, head = trial, head[size:]


def whole_lines(blocks: Iterator[bytes], line_bytes: int, chunk_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Blocks as chunks that end where a line ends, each with the number of its first line.

    Raises LimitExceeded for a line longer than `line_bytes`; InvalidData where damage cuts the blocks short, after the
    lines before it, naming the first that is not whole.
    """
    line = 1
    pending: list[bytes] = []
    size = 0
    open_from = 0  # where in `pending` the line begins that has no end yet
    first = True
    damaged = False
    try:
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
    except _Damaged:
        damaged = True
    data = b"".join(pending)
    if damaged:
        data = data[:open_from]
    if data:
        yield data if data.endswith(b"\n") else data + b"\n", line
    if damaged:
        number = line + _newlines(data)
        what = f"line {number}: the gzip data is damaged or ends too early"
        raise InvalidData(what, data_code="W010", line_number=number)


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
    records = RecordLines()
    for number, item in enumerate(items, 1):
        data = records.line(item, number) if isinstance(item, Mapping) else _item_line(item, number)
        if len(data) > limits.line_bytes:
            raise line_too_long(number, limits.line_bytes, len(data))
        pending.append(data)
        size += len(data) + 1
        if size >= chunk_bytes:
            done += size
            yield Chunk(b"\n".join([*pending, b""]), first_line, done, None, records.take_seen())
            pending, size, first_line = [], 0, number + 1
    if pending:
        yield Chunk(b"\n".join([*pending, b""]), first_line, done + size, None, records.take_seen())


def _item_line(item: object, number: int) -> bytes:
    match item:
        case str():
            data = item.encode("utf-8", "surrogatepass")
        case bytes():
            data = item
        case _:
            what = f"a record is a mapping or a line of JSON, not a {type(item).__name__}"
            raise InvalidData(f"record {number}: {what}", data_code="W010", line_number=number)
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    if b"\n" in data:
        raise InvalidData(f"record {number}: a record is one line", data_code="W010", line_number=number)
    return data
