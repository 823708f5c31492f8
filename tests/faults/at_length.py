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
    servers:20261130    the seed of what two servers on one bucket go through

What fails is printed with its name and with what the store held; the exit code is then 1, as it is when a whole run was
of fewer than 100,000 schedules in process, 1,000 pairs of faults among them, 500 on S3, 300 kills or 20 stops and kills of
one of two servers, and when no piece of work ends for ten minutes.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import math
import multiprocessing as mp
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from faults.counted import IN_PROCESS, UNMET, Found, table
from faults.pieces import (
    S3_PARTS,
    SEED,
    count_schedules,
    folder,
    from_number,
    run_histories,
    run_kills,
    run_pairs,
    run_publication,
    run_s3,
    run_s3_histories,
    run_schedules,
    run_servers,
)

SCHEDULE_DIGITS = 11
PAIRS, HISTORIES, S3, S3_HISTORIES, KILLS, SERVERS = 1_000, 300, 500, 30, 300, 20
IN_PROCESS_MIN = 100_000
PATIENCE_SECONDS = 600.0
"""Pieces take seconds, the longest of the publication alone some minutes."""
FIRSTS, OF_EACH_FIRST = 800, 2
"""So many of the faults that another may follow; after about a quarter of them nothing is sent that could fail too."""
_CHUNK = 60
_GENERATION = 64
_FAILURES_SHOWN = 12
_REPORT_SECONDS = 20

_T = TypeVar("_T")


# --- what is to be done


def _chunks(numbers: Sequence[_T], size: int = _CHUNK) -> Iterator[Sequence[_T]]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def _part(numbers: Sequence[int], share: float) -> Sequence[int]:
    return numbers[: math.ceil(len(numbers) * share)]


Work = tuple[Any, ...]
"""A function and what it is called with."""


def _beside(share: float, seed: int) -> list[Work]:
    """What waits more than it works, for answers and for servers: each has a process of its own beside the rest."""
    return [
        *((run_s3, math.ceil(S3 * share), 0, 0, seed, part) for part in range(S3_PARTS)),
        (run_kills, math.ceil(KILLS * share), seed),
        (run_servers, math.ceil(SERVERS * share), seed),
        (run_s3_histories, range(seed, seed + math.ceil(S3_HISTORIES * share))),
    ]


