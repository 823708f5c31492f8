"""Every operation under faults of single requests, and of two in a row: a sample. `make faults` runs all of it.

A schedule that fails says its number: `make faults FIRST=<number>` runs it alone.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from faults import schedules
from faults.counted import UNMET
from faults.kinds import BY_NUMBER, FAMILIES, KINDS
from faults.lab import Done
from faults.operations import KEY, OPERATIONS, Operation
from faults.pieces import run_schedules
from faults.planted import Catcher
from faults.s3 import S3_KINDS, S3Schedule
from faults.schedules import Schedule

ALONE, PAIRS = 4, 2
OF_LONG_LOGS = 1
"""So many of each kind where the log is long, since the judge reads all of it."""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_operation_under_faults_keeps_the_promise_and_the_next_write_succeeds(
    folder: str, operation: Operation
) -> None:
    draw = random.Random(operation.number)
    alone = list(schedules.singles(folder, (operation,)))
    long = operation.world in ("long", "longer")
    chosen = draw.sample(alone, OF_LONG_LOGS if long else ALONE)
    chosen += some_pairs(draw, operation, folder, OF_LONG_LOGS if long else PAIRS)
    for schedule in chosen:
        assert schedules.run(schedule, folder), f"{schedule.name}: no request met a fault of it"


def some_pairs(draw: random.Random, operation: Operation, folder: str, count: int) -> list[Schedule]:
    """One of each of so many first faults after which there is something that can fail."""
    firsts = list(schedules.firsts(folder, (operation,)))
    found = (list(schedules.seconds(first, folder)) for first in draw.sample(firsts, len(firsts)))
    return [draw.choice(pairs) for pairs in itertools.islice(filter(None, found), count)]


def test_a_pair_counts_only_if_both_of_its_faults_met_a_request(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a refusal nothing follows, so that whatever was to come second has nothing to meet."""
    monkeypatch.setenv("OMNIGRAPH_FAULT_FOLDER", folder)
    insert, refused, lost = OPERATIONS[0], BY_NUMBER[1], BY_NUMBER[3]
    firsts = {first.kind: first for first in schedules.firsts(folder, (insert,)) if not first.owner}
    assert not list(schedules.seconds(firsts[refused], folder))
    never = replace(firsts[refused], second=lost)
    both = next(pair for pair in schedules.seconds(firsts[lost], folder) if pair.second is lost and pair.aim == 1)
    assert not schedules.run(never, folder)
    assert schedules.run(both, folder)
    found = run_schedules([never.number, both.number])
    assert {part: found.total(part) for part in ("single", "pair", UNMET)} == {"single": 0, "pair": 1, UNMET: 1}


def test_the_second_of_two_faults_meets_what_is_sent_again_and_what_is_read_back(folder: str) -> None:
    insert, lost, damaged = OPERATIONS[0], BY_NUMBER[4], BY_NUMBER[24]
    first = next(each for each in schedules.firsts(folder, (insert,)) if each.kind is lost)
    pairs = list(schedules.seconds(first, folder))
    assert {pair.aim for pair in pairs} == set(range(len(schedules.AIMS)))
    assert [pair.aim for pair in pairs if pair.second is damaged] == [2]
    for pair in pairs:
        assert schedules.of_number(pair.number) == pair


def test_a_request_beyond_the_two_digits_of_its_number_is_refused() -> None:
    for request in (0, 100):
        with pytest.raises(ValueError, match="two digits"):
            Schedule(OPERATIONS[0], False, request, KINDS[0])
        with pytest.raises(ValueError, match="two digits"):
            S3Schedule(OPERATIONS[0], False, request, S3_KINDS[0])


def test_a_number_names_one_schedule(folder: str) -> None:
    some = OPERATIONS[::7]
    every = [*schedules.singles(folder, some), *schedules.pairs(folder, OPERATIONS[:1])]
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


def test_an_owner_need_not_know_of_a_branch_that_others_deleted_and_that_it_wrote_to_no_more(folder: str) -> None:
    catcher = Catcher(operation=29, kind=63, second=40, owner=True, at="create __manifest/side/")
    schedules.run(catcher.schedule(folder), folder)


@pytest.mark.parametrize(
    "catcher",
    [
        Catcher(operation=22, kind=61, second=51, after=2),
        Catcher(operation=22, kind=61, second=50, owner=True, aim=2),
    ],
    ids=["another write between", "interrupted at the read-back"],
)
def test_a_schema_that_another_undid_is_made_again_by_a_repeat(folder: str, catcher: Catcher) -> None:
    schedules.run(catcher.schedule(folder), folder)
