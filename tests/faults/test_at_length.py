"""The long run's own promises: what fails has a name that replays it, and too small a run is no success."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import omnigraph
from faults.at_length import (
    KILLS,
    PAIRS,
    S3,
    SERVERS,
    Progress,
    Work,
    lacking,
    run_in_generations,
    run_some,
    summary,
)
from faults.counted import UNMET, Found, table
from faults.pieces import run_publication
from faults.planted import BUGS, planted
from faults.serving import explained
from faults.truth import Violation


def test_a_schedule_of_the_publication_that_fails_prints_a_name_that_replays_it_alone() -> None:
    bug = next(bug for bug in BUGS if bug.belief == "a time-out is a loss")
    with planted(bug):
        failures = run_publication("one-writer").failures
        named = re.search(r"schedule (one-writer:[0-9.]+)", failures[0])
        assert named is not None
        assert run_publication(named[1], 1).failures == failures
    assert run_publication(named[1], 1).failures == []


def test_what_is_run_of_the_publication_is_counted_by_the_fault_that_came_first() -> None:
    found = run_publication("two-that-delete")
    assert {operation for _, operation, _ in found.counts} == {"a deletion"}
    assert {"none", "late", "refused", "crash", "a read that fails"} <= {fault for _, _, fault in found.counts}
    assert "a deletion" in table(found.counts)


def test_kills_that_lose_something_are_named_by_their_seed_and_show_what_the_store_held(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "graphs" / "g.omni", schema="node Port { code: String @key }").close()
    with pytest.raises(Violation) as caught, explained("kills:7", str(tmp_path)):
        raise AssertionError("a mark was acknowledged and is there 0 times")
    assert str(caught.value).startswith("kills:7: a mark was acknowledged")
    assert "the store held:\n  main@1 " in str(caught.value)


@pytest.mark.parametrize("name", ["nothing", "nothing:1", "one-writer:x", "39999999999", "kills:x", "servers:x"])
def test_a_name_of_nothing_is_refused(name: str) -> None:
    with pytest.raises((LookupError, ValueError)):
        run_some(name, 1)


def test_a_whole_run_of_too_little_says_what_it_lacks() -> None:
    enough = {
        ("single", "", ""): 20_000,
        ("pair", "", ""): PAIRS,
        ("publication", "", ""): 90_000,
        ("S3", "", ""): S3,
        ("kill", "", ""): KILLS,
        ("servers", "", ""): SERVERS,
    }
    assert lacking(Found(Counter(enough))) == []
    for key in enough:
        assert len(lacking(Found(Counter({**enough, key: 1})))) == 1
    unmet = Found(Counter({**enough, ("pair", "", ""): 1, (UNMET, "", ""): PAIRS}))
    assert len(lacking(unmet)) == 1, "what met nothing makes up for nothing"


def test_the_last_line_says_how_much_of_each_part_was_run() -> None:
    counts = Counter({("single", "a", ""): 7, ("pair", "a", ""): 5, ("publication", "a", ""): 3, (UNMET, "a", ""): 2})
    line = summary(Found(counts))
    assert line.startswith("15 in-process schedules (7 of one fault, 5 of two, 3 of the publication alone")
    assert "2 more whose faults met no request" in line


def test_more_pieces_than_one_generation_of_processes_runs_are_all_run() -> None:
    pieces: list[Work] = [(run_publication, name, 1) for name in ("one-writer", "two-writers", "two-that-delete")]
    run = Progress(left=len(pieces))
    run_in_generations(run, pieces, jobs=1, of_each=1)
    assert (run.left, run.found.failures) == (0, [])
    assert run.found.total("publication") == len(pieces)


STUCK = """
import sys, time
from faults import at_length

def run_all(*given, **named):
    at_length.run_in_generations(at_length.Progress(patience_seconds=2.0), [(time.sleep, 3600.0)], 1)

at_length.run_all = run_all
sys.exit(at_length.main())
"""


def test_a_run_in_which_nothing_ends_any_more_says_what_it_waits_for_and_fails() -> None:
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "no piece of work ended for 2 s; 1 are waited for" in ended.stdout
    assert "sleep(3600.0)" in ended.stdout
