"""Publication under every schedule of a few writers, and proof that the schedules catch what they should.

To run one alone and see its story, a deeper one too:
OMNIGRAPH_SCHEDULE=two-writers:0.1.3 pytest -s tests/manifest/test_publish_schedules.py -k alone
"""

from __future__ import annotations

import os

import pytest

from manifest.schedules import DEEPER, DEEPEST, SETTINGS, Choices, Setting, every_schedule, of_name, run
from omnigraph.manifest import publish as real


@pytest.mark.skipif("OMNIGRAPH_SCHEDULE" not in os.environ, reason="set OMNIGRAPH_SCHEDULE to its name")
def test_a_schedule_that_is_asked_for_alone_breaks_no_invariant() -> None:
    setting, number = of_name(os.environ["OMNIGRAPH_SCHEDULE"])
    world = run(setting, real.publish, Choices(number))
    print("", *world.story, world.shown(), sep="\n  ")  # noqa: T201 - asked for


@pytest.mark.parametrize("name", SETTINGS)
def test_no_schedule_breaks_an_invariant(name: str) -> None:
    numbers = set(every_schedule(SETTINGS[name], real.publish))
    assert len(numbers) >= 150


@pytest.mark.skipif("OMNIGRAPH_DEEP_SCHEDULES" not in os.environ, reason="minutes: set OMNIGRAPH_DEEP_SCHEDULES=1")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("setting", [*DEEPER.values(), *DEEPEST.values()], ids=lambda setting: setting.name)
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


def test_each_setting_has_a_name_of_its_own_by_which_a_schedule_is_found_again() -> None:
    names = [*SETTINGS, *DEEPER, *DEEPEST]
    assert len(names) == len(set(names))
    for name in names:
        setting, number = of_name(f"{name}:0.1")
        assert (setting.name, number) == (name, (0, 1))
    assert of_name("one-writer:-")[1] == ()
