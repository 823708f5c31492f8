"""The fault laboratory at length: everything that `make test` samples, counted by operation and fault.

    python -m faults                          all of it, in less than half an hour on two cores
    python -m faults --deep                   and the publication alone at its deepest, which takes minutes more
    python -m faults --share 0.05             so much of every part
    python -m faults --first NAME             one of them, by the name that a failure prints
    python -m faults --first NAME --seeds 20  it and the ones after it

NAME is one of
    12711931500         a schedule: 11 digits, 1… before the store, 2… on S3
    20261130            the seed of a random history: any other number
    two-writers:0.1.3   a schedule of the publication alone
    s3:20261130         the seed of a random history on S3
    kills:20261130      the seed of the kills of one root

What fails is printed with its name and with what the store held; the exit code is then 1, as it is when a whole run was
of fewer than 100,000 schedules in process, 500 on S3 or 300 kills.
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
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from faults.counted import IN_FRONT, IN_PROCESS, Found, table

if TYPE_CHECKING:
    from faults.places import Place
    from support.seaweed import S3Server

SCHEDULE_DIGITS = 11
PAIRS, HISTORIES, S3, S3_HISTORIES, KILLS = 2_000, 500, 500, 40, 300
IN_PROCESS_MIN = 100_000
STEPS = 16
SEED = 20261130
_CHUNK = 60
_GENERATION = 64
_FAILURES_SHOWN = 12
_REPORT_SECONDS = 20
_LONG_ON_S3 = 0.2

_T = TypeVar("_T")

_PUBLISHED = {"commit": "a commit", "delete": "a deletion", "create": "a new life"}


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
    from faults.places import Folder

    found = Found()
    for seed in seeds:
        root = os.path.join(_folder(), f"history-{seed}")
        _run_history(found, "history", Folder(root), seed)
        _remove(root)
    return found


def run_s3_histories(seeds: Sequence[int]) -> Found:
    from faults.places import InABucket

    found = Found()
    server = _s3_server()
    for seed in seeds:
        _run_history(found, "S3 history", InABucket(server), seed)
    return found


def _run_history(found: Found, part: str, place: Place, seed: int) -> None:
    from faults.histories import run_seed

    with _failing(found):
        history = run_seed(place, seed, STEPS)
        found.counts[part, "threads of one owner" if history.served else "several processes", "steps"] += STEPS
    found.counts[part, "histories", ""] += 1


def _s3_server() -> S3Server:
    from support.seaweed import shared_server

    return shared_server(Path(_folder()) / "s3-server", os.getpid())


def run_publication(name: str, count: int | None = None) -> Found:
    """All of a setting, or so many from a schedule on."""
    from manifest.schedules import every_run, of_name
    from omnigraph.manifest import publish

    setting, first = of_name(name)
    found = Found()
    with _failing(found):
        for world in itertools.islice(every_run(setting, publish.publish, first), count):
            fault = world.faults[0] if world.faults else "none"
            found.counts["publication", _PUBLISHED[setting.act], fault] += 1
    return found


def run_s3(count: int, first: int, seeds: int, seed: int = SEED) -> Found:
    """A sample, or those from a number on."""
    from faults import s3

    found = Found()
    with s3.bucket(_s3_server(), os.path.join(_folder(), "worlds")) as bucket:
        if first:
            chosen: Iterable[s3.S3Schedule] = _from(first, s3.of_number(first), bucket.schedules(), seeds)
        else:
            every = list(bucket.schedules())
            found.lines.append(f"{len(every)} schedules on S3 exist")
            draw = random.Random(seed)
            # a long world is hundreds of objects, which cost more to put there than the schedule itself
            fewer = [each for each in every if "long" not in each.operation.world or draw.random() < _LONG_ON_S3]
            chosen = draw.sample(fewer, min(count, len(fewer)))
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
    except Exception:  # of the laboratory itself, or of a server it runs: the rest is run all the same
        found.failures.append(traceback.format_exc())


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
    _say(
        f"{len(numbers)} cells of operation, request and fault exist, with what may follow"
        f" {sum(map(len, cells.values()))} schedules; of two faults {len(every_pair)}. Seed {seed}."
    )
    numbers += draw.sample(every_pair, min(pairs, len(every_pair)))
    draw.shuffle(numbers)
    return numbers


def _chunks(numbers: Sequence[_T], size: int = _CHUNK) -> Iterator[Sequence[_T]]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


Work = tuple[Any, ...]
"""A function and what it is called with."""


def _beside(share: float, seed: int) -> list[Work]:
    """What waits more than it works, for answers and for servers: each has a process of its own beside the rest."""
    return [
        (run_s3, math.ceil(S3 * share), 0, 0, seed),
        (run_kills, math.ceil(KILLS * share), seed),
        (run_s3_histories, range(seed, seed + math.ceil(S3_HISTORIES * share))),
    ]


def _pieces(numbers: Sequence[int], share: float, seed: int, *, deep: bool) -> list[Work]:
    """All the rest, in pieces of some seconds."""
    from manifest.schedules import DEEPER, DEEPEST, SETTINGS

    settings = [*(DEEPEST if deep else ()), *(DEEPER if deep or share == 1 else ()), *SETTINGS]
    pieces: list[Work] = [(run_publication, name) for name in settings]
    pieces += [(run_schedules, chunk) for chunk in _chunks(numbers[: math.ceil(len(numbers) * share)])]
    seeds = range(seed, seed + math.ceil(HISTORIES * share))
    return [*pieces, *((run_histories, chunk) for chunk in _chunks(seeds, 10))]


def _workers(count: int) -> ProcessPoolExecutor:
    """Processes that begin with nothing."""
    return ProcessPoolExecutor(count, mp_context=mp.get_context("spawn"), initializer=_begin)


def _outcome(piece: Future[Found]) -> Found:
    try:
        return piece.result()
    except BrokenProcessPool:  # a crash of native code, or the system's killer: what it was doing was not judged
        return Found(failures=["a piece of work was lost: a process that ran some of it died"])


@dataclass
class _Run:
    """What has been found, and how far it is."""

    left: int = 0
    found: Found = field(default_factory=Found)
    began: float = field(default_factory=time.monotonic)
    reported: float = field(default_factory=time.monotonic)

    def take(self, pieces: Iterable[Future[Found]]) -> None:
        """Wait for these, and show what fails as soon as it does."""
        waiting = list(pieces)
        while waiting:
            for each in [each for each in waiting if each.done()]:
                waiting.remove(each)
                self.left -= 1
                part = _outcome(each)
                _shown(part.failures[:_FAILURES_SHOWN])
                self.found.add(part)
            if time.monotonic() - self.reported > _REPORT_SECONDS:
                self.reported = time.monotonic()
                _say(
                    f"{self.reported - self.began:.0f} s: {self.found.counts.total()} done,"
                    f" {len(self.found.failures)} violations, {self.left} pieces left"
                )
            time.sleep(0.2)


def run_all(jobs: int, share: float, seed: int, *, deep: bool = False) -> Found:
    """Everything, or so much of every part.

    Processes end after a generation of pieces, with all that they had in memory. The pool's own way of replacing a
    process after so many pieces leaves the pool without any, now and then, and waits for ever (CPython issue 115634).
    """
    run = _Run()
    with ExitStack() as stack:
        _say("counting what there is to run ...")
        slow = [stack.enter_context(_workers(1)).submit(*work) for work in _beside(share, seed)]
        with _workers(1) as pool:
            pieces = _pieces(pool.submit(_numbers, PAIRS, seed).result(), share, seed, deep=deep)
        run.left = len(pieces) + len(slow)
        _say(f"{run.left} pieces of work begin")
        for generation in _chunks(pieces, _GENERATION * jobs):
            with _workers(jobs) as pool:
                run.take([pool.submit(*work) for work in generation])
        run.take(slow)
    return run.found


def run_some(name: str, seeds: int) -> Found:
    """Those of this name and after it, in this process. Raises LookupError, ValueError for what names nothing."""
    setting, _, number = name.partition(":")
    if setting == "kills":
        from faults.kills import ROUNDS_OF_A_ROOT

        return run_kills(ROUNDS_OF_A_ROOT * max(seeds, 1), int(number))
    if setting == "s3":
        return run_s3_histories(range(int(number), int(number) + max(seeds, 1)))
    if number or not name.isdecimal():
        return run_publication(name, max(seeds, 1))
    first = int(name)
    if len(name) != SCHEDULE_DIGITS:
        return run_histories(range(first, first + seeds))
    if name.startswith("2"):
        return run_s3(0, first, seeds)
    from faults import schedules

    every = itertools.chain(schedules.singles(_folder()), schedules.pairs(_folder())) if seeds > 1 else ()
    chosen = _from(first, schedules.of_number(first), every, seeds)
    for schedule in chosen:
        _say(schedule.name)
    return run_schedules([schedule.number for schedule in chosen])


# --- what is said


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _shown(failures: Iterable[str]) -> None:
    for failure in failures:
        _say(f"\n{failure}")


def lacking(found: Found) -> list[str]:
    """What a whole run lacks."""
    kinds = (
        ("in process", found.total(*IN_PROCESS), IN_PROCESS_MIN),
        ("on S3", found.total("S3"), S3),
        ("kills", found.total("kill"), KILLS),
    )
    return [f"only {count} {what}, and {least} are wanted" for what, count, least in kinds if count < least]


def main() -> int:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--first", metavar="NAME", default="", help="of what is run alone: see above")
    parser.add_argument("--seeds", type=int, default=1, help="how many from there on")
    parser.add_argument("--share", type=float, default=1.0, help="how much of every part, without a name")
    parser.add_argument("--deep", action="store_true", help="the publication alone at its deepest, too")
    parser.add_argument("--seed", type=int, default=SEED, help="what is drawn, where not everything is run")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="faults-", dir=place, ignore_cleanup_errors=True) as folder:
        os.environ["OMNIGRAPH_FAULT_FOLDER"] = folder
        if given.first:
            _begin()
            try:
                found = run_some(given.first, given.seeds)
            except (LookupError, ValueError) as error:
                parser.error(f"--first {given.first}: nothing has this name ({error})")
            _shown(found.failures)
        else:
            found = run_all(given.jobs, given.share, given.seed, deep=given.deep)
    _say(f"\n{table(found.counts)}\n")
    for line in found.lines:
        _say(line)
    in_front, alone = found.total(*IN_FRONT), found.total("publication")
    _say(
        f"{in_front + alone} in-process schedules ({in_front} of whole operations, {alone} of the publication alone),"
        f" {found.total('S3')} on S3, {len(found.failures)} violations, {time.monotonic() - began:.0f} s"
    )
    lacks = lacking(found) if given.share >= 1 and not given.first else []
    for line in lacks:
        _say(line)
    return 1 if found.failures or lacks else 0
