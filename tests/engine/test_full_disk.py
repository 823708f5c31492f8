"""A disk that fills up, or a limit on file sizes: a write is whole or refused, and what was there stays readable.

The limit of this process on the size of a file stands for the full disk, since it meets every file of a write in turn as
it grows: data, deletions, transaction, version, schema, manifest. The library below loses the error of a file's last
write, so these are the cases in which it reports success.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import lance
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import StorageFailure

SCHEMA = """
node Port { code: String @key  name: String?  depth: I64?  draft: F64?  opened: Date?  tags: [String]? }
edge Ferry: Port -> Port { line: String? }
"""
SYNC: list[Literal["full", "off"]] = ["full", "off"]


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def stored(graph: Graph) -> dict[str, list[str]]:
    """The ids of every type as a reader finds them who shares nothing with this process but the disk."""
    found: dict[str, list[str]] = {}
    for each in graph.summary().datasets:
        if each.dataset_path is not None and each.published_dataset_version is not None:
            path = os.path.join(graph.uri, each.dataset_path)
            table = lance.dataset(path, version=int(each.published_dataset_version)).to_table()
            found[each.type_name] = sorted(table.column("__id").to_pylist())
    return found


def swept(graph: Graph, write: Callable[[int], object], sizes: range) -> tuple[int, int]:
    """How many of the writes were answered and how many refused, each under its own limit."""
    done = refused = 0
    for size in sizes:
        before = stored(graph)
        said: StorageFailure | None = None
        try:
            with files_up_to(size):
                write(size)
            done += 1
        except StorageFailure as failure:
            refused += 1
            said = failure
        if said is not None:
            assert (said.cls, said.effects, stored(graph)) == ("local_io", "none", before), size
        assert stored(omnigraph.open(graph.uri)) == stored(graph), size
    return done, refused


@pytest.fixture(params=SYNC)
def graph(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", request.param)
    return omnigraph.init(tmp_path / "g", schema=SCHEMA)


def test_an_insert_that_is_answered_is_stored_whole(graph: Graph) -> None:
    graph.mutate('query m() { insert Port { code: "home" } }')
    text = 'query m($c: String) { insert Port { code: $c, name: $c, depth: 1 } insert Ferry { from: $c, to: "home" } }'
    done, refused = swept(graph, lambda size: graph.mutate(text, c=f"p{size:05}" * 40), range(120, 3_400, 110))
    assert min(done, refused) > 3
    assert len(stored(graph)["Port"]) == 1 + done == 1 + len(stored(graph)["Ferry"])


def test_the_first_rows_of_a_type_are_stored_whole(graph: Graph) -> None:
    for size in range(120, 2_400, 150):
        graph.branches.create(f"b{size}")
    text = 'query m() { insert Port { code: "first" } }'
    branches = {size: graph.on(f"b{size}") for size in range(120, 2_400, 150)}
    answered: list[int] = []

    def write(size: int) -> None:
        branches[size].mutate(text)
        answered.append(size)

    swept(graph, write, range(120, 2_400, 150))
    assert 3 < len(answered) < len(branches)
    for size, branch in branches.items():
        assert stored(branch) == ({"Port": ["first"]} if size in answered else {}), size


def test_updates_and_deletes_are_stored_whole(graph: Graph) -> None:
    rows = [{"type": "Port", "data": {"code": f"p{n:03}"}} for n in range(200)]
    graph.load(rows, mode="append")
    numbers = iter(range(200))
    update = 'query m($c: String) { update Port set { name: "new" } where code = $c }'
    delete = "query m($c: String) { delete Port where code = $c }"
    for text in (update, delete):
        done, refused = swept(
            graph, lambda _, text=text: graph.mutate(text, c=f"p{next(numbers):03}"), range(50, 4_000, 150)
        )
        assert min(done, refused) > 2


def test_a_stream_of_rows_in_several_files_is_stored_whole(graph: Graph) -> None:
    def load(size: int) -> None:
        rows = ({"type": "Port", "data": {"code": f"{size}-{n}", "name": os.urandom(20).hex()}} for n in range(400))
        graph.load(rows, mode="append")

    done, refused = swept(graph, load, range(6_000, 45_000, 3_000))
    assert min(done, refused) > 2


def test_a_schema_change_is_stored_whole(graph: Graph) -> None:
    graph.mutate('query m() { insert Port { code: "home" } }')
    count = 0

    def change(size: int) -> None:
        nonlocal count
        text = SCHEMA.replace("draft: F64?", f"draft: F64?  more{size}: String?")
        graph.schema.apply(text, allow_data_loss=True)
        count += 1
        graph.mutate("query m($c: String) { insert Port { code: $c } }", c=f"{size}")

    swept(graph, change, range(700, 3_200, 250))
    assert count > 2
