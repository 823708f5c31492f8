"""Commits a second where each round trip to storage takes 30 ms longer: on a real bucket waiting is what a write costs."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from benchmarks.graphs import INSERT_READING, SCHEMA, owned
from benchmarks.report import Row, Section, Verdict, judged
from omnigraph.engine.graph import init_graph, open_graph
from support.proxy import S3Proxy

LATENCY_SECONDS = 0.030
ONE_WRITER_LEAST = 5.0
EIGHT_WRITERS_LEAST = 30.0
UPSTREAM = {1: "0.87", 8: "0.40"}


@dataclass(frozen=True, slots=True)
class Rate:
    owner: bool
    writers: int
    commits: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.commits / self.seconds


def rate_of(
    proxy: S3Proxy, uri: str, *, writers: int, seconds: float, owner: bool = True, latency: float = LATENCY_SECONDS
) -> Rate:
    """So many threads insert keyed rows into one branch of a fresh graph, each commit one row, for so long."""
    init_graph(uri, schema=SCHEMA)
    graph = owned(uri) if owner else open_graph(uri)
    graph.mutate(INSERT_READING, code="first")
    proxy.latency_seconds = latency
    counts = [0] * writers
    began = time.perf_counter()
    until = began + seconds
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            while time.perf_counter() < until:
                graph.mutate(INSERT_READING, code=f"w{number}-{counts[number]}")
                counts[number] += 1
        except BaseException as failure:  # told to the main thread, which raises it
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        proxy.latency_seconds = 0.0
    if failures:
        raise failures[0]
    return Rate(owner, writers, sum(counts), time.perf_counter() - began)


def latency_section(rates: list[Rate]) -> Section:
    least = {1: ONE_WRITER_LEAST, 8: EIGHT_WRITERS_LEAST}

    def verdict(rate: Rate) -> Verdict:
        return judged(rate.per_second >= least.get(rate.writers, 0.0))

    return Section(
        "Commits a second with 30 ms added to each round trip",
        "Keyed inserts of one row each into one branch, on S3 through the proxy, by threads of one process: of the one that"
        " owns the graph, and of one that must ask for the head first.",
        ("process", "writers", "commits a second", "at least", "upstream"),
        tuple(
            Row(
                (
                    "owns the graph" if r.owner else "does not own it",
                    str(r.writers),
                    f"{r.per_second:.1f}",
                    f"{least.get(r.writers, 0.0):.0f}",
                    UPSTREAM.get(r.writers, "–"),
                ),
                verdict(r),
            )
            for r in rates
        ),
        ("Writers that wait for a publication share the next version: each has a commit and a receipt of its own.",),
    )
