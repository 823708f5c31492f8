"""Which rows differ between two versions (history.md 4), against a comparison of everything with everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance import LanceOperation

from omnigraph.errors import StorageClass, StorageFailure
from omnigraph.manifest.model import TablePin
from omnigraph.store.open import open_store
from omnigraph.tables.changes import RowDifference, difference
from omnigraph.tables.detached import detached
from omnigraph.tables.indexes import build_scalar_index
from omnigraph.tables.store import TableStore
from tables.samples import GROWN_PORTS, PORTS, addresses, ports, write


def image(tables: TableStore, pin: TablePin) -> dict[str, tuple]:
    return {row["__id"]: tuple(row.values()) for row in tables.open(pin).read(PORTS).to_pylist()}


def at_addresses(tables: TableStore, pin: TablePin, found: np.ndarray) -> set[str]:
    return set(tables.open(pin).take(found, ["__id"]).column("__id").to_pylist()) if len(found) else set()


def check(tables: TableStore, a: TablePin, b: TablePin) -> RowDifference:
    """The difference explains exactly how one state becomes the other."""
    found = difference(tables, a, b, PORTS)
    before, after = image(tables, a), image(tables, b)
    left = at_addresses(tables, a, found.removed)
    right = {row["__id"]: tuple(row[name] for name in PORTS.names) for row in found.added.to_pylist()}
    assert {name: row for name, row in before.items() if name not in left} | right == after
    assert left - after.keys() == before.keys() - after.keys()
    assert right.keys() - before.keys() == after.keys() - before.keys()
    assert np.all(np.diff(found.removed.astype(np.int64)) > 0)
    placed = dict(zip(found.added["__id"].to_pylist(), found.added["_rowaddr"].to_pylist(), strict=True))
    everywhere = addresses(tables, b)
    assert placed == {name: everywhere[name] for name in placed}
    return found


def test_equal_versions_do_not_differ(any_tables: TableStore) -> None:
    pin = write(any_tables, None, ports("ro", "le")).pin
    found = check(any_tables, pin, pin)
    assert (len(found.removed), found.added.num_rows) == (0, 0)
    assert found.added.column_names == [*PORTS.names, "_rowaddr"]


def test_only_the_rows_that_changed_are_in_the_answer(any_tables: TableStore) -> None:
    first = write(any_tables, None, ports("ro", "le", "ha"))
    second = write(any_tables, first.pin, ports("le", "new", depth=4), remove=[1, 2])
    found = check(any_tables, first.pin, second.pin)
    assert found.removed.tolist() == [1, 2]
    assert found.added.column("__id").to_pylist() == ["le", "new"]
    back = check(any_tables, second.pin, first.pin)
    assert back.removed.tolist() == second.appended.tolist()
    assert back.added.column("_rowaddr").to_pylist() == [1, 2]


def test_two_branches_are_compared_though_they_used_the_same_fragment_numbers(tables: TableStore) -> None:
    base = write(tables, None, ports("ro", "le", "ha")).pin
    ours = write(tables, base, ports("x", "le", depth=2), remove=[1]).pin
    theirs = write(tables, base, ports("y", "ha", depth=3), remove=[2]).pin
    found = check(tables, ours, theirs)
    assert sorted(found.added.column("__id").to_pylist()) == ["ha", "le", "y"]
    check(tables, theirs, ours)


def test_an_index_and_added_columns_are_no_difference(tables: TableStore) -> None:
    first = write(tables, None, ports("ro", "le"))
    indexed = build_scalar_index(tables, first.pin, "__id", label="main@3")
    grown = write(tables, indexed.pin, ports("ha"), schema=GROWN_PORTS)
    assert len(difference(tables, first.pin, indexed.pin, []).removed) == 0
    found = difference(tables, first.pin, grown.pin, GROWN_PORTS)
    assert found.removed.tolist() == []
    assert found.added.column("__id").to_pylist() == ["ha"]


def test_columns_that_the_newer_version_lacks_are_null(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    second = write(tables, first.pin, ports("le"))
    found = difference(tables, first.pin, second.pin, [GROWN_PORTS.field("draft"), "__id"])
    assert found.added.select(["draft", "__id"]).to_pylist() == [{"draft": None, "__id": "le"}]


def test_versions_in_different_folders_share_nothing(tables: TableStore) -> None:
    one = write(tables, None, ports("ro", "le"), line="main#1").pin
    other = write(tables, None, ports("ro", "le"), line="drafts#1").pin
    found = check(tables, one, other)
    assert (len(found.removed), found.added.num_rows) == (2, 2)


def test_a_fragment_under_another_number_is_the_same_and_is_named(tables: TableStore) -> None:
    """A merge takes fragments over from a branch, where their number was another (history.md 7.7)."""
    base = write(tables, None, ports("ro")).pin
    theirs = write(tables, base, ports("x")).pin
    ours = write(tables, base, ports("y")).pin
    fragment = tables.open(theirs).fragments()[1]
    fragment.id = 0
    fragment.row_id_meta = fragment.created_at_version_meta = fragment.last_updated_at_version_meta = None
    taken, _ = detached(tables, tables.open(ours), LanceOperation.Append([fragment]), label="main@5")
    assert addresses(tables, taken.pin) == {"ro": 0, "y": 1 << 32, "x": 2 << 32}
    found = difference(tables, theirs, taken.pin, ["__id"])
    assert found.renumbered == ((1, 2),)
    assert found.added.column("__id").to_pylist() == ["y"]


def test_a_version_that_is_gone_is_a_failure_of_reading(tables: TableStore) -> None:
    pin = write(tables, None, ports("ro")).pin
    with pytest.raises(StorageFailure) as failed:
        difference(tables, pin, TablePin(pin.path, pin.version ^ 1), ["__id"])
    assert failed.value.cls is StorageClass.NOT_FOUND


NAMES = [f"p{n}" for n in range(15)]
actions = st.tuples(
    st.sampled_from(["upsert", "upsert", "delete", "overwrite", "index"]),
    st.integers(0, 9),
    st.sets(st.sampled_from(NAMES), min_size=1, max_size=8),
    st.integers(0, 5),
)


@given(st.lists(actions, min_size=1, max_size=8), st.data())
@settings(max_examples=30, deadline=None)
def test_random_histories_with_branches_read_back_and_compare_exactly(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[str, int, set[str], int]],
    data: st.DataObject,
) -> None:
    """Every step starts from any version made so far, in the process that made it or in another one."""
    root = tmp_path_factory.mktemp("history")
    stores = [TableStore(open_store(root)), TableStore(open_store(root))]
    made = [(write(stores[0], None, ports(*NAMES[:9])).pin, dict.fromkeys(NAMES[:9], 1))]
    for step, (action, start, names, depth) in enumerate(history):
        tables = stores[step % 2]
        pin, state = made[start % len(made)]
        at = addresses(tables, pin)
        assert at.keys() == state.keys()
        held = [at[name] for name in sorted(names) if name in at]
        match action:
            case "upsert":
                pin = write(tables, pin, ports(*sorted(names), depth=depth), remove=held).pin
                state = state | dict.fromkeys(names, depth)
            case "delete" if held:
                pin = write(tables, pin, remove=held).pin
                state = {name: value for name, value in state.items() if name not in names}
            case "overwrite":
                pin = write(tables, pin, ports(*sorted(names), depth=depth), overwrite=True).pin
                state = dict.fromkeys(names, depth)
            case "index" if state:
                pin = build_scalar_index(tables, pin, "__id", label="main@2").pin
            case _:
                continue
        assert tables.open(pin).rows == len(state)
        made.append((pin, state))
    fresh = TableStore(open_store(root))
    for pin, state in made:
        assert {name: row[2] for name, row in image(fresh, pin).items()} == state
        assert fresh.open(pin).rows == len(state)
    for _ in range(4):
        a, b = (data.draw(st.sampled_from(made))[0] for _ in range(2))
        check(data.draw(st.sampled_from([*stores, fresh])), a, b)
