"""Storage requests of each operation, Lance's included, counted at a proxy in front of a real S3 server (storage.md 8)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.graphs import (
    COUNT_READING,
    INSERT_EDGE,
    INSERT_NOTE,
    INSERT_READING,
    READ_READING,
    UPDATE_READING,
    entity,
    make_readings,
    owned,
    reading_code,
)
from benchmarks.report import Row, Section, Verdict, judged
from omnigraph.engine.graph import Graph, open_graph
from support.proxy import S3Proxy, Seen


@dataclass(frozen=True, slots=True)
class Counted:
    """The requests of every repeat of one operation. `most`: the budget."""

    operation: str
    most: int | None
    repeats: tuple[tuple[Seen, ...], ...]
    upstream: str = "–"

    @property
    def requests(self) -> int:
        """The greatest number that a repeat took."""
        return max(len(seen) for seen in self.repeats)

    @property
    def verbs(self) -> str:
        """What the costliest repeat was made of."""
        costliest = max(self.repeats, key=len)
        return ", ".join(f"{count} {verb}" for verb, count in sorted(Counter(s.verb for s in costliest).items()))

    @property
    def kept(self) -> bool:
        return self.most is None or self.requests <= self.most


def count_budgets(proxy: S3Proxy, uri: str, *, rows: int, repeats: int) -> list[Counted]:
    """Count every operation on a fresh graph below `uri`. The environment leads to the proxy."""
    make_readings(uri, rows)
    graph = owned(uri)
    counter = _Counter(proxy, repeats)
    found = [*_writes(counter, graph, rows), *_branches(counter, graph), _guest_write(counter, uri)]
    return [*found, *_reads(counter, uri, rows), *_as_it_is_made(counter, f"{uri}-as-made", rows)]


def _as_it_is_made(counter: _Counter, uri: str, rows: int) -> list[Counted]:
    """The same of a table that nobody built an index for, which is what this version leaves. Targets are of the other."""
    make_readings(uri, rows, indexed=False)
    counted = [*_writes(counter, owned(uri), rows)[:2], *_reads(counter, uri, rows)[1:4]]
    return [replace(each, operation=f"{each.operation}; no index", most=None, upstream="–") for each in counted]


class _Counter:
    def __init__(self, proxy: S3Proxy, repeats: int) -> None:
        self.proxy = proxy
        self.repeats = repeats

    def count(
        self, operation: str, most: int | None, act: Callable[[int], object], *, upstream: str = "–", warm_up: int = 1
    ) -> Counted:
        """`act` gets the number of the repeat; the first ones only warm up."""
        found: list[tuple[Seen, ...]] = []
        for number in range(warm_up + self.repeats):
            with self.proxy.recording() as seen:
                act(number)
            if number >= warm_up:
                found.append(tuple(seen))
        return Counted(operation, most, tuple(found), upstream)


def _writes(counter: _Counter, graph: Graph, rows: int) -> list[Counted]:
    def key(number: int) -> str:
        return reading_code(number * 7 % rows)

    return [
        counter.count("insert one keyed row", 7, lambda n: graph.mutate(INSERT_READING, code=f"new{n}"), upstream="18"),
        counter.count(
            "update one row by key",
            11,
            lambda n: graph.mutate(UPDATE_READING, code=key(n), value=float(n)),
            upstream="34",
        ),
        counter.count(
            "update the row that was updated last",
            11,
            lambda n: graph.mutate(UPDATE_READING, code=key(1), value=float(n)),
        ),
        counter.count("insert one row into an unkeyed node type", 4, lambda n: graph.mutate(INSERT_NOTE, text=f"{n}")),
        counter.count(
            "insert one edge between known nodes",
            4,
            lambda n: graph.mutate(INSERT_EDGE, {"from": reading_code(n), "to": reading_code(n + 1)}),
        ),
    ]


NOT_OWNING = "insert one keyed row, not owning the graph"


def _guest_write(counter: _Counter, uri: str) -> Counted:
    """A process that does not own the graph asks for the head before each write, and looks at what it follows beside its
    table commit (`engine/writing/looking.py`). That takes no more than an owner is allowed.
    """
    guest = open_graph(uri)
    guest.mutate(INSERT_READING, code="first of a guest")
    return counter.count(NOT_OWNING, 7, lambda n: guest.mutate(INSERT_READING, code=f"guest{n}"))


def _branches(counter: _Counter, graph: Graph) -> list[Counted]:
    def merged(number: int) -> None:
        graph.branches.merge(f"work{number}")

    created = counter.count("branch create", 1, lambda n: graph.branches.create(f"b{n}"))
    deleted = counter.count("branch delete", 1, lambda n: graph.branches.delete(f"b{n}"))
    found: list[tuple[Seen, ...]] = []
    for number in range(counter.repeats):
        name = f"work{number}"
        graph.branches.create(name)
        graph.on(name).mutate(INSERT_READING, code=f"on {name}")
        found += counter.count("", None, lambda _, name=name: graph.branches.merge(name), warm_up=0).repeats[:1]
    return [created, _without_marker(deleted), Counted("merge that only adopts tables", 1, tuple(found))]


def _without_marker(deleted: Counted) -> Counted:
    """The marker of a deleted branch is no part of the deletion: it only spares later listings."""
    kept = tuple(tuple(s for s in seen if "/.deleted-" not in s.key) for seen in deleted.repeats)
    name = "branch delete, but for its marker" if kept != deleted.repeats else deleted.operation
    return Counted(name, deleted.most, kept)


def _reads(counter: _Counter, uri: str, rows: int) -> list[Counted]:
    of = entity(owned(uri), "Reading")
    graphs: list[Graph] = []
    columns = 3

    def met(_: int) -> None:
        """Opens as a server does at its start, up to the point where a query can be planned and run."""
        graph = owned(uri)
        graph.core.head_snapshot("main").table(of.id)
        graphs.append(graph)

    def keys_only(number: int) -> None:
        graphs[number].query(COUNT_READING, code=reading_code(7 * number % rows))

    def point(number: int) -> None:
        code = next(codes)
        assert graphs[number].query(READ_READING, code=code).one()

    codes = (reading_code((rows // 2 + 11 * n) % rows) for n in itertools.count())  # rows that were not updated above
    found = [
        counter.count("open a graph cold (1 type)", 5, met, warm_up=0),
        counter.count("… the first query of a type then (reads its keys)", None, keys_only, warm_up=0),
        counter.count("… the first point read then (reads where the columns lie)", None, point, warm_up=0),
        counter.count(f"point read by key, {columns} columns, not in memory", columns + 2, point, warm_up=0),
    ]
    for number in range(len(graphs)):
        for _ in range(_READS_UNTIL_RESIDENT):
            point(number)
    found.append(counter.count("point read by key, columns in memory", 0, point, warm_up=0))
    return found


_READS_UNTIL_RESIDENT = 8


def budget_section(counted: list[Counted], *, rows: int) -> Section:
    return Section(
        "Storage requests",
        "A warm process that owns the graph, as a server with the lock does; S3 through a counting proxy; one graph, a "
        f"table of {rows:,} rows. It has an index on the id, which the benchmark builds by itself, as upkeep will: this "
        "version builds none, so the rows that end in “no index” are of a table as it is made today. Lance's own requests "
        "are included; the greatest of several repeats. “Upstream” is what the upstream project's notes of v0.16 say.",
        ("operation", "requests", "at most", "upstream", "made of"),
        tuple(
            Row(
                (c.operation, str(c.requests), "–" if c.most is None else str(c.most), c.upstream, c.verbs or "–"),
                Verdict.NONE if c.most is None else judged(c.kept),
            )
            for c in counted
        ),
        (
            (
                "On object storage this version has no lock: there a server asks for the head before each write and read, "
                "one request more, and looks at it once for each version while the table commit is under way, as in the "
                "row “not owning the graph”. Each one-row write adds a small file to its "
                "table, and the first query of a new process reads the keys of every such file, until tables are "
                "compacted, which is still to come. A column that is not in memory is looked up row by row a few times "
                "before it is read whole."
            ),
        ),
    )
