"""The pieces of work of the long run, each done in a process of its own and answered with what was found.

Nothing of the program is imported before a piece needs it, so that a process has what its own pieces brought.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faults.counted import UNMET, Found

if TYPE_CHECKING:
    from faults import schedules
    from faults.places import Place
    from support.seaweed import S3Server

STEPS = 16
SEED = 20261130
S3_PARTS = 3  # one alone would take as long as all the rest
_LONG_ON_S3 = 0.2
_PUBLISHED = {"commit": "a commit", "delete": "a deletion", "create": "a new life"}


@cache
def folder() -> str:
    """A place for roots, in memory if there is one."""
    return tempfile.mkdtemp(prefix="faults-", dir=os.environ["OMNIGRAPH_FAULT_FOLDER"])


def run_schedules(numbers: Sequence[int]) -> Found:
    from faults import schedules

    found = Found()
    for number in numbers:
        _run_schedule(found, schedules.of_number(number))
    return found


def run_pairs(numbers: Sequence[int], of_each: int, seed: int) -> Found:
    """Of each of these faults some pairs, with a second one that meets a request after it."""
    from faults import schedules

    found = Found()
    for number in numbers:
        first = schedules.of_number(number)
        pairs: list[schedules.Schedule] = []
        with _failing(found):
            pairs = list(schedules.seconds(first, folder()))
        for schedule in random.Random(seed + number).sample(pairs, min(of_each, len(pairs))):
            _run_schedule(found, schedule)
    return found


def _run_schedule(found: Found, schedule: schedules.Schedule) -> None:
    """It counts only if its faults met requests, each of them."""
    from faults import schedules

    met = True
    with _failing(found):
        met = schedules.run(schedule, folder())
    part = "single" if schedule.second is None else "pair"
    found.counts[part if met else UNMET, schedule.operation.name, schedule.kind.name] += 1


def run_histories(seeds: Sequence[int]) -> Found:
    from faults.places import Folder

    found = Found()
    for seed in seeds:
        root = os.path.join(folder(), f"history-{seed}")
        _run_history(found, "history", Folder(root), seed)
        shutil.rmtree(root, ignore_errors=True)
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

    return shared_server(Path(folder()) / "s3-server", os.getpid())


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


def run_s3(count: int, first: int, seeds: int, seed: int = SEED, part: int = 0) -> Found:
    """One part of a sample, of operations of its own; or those from a number on."""
    from faults import s3
    from faults.operations import OPERATIONS

    found = Found()
    with s3.bucket(_s3_server(), os.path.join(folder(), "worlds")) as bucket:
        if first:
            chosen: Iterable[s3.S3Schedule] = from_number(first, s3.of_number(first), bucket.schedules(), seeds)
        else:
            ours = [each for each in OPERATIONS if each.number % S3_PARTS == part]
            every = list(bucket.schedules(ours))
            found.lines.append(f"{len(every)} schedules on S3 exist of part {part + 1}")
            draw = random.Random(seed)
            # a long world is hundreds of objects, which cost more to put there than the schedule itself
            fewer = [each for each in every if "long" not in each.operation.world or draw.random() < _LONG_ON_S3]
            chosen = draw.sample(fewer, min(math.ceil(count / S3_PARTS), len(fewer)))
        for schedule in chosen:
            found.counts["S3", schedule.operation.name, schedule.kind.name] += 1
            with _failing(found):
                bucket.run(schedule)
    return found


def run_kills(rounds: int, seed: int) -> Found:
    from faults.kills import kill_rounds

    found = Found()
    with _failing(found):
        counts = kill_rounds(Path(folder()) / "kills", rounds, seed)
        found.lines.append(counts.line())
        found.counts["kill", "a serving process, eight clients", "SIGKILL"] += counts.rounds
    return found


def run_servers(rounds: int, seed: int) -> Found:
    from faults import two_servers

    found, server = Found(), _s3_server()
    os.environ.update(server.env)
    with _failing(found):
        counts = two_servers.rounds(Path(folder()), server, rounds, seed)
        found.lines.append(counts.line())
        found.counts["servers", "two serving processes, one bucket", "SIGSTOP"] += counts.stops
        found.counts["servers", "two serving processes, one bucket", "SIGKILL"] += counts.kills
    return found


@contextmanager
def _failing(found: Found) -> Iterator[None]:
    try:
        yield
    except AssertionError as violation:
        found.failures.append(str(violation))
    except Exception:  # of the laboratory itself, or of a server it runs: the rest is run all the same
        found.failures.append(traceback.format_exc())


def from_number(first: int, itself: Any, every: Iterable[Any], seeds: int) -> list[Any]:
    """The one with this number, and those that come after it."""
    if seeds <= 1:
        return [itself]
    return list(itertools.islice((each for each in every if each.number >= first), seeds))


def count_schedules(of_two: int, seed: int) -> tuple[list[int], list[int], str]:
    """Numbers of schedules: every fault of every request of every operation, each with one of the things that may follow; and
    so many of the faults that another may follow. What there is, in words.
    """
    from faults import schedules

    place = folder()
    draw = random.Random(seed)
    cells: dict[tuple[int, bool, int, int], list[int]] = {}
    for each in schedules.singles(place):
        cells.setdefault((each.operation.number, each.owner, each.request, each.kind.number), []).append(each.number)
    numbers = [draw.choice(each) for each in cells.values()]
    firsts = [schedule.number for schedule in schedules.firsts(place)]
    words = (
        f"{len(numbers)} cells of operation, request and fault exist, with what may follow"
        f" {sum(map(len, cells.values()))} schedules; of these {len(firsts)} may be the first of two. Seed {seed}."
    )
    draw.shuffle(numbers)
    return numbers, draw.sample(firsts, min(of_two, len(firsts))), words
