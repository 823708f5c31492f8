"""The graph that requests are counted on, and how a process meets it: opened as the server does, which owns its writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.ambient import random_hex
from omnigraph.engine.graph import Graph, init_graph
from omnigraph.engine.opening import open_core
from omnigraph.engine.reading.context import Context
from omnigraph.engine.writing.publication import publish_version
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.manifest.builder import CommitDraft, base_label, next_version
from omnigraph.manifest.publish import Published
from omnigraph.query.residency import Residency
from omnigraph.tables.budget import MemoryBudget
from omnigraph.tables.columns import ID
from omnigraph.tables.indexes import build_scalar_index
from omnigraph.tables.store import TableStore, new_session

SCHEMA = """
node Reading {
  code: String @key
  label: String
  value: F64
  station: String?
}
node Note { text: String }
edge Precedes: Reading -> Reading
"""

CACHE_BYTES = 1 << 30


def owned(uri: str) -> Graph:
    """The graph as a server that has just started sees it: it owns the writes and has nothing in memory yet."""
    core = open_core(uri, owner=True)
    core.tables = TableStore(core.store, session=new_session(), local_sync=core.tables.local_sync, clock=core.clock)
    core.residency = Residency(MemoryBudget(CACHE_BYTES))
    return Graph(Context(core))


def reading_code(number: int) -> str:
    return f"r{number:08d}"


def readings(rows: int) -> pa.Table:
    """Rows of `Reading`, all different."""
    numbers = np.arange(rows)
    codes = pa.array([reading_code(n) for n in range(rows)])
    return pa.table(
        {
            "code": codes,
            "label": pa.array([f"reading {n % 977} of the day" for n in range(rows)]),
            "value": pa.array(np.sqrt(numbers)),
            "station": pa.array([f"station {n % 53}" for n in range(rows)]),
        }
    )


def make_readings(uri: str, rows: int, *, indexed: bool = True) -> None:
    """A new graph with so many readings in one commit, and an index on their ids in the next unless it is left as it is."""
    graph = init_graph(uri, schema=SCHEMA)
    graph.load(readings(rows), mode="append", type="Reading")
    if indexed:
        index_ids(graph, entity(graph, "Reading"))


def entity(graph: Graph, type_name: str) -> EntityType:
    found = graph.core.head_snapshot("main").catalog.nodes.get(type_name)
    assert found is not None
    return found


def index_ids(graph: Graph, of: EntityType) -> None:
    """Build a scalar index on the ids of a type and publish it, as upkeep will; no part of the product does it
    yet.
    """
    core = graph.core
    head = core.head("main")
    entry = head.manifest.types[of.id]
    assert entry.pin is not None
    done = build_scalar_index(core.tables, entry.pin, ID, label=base_label(head))
    draft = CommitDraft(nonce=random_hex(16), kind="index", actor=None, touched={of.id: "layout"})
    built = next_version(
        head,
        [draft],
        now_us=core.clock.now_us(),
        nonce=random_hex(32),
        types={**head.manifest.types, of.id: replace(entry, pin=done.pin, bytes=done.bytes)},
    )
    outcome = publish_version(core, built, head, staged_at=core.clock.boot_seconds(), kind="index")
    assert isinstance(outcome, Published)


INSERT_READING = """query add($code: String) {
  insert Reading { code: $code, label: "added", value: 0.5, station: "station 1" }
}"""
UPDATE_READING = "query change($code: String, $value: F64) { update Reading set { value: $value } where code = $code }"
INSERT_NOTE = "query note($text: String) { insert Note { text: $text } }"
INSERT_EDGE = "query join($from: String, $to: String) { insert Precedes { from: $from, to: $to } }"
READ_READING = """query one($code: String) {
  match { $r: Reading { code: $code } } return { $r.label, $r.value, $r.station }
}"""
COUNT_READING = "query there($code: String) { match { $r: Reading { code: $code } } return { count($r) as n } }"


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables for the length of the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
