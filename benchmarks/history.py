"""A graph with a long history of real commits, made on a local folder and copied to S3 object by object.

Every commit updates the one row of a counter, so the table stays small while the chain grows: what is measured is the
chain, not a table of thousands of fragments. The chain, its log and the schemas are copied whole; of the table what its
newest version names, as after a cleanup.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.budgets import Counted
from benchmarks.graphs import entity, environment, owned
from benchmarks.report import Row, Section, judged
from benchmarks.servers import ObjectStorage
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init_core
from omnigraph.engine.reading.context import Context
from omnigraph.store.base import Store
from omnigraph.store.open import open_store
from support.proxy import S3Proxy, Seen

SCHEMA = "node Counter { name: String @key  value: I64 }"
FIRST = 'query first() { insert Counter { name: "c", value: 1 } }'
BUMP = 'query bump($value: I64) { update Counter set { value: $value } where name = "c" }'
READ = 'query read() { match { $c: Counter { name: "c" } } return { $c.value as value } }'
OPEN_REQUESTS_MAX = 5
_COPIES_AT_ONCE = 32


def make_history(folder: Path, commits: int) -> Graph:
    """A graph with so many commits after its first version; throw-away data, so nothing is fsynced."""
    with environment({"OMNIGRAPH_LOCAL_SYNC": "off"}):
        graph = Graph(Context(init_core(str(folder), SCHEMA, owner=True)))
        graph.mutate(FIRST)
        for value in range(2, commits + 1):
            graph.mutate(BUMP, value=value)
    return graph


def needed(graph: Graph) -> Iterator[str]:
    """The keys of all that opening and reading the head may ask for."""
    core = graph.core
    for folder in ("__manifest", "__lineage", "__schema"):
        for info in core.store.list(folder):
            yield info.key
    yield "__graph.json"
    pin = core.head("main").manifest.types[entity(graph, "Counter").id].pin
    assert pin is not None
    version = core.tables.open(pin)
    named = {f"_versions/d{pin.version}.manifest"}
    for fragment in version.fragments():
        named.update(f"data/{file.path}" for file in fragment.files)
        if fragment.deletion_file is not None:
            named.add(fragment.deletion_file.path(fragment.id))
    yield from (f"{pin.path}/{name}" for name in sorted(named))


def copy(source: Store, target: Store, keys: Iterator[str]) -> None:
    """These objects of one root to another."""

    def one(key: str) -> None:
        target.put_fresh(key, source.read(key).data)

    with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
        for _ in pool.map(one, keys):
            pass


def count_open(proxy: S3Proxy, uri: str, *, commits: int, repeats: int) -> Counted:
    """Open the graph in a process that knows nothing, up to the open table; then check that it is the last state."""
    of = entity(owned(uri), "Counter")
    found: list[tuple[Seen, ...]] = []
    for _ in range(repeats):
        with proxy.recording() as seen:
            graph = owned(uri)
            graph.core.head_snapshot("main").table(of.id)
        found.append(tuple(seen))
        assert graph.query(READ).scalar() == commits
    return Counted(f"open cold, {commits:,} commits", OPEN_REQUESTS_MAX, tuple(found))


def measure_histories(
    storage: ObjectStorage, scratch: Path, *, lengths: tuple[int, ...], repeats: int
) -> list[Counted]:
    """For each length a graph of its own."""
    found: list[Counted] = []
    for commits in lengths:
        graph = make_history(scratch / f"history-{commits}", commits)
        uri = storage.fresh_root()
        with environment(storage.direct):
            copy(graph.core.store, open_store(uri), needed(graph))
        found.append(count_open(storage.proxy, uri, commits=commits, repeats=repeats))
    return found


def history_section(counted: list[Counted]) -> Section:
    return Section(
        "Opening a graph with a long history",
        "One type, from nothing to the open table of the head: no cache, no known head. Every commit is a real one, an "
        "update of the only row, made on a local folder; the chain was copied to S3 whole, of the table what its newest "
        "version names.",
        ("operation", "requests", "at most", "made of"),
        tuple(Row((c.operation, str(c.requests), str(c.most), c.verbs), judged(c.kept)) for c in counted),
    )
