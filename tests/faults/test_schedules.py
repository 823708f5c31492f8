"""Every operation under faults of single requests, and of two in a row: a sample. `make faults` runs all of it.

A schedule that fails says its number: `make faults FIRST=<number>` runs it alone.
"""

from __future__ import annotations

import random

import pytest

from faults import schedules
from faults.kinds import FAMILIES, KINDS
from faults.lab import Done
from faults.operations import KEY, OPERATIONS, Operation
from faults.planted import Catcher

ALONE, PAIRS = 4, 2
OF_LONG_LOGS = 1
"""So many of each kind where the log is long, since the judge reads all of it."""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_operation_under_faults_keeps_the_promise_and_the_next_write_succeeds(
    folder: str, operation: Operation
) -> None:
    draw = random.Random(operation.number)
    alone = list(schedules.singles(folder, (operation,)))
    in_pairs = list(schedules.pairs(folder, (operation,)))
    long = operation.world in ("long", "longer")
    chosen = draw.sample(alone, OF_LONG_LOGS if long else ALONE)
    chosen += draw.sample(in_pairs, min(OF_LONG_LOGS if long else PAIRS, len(in_pairs)))
    for schedule in chosen:
        schedules.run(schedule, folder)


def test_a_number_names_one_schedule(folder: str) -> None:
    some = OPERATIONS[::7]
    every = [*schedules.singles(folder, some), *schedules.pairs(folder, some)]
    numbers = [schedule.number for schedule in every]
    assert len(numbers) == len(set(numbers))
    for schedule in every[::97]:
        assert schedules.of_number(schedule.number) == schedule
    with pytest.raises(ValueError, match="no number of a schedule"):
        schedules.of_number(7)


def test_kinds_and_operations_have_numbers_of_their_own() -> None:
    kinds = [kind.number for kind in KINDS]
    assert len(set(kinds)) == len(kinds) == len({kind.name for kind in KINDS})
    assert sorted(number for _, numbers in FAMILIES for number in numbers) == sorted(kinds)
    operations = [operation.number for operation in OPERATIONS]
    assert len(set(operations)) == len(operations)
    assert all(10 <= number <= 99 for number in operations)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("owner", [False, True], ids=["no owner", "owner"])
def test_an_operation_without_faults_is_done_and_judged(folder: str, operation: Operation, owner: bool) -> None:
    """What the judge would say of a run that meets nothing: so a violation is the fault's doing."""
    lab = schedules.begun(operation, owner, folder, "undisturbed")
    answers = operation.act(lab, KEY if operation.keyed else None)
    assert all(isinstance(answer, Done) for answer in answers.values())
    lab.judge(lab.held_anew(), {operation.branch, "main"})
    assert schedules.trace(operation, owner, folder)


def test_an_owner_that_was_stopped_after_it_went_on_from_a_publication_may_believe_its_memory(folder: str) -> None:
    catcher = Catcher(operation=27, kind=31, second=50, owner=True, at="create __manifest/side/")
    schedules.run(catcher.schedule(folder), folder)
