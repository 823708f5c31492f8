"""Reading a pinned version: scans, rows by address, columns that are not there (storage.md 7)."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import InternalError, StorageClass, StorageFailure
from omnigraph.manifest.model import TablePin
from omnigraph.store.open import open_store
from omnigraph.tables.budget import MemoryBudget
from omnigraph.tables.store import NEWEST_KEPT, TableStore, new_session
from omnigraph.tables.version import TableVersion
from tables.samples import GROWN_PORTS, PORTS, at, ids, ports, write


@pytest.fixture(scope="module")
def thinned(tmp_path_factory: pytest.TempPathFactory) -> TableVersion:
    """1,000 rows in a fragment with holes, 40 in a whole one, and three small ones, two of them with a hole."""
    tables = TableStore(open_store(tmp_path_factory.mktemp("thinned")))
    pin = write(tables, None, ports(*(f"a{n}" for n in range(1000)))).pin
    pin = write(tables, pin, ports(*(f"b{n}" for n in range(40))), remove=range(0, 1000, 3)).pin
    for letter in "cde":
        done = write(tables, pin, ports(*(f"{letter}{n}" for n in range(5))))
        pin = done.pin if letter == "d" else write(tables, done.pin, remove=done.appended[2:3]).pin
    return tables.open(pin)


@pytest.fixture(scope="module")
def places(thinned: TableVersion) -> dict[int, str]:
    table = thinned.read(["__id"], with_row_address=True)
    return dict(zip(table.column("_rowaddr").to_pylist(), table.column("__id").to_pylist(), strict=True))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_rows_are_taken_in_the_order_asked_repeats_included(
    thinned: TableVersion, places: dict[int, str], data: st.DataObject
) -> None:
    size = data.draw(st.sampled_from([1, 3, 20, 600]))
    wanted = data.draw(st.lists(st.sampled_from(sorted(places)), min_size=1, max_size=size))
    found = thinned.take(np.array(wanted, np.uint64), ["name", "__id"])
    assert found.column_names == ["name", "__id"]
    assert found.column("__id").to_pylist() == [places[address] for address in wanted]
    assert found.column("name").to_pylist() == [places[address].upper() for address in wanted]


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_one_address_that_is_not_live_refuses_them_all(
    thinned: TableVersion, places: dict[int, str], data: st.DataObject
) -> None:
    wanted = data.draw(st.lists(st.sampled_from(sorted(places)), max_size=30))
    dead = data.draw(st.sampled_from([0, 3, 999, 1000, (1 << 32) + 40, (2 << 32) + 2, 7 << 32]))
    with pytest.raises(InternalError):
        thinned.take(np.array([*wanted, dead], np.uint64), ["__id"])


def test_taking_nothing_gives_an_empty_table_of_the_right_columns(thinned: TableVersion) -> None:
    assert thinned.take(at(), GROWN_PORTS).schema.names == GROWN_PORTS.names


def test_taken_rows_have_nulls_for_columns_that_are_not_stored(thinned: TableVersion) -> None:
    berths = GROWN_PORTS.field("berths")
    assert thinned.take(at(1, 1 << 32), [berths, "__id"]).to_pylist() == [
        {"berths": None, "__id": "a1"}, {"berths": None, "__id": "b0"},
    ]  # fmt: skip
    assert thinned.take(at(2, 1), [berths]).to_pylist() == [{"berths": None}] * 2


def test_a_scan_streams_batches_and_adds_addresses_last(thinned: TableVersion) -> None:
    reader = thinned.scan(["depth", "__id"], with_row_address=True, batch_size=100)
    assert reader.schema.names == ["depth", "__id", "_rowaddr"]
    batches = list(reader)
    assert len(batches) > 3
    assert sum(batch.num_rows for batch in batches) == thinned.rows


def test_a_scan_gives_the_same_order_each_time(thinned: TableVersion) -> None:
    first = thinned.read(["__id"]).column("__id")
    assert all(thinned.read(["__id"]).column("__id").equals(first) for _ in range(3))


def test_a_scan_fills_in_columns_that_are_not_stored(thinned: TableVersion) -> None:
    table = thinned.scan(GROWN_PORTS, with_row_address=True).read_all()
    assert table.schema.names == [*GROWN_PORTS.names, "_rowaddr"]
    assert table.column("draft").null_count == thinned.rows
    assert table.schema.field("draft").type == pa.float64()


def test_rows_can_be_counted_off_without_any_column(thinned: TableVersion) -> None:
    assert thinned.read([], with_row_address=True).column_names == ["_rowaddr"]
    assert thinned.read([GROWN_PORTS.field("draft")]).num_rows == thinned.rows


def test_a_filter_narrows_a_scan(thinned: TableVersion) -> None:
    found = thinned.read(["__id"], filter=pc.field("name") == "E1", with_row_address=True).to_pylist()
    assert found == [{"__id": "e1", "_rowaddr": (4 << 32) + 1}]


def test_a_name_that_the_table_does_not_have_is_refused(thinned: TableVersion) -> None:
    with pytest.raises(InternalError):
        thinned.read(["nowhere"])


def test_the_schema_and_the_sizes_come_from_the_version_itself(thinned: TableVersion) -> None:
    assert thinned.schema == PORTS
    assert thinned.rows == 1000 - 334 + 40 + 4 + 5 + 4
    assert thinned.bytes == sum(file.file_size_bytes or 0 for each in thinned.fragments() for file in each.files)


def test_a_version_that_is_not_there_is_not_found(any_tables: TableStore) -> None:
    pin = write(any_tables, None, ports("ro")).pin
    for missing in (TablePin(pin.path, pin.version ^ 1), TablePin("nodes/none", pin.version)):
        with pytest.raises(StorageFailure) as failed:
            any_tables.open(missing)
        assert failed.value.cls is StorageClass.NOT_FOUND
        assert "nodes" not in str(failed.value)


def test_an_opened_version_is_opened_once(tables: TableStore) -> None:
    pin = write(tables, None, ports("ro")).pin
    fresh = TableStore(open_store(tables.location.local_path or ""))
    assert fresh.open(pin) is fresh.open(TablePin(pin.path, pin.version))


def test_versions_beyond_the_limit_are_opened_again(tables: TableStore) -> None:
    pins = [write(tables, None, ports(f"p{n}")).pin for n in range(3)]
    small = TableStore(open_store(tables.location.local_path or ""), budget=MemoryBudget(1))
    opened = [small.open(pin) for pin in pins]
    assert small.open(pins[2]) is opened[2]
    assert small.open(pins[0]) is not opened[0]


def test_a_budget_of_nothing_leaves_the_library_nothing_to_remember_either(tables: TableStore) -> None:
    pin = write(tables, None, ports("ro")).pin
    root = open_store(tables.location.local_path or "")
    remembered: list[int] = []
    for budget in (0, 1 << 30):
        fresh = TableStore(root, session=new_session(budget), budget=MemoryBudget(budget))
        assert [ids(fresh, pin) for _ in range(2)] == [["ro"], ["ro"]]
        remembered.append(int(fresh.session.size_bytes()))
    assert remembered[0] < remembered[1]


def test_all_stores_of_a_process_keep_open_versions_within_one_budget(tables: TableStore) -> None:
    pins = [write(tables, None, ports(f"p{n}")).pin for n in range(2)]
    budget = MemoryBudget(1)
    stores = [TableStore(open_store(tables.location.local_path or ""), budget=budget) for _ in range(2)]
    first = stores[0].open(pins[0])
    assert stores[0].open(pins[0]) is first
    stores[1].open(pins[1])
    assert stores[0].open(pins[0]) is not first
    stores[0].forget()
    assert budget.bytes == 0


def test_versions_of_a_store_that_is_gone_are_let_go(tables: TableStore) -> None:
    pin = write(tables, None, ports("ro")).pin
    budget = MemoryBudget(1 << 30)
    fresh = TableStore(open_store(tables.location.local_path or ""), budget=budget)
    fresh.open(pin)
    assert budget.bytes > 0
    del fresh
    gc.collect()
    assert budget.bytes == 0


def test_of_the_versions_that_commits_leave_behind_the_newest_few_of_each_line_stay_open(tables: TableStore) -> None:
    first = write(tables, None, ports("ro")).pin
    pins = [first]
    kept = {first: tables.open(first)}
    for number in range(3 * NEWEST_KEPT):
        pins.append(write(tables, pins[-1], ports(f"p{number}"), label=f"main@{number + 3}").pin)
        kept[pins[-1]] = tables.open(pins[-1])
    side = write(tables, first, ports("le"), label="review@2").pin
    kept[side] = tables.open(side)
    still = [pin for pin in kept if tables.open(pin) is kept[pin]]
    assert still == [*pins[-NEWEST_KEPT:], side]
    # one that somebody reads again stays like any other, however many commits follow
    old = tables.open(pins[1])
    for number in range(2 * NEWEST_KEPT):
        pins.append(write(tables, pins[-1], ports(f"q{number}"), label=f"main@{number + 99}").pin)
    assert tables.open(pins[1]) is old


@pytest.mark.parametrize(
    "name", ["plain", "with space", "per%20cent", "100%", "hash#tag", "question?", "plus+", "ümlaut", "q'uote", "a:b"]
)
def test_a_root_may_have_any_name(tmp_path: Path, s3_root: str, name: str) -> None:
    from urllib.parse import quote

    for root in (tmp_path / name, f"{s3_root}/{quote(name, safe='')}"):
        first = write(TableStore(open_store(root)), None, ports("ro"))
        second = write(TableStore(open_store(root)), first.pin, ports("le"), remove=[0])
        assert ids(TableStore(open_store(root)), second.pin) == ["le"]
    assert [each.name for each in tmp_path.iterdir()] == [name]
