"""`python -m benchmarks`: measure everything in one run, print the tables, write docs/benchmarks.md.

Exits 0 whether targets are met or missed: a number is reported, not tested.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks import CHECKOUT
from benchmarks.budgets import budget_section, count_budgets
from benchmarks.history import history_section, measure_histories
from benchmarks.latency import latency_section, rate_of
from benchmarks.load_ratio import load_section, measure_load
from benchmarks.local_rate import disk_seconds, measure_local_rate, rate_section
from benchmarks.manifest_size import largest_manifest, size_section
from benchmarks.report import Section, document, filled, section_text
from benchmarks.search import FULL as ALL_TEXTS
from benchmarks.search import SMALL as SOME_TEXTS
from benchmarks.search import SearchSize, measure_search, search_section
from benchmarks.servers import object_storage
from benchmarks.social import FULL, SMALL, SocialSize
from benchmarks.social_compare import Social, costs_section, measure_social, social_section
from benchmarks.startup import measure_help, startup_section
from benchmarks.traversal import measure_traversal, traversal_section
from benchmarks.wordnet_data import VARIABLE, WordNet, wordnet

REPORT = CHECKOUT / "docs" / "benchmarks.md"
PACKAGES = ("pylance", "pyarrow", "duckdb", "python-graphblas", "obstore", "ladybug", "lancedb")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done. The full sizes are those that the targets are about."""

    table_rows: int = 262_144
    histories: tuple[int, ...] = (10, 10_000)
    repeats: int = 5
    writers: tuple[int, ...] = (1, 8)
    writer_seconds: float = 10.0
    types: int = 20
    rate_rounds: int = 9
    rate_commits: int = 50
    load_rounds: int = 5
    seeds: int = 1_000
    steps: tuple[int, ...] = (1, 2, 3)
    hop_rounds: int = 7
    social: SocialSize = FULL
    social_rounds: int = 15
    social_seconds: float = 4.0  # for all rounds of one question
    texts: SearchSize = ALL_TEXTS
    search_rounds: int = 9
    help_rounds: int = 11


QUICK = Sizes(
    table_rows=16_384,
    histories=(10, 200),
    repeats=2,
    writer_seconds=3.0,
    rate_rounds=3,
    rate_commits=20,
    load_rounds=2,
    hop_rounds=3,
    social=SMALL,
    social_rounds=3,
    social_seconds=1.0,
    texts=SOME_TEXTS,
    search_rounds=3,
    help_rounds=5,
)

Measurement = tuple[str, Callable[[], Section]]


def on_s3(scratch: Path, sizes: Sizes) -> list[Section]:
    """What is counted or timed at the proxy."""
    with object_storage(scratch) as storage:

        def budgets() -> Section:
            uri = storage.fresh_root()
            counted = count_budgets(storage.proxy, uri, rows=sizes.table_rows, repeats=sizes.repeats)
            return budget_section(counted, rows=sizes.table_rows)

        def histories() -> Section:
            found = measure_histories(storage, scratch, lengths=sizes.histories, repeats=sizes.repeats)
            return history_section(found)

        def latency() -> Section:
            rates = [
                rate_of(storage.proxy, storage.fresh_root(), writers=writers, seconds=sizes.writer_seconds, owner=owner)
                for owner in (True, False)
                for writers in sizes.writers
            ]
            return latency_section(rates)

        named = [("requests", budgets), ("histories", histories), ("added latency", latency)]
        return run(named)


def on_a_folder(scratch: Path, sizes: Sizes, data: WordNet) -> list[Section]:
    """What needs no server."""

    def manifest_sizes() -> Section:
        found = [largest_manifest(scratch / f"size-{keys}", types=sizes.types, keys=keys) for keys in (False, True)]
        return size_section(found, types=sizes.types)

    def rate() -> Section:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:  # without what others left in memory
            asked = alone.submit(measure_local_rate, scratch, rounds=sizes.rate_rounds, commits=sizes.rate_commits)
            rates = asked.result()
        return rate_section(rates, one_fsync=disk_seconds(scratch))

    def traversal() -> Section:
        found = measure_traversal(data, scratch, seeds=sizes.seeds, steps=sizes.steps, rounds=sizes.hop_rounds)
        return traversal_section(found)

    compared: list[Social] = []

    def social() -> Section:
        compared.append(measure_social(sizes.social, scratch, rounds=sizes.social_rounds, seconds=sizes.social_seconds))
        return social_section(compared[0], whole=sizes.social == FULL)

    def search() -> Section:
        found = measure_search(data.path, scratch, size=sizes.texts, rounds=sizes.search_rounds)
        return search_section(found, size=sizes.texts)

    return run(
        [
            ("manifest size", manifest_sizes),
            ("local writer", rate),
            ("loading", lambda: load_section(measure_load(data, scratch, rounds=sizes.load_rounds))),
            ("traversal", traversal),
            ("social graph", social),
            ("what it costs", lambda: costs_section(compared[0])),
            ("search", search),
            ("start-up", lambda: startup_section(measure_help(rounds=sizes.help_rounds))),
        ]
    )


def run(measurements: list[Measurement]) -> list[Section]:
    """One after another, each shown as it ends."""
    sections: list[Section] = []
    for name, measure in measurements:
        print(f"… {name}", file=sys.stderr, flush=True)
        sections.append(measure())
        print(section_text(sections[-1]) + "\n", flush=True)
    return sections


def preface(data: WordNet, seconds: float) -> str:
    """Where and with what."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    load = os.getloadavg()[0]
    machine = (
        "Written by `make bench` and by nothing else. Requests are counted at a proxy in front of a real S3 server "
        "(SeaweedFS); ratios are of times taken in turns within this one run, by medians. Times themselves depend on the "
        f"machine and on what else it did: {os.cpu_count()} processors, {platform.system()} {platform.machine()}, load "
        f"{load:.1f} at the end, {seconds / 60:.0f} minutes in all."
    )
    verdicts = "A verdict stands beside a number only where there is a target: met or **missed**."
    with_what = f"Python {platform.python_version()}, {versions}. Data of the ratios: {data.name}."
    return "\n\n".join(["# Benchmarks", *map(filled, (machine, with_what, verdicts))])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the design promises.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes; prints, and writes no report")
    parser.add_argument("--data", type=Path, help=f"folder of all WordNet (default: ${VARIABLE}; else the excerpt)")
    parser.add_argument("--out", type=Path, help="where to write the report (default: docs/benchmarks.md)")
    parser.add_argument("--scratch", type=Path, help="folder on the disk to be measured (default: the system's)")
    return parser.parse_args()


def main() -> int:
    chosen = arguments()
    sizes = QUICK if chosen.quick else Sizes()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-", dir=chosen.scratch) as folder:
        scratch = Path(folder)
        data = wordnet(chosen.data, scratch)
        sections = [*on_s3(scratch, sizes), *on_a_folder(scratch, sizes, data)]
    out: Path | None = chosen.out or (None if chosen.quick else REPORT)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(document(sections, preface=preface(data, time.perf_counter() - began)), encoding="utf-8")
        print(f"written: {out}")
    missed = [row for section in sections for row in section.missed]
    for row in missed:
        print("missed:", " | ".join(row.cells))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
