"""Damage in stored tables: a typed error whatever the library below does, and gone once the file is put back.

Handles stay open across the damage and the repair, as those of a server do.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import StorageFailure
from omnigraph.tables.budget import process_budget

SCHEMA = """
node Port { code: String @key  name: String?  hull: Vector(3)?  tags: [String]? }
edge Ferry: Port -> Port { line: String? }
"""
NAMES = "query q() { match { $p: Port } return { $p.code as c, $p.name as n } order { c } }"
LINES = "query q() { match { $a: Port  $a $f: ferry $b } return { $f.line as l } order { l } }"
INSERT = "query m($c: String) { insert Port { code: $c } }"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph of which this process has nothing in memory."""
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    graph = omnigraph.init(tmp_path / "made", schema=SCHEMA)
    graph.load([{"type": "Port", "data": {"code": f"p{n}", "name": f"P{n}"}} for n in range(30)], mode="append")
    ferries = [{"edge": "Ferry", "from": "p1", "to": f"p{n}", "data": {"line": f"l{n}"}} for n in range(9)]
    graph.load(ferries, mode="append")
    graph.mutate('query m() { delete Port where code = "p7" }')
    budget = process_budget()
    for group in budget.groups():
        budget.drop(budget.held(group))
    os.rename(graph.uri, tmp_path / "moved")  # the library remembers files by their paths
    return str(tmp_path / "moved")


def newest(root: str, pattern: str) -> Path:
    return Path(max(glob.glob(f"{root}/{pattern}"), key=os.path.getmtime))


def panicking(data: bytes) -> bytes:
    """A type that the library does not know, in a version's columns: it gives up instead of telling."""
    assert b"fixed_size_list" in data
    return data.replace(b"fixed_size_list", b"fhxed_size_list")


def emptied(data: bytes) -> bytes:
    return b""


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def zeroed(data: bytes) -> bytes:
    return bytes(len(data))


def inverted(data: bytes) -> bytes:
    return bytes(byte ^ 0x55 for byte in data)


NODE_VERSION, NODE_DATA, NODE_DELETIONS = "nodes/*/_versions/d*", "nodes/*/data/*", "nodes/*/_deletions/*"
EDGE_VERSION, EDGE_DATA = "edges/*/_versions/d*", "edges/*/data/*"
DAMAGES: list[tuple[str, Callable[[bytes], bytes]]] = [
    (NODE_VERSION, panicking),
    *(
        (file, damage)
        for file in (NODE_VERSION, NODE_DATA, NODE_DELETIONS)
        for damage in (emptied, halved, zeroed, inverted)
    ),
    *((file, damage) for file in (EDGE_VERSION, EDGE_DATA) for damage in (emptied, zeroed)),
]


def failure_of(ask: Callable[[], object]) -> StorageFailure | None:
    try:
        ask()
    except StorageFailure as failure:
        return failure
    return None


@pytest.mark.parametrize(("file", "damage"), DAMAGES, ids=lambda each: each if isinstance(each, str) else each.__name__)
def test_damage_is_a_typed_error_and_a_file_put_back_is_read_by_the_same_handle(
    root: str, file: str, damage: Callable[[bytes], bytes]
) -> None:
    graph = omnigraph.open(root)
    path = newest(root, file)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    failures = [
        failure_of(ask)
        for ask in (
            lambda: graph.query(NAMES),
            lambda: graph.query(LINES),
            lambda: [*graph.export()],
            lambda: graph.mutate('query m() { update Port set { name: "x" } where name = "P1" }'),
            lambda: graph.mutate('query m() { delete Port where name = "P2" }'),
            lambda: graph.load([{"type": "Port", "data": {"code": "p3"}}], mode="merge"),
        )
    ]
    assert any(failures)
    for failure in filter(None, failures):
        assert failure.cls == "corrupt"
        assert (failure.retry, failure.effects) in (("recover", None), ("recover", "none"))
        assert root not in str(failure.to_dict())
        assert "nodes" not in failure.message
    head = graph.head.graph_commit_id
    path.write_bytes(whole)
    assert graph.head.graph_commit_id == head
    for handle in (graph, omnigraph.open(root)):
        assert len(handle.query(NAMES)) == 29
        assert handle.query(LINES).scalars() == [f"l{n}" for n in range(9) if n != 7]
    graph.mutate(INSERT, c="new")
    assert len(graph.query(NAMES)) == 30


@pytest.mark.parametrize("damage", [emptied, zeroed, inverted])
def test_damage_that_a_later_column_meets_is_forgotten_too(root: str, damage: Callable[[bytes], bytes]) -> None:
    graph = omnigraph.open(root)
    assert len(graph.query("query q() { match { $p: Port } return { $p.code as c } }")) == 29
    path = newest(root, NODE_DATA)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    failure = failure_of(lambda: graph.query(NAMES))
    assert failure is not None
    assert failure.cls == "corrupt"
    path.write_bytes(whole)
    assert graph.query(NAMES)[0] == {"c": "p0", "n": "P0"}


def test_what_was_read_of_a_damaged_table_is_not_believed_once_damage_was_noticed(root: str) -> None:
    """A changed value is noticed by nobody, a broken version is: what another version showed goes with it."""
    graph = omnigraph.open(root)
    before = graph.head.parent_commit_id
    assert before is not None
    data, version = newest(root, NODE_DATA), newest(root, NODE_VERSION)
    whole, columns = data.read_bytes(), version.read_bytes()
    assert b"P11" in whole
    data.write_bytes(whole.replace(b"P11", b"Q11"))
    older = graph.query(NAMES, snapshot=before)
    assert ("p11", "Q11") in [(row["c"], row["n"]) for row in older]
    version.write_bytes(panicking(columns))
    assert failure_of(lambda: graph.query(NAMES)) is not None
    data.write_bytes(whole)
    version.write_bytes(columns)
    for asked in (before, None):
        found = graph.query(NAMES, snapshot=asked)
        assert ("p11", "P11") in [(row["c"], row["n"]) for row in found]


def test_a_damaged_name_of_a_file_is_a_missing_file_until_the_name_is_put_back(root: str) -> None:
    graph = omnigraph.open(root)
    version, data = newest(root, NODE_VERSION), newest(root, NODE_DATA)
    whole = version.read_bytes()
    name = data.name.encode()
    assert name in whole
    version.write_bytes(whole.replace(name, name.replace(name[:4], b"9999")))
    failure = failure_of(lambda: graph.query(NAMES))
    assert failure is not None
    assert failure.cls == "not_found"
    version.write_bytes(whole)
    assert len(graph.query(NAMES)) == 29
