"""How large a manifest becomes: it is written anew by every commit, so its size is a cost like a request."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.graphs import environment
from benchmarks.report import Row, Section, judged
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init_core
from omnigraph.engine.reading.context import Context
from omnigraph.manifest.lineage import WINDOW_LIMIT

BYTES_MAX = 64 * 1024
ACTOR = "agent-7@example.org"


@dataclass(frozen=True, slots=True)
class Size:
    what: str
    bytes: int
    records: int


def schema_of(types: int) -> str:
    """Half node types, half edge types."""
    nodes = [f"node Kind{n:02d} {{ code: String @key  value: F64 }}" for n in range(types // 2)]
    edges = [f"edge Link{n:02d}: Kind{n:02d} -> Kind{n:02d}" for n in range(types - types // 2)]
    return "\n".join(nodes + edges)


def largest_manifest(folder: Path, *, types: int, keys: bool) -> Size:
    """The largest manifest of a graph whose lineage window has just become full once and whose every type has rows.

    Commits are mutations of one row by a named actor; with `keys` each carries an idempotency key.
    """
    with environment({"OMNIGRAPH_LOCAL_SYNC": "off"}):
        graph = Graph(Context(init_core(str(folder), schema_of(types), owner=True), actor=ACTOR))
        largest = Size("", 0, 0)
        for number in range(WINDOW_LIMIT + types):
            key = f"{number:032d}" if keys else None
            graph.mutate(_mutation(number, types), idempotency_key=key)
            manifest = graph.core.head("main").manifest
            size = (folder / _newest(folder)).stat().st_size
            if size > largest.bytes:
                largest = Size("with idempotency keys" if keys else "plain", size, len(manifest.lineage.window))
        assert len(graph.core.head("main").manifest.types) == types
    return largest


def _mutation(number: int, types: int) -> str:
    """An insert of one row; the first commits go through all types."""
    nodes = types // 2
    at = number % types
    if at < nodes:
        return f'query add() {{ insert Kind{at:02d} {{ code: "c{number // types}", value: 1.5 }} }}'
    return f'query add() {{ insert Link{at - nodes:02d} {{ from: "c0", to: "c0" }} }}'


def _newest(folder: Path) -> str:
    return min(str(path.relative_to(folder)) for path in (folder / "__manifest" / "main").glob("*.json"))


def size_section(sizes: list[Size], *, types: int) -> Section:
    return Section(
        "Size of a manifest",
        f"{types} types that all have rows; the largest of all versions up to a full lineage window. Each commit is a "
        "mutation of one row by a named actor, without a message.",
        ("commits", "records in the window", "bytes", "under"),
        tuple(
            Row((s.what, str(s.records), f"{s.bytes:,}", f"{BYTES_MAX:,}"), judged(s.bytes < BYTES_MAX)) for s in sizes
        ),
    )
