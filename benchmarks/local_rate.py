"""One writer on a local folder with every file fsynced, against a bare script that sends the same requests.

The bare script writes the same row with the same library calls (data file, transaction, detached version), fsyncs the
same files and folders side by side, and publishes a JSON text of the same length by temporary file, fsync, link, fsync
of the folder, unlink. It plans, checks and remembers nothing. Both run in one process that did nothing else before.
"""

from __future__ import annotations

import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa
from lance.dataset import Transaction
from lance.fragment import write_fragments

from benchmarks.graphs import INSERT_READING, SCHEMA
from benchmarks.report import Row, Section, judged
from benchmarks.timing import Times, in_turns, ratio
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init_core
from omnigraph.engine.reading.context import Context

SHARE_LEAST = 0.5
QUIET_RATE = 325
_ROW = pa.schema(
    [
        pa.field("__id", pa.string(), nullable=False),
        pa.field("code", pa.string()),
        pa.field("label", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("station", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Rates:
    commits_a_round: int
    ours: Times
    bare: Times

    @property
    def share(self) -> float:
        """Our rate as a part of the bare script's."""
        return ratio(self.bare, self.ours)


class BareScript:
    """The requests of a commit and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._table = folder / "table"
        self._chain = folder / "chain"
        self._chain.mkdir(parents=True)
        self._dataset = lance.write_dataset(
            _ROW.empty_table(), str(self._table), mode="create", enable_stable_row_ids=True
        )
        self._threads = ThreadPoolExecutor(8)
        self._number = 0

    def commit(self, body: bytes) -> None:
        self._number += 1
        code = f"n{self._number}"
        row = pa.table([[code], [code], ["added"], [0.5], ["station 1"]], schema=_ROW)
        fragments = write_fragments(row, self._dataset, mode="append")
        before = self._dataset.version
        transaction = Transaction(
            read_version=before, operation=lance.LanceOperation.Append(list(fragments)), uuid=str(uuid.uuid4())
        )
        self._dataset = lance.LanceDataset.commit(self._dataset, transaction, detached=True)
        written = [f"data/{fragments[0].files[0].path}"]
        written.append(f"_transactions/{before}-{transaction.uuid}.txn")
        written.append(f"_versions/d{self._dataset.version}.manifest")
        folders = ["data", "_transactions", "_versions"]
        list(self._threads.map(fsync, [self._table / each for each in (*written, *folders)]))
        self._publish(f"{self._number:019d}.json", body)

    def _publish(self, name: str, body: bytes) -> None:
        temporary = self._chain / f".tmp-{self._number}"
        with temporary.open("xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, self._chain / name)
        fsync(self._chain)
        temporary.unlink()


def fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def measure_local_rate(scratch: Path, *, rounds: int, commits: int) -> Rates:
    """Both make so many one-row commits in each round, in turns, on tables that grow alike."""
    folder = scratch / "rate"
    graph = Graph(Context(init_core(str(folder / "graph"), SCHEMA, owner=True)))
    bare = BareScript(folder / "bare")
    count = 0
    body = b""

    def ours() -> None:
        nonlocal count, body
        for _ in range(commits):
            count += 1
            graph.mutate(INSERT_READING, code=f"n{count}")
        newest = min((folder / "graph" / "__manifest" / "main").glob("*.json"))
        body = b" " * newest.stat().st_size

    def theirs() -> None:
        for _ in range(commits):
            bare.commit(body)

    ours()  # the first rows of a type make its folder; nobody is timed warming up
    theirs()
    times = in_turns({"ours": ours, "bare": theirs}, rounds=rounds)
    return Rates(commits, times["ours"], times["bare"])


def disk_seconds(scratch: Path, *, repeats: int = 50) -> float:
    """What one fsync of a small new file costs here, for the reader of the rates."""
    taken: list[float] = []
    for number in range(repeats):
        with (scratch / f"sync-{number}").open("xb") as file:
            file.write(b"x" * 512)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return sorted(taken)[repeats // 2]


def rate_section(rates: Rates, *, one_fsync: float) -> Section:
    n = rates.commits_a_round
    return Section(
        "One writer on a local folder, with fsync",
        "Keyed inserts of one row each, every file on disk before the answer, against a bare script that sends the same "
        f"requests and does nothing else. {len(rates.ours.seconds)} rounds of {n} commits in turns; the share is the "
        "median of the rounds.",
        ("writer", "commits a second", "share", "at least"),
        (
            Row(("bare script", f"{n / rates.bare.median:.0f}", "1", "")),
            Row(
                ("OmniGraph", f"{n / rates.ours.median:.0f}", f"{rates.share:.2f}", f"{SHARE_LEAST}"),
                judged(rates.share >= SHARE_LEAST),
            ),
        ),
        (
            (
                f"One fsync of a small file took {one_fsync * 1000:.2f} ms in this run. Such a bare script reached "
                f"{QUIET_RATE} commits a second on a quiet machine of this kind."
            ),
        ),
    )