def _pieces(numbers: Sequence[int], firsts: Sequence[int], share: float, seed: int, *, deep: bool) -> list[Work]:
    """All the rest, in pieces of some seconds."""
    from manifest.schedules import DEEPER, DEEPEST, SETTINGS

    settings = [*(DEEPEST if deep else ()), *(DEEPER if deep or share == 1 else ()), *SETTINGS]
    pieces: list[Work] = [(run_publication, name) for name in settings]
    pieces += [(run_schedules, chunk) for chunk in _chunks(_part(numbers, share))]
    pieces += [(run_pairs, chunk, OF_EACH_FIRST, seed) for chunk in _chunks(_part(firsts, share), _CHUNK // 4)]
    seeds = range(seed, seed + math.ceil(HISTORIES * share))
    return [*pieces, *((run_histories, chunk) for chunk in _chunks(seeds, 10))]


def _begin() -> None:
    # a crash of native code tells where it was, whatever becomes of standard error meanwhile
    faulthandler.enable(os.fdopen(os.dup(2), "w"))
    logging.disable(logging.CRITICAL)  # the lines for operators are wanted nowhere here
    os.environ["OMNIGRAPH_LOCAL_SYNC"] = "off"


def _remove(root: str) -> None:
    import shutil

    shutil.rmtree(root, ignore_errors=True)


class Stuck(Exception):
    """No piece of work ends any more."""


@contextmanager
def _workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that begin with nothing. They are waited for, unless they are why nothing goes on."""
    pool = ProcessPoolExecutor(count, mp_context=mp.get_context("spawn"), initializer=_begin)
    try:
        yield pool
    except Stuck:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for each in processes:
            each.kill()
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _outcome(piece: Future[Found], work: Work) -> Found:
    try:
        return piece.result()
    except BrokenProcessPool:  # a crash of native code, or the system's killer: what it was doing was not judged
        return Found(failures=[f"a piece of work was lost, {_words(work)}: a process that ran some of it died"])


@dataclass
class Progress:
    """What has been found, and how far it is."""

    patience_seconds: float = PATIENCE_SECONDS
    left: int = 0
    found: Found = field(default_factory=Found)
    began: float = field(default_factory=time.monotonic)
    reported: float = field(default_factory=time.monotonic)

    def take(self, pieces: Mapping[Future[Found], Work]) -> None:
        """Wait for these, and show what fails as soon as it does. Raises Stuck if none of them ends for too long."""
        waiting = dict(pieces)
        ended = time.monotonic()
        while waiting:
            for each in [each for each in waiting if each.done()]:
                work = waiting.pop(each)
                ended = time.monotonic()
                self.left -= 1
                part = _outcome(each, work)
                _shown(part.failures[:_FAILURES_SHOWN])
                self.found.add(part)
            if time.monotonic() - self.reported > _REPORT_SECONDS:
                self.reported = time.monotonic()
                _say(
                    f"{self.reported - self.began:.0f} s: {self.found.counts.total()} done,"
                    f" {len(self.found.failures)} violations, {self.left} pieces left"
                )
            if time.monotonic() - ended > self.patience_seconds:
                raise Stuck(_stuck(waiting, self.patience_seconds))
            time.sleep(0.2)


def _words(work: Work) -> str:
    function, *given = work
    return f"{function.__name__}({', '.join(map(repr, given))})"


def _stuck(waiting: Mapping[Future[Found], Work], seconds: float) -> str:
    begun = [work for each, work in waiting.items() if each.running()] or list(waiting.values())
    lines = [f"  {_words(work)}" for work in begun[:_FAILURES_SHOWN]]
    return "\n".join([f"no piece of work ended for {seconds:.0f} s; {len(waiting)} are waited for, among them", *lines])


def run_in_generations(run: Progress, pieces: Sequence[Work], jobs: int, of_each: int = _GENERATION) -> None:
    """Run these pieces. The processes end after `of_each` pieces for each of them, with all that they had in memory.

    The pool's own way of replacing a process after so many pieces leaves the pool without any, now and then, and waits for
    ever (CPython issue 115634). Raises Stuck.
    """
    for generation in _chunks(pieces, of_each * jobs):
        with _workers(jobs) as pool:
            run.take({pool.submit(*work): work for work in generation})


def run_all(jobs: int, share: float, seed: int, *, deep: bool = False) -> Found:
    """Everything, or so much of every part. Raises Stuck."""
    run = Progress()
    with ExitStack() as stack:
        _say("counting what there is to run ...")
        slow = {stack.enter_context(_workers(1)).submit(*work): work for work in _beside(share, seed)}
        with _workers(1) as pool:
            try:
                numbers, firsts, words = pool.submit(count_schedules, FIRSTS, seed).result(PATIENCE_SECONDS)
            except TimeoutError:
                raise Stuck("what there is to run is not counted yet") from None
        _say(words)
        pieces = _pieces(numbers, firsts, share, seed, deep=deep)
        run.left = len(pieces) + len(slow)
        _say(f"{run.left} pieces of work begin")
        run_in_generations(run, pieces, jobs)
        run.take(slow)
    return run.found


def run_some(name: str, seeds: int) -> Found:
    """Those of this name and after it, in this process. Raises LookupError, ValueError for what names nothing."""
    setting, _, number = name.partition(":")
    if setting == "kills":
        from faults.kills import ROUNDS_OF_A_ROOT

        return run_kills(ROUNDS_OF_A_ROOT * max(seeds, 1), int(number))
    if setting == "servers":
        from faults.two_servers import ROUNDS_OF_A_ROOT as ROUNDS

        return run_servers(ROUNDS * max(seeds, 1), int(number))
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

    itself = schedules.of_number(first)
    later = [each for each in schedules.OPERATIONS if each.number >= itself.operation.number]
    every = schedules.singles if itself.second is None else schedules.pairs
    chosen = from_number(first, itself, every(folder(), later) if seeds > 1 else (), seeds)
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


def summary(found: Found) -> str:
    """How much was run of each part. What met none of its faults, or one of two, is told and not counted."""
    one, two, alone = (found.total(part) for part in ("single", "pair", "publication"))
    unmet = f", {found.total(UNMET)} more whose faults met no request" if found.total(UNMET) else ""
    return (
        f"{one + two + alone} in-process schedules ({one} of one fault, {two} of two, {alone} of the publication"
        f" alone{unmet}), {found.total('S3')} on S3, {len(found.failures)} violations"
    )


def lacking(found: Found) -> list[str]:
    """What a whole run lacks."""
    kinds = (
        ("in process", found.total(*IN_PROCESS), IN_PROCESS_MIN),
        ("of two faults", found.total("pair"), PAIRS),
        ("on S3", found.total("S3"), S3),
        ("kills", found.total("kill"), KILLS),
        ("stops and kills of two servers", found.total("servers"), SERVERS),
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
            try:
                found = run_all(given.jobs, given.share, given.seed, deep=given.deep)
            except Stuck as stuck:
                _say(f"\n{stuck}")
                _remove(folder)
                sys.stdout.flush()
                os._exit(1)  # an ordinary end would wait for the very processes that never end
    _say(f"\n{table(found.counts)}\n")
    for line in found.lines:
        _say(line)
    _say(f"{summary(found)}, {time.monotonic() - began:.0f} s")
    lacks = lacking(found) if given.share >= 1 and not given.first else []
    for line in lacks:
        _say(line)
    return 1 if found.failures or lacks else 0
