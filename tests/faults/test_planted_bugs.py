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


OF_THE_TASK = (
    "'exists' means one's own, without a look at what is there",
    "a time-out is a loss",
    "each re-issue may have an id of its own",
    "a write may be acknowledged before its request is sent",
    "what was staged for a write of unknown outcome may be tidied away",
    "'created' is believed after a long sleep",
    "another's nonce is believed after a long sleep",
    "a version met by a read-back is the head, after a long sleep too",
    "a key stands in the newest version or nowhere",
    "an answer may be given after the fence has closed",
)
"""The ten deliberate bugs without which the laboratory would prove little."""


def test_the_ten_bugs_are_planted_and_more_besides() -> None:
    beliefs = [bug.belief for bug in BUGS]
    assert len(set(beliefs)) == len(beliefs) > len(OF_THE_TASK)
    assert set(OF_THE_TASK) <= set(beliefs)
