"""A handle that outlives its graph: what it opened was removed, made anew at the same address or put back from a copy.

Nothing that it does may harm what stands there now, and it says that what it opened is gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.lanes import FOLDER as LANES
from omnigraph.engine.opening import GRAPH_KEY, init_core
from omnigraph.engine.reading.context import Context
from omnigraph.engine.reading.selectors import parse_commit_id
from omnigraph.errors import GraphNotFound, GraphReplaced
from omnigraph.manifest.codec import from_bytes, to_bytes
from omnigraph.manifest.keys import version_key
from omnigraph.store.faults import FaultStore, Meanwhile, Rule
from omnigraph.store.open import open_store
from support.clocks import TickingClock

SCHEMA = "node Port { code: String @key  name: String? }"
INSERT = "query add($c: String) { insert Port { code: $c } }"
READ = "query q() { match { $p: Port } return { $p.code as c } order { c } }"


def add(graph: Graph, code: str, **more: Any) -> str:
    commit = graph.mutate(INSERT, c=code, **more).commit
    assert commit is not None
    return commit.graph_commit_id


def codes(graph: Graph) -> list[str]:
    return graph.query(READ).scalars()


def objects(root: str) -> dict[str, bytes]:
    """All that lies under an address, but for the lock files of lanes."""
    store = open_store(root)
    return {info.key: store.read(info.key).data for info in list(store.list("")) if not info.key.startswith(LANES)}


def remove(root: str) -> None:
    store = open_store(root)
    store.delete([info.key for info in list(store.list(""))])


def put_back(root: str, copy: Mapping[str, bytes]) -> None:
    remove(root)
    store = open_store(root)
    for key, data in copy.items():
        store.put_fresh(key, data)


class Old:
    """A graph of four versions and a branch, open in a process; and a copy of how it was two commits ago."""

    def __init__(self, root: str, *, owner: bool = False) -> None:
        self.root = root
        self.clock = TickingClock(now_us=2_000_000_000_000_000)
        self.store = FaultStore(open_store(root))
        core = init_core(root, SCHEMA, store=self.store, clock=self.clock, owner=owner)
        self.graph = Graph(Context(core))
        add(self.graph, "A", idempotency_key="of-A")
        self.graph.branches.create("b")
        add(self.graph.on("b"), "OnB")
        self.copy = objects(root)
        add(self.graph, "B")
        self.last = add(self.graph, "C")

    def asked(self, act: Callable[[], object]) -> list[str]:
        before = len(self.store.requests)
        act()
        return [each.verb for each in self.store.requests[before:]]


@pytest.fixture
def old(any_root: str) -> Old:
    return Old(any_root)


def made_anew(length: int) -> Callable[[Old], None]:
    def replace(old: Old) -> None:
        remove(old.root)
        graph = omnigraph.init(old.root, schema=SCHEMA)
        for number in range(1, length):
            add(graph, f"new{number}")

    return replace


REPLACED: dict[str, Callable[[Old], None]] = {
    "removed": lambda old: remove(old.root),
    "made anew": made_anew(2),
    "made anew, of the same length": made_anew(4),
    "made anew, longer": made_anew(6),
    "put back from an older copy": lambda old: put_back(old.root, old.copy),
}

WRITES: dict[str, Callable[[Graph], Any]] = {
    "mutate": lambda graph: add(graph, "stale"),
    "update": lambda graph: graph.mutate('query q() { update Port set { name: "x" } where code = "A" }'),
    "mutate under a key": lambda graph: add(graph, "stale", idempotency_key="k"),
    "repeat under a key": lambda graph: add(graph, "A", idempotency_key="of-A"),
    "mutate nothing": lambda graph: graph.mutate('query q() { delete Port where code = "Z" }'),
    "load": lambda graph: graph.load([{"type": "Port", "data": {"code": "stale"}}], mode="append"),
    "load into a fork": lambda graph: graph.load(
        [{"type": "Port", "data": {"code": "stale"}}], mode="append", branch="new", from_="main"
    ),
    "branch create": lambda graph: graph.branches.create("new"),
    "merge": lambda graph: graph.branches.merge("main", "b"),
    "schema": lambda graph: graph.schema.apply(SCHEMA + " node New { k: String @key }"),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_write_is_refused_and_changes_nothing_that_stands_there(old: Old, name: str) -> None:
    REPLACED[name](old)
    before = visible(old.root)
    for write in WRITES.values():
        with pytest.raises(GraphReplaced) as caught:
            write(old.graph)
        error = caught.value
        assert (error.code, error.effects, error.retry) == ("graph_replaced", "none", "recover")
        assert old.root not in error.message
        assert visible(old.root) == before


def test_a_list_is_refused_where_a_copy_that_was_put_back_has_grown_as_long(old: Old) -> None:
    put_back(old.root, old.copy)
    other = omnigraph.open(old.root)
    for code in ("X", "Y"):
        add(other, code)
    with pytest.raises(GraphReplaced):
        old.graph.branches.list()
    add(other, "Z")
    with pytest.raises(GraphReplaced):
        old.graph.branches.list()


def visible(root: str) -> dict[str, bytes]:
    """What makes up a graph: tables that nothing refers to are inert."""
    return {key: data for key, data in objects(root).items() if key.startswith("__")}


@pytest.mark.parametrize("name", REPLACED)
def test_a_read_is_refused(old: Old, name: str) -> None:
    assert codes(old.graph) == ["A", "B", "C"]
    REPLACED[name](old)
    old.clock.advance(6)  # an object store is not asked again about what it has just shown
    for read in (
        lambda: codes(old.graph),
        lambda: old.graph.head,
        lambda: old.graph.branches.list(),
        lambda: old.graph.info(),
        lambda: list(old.graph.commits.list()),
        lambda: old.graph.commits.outcome(old.last),
        lambda: codes(old.graph.at(old.last)),
    ):
        with pytest.raises(GraphReplaced):
            read()


def test_the_new_graph_lives_on_untouched(old: Old) -> None:
    made_anew(2)(old)
    new = omnigraph.open(old.root)
    found = codes(new)
    for write in WRITES.values():
        with pytest.raises(GraphReplaced):
            write(old.graph)
    add(new, "later")
    assert codes(new) == codes(omnigraph.open(old.root)) == sorted([*found, "later"])
    assert [branch.name for branch in new.branches.list()] == ["main"]


def test_a_copy_that_was_put_back_goes_on_where_it_was_made(old: Old) -> None:
    knew_no_more = omnigraph.open(old.root)
    put_back(old.root, old.copy)
    with pytest.raises(GraphReplaced):
        add(old.graph, "stale")
    with pytest.raises(GraphReplaced):
        add(knew_no_more, "stale")
    again = omnigraph.open(old.root)
    assert codes(again) == ["A"]
    add(again, "D")
    assert codes(omnigraph.open(old.root)) == ["A", "D"]


def test_a_copy_that_was_put_back_whole_is_the_same_graph(old: Old) -> None:
    put_back(old.root, objects(old.root))
    old.clock.advance(6)
    assert codes(old.graph) == ["A", "B", "C"]
    add(old.graph, "D")
    assert codes(omnigraph.open(old.root)) == ["A", "B", "C", "D"]


def test_what_was_removed_is_not_there_to_be_opened(old: Old) -> None:
    remove(old.root)
    with pytest.raises(GraphReplaced):
        add(old.graph, "stale")
    with pytest.raises(GraphNotFound):
        omnigraph.open(old.root)
    assert omnigraph.init(old.root, schema=SCHEMA).id != old.graph.id


def test_a_branch_that_the_handle_never_met_is_not_taken_for_its_own(old: Old) -> None:
    made_anew(2)(old)
    omnigraph.open(old.root).branches.create("theirs")
    for act in (
        lambda: codes(old.graph.on("theirs")),
        lambda: add(old.graph.on("theirs"), "stale"),
        lambda: old.graph.branches.create("more", from_="theirs"),
        lambda: old.graph.branches.delete("theirs"),
    ):
        with pytest.raises(GraphReplaced):
            act()


def test_the_owner_of_a_folder_looks_before_it_publishes_too(tmp_path: Path) -> None:
    """Its lock does not keep anybody from removing the folder."""
    old = Old(str(tmp_path / "g"), owner=True)
    made_anew(2)(old)
    before = visible(old.root)
    for write in WRITES.values():
        with pytest.raises(GraphReplaced):
            write(old.graph)
    assert visible(old.root) == before


def test_a_graph_that_is_made_anew_while_a_load_is_read_is_left_alone(old: Old) -> None:
    def records() -> Iterator[dict[str, Any]]:
        yield {"type": "Port", "data": {"code": "stale"}}
        made_anew(2)(old)
        old.clock.advance(60)

    with pytest.raises(GraphReplaced) as caught:
        old.graph.load(records(), mode="append", progress=False)
    assert caught.value.effects == "none"
    assert codes(omnigraph.open(old.root)) == ["new1"]


def test_what_a_look_costs(old: Old) -> None:
    """Requests of our own; a disk is always looked at, an object store only where it was not seen lately."""
    local = old.store.local_path is not None
    insert = lambda: add(old.graph, str(len(old.store.requests)))  # noqa: E731
    insert()
    assert old.asked(insert) == (["read", "read", "head", "create"] if local else ["read", "head", "create"])
    assert old.asked(lambda: codes(old.graph)) == (["read", "read"] if local else ["read"])
    assert old.asked(lambda: codes(old.graph)) == (["read", "head"] if local else ["read"])
    old.clock.advance(6)
    assert old.asked(lambda: codes(old.graph)) == ["read", "head"]
    assert old.asked(lambda: codes(old.graph)) == (["read", "head"] if local else ["read"])
    add(omnigraph.open(old.root), "theirs")
    assert old.asked(insert) == ["read", "read", *(["head"] if local else []), "create"]
    old.clock.advance(6)
    assert old.asked(lambda: codes(old.graph)) == (["read", "read"] if local else ["read", "head"])


def test_the_owner_on_an_object_store_pays_for_no_look(s3_root: str) -> None:
    old = Old(s3_root, owner=True)
    old.clock.advance(60)
    assert old.asked(lambda: add(old.graph, "D")) == ["create"]
    old.graph.branches.list()
    assert old.asked(lambda: old.graph.branches.create("c")) == ["create"]
    assert old.asked(lambda: codes(old.graph)) == []


def test_a_stray_of_another_graph_above_the_chain_is_refused_and_the_rest_still_reads(tmp_path: Path) -> None:
    """What a program left that did not look."""
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    first = add(graph, "A")
    store = open_store(tmp_path / "g")
    top = from_bytes(store.read(version_key("main", 2)).data, branch="main", version=2)
    foreign = json.loads(to_bytes(top)) | {"graph": "01J0000000000000000000OTHR", "version": 5}
    store.put_fresh(version_key("main", 5), json.dumps(foreign).encode())
    again = omnigraph.open(tmp_path / "g")
    assert again.id == graph.id
    for act in (lambda: codes(again), lambda: add(again, "B")):
        with pytest.raises(GraphReplaced):
            act()
    assert codes(again.at(first)) == ["A"]
    again.branches.create("rescued", from_=first)
    assert codes(again.on("rescued")) == ["A"]


@pytest.mark.parametrize("damage", [None, b"", b"{}"])
def test_an_identity_that_can_not_be_read_says_nothing_against_the_graph(tmp_path: Path, damage: bytes | None) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    add(graph, "A")
    identity = tmp_path / "g" / GRAPH_KEY
    identity.unlink()
    if damage is not None:
        identity.write_bytes(damage)
    again = omnigraph.open(tmp_path / "g")
    assert (again.id, codes(again)) == (graph.id, ["A"])


def slept_through(old: Old) -> None:
    """Others write twice, a day and an hour pass, and clean-up removes every version of `main` but the newest."""
    other = omnigraph.open(old.root)
    add(other, "D")
    head = parse_commit_id(add(other, "E"))
    old.clock.advance(25 * 3600.0)
    open_store(old.root).delete([version_key("main", version) for version in range(1, head.version)])


@pytest.mark.parametrize("owner", [False, True])
def test_who_slept_while_its_version_was_superseded_and_cleaned_up_goes_on_from_the_head(
    tmp_path: Path, owner: bool
) -> None:
    """That version is gone as after a replacement, but the same graph stands there, further on."""
    old = Old(str(tmp_path / "g"), owner=owner)
    slept_through(old)
    add(old.graph, "F")
    assert codes(old.graph) == codes(omnigraph.open(old.root)) == ["A", "B", "C", "D", "E", "F"]


def test_a_read_that_sleeps_between_its_looks_reads_the_head(tmp_path: Path) -> None:
    old = Old(str(tmp_path / "g"))
    assert codes(old.graph) == ["A", "B", "C"]
    old.store.add(Rule(Meanwhile(before=lambda: slept_through(old)), verb="head"))
    assert codes(old.graph) == ["A", "B", "C", "D", "E"]
