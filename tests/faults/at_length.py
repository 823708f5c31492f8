"""The fault laboratory at length: everything that `make test` samples, counted by operation and fault.

    python -m faults                            all of it, in half an hour on two cores
    python -m faults --share 0.05               so much of every part
    python -m faults --first NUMBER             one schedule or history, by its number
    python -m faults --first NUMBER --seeds 20  it and the ones after it

A number of eleven digits is a schedule (1… before the store, 2… on S3), any other the seed of a history. What fails is
printed with its number and with what the store held; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import math
import multiprocessing as mp
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SCHEDULE_DIGITS = 11
PAIRS, HISTORIES, S3, KILLS = 4_000, 500, 500, 300
STEPS = 16
SEED = 20261130
_CHUNK = 60
_FAILURES_SHOWN = 12

Key = tuple[str, str, str]  # part, operation, fault


@dataclass
class Found:
    """What a piece of work saw."""

    counts: Counter[Key] = field(default_factory=Counter[Key])
    failures: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])

    def add(self, other: Found) -> None:
        self.counts.update(other.counts)
        self.failures.extend(other.failures)
        self.lines.extend(other.lines)


# --- pieces of work, each run in a process of its own


@cache
def _folder() -> str:
    """A place for roots, in memory if there is one."""
    return tempfile.mkdtemp(prefix="faults-", dir=os.environ["OMNIGRAPH_FAULT_FOLDER"])


def run_schedules(numbers: Sequence[int]) -> Found:
    from faults import schedules

    found = Found()
    for number in numbers:
        schedule = schedules.of_number(number)
        part = "pair" if schedule.second is not None else "single"
        found.counts[part, schedule.operation.name, schedule.kind.name] += 1
        with _failing(found):
            schedules.run(schedule, _folder())
    return found


def run_histories(seeds: Sequence[int]) -> Found:
    from faults.histories import run_seed

    found = Found()
    for seed in seeds:
        root = os.path.join(_folder(), f"history-{seed}")
        with _failing(found):
            history = run_seed(root, seed, STEPS)
            found.counts["history", "threads of one owner" if history.served else "several processes", "steps"] += STEPS
        found.counts["history", "histories", ""] += 1
        _remove(root)
    return found


def run_publication(name: str, deep: bool) -> Found:
    from manifest.schedules import DEEPER, SETTINGS, every_schedule
    from omnigraph.manifest import publish

    setting = next(each for each in DEEPER if each.name == name) if deep else SETTINGS[name]
    found = Found()
    with _failing(found):
        for _ in every_schedule(setting, publish.publish):
            found.counts["publication", f"{name}{', deeper' if deep else ''}", ""] += 1
    return found


def run_s3(count: int, first: int, seeds: int, seed: int = SEED) -> Found:
    """A sample, or those from a number on."""
    from faults import s3
    from support.seaweed import shared_server

    found = Found()
    folder = Path(_folder())
    server = shared_server(folder / "s3-server", os.getpid())
    with s3.bucket(server, str(folder / "worlds")) as bucket:
        if first:
            chosen: Iterable[s3.S3Schedule] = _from(first, s3.of_number(first), bucket.schedules(), seeds)
        else:
            every = list(bucket.schedules())
            found.lines.append(f"{len(every)} schedules on S3 exist")
            chosen = random.Random(seed).sample(every, min(count, len(every)))
        for schedule in chosen:
            found.counts["S3", schedule.operation.name, schedule.kind.name] += 1
            with _failing(found):
                bucket.run(schedule)
    return found


def run_kills(rounds: int, seed: int) -> Found:
    from faults.kills import kill_rounds

    found = Found()
    with _failing(found):
        counts = kill_rounds(Path(_folder()) / "kills", rounds, seed)
        found.lines.append(counts.line())
        found.counts["kill", "a serving process, eight clients", "SIGKILL"] += counts.rounds
    return found


@contextmanager
def _failing(found: Found) -> Iterator[None]:
    try:
        yield
    except AssertionError as violation:
        found.failures.append(str(violation))


def _remove(root: str) -> None:
    import shutil

    shutil.rmtree(root, ignore_errors=True)


def _begin() -> None:
    logging.disable(logging.CRITICAL)  # the lines for operators are wanted nowhere here
    os.environ["OMNIGRAPH_LOCAL_SYNC"] = "off"


# --- what is to be done


def _from(first: int, itself: Any, every: Iterable[Any], seeds: int) -> list[Any]:
    """The one with this number, and those that come after it."""
    if seeds <= 1:
        return [itself]
    return list(itertools.islice((each for each in every if each.number >= first), seeds))


def _numbers(pairs: int, seed: int) -> list[int]:
    """Every fault of every request of every operation, each with one of the things that may follow; and pairs of faults."""
    from faults import schedules

    folder = _folder()
    draw = random.Random(seed)
    cells: dict[tuple[int, bool, int, int], list[int]] = {}
    for each in schedules.singles(folder):
        cells.setdefault((each.operation.number, each.owner, each.request, each.kind.number), []).append(each.number)
    numbers = [draw.choice(each) for each in cells.values()]
    every_pair = [schedule.number for schedule in schedules.pairs(folder)]
    sys.stdout.write(
        f"{len(numbers)} cells of operation, request and fault exist, with what may follow"
        f" {sum(map(len, cells.values()))} schedules; of two faults {len(every_pair)}. Seed {seed}.\n"
    )
    numbers += draw.sample(every_pair, min(pairs, len(every_pair)))
    draw.shuffle(numbers)
    return numbers


def _chunks(numbers: Sequence[int], size: int = _CHUNK) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def run_all(jobs: int, share: float, seed: int) -> Found:
    """Everything, or so much of every part."""
    from manifest.schedules import DEEPER, SETTINGS

    context = mp.get_context("spawn")
    found = Found()
    with context.Pool(1, _begin) as numbering:
        numbers = numbering.apply(_numbers, (PAIRS, seed))
    numbers = numbers[: math.ceil(len(numbers) * share)]
    began = time.monotonic()
    # what waits more than it works, for answers and for servers, does so beside the rest
    with context.Pool(jobs, _begin, maxtasksperchild=24) as pool, context.Pool(2, _begin, maxtasksperchild=1) as slow:
        waiting: list[tuple[str, Any]] = [
            ("S3", slow.apply_async(run_s3, (math.ceil(S3 * share), 0, 0, seed))),
            ("kills", slow.apply_async(run_kills, (math.ceil(KILLS * share), seed))),
        ]
        waiting += [
            (f"publication {setting.name}", pool.apply_async(run_publication, (setting.name, deep)))
            for deep, settings in ((True, DEEPER if share == 1 else ()), (False, tuple(SETTINGS.values())))
            for setting in settings
        ]
        waiting += [("schedules", pool.apply_async(run_schedules, (chunk,))) for chunk in _chunks(numbers)]
        seeds = range(seed, seed + math.ceil(HISTORIES * share))
        waiting += [("histories", pool.apply_async(run_histories, (chunk,))) for chunk in _chunks(seeds, 10)]
        done = 0
        while waiting:
            ready = [each for each in waiting if each[1].ready()]
            waiting = [each for each in waiting if not each[1].ready()]
            for _, result in ready:
                part: Found = result.get()
                for failure in part.failures[:_FAILURES_SHOWN]:
                    sys.stdout.write(f"\n{failure}\n")
                found.add(part)
                done += 1
                if done % 50 == 0:
                    seconds = time.monotonic() - began
                    sys.stdout.write(
                        f"{seconds:.0f} s: {sum(found.counts.values())} done, {len(waiting)} pieces left\n"
                    )
                    sys.stdout.flush()
            time.sleep(0.2)
    return found


def run_some(first: int, seeds: int) -> Found:
    """Those with these numbers, in this process."""
    _begin()
    text = str(first)
    if len(text) != SCHEDULE_DIGITS:
        return run_histories(range(first, first + seeds))
    if text.startswith("2"):
        return run_s3(0, first, seeds)
    from faults import schedules

    every = itertools.chain(schedules.singles(_folder()), schedules.pairs(_folder())) if seeds > 1 else ()
    chosen = _from(first, schedules.of_number(first), every, seeds)
    for schedule in chosen:
        sys.stdout.write(f"{schedule.name}\n")
    return run_schedules([schedule.number for schedule in chosen])


# --- what is said


def table(counts: Counter[Key]) -> str:
    """By operation and family of fault, then by fault, then the rest."""
    from faults.kinds import FAMILIES, family

    lines: list[str] = []
    in_front = {key: n for key, n in counts.items() if key[0] in ("single", "pair")}
    if in_front:
        names = [name for name, _ in FAMILIES]
        cells: Counter[tuple[str, str]] = Counter()
        for (_, operation, fault), n in in_front.items():
            cells[operation, family(fault)] += n
        lines += ["in-process schedules by operation and family of the (first) fault:", ""]
        lines.append(f"  {'':38}" + "".join(f"{name:>12}" for name in (*names, "all")))
        for operation in sorted({operation for operation, _ in cells}):
            row = [cells[operation, name] for name in names]
            lines.append(f"  {operation:38}" + "".join(f"{n or '':>12}" for n in (*row, sum(row))))
        totals = [sum(n for (_, each), n in cells.items() if each == name) for name in names]
        lines.append(f"  {'all':38}" + "".join(f"{n:>12}" for n in (*totals, sum(totals))))
        lines += ["", f"  {'fault':58}{'alone':>8}{'first of 2':>12}"]
        for fault in sorted({fault for _, _, fault in in_front}):
            alone, first = (
                sum(n for (part, _, each), n in in_front.items() if (part, each) == (which, fault))
                for which in ("single", "pair")
            )
            lines.append(f"  {fault:58}{alone:>8}{first:>12}")
    for part, title in (
        ("S3", "schedules on S3 by operation and fault:"),
        ("publication", "schedules of the publication alone:"),
        ("history", "random histories:"),
        ("kill", "kills:"),
    ):
        of_part = {(operation, fault): n for (each, operation, fault), n in counts.items() if each == part}
        if of_part:
            lines += ["", title, ""]
            lines += (
                _matrix(of_part) if part == "S3" else [f"  {a:38}{b:20}{n:>9}" for (a, b), n in sorted(of_part.items())]
            )
    return "\n".join(lines)


def _matrix(cells: dict[tuple[str, str], int]) -> list[str]:
    operations = sorted({operation for operation, _ in cells})
    faults = sorted({fault for _, fault in cells})
    lines = [f"  {number:>2} {fault}" for number, fault in enumerate(faults, start=1)]
    lines += ["", f"  {'':38}" + "".join(f"{number:>5}" for number in range(1, len(faults) + 1)) + f"{'all':>7}"]
    for operation in operations:
        row = [cells.get((operation, fault), 0) for fault in faults]
        lines.append(f"  {operation:38}" + "".join(f"{n or '':>5}" for n in row) + f"{sum(row):>7}")
    totals = [sum(cells.get((operation, fault), 0) for operation in operations) for fault in faults]
    lines.append(f"  {'all':38}" + "".join(f"{n:>5}" for n in totals) + f"{sum(totals):>7}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the number of a schedule, or the first seed of histories")
    parser.add_argument("--seeds", type=int, default=1, help="how many from there on")
    parser.add_argument("--share", type=float, default=1.0, help="how much of every part, without a number")
    parser.add_argument("--seed", type=int, default=SEED, help="what is drawn, where not everything is run")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="faults-", dir=place, ignore_cleanup_errors=True) as folder:
        os.environ["OMNIGRAPH_FAULT_FOLDER"] = folder
        if given.first:
            found = run_some(given.first, given.seeds)
            for failure in found.failures:
                sys.stdout.write(f"\n{failure}\n")
        else:
            found = run_all(given.jobs, given.share, given.seed)
    sys.stdout.write(f"\n{table(found.counts)}\n\n")
    for line in found.lines:
        sys.stdout.write(f"{line}\n")
    in_front = sum(n for (part, _, _), n in found.counts.items() if part in ("single", "pair"))
    alone = sum(n for (part, _, _), n in found.counts.items() if part == "publication")
    on_s3 = sum(n for (part, _, _), n in found.counts.items() if part == "S3")
    sys.stdout.write(
        f"{in_front + alone} in-process schedules ({in_front} of whole operations, {alone} of the publication alone),"
        f" {on_s3} on S3, {len(found.failures)} violations, {time.monotonic() - began:.0f} s\n"
    )
    return 1 if found.failures else 0
