"""Deliberate bugs are planted in the write path, one at a time, and each is caught by the schedule that its entry names.

`faults.planted` holds the table.
"""

from __future__ import annotations

import re

import pytest

from faults import schedules
from faults.planted import BUGS, Bug, planted
from faults.truth import Violation


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.belief)
def test_a_planted_bug_is_caught_by_its_schedule(folder: str, bug: Bug) -> None:
    schedule = bug.caught_by.schedule(folder)
    schedules.run(schedule, folder)
    with planted(bug), pytest.raises(Violation) as caught:
        schedules.run(schedule, folder)
    assert str(schedule.number) in str(caught.value)
    assert "the store held:" in str(caught.value)
    assert not re.search(r"a fault of the program|\b\w*Error\b", str(caught.value)), "what it believes is to be caught"
    schedules.run(schedule, folder)


def test_ten_beliefs_and_more_are_held_against_the_laboratory() -> None:
    assert len({bug.belief for bug in BUGS}) == len(BUGS) >= 14
