"""Indexes change how fast an answer comes and never which (trials.md QR-09, MT-05)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import InternalError
from omnigraph.store.open import open_store
from omnigraph.tables.indexes import build_scalar_index, index_name, lookup_ids
from omnigraph.tables.store import TableStore
from tables.samples import addresses, ids, ports, write


def test_an_index_keeps_the_rows_and_makes_a_version_of_its_own(any_tables: TableStore) -> None:
    first = write(any_tables, None, ports("ro", "le"))
    built = build_scalar_index(any_tables, first.pin, "__id", label="main@3")
    assert built.pin.path == first.pin.path
    assert built.pin.version != first.pin.version
    assert (built.rows, built.bytes) == (first.rows, first.bytes)
    assert ids(any_tables, built.pin) == ["ro", "le"]
    transaction = any_tables.open(built.pin).dataset.read_transaction(built.pin.version)
    assert transaction is not None
    assert transaction.transaction_properties == {"omnigraph.base": "main@3"}


def test_a_rebuilt_index_replaces_the_old_one_and_covers_new_rows(tables: TableStore) -> None:
    first = build_scalar_index(tables, write(tables, None, ports("ro")).pin, "__id", label="main@3")
    grown = write(tables, first.pin, ports("le"))
    built = build_scalar_index(tables, grown.pin, "__id", label="main@5")
    [found] = tables.open(built.pin).dataset.describe_indices()
    assert found.name == index_name("__id")
    assert [list(each.fragment_ids) for each in found.segments] == [[0, 1]]


def test_properties_have_indexes_of_their_own(tables: TableStore) -> None:
    pin = build_scalar_index(tables, write(tables, None, ports("ro", "le")).pin, "__id", label="main@3").pin
    pin = build_scalar_index(tables, pin, "name", label="main@4").pin
    assert {each.name for each in tables.open(pin).dataset.describe_indices()} == {"__id_idx", "name_idx"}


def test_an_index_over_no_rows_is_refused(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    emptied = write(tables, first.pin, overwrite=True)
    with pytest.raises(InternalError):
        build_scalar_index(tables, emptied.pin, "__id", label="main@4")


def test_nothing_is_found_in_an_empty_table_or_for_no_ids(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    assert lookup_ids(tables.open(first.pin), []).tolist() == []
    assert lookup_ids(tables.open(write(tables, first.pin, overwrite=True).pin), ["ro"]).tolist() == []


NAMES = [f"p{n}" for n in range(12)]
steps = st.lists(
    st.tuples(st.sampled_from(["index", "upsert", "delete", "overwrite"]), st.sets(st.sampled_from(NAMES), min_size=1)),
    min_size=1,
    max_size=7,
)


@given(steps)
@settings(max_examples=15, deadline=None)
def test_ids_are_found_whatever_the_index_covers(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, set[str]]]
) -> None:
    tables = TableStore(open_store(tmp_path_factory.mktemp("history")))
    pin = write(tables, None, ports(*NAMES[:6])).pin
    for action, names in history:
        at = addresses(tables, pin)
        held = [at[name] for name in names if name in at]
        match action:
            case "index" if at:
                pin = build_scalar_index(tables, pin, "__id", label="main@2").pin
            case "upsert":
                pin = write(tables, pin, ports(*sorted(names)), remove=held).pin
            case "delete" if held:
                pin = write(tables, pin, remove=held).pin
            case "overwrite":
                pin = write(tables, pin, ports(*sorted(names)), overwrite=True).pin
            case _:
                continue
        at = addresses(tables, pin)
        version = tables.open(pin)
        for wanted in ([name] for name in NAMES):
            assert lookup_ids(version, wanted).tolist() == [at[name] for name in wanted if name in at]
        assert sorted(lookup_ids(version, NAMES).tolist()) == sorted(at.values())


def test_many_ids_and_few_ids_are_found_alike(tables: TableStore) -> None:
    names = [f"p{n}" for n in range(500)]
    pin = write(tables, write(tables, None, ports(*names)).pin, remove=[7]).pin
    version = tables.open(pin)
    wanted = np.arange(0, 500, 2)
    many = lookup_ids(version, [names[n] for n in wanted])
    assert many.tolist() == wanted.tolist()
    assert [lookup_ids(version, [names[n]]).tolist() for n in (6, 7, 8)] == [[6], [], [8]]
