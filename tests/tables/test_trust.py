"""How long what is remembered of a table is believed."""

from __future__ import annotations

import itertools

import pytest

from omnigraph.errors import StorageClass, StorageFailure, StoragePhase
from omnigraph.tables.failures import MissingTable, storage_failures
from omnigraph.tables.store import TableStore
from omnigraph.tables.trust import TrustInTables
from tables.samples import ports, write

DAMAGE = [
    (OSError("Encountered corrupt file x"), StorageFailure),
    (OSError("Not found: x"), MissingTable),
    (OSError("LanceError(IO): Not supported: x"), StorageFailure),
]


def test_a_table_in_which_damage_was_met_gets_a_memory_of_its_own_and_others_keep_theirs() -> None:
    numbers = itertools.count(1)
    trust = TrustInTables(0, lambda: next(numbers))
    first, other = trust.of("a"), trust.of("b")
    assert trust.of("a") is first
    assert (first.session, other.session) == (0, 0)
    first.lost = True
    second = trust.of("a")
    assert (second.session, second.lost, trust.of("a")) == (1, False, second)
    second.lost = True
    assert trust.of("a").session == 2
    assert trust.of("b") is other


@pytest.mark.parametrize(("raised", "told"), DAMAGE)
def test_damage_in_one_version_casts_doubt_on_all_of_its_table_and_on_no_other(
    tables: TableStore, raised: Exception, told: type[StorageFailure]
) -> None:
    first = write(tables, None, ports("ro")).pin
    second = write(tables, first, ports("le")).pin
    elsewhere = write(tables, None, ports("ro"), line="review#2").pin
    opened = [tables.open(pin) for pin in (first, second, elsewhere)]
    with pytest.raises(told), storage_failures(StoragePhase.READ, opened[0]):
        raise raised
    assert [each.doubtful for each in opened] == [True, True, False]
    assert tables.open(second) is not opened[1]
    assert tables.open(second) is tables.open(second)
    assert not tables.open(second).doubtful
    assert tables.open(elsewhere) is opened[2]


@pytest.mark.parametrize("text", ["operation timed out", "something that no one has seen yet"])
def test_a_request_that_failed_on_its_way_says_nothing_of_the_table(tables: TableStore, text: str) -> None:
    opened = tables.open(write(tables, None, ports("ro")).pin)
    with pytest.raises(StorageFailure) as failed, storage_failures(StoragePhase.READ, opened):
        raise OSError(text)
    assert failed.value.cls in (StorageClass.TIMEOUT, StorageClass.SERVER_ERROR)
    assert tables.open(opened.pin) is opened


def test_a_version_committed_on_a_doubtful_one_is_opened_anew(tables: TableStore) -> None:
    base = tables.open(write(tables, None, ports("ro")).pin)
    base.doubt()
    assert tables.open(write(tables, base.pin, ports("le")).pin).rows == 2
