"""Kill a loading process again and again, and look each time at what stands.

    python killed_loads.py ROOT ROUNDS SEED

A writer loads batches (nodes and the edges between them, one commit each) and says so when one is acknowledged. It is
killed with SIGKILL at a random moment. A second process then opens the graph: every acknowledged batch must be there
whole, at most one more (the one in flight) may be there, whole; the head must be the commit of the newest batch.
Children are forked before any table is opened, so that each costs milliseconds and not the time of the imports.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import time
from collections.abc import Callable

import omnigraph
from omnigraph.engine import graph as _engine  # noqa: F401 - imported before the forks, for their sake

SCHEMA = "node Item { key: String @key  batch: I64 } edge Next: Item -> Item { batch: I64 }"
ROWS = 150


def records(batch: int) -> list[dict[str, object]]:
    keys = [f"{batch}-{i}" for i in range(ROWS)]
    nodes = [{"type": "Item", "data": {"key": key, "batch": batch}} for key in keys]
    edges = [{"edge": "Next", "from": a, "to": b, "data": {"batch": batch}} for a, b in itertools.pairwise(keys)]
    return [*nodes, *edges]


def write_batches(root: str, first: int, acknowledge: int) -> None:
    graph = omnigraph.open(root)
    batch = first
    while True:
        result = graph.load(records(batch), mode="append", progress=False)
        assert result.commit is not None
        os.write(acknowledge, f"{batch} {result.commit.graph_commit_id}\n".encode())
        batch += 1


def look(root: str, acknowledged: dict[int, str], first: int) -> int:
    """The number of batches that stand. Raises AssertionError with what is wrong."""
    graph = omnigraph.open(root)
    items = {
        row["b"]: row["n"]
        for row in graph.query("query q() { match { $i: Item } return { $i.batch as b, count($i) as n } }")
    }
    edges = {
        row["b"]: row["n"]
        for row in graph.query("query q() { match { $i $e:next $j } return { $e.batch as b, count($e.@id) as n } }")
    }
    stand = max(items, default=-1) + 1
    assert items == dict.fromkeys(range(stand), ROWS), f"batches of nodes that are not whole: {items}"
    assert edges == dict.fromkeys(range(stand), ROWS - 1), f"batches of edges that are not whole: {edges}"
    newest = max(acknowledged, default=first - 1)
    assert newest < stand <= newest + 2, f"{newest} was acknowledged, {stand} batches stand"
    log = [commit.graph_commit_id for commit in graph.commits.list()]
    assert len(log) == stand + 1, f"{stand} batches, {len(log)} commits"
    for batch, commit in acknowledged.items():
        assert log[stand - 1 - batch] == commit, f"batch {batch} was acknowledged as {commit}, the log has another"
    assert graph.head.graph_commit_id == log[0]
    return stand


def in_child(work: Callable[[], None]) -> int:
    """Fork; the child runs `work` and ends without cleaning up after the parent."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except AssertionError as wrong:
            sys.stderr.write(f"{wrong}\n")
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def one_round(root: str, first: int, delay: float) -> tuple[dict[int, str], int]:
    reader, writer = os.pipe()
    child = in_child(lambda: write_batches(root, first, writer))
    os.close(writer)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        lines = [line.split() for line in said.read().splitlines()]
    acknowledged = {int(batch): commit for batch, commit in lines}
    reader, writer = os.pipe()

    def tell() -> None:
        os.write(writer, str(look(root, acknowledged, first)).encode())

    child = in_child(tell)
    os.close(writer)
    with os.fdopen(reader) as said:
        stand = said.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise SystemExit(f"killed after {delay:.3f} s with {len(acknowledged)} acknowledged: what stands is wrong")
    return acknowledged, int(stand)


def main(root: str, rounds: int, seed: int) -> None:
    draw = random.Random(seed)
    made = in_child(lambda: omnigraph.init(root, schema=SCHEMA).close())
    if os.waitpid(made, 0)[1] != 0:
        raise SystemExit("the graph could not be made")
    stand = acknowledged = in_flight = 0
    for number in range(rounds):
        delay = draw.uniform(0.0, 0.8)
        sys.stdout.write(f"round {number}: kill after {delay:.3f} s, ")
        sys.stdout.flush()
        told, now = one_round(root, stand, delay)
        acknowledged += len(told)
        in_flight += now - stand - len(told)
        sys.stdout.write(f"{len(told)} acknowledged, {now - stand} stand\n")
        stand = now
    sys.stdout.write(f"{rounds} kills, {acknowledged} acknowledged, {in_flight} landed unacknowledged\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
