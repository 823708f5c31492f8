"""Random histories of two to four writers under storage faults: a sample. `make faults FIRST=<seed>` runs one alone.

Those of engines beside each other are drawn by hypothesis, so that one that fails is shrunk to the few steps that it
takes; those in which threads take turns come from seeds, since the same draws need not give the same run.
"""

from __future__ import annotations

import itertools
import random
import shutil

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from faults.histories import History, judged, run_seed
from faults.places import Folder, InABucket
from faults.planted import BUGS, planted
from faults.truth import Violation
from support.seaweed import S3Server

SEEDS = 8
SEEDS_ON_S3 = 2
EXAMPLES = 12
STEPS = 16
_runs = itertools.count()


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_every_history_keeps_the_promise_and_goes_on(folder: str, seed: int) -> None:
    root = f"{folder}/seed-{seed}"
    run_seed(Folder(root), seed, STEPS)
    shutil.rmtree(root)


@pytest.mark.xdist_group("s3-faults")
@pytest.mark.parametrize("seed", range(1, SEEDS_ON_S3 + 1))
def test_every_history_on_s3_keeps_the_promise_and_goes_on(s3_server: S3Server, seed: int) -> None:
    run_seed(InABucket(s3_server), seed, STEPS)


def drawn(folder: str, draw: random.Random, steps: int) -> History:
    """A history of engines of their own in one thread: the same draws give the same run."""
    root = f"{folder}/drawn-{next(_runs)}"
    try:
        return judged(History(Folder(root), draw, served=False, crowds=False), "a history", steps)
    finally:
        shutil.rmtree(root)


def _of_histories(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


@_of_histories(EXAMPLES)
@given(draw=st.randoms(use_true_random=False), steps=st.integers(1, STEPS))
def test_every_history_that_is_drawn_keeps_the_promise_and_goes_on(
    folder: str, draw: random.Random, steps: int
) -> None:
    drawn(folder, draw, steps)


def test_the_same_draws_give_the_same_history(folder: str) -> None:
    def told(seed: int) -> list[str]:
        return [step.rpartition("-")[0] for step in drawn(folder, random.Random(seed), STEPS).steps]

    for seed in range(4):
        assert told(seed) == told(seed)


def test_a_history_that_a_planted_bug_breaks_is_found(folder: str) -> None:
    bug = next(bug for bug in BUGS if bug.belief == "a time-out is a loss")

    @settings(_of_histories(60), phases=[Phase.generate])  # to shrink it takes half a minute
    @given(draw=st.randoms(use_true_random=False), steps=st.integers(1, STEPS))
    def search(draw: random.Random, steps: int) -> None:
        drawn(folder, draw, steps)

    with planted(bug), pytest.raises(Violation) as caught:
        search()
    assert "was refused and is there" in str(caught.value)


@pytest.mark.xdist_group("s3-faults")
def test_a_history_on_s3_that_a_planted_bug_breaks_is_found_and_named(s3_server: S3Server) -> None:
    bug = next(bug for bug in BUGS if bug.belief == "a time-out is a loss")
    with planted(bug), pytest.raises(Violation, match=r"^s3:2: .* was refused and is there"):
        run_seed(InABucket(s3_server), 2, STEPS)
