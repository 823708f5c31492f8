"""Loads under a key: what the key recognises, that nothing is read twice that can't be, and what changes is noticed."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine import graph as engine_graph
from omnigraph.engine.graph import Graph
from omnigraph.errors import IdempotencyKeyReused, InvalidData, InvalidRequest, LimitExceeded, ReadSetConflict
from support.schemas import HARBOUR

FIRST = '{"type":"Sailor","id":"s1","data":{"name":"Ines"}}\n'
SECOND = '{"type":"Sailor","id":"s2","data":{"name":"Élan"}}\n'
TEXT = (FIRST + SECOND).encode()


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "harbour", schema=HARBOUR)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "sailors.jsonl"


def load(graph: Graph, data: Any, **more: Any) -> Any:
    return graph.load(data, mode=more.pop("mode", "append"), progress=False, idempotency_key="k", **more)


def sailors(graph: Graph) -> int:
    return next(each.entity_count for each in graph.summary().datasets if each.type_name == "Sailor")


class Dribble(io.RawIOBase):
    """A pipe that gives one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._rest = iter(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        byte = next(self._rest, None)
        if byte is None:
            return 0
        buffer[0] = byte
        return 1


DOORS: dict[str, Callable[[Path], Any]] = {
    "path": lambda place: place,
    "text of a path": str,
    "bytes": Path.read_bytes,
    "bytearray": lambda place: bytearray(place.read_bytes()),
    "memoryview": lambda place: memoryview(place.read_bytes()),
    "every second byte": lambda place: memoryview(bytes(b for byte in place.read_bytes() for b in (byte, 0)))[::2],
    "open file": lambda place: place.open("rb"),
    "open text": lambda place: place.open(encoding="utf-8", newline=""),
    "bytes in memory": lambda place: io.BytesIO(place.read_bytes()),
    "slow pipe": lambda place: Dribble(place.read_bytes()),
}


@pytest.mark.parametrize("data", [TEXT, TEXT.replace(b"\n", b"\r\n\n").rstrip(), b"\xef\xbb\xbf" + TEXT])
def test_a_key_knows_the_same_bytes_at_every_door(graph: Graph, place: Path, data: bytes) -> None:
    place.write_bytes(data)
    first = load(graph, place)
    assert first.total_entities == 2
    for door, given in DOORS.items():
        source = given(place)
        again = load(graph, source)
        assert (again.replayed, again.commit) == (True, first.commit), door
        if hasattr(source, "close"):
            source.close()


@pytest.mark.parametrize("door", DOORS)
def test_every_door_loads_under_a_key_what_it_was_given(graph: Graph, place: Path, door: str) -> None:
    if door == "open text":
        place.write_bytes(TEXT)
    else:
        place.write_bytes(gzip.compress(TEXT))
    source = DOORS[door](place)
    result = load(graph, source)
    assert (result.total_entities, result.replayed, sailors(graph)) == (2, False, 2)
    if hasattr(source, "close"):
        source.close()


def test_lines_of_an_iterable_are_the_lines_of_the_file(graph: Graph, place: Path) -> None:
    place.write_bytes(TEXT)
    first = load(graph, iter(TEXT.decode().splitlines(keepends=True)))
    assert first.total_entities == 2
    for again in (place, TEXT.splitlines(), (line for line in (FIRST.rstrip(), SECOND))):
        assert load(graph, again).replayed


def test_packed_and_plain_are_two_requests(graph: Graph, place: Path) -> None:
    place.write_bytes(gzip.compress(TEXT, mtime=0))
    load(graph, place)
    assert load(graph, gzip.compress(TEXT, mtime=0)).replayed
    with pytest.raises(IdempotencyKeyReused):
        load(graph, TEXT)


@pytest.mark.parametrize("key", [None, "k"])
def test_a_fifo_is_opened_once_and_read_whole(graph: Graph, place: Path, key: str | None) -> None:
    os.mkfifo(place)
    told: list[Any] = []
    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(place.write_bytes, TEXT)
        result = graph.load(place, mode="append", idempotency_key=key, progress=told.append)
        assert writing.result() == len(TEXT)
    assert result.total_entities == 2
    assert told[-1].bytes_read == len(TEXT)
    assert told[-1].bytes_total in (None, len(TEXT))


def test_a_stream_without_line_ends_is_not_held_for_ever(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        left = 8

        def read(self, size: int) -> bytes:
            self.left -= 1
            assert self.left, "this is read on and on"
            return b" " * size

    monkeypatch.setenv("OMNIGRAPH_LOAD_LINE_BYTES", "1000000")
    with pytest.raises(LimitExceeded, match="line 1: "):
        load(omnigraph.open(graph.uri), Endless())


@pytest.mark.parametrize("block", [None, 7])
def test_an_open_file_that_gives_neither_bytes_nor_text_is_refused(graph: Graph, block: Any) -> None:
    class Blocks:
        def read(self, size: int) -> Any:
            return block

    for key in (None, "k"):
        with pytest.raises(InvalidRequest, match="bytes or text"):
            graph.load(Blocks(), mode="append", idempotency_key=key)


# --- a file that changes after its digest was taken


@pytest.fixture
def before_the_write(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """What is to happen when the digest is known and the records are not read yet."""
    steps: list[Callable[[], object]] = []
    really = engine_graph.write

    def write(*given: Any) -> Any:
        for step in steps:
            step()
        return really(*given)

    monkeypatch.setattr(engine_graph, "write", write)
    yield steps
    assert steps


@pytest.mark.parametrize("how", ["one letter", "grown", "cut", "replaced", "packed"])
def test_a_file_that_changes_meanwhile_is_refused_whole(
    graph: Graph, place: Path, before_the_write: list[Callable[[], object]], how: str
) -> None:
    place.write_bytes(gzip.compress(TEXT, mtime=0) if how == "packed" else TEXT)
    times = place.stat()
    head = graph.head

    def change() -> None:
        match how:
            case "one letter":  # not even its time says so
                place.write_bytes(TEXT.replace(b"Ines", b"Ivan"))
                os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
            case "grown":
                place.write_bytes(TEXT + FIRST.replace("s1", "s3").encode())
            case "cut":
                place.write_bytes(FIRST.encode())
            case "replaced":
                other = place.with_name("other")
                other.write_bytes(SECOND.encode())
                other.replace(place)
            case _:
                place.write_bytes(gzip.compress(TEXT, mtime=0) + bytes(3))

    before_the_write.append(change)
    with pytest.raises(ReadSetConflict, match="changed while it was being read") as caught:
        load(graph, place)
    assert (caught.value.effects, caught.value.member) == ("none", "data")
    assert str(place.parent) not in str(caught.value.to_dict())
    assert graph.head == head
    before_the_write[:] = [lambda: None]
    assert load(graph, place).commit


def test_a_file_that_goes_meanwhile_is_refused(
    graph: Graph, place: Path, before_the_write: list[Callable[[], object]]
) -> None:
    place.write_bytes(TEXT)
    before_the_write.append(place.unlink)
    with pytest.raises(InvalidRequest, match=r"sailors\.jsonl") as caught:
        load(graph, place)
    assert caught.value.effects == "none"


def test_a_file_that_is_written_again_with_the_same_bytes_is_the_same(
    graph: Graph, place: Path, before_the_write: list[Callable[[], object]]
) -> None:
    place.write_bytes(TEXT)
    before_the_write.append(lambda: place.write_bytes(TEXT))
    assert load(graph, place).total_entities == 2


# --- gzip


def test_under_a_key_gzip_is_not_expanded_where_it_is_not_accepted(graph: Graph, place: Path) -> None:
    packed = gzip.compress(TEXT)
    place.write_bytes(packed)
    for source in (packed, place, io.BytesIO(packed)):
        with pytest.raises(InvalidData) as caught:
            load(graph, source, accept_gzip=False)
        assert (caught.value.details["code"], caught.value.line_number) == ("W010", 1)


# --- frames


def test_a_frame_is_the_same_however_it_is_cut(graph: Graph) -> None:
    names, ranks = [f"n{n}" for n in range(100)], [None, *range(99)]
    whole = pa.table({"name": names, "rank": pa.array(ranks, pa.int32())})
    first = load(graph, whole, type="Sailor")
    cut = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 60), whole.slice(67)])
    marked = whole.replace_schema_metadata({"made by": "another version"})
    for again in (cut, marked, whole.to_reader(max_chunksize=9)):
        assert load(graph, again, type="Sailor").commit == first.commit
    for other in (whole.slice(1), whole.select(["name"])):
        with pytest.raises(IdempotencyKeyReused):
            load(graph, other, type="Sailor")
