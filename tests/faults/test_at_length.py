"""The long run's own promises: what fails has a name that replays it, and too small a run is no success."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import omnigraph
from faults.at_length import KILLS, S3, lacking, run_publication, run_some
from faults.counted import Found, table
from faults.kills import explained
from faults.planted import BUGS, planted
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
    with pytest.raises(Violation) as caught, explained(tmp_path, 7):
        raise AssertionError("a mark was acknowledged and is there 0 times")
    assert str(caught.value).startswith("kills:7: a mark was acknowledged")
    assert "the store held:\n  main@1 " in str(caught.value)


@pytest.mark.parametrize("name", ["nothing", "nothing:1", "one-writer:x", "39999999999", "kills:x"])
def test_a_name_of_nothing_is_refused(name: str) -> None:
    with pytest.raises((LookupError, ValueError)):
        run_some(name, 1)


def test_a_whole_run_of_too_little_says_what_it_lacks() -> None:
    enough = {("single", "", ""): 20_000, ("publication", "", ""): 90_000, ("S3", "", ""): S3, ("kill", "", ""): KILLS}
    assert lacking(Found(Counter(enough))) == []
    for key in enough:
        assert len(lacking(Found(Counter({**enough, key: 1})))) == 1
