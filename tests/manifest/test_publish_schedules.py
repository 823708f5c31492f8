"""Publication under every schedule of a few writers, and proof that the schedules catch what they should.

To run one alone and see its story:
OMNIGRAPH_SCHEDULE=two-writers:0.1.3 pytest -s tests/manifest/test_publish_schedules.py -k no_schedule
"""

from __future__ import annotations

import os

import pytest

from manifest.schedules import DEEPER, SETTINGS, Choices, Setting, every_schedule, run
from omnigraph.manifest import publish as real


@pytest.mark.parametrize("name", SETTINGS)
def test_no_schedule_breaks_an_invariant(name: str) -> None:
    wanted, _, number = os.environ.get("OMNIGRAPH_SCHEDULE", "").partition(":")
    if wanted:
        if wanted != name:
            pytest.skip(f"only {wanted}:{number} is wanted")
        digits = tuple(int(digit) for digit in number.split(".") if digit not in ("", "-"))
        world = run(SETTINGS[name], real.publish, Choices(digits))
        print("", *world.story, world.shown(), sep="\n  ")  # noqa: T201 - asked for
        return
    numbers = set(every_schedule(SETTINGS[name], real.publish))
    assert len(numbers) >= 150


@pytest.mark.skipif("OMNIGRAPH_DEEP_SCHEDULES" not in os.environ, reason="minutes: set OMNIGRAPH_DEEP_SCHEDULES=1")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("setting", DEEPER, ids=lambda setting: setting.name)
def test_no_deeper_schedule_breaks_an_invariant(setting: Setting) -> None:
    assert sum(1 for _ in every_schedule(setting, real.publish)) > 20_000


def test_a_schedule_has_one_number_and_runs_the_same_every_time() -> None:
    setting = SETTINGS["two-writers"]
    numbers = list(every_schedule(setting, real.publish))
    assert len(numbers) == len(set(numbers))
    for number in numbers[:: len(numbers) // 40]:
        choices = Choices(number)
        first = run(setting, real.publish, choices)
        assert tuple(choices.taken) == number
        assert run(setting, real.publish, Choices(number)).story == first.story
