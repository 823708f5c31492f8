"""A whole load (read, parse, check, write, commit) against writing the same columns with Lance and nothing else."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa

from benchmarks.report import Row, Section, Verdict, judged
from benchmarks.timing import Times, in_turns, ratio, shown
from benchmarks.wordnet_data import SCHEMA, WITHOUT, WordNet
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init_core
from omnigraph.engine.reading.context import Context

RATIO_MAX = 4.0


@dataclass(frozen=True, slots=True)
class LoadRatio:
    data: WordNet
    entities: int
    packed: Times
    unpacked: Times
    keyed: Times
    raw: Times
    counts_agree: bool


def fresh_graph(folder: Path) -> Graph:
    shutil.rmtree(folder, ignore_errors=True)
    return Graph(Context(init_core(str(folder), SCHEMA.read_text(), owner=True)))


def stored_columns(graph: Graph) -> dict[str, pa.Table]:
    """By type, all rows as the graph stores them."""
    core = graph.core
    types = core.head("main").manifest.types.values()
    tables = {entry.name: core.tables.open(entry.pin) for entry in types if entry.pin is not None}
    return {name: table.read(table.stored.names) for name, table in tables.items()}


def raw_write(folder: Path, columns: Mapping[str, pa.Table]) -> dict[str, int]:
    """One new dataset a type; rows by type."""
    shutil.rmtree(folder, ignore_errors=True)
    return {
        name: lance.write_dataset(table, str(folder / name), mode="create").count_rows()
        for name, table in columns.items()
    }


def measure_load(data: WordNet, scratch: Path, *, rounds: int) -> LoadRatio:
    """All into new folders each time, in turns. A load is one commit, fsynced, as by default."""
    plain = scratch / "wordnet.jsonl"
    plain.write_bytes(gzip.decompress(data.path.read_bytes()))
    graph = fresh_graph(scratch / "load" / "graph")
    loaded = graph.load(data.path, mode="append", progress=False)
    columns = stored_columns(graph)
    written = raw_write(scratch / "load" / "raw", columns)

    def load(path: Path, key: str | None = None) -> None:
        fresh_graph(scratch / "load" / "graph").load(path, mode="append", progress=False, idempotency_key=key)

    times = in_turns(
        {
            "packed": lambda: load(data.path),
            "raw": lambda: raw_write(scratch / "load" / "raw", columns),
            "unpacked": lambda: load(plain),
            "keyed": lambda: load(plain, "a-key"),
        },
        rounds=rounds,
        settle=os.sync,  # the raw write leaves its data to the system, and the next fsync would have to wait for it
    )
    agree = sum(written.values()) == loaded.total_entities
    return LoadRatio(
        data, loaded.total_entities, times["packed"], times["unpacked"], times["keyed"], times["raw"], agree
    )


def load_section(load: LoadRatio) -> Section:
    def row(what: str, times: Times) -> Row:
        found = ratio(times, load.raw)
        verdict = judged(found <= RATIO_MAX) if load.data.whole else Verdict.NONE
        return Row((what, shown(times.median), f"{found:.2f}", f"{RATIO_MAX:.0f}"), verdict)

    return Section(
        "Loading",
        f"{load.data.name}, {load.entities:,} entities, from one file of JSON records into a new graph on a local folder: "
        "parse, check types, keys and edge ends, write 22 tables, fsync, one commit. Against it `lance.write_dataset` of "
        "the same Arrow columns, which lie in memory, one dataset a type, without fsync. With an idempotency key, which "
        "every load of the command line has, the file is hashed before it is read and again while it is read. "
        f"{len(load.raw.seconds)} rounds in turns.",
        ("what", "median", "ratio", "at most"),
        (
            Row(("raw Lance write", shown(load.raw.median), "1", "")),
            row("load of .jsonl", load.unpacked),
            row("… with an idempotency key", load.keyed),
            row("load of .jsonl.gz", load.packed),
        ),
        () if load.data.whole else (WITHOUT,),
    )
