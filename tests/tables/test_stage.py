"""Row changes become detached versions: what they hold, and when they are refused (storage.md 3, history.md 9.1)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import ConstraintViolation, InternalError
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import Scalar, ValueType, scalar
from omnigraph.manifest.model import TablePin
from omnigraph.store.open import open_store
from omnigraph.tables.columns import table_schema
from omnigraph.tables.stage import PinMoved, RowChange, Staged, commit, stage
from omnigraph.tables.store import TableStore
from tables.samples import GROWN_PORTS, PORT, PORTS, ROUTE, ROUTES, addresses, at, ids, ports, prop, write


def staged_on(tables: TableStore, base: TablePin | None, change: RowChange, **options) -> Staged:
    given = {"kind": "node", "type_id": PORT.id, "schema": PORTS, **options}
    return stage(tables, base=base, change=change, **given)


# --- what a commit holds


def test_the_first_rows_make_a_folder_of_their_own_and_a_detached_version(any_tables: TableStore) -> None:
    done = write(any_tables, None, ports("ro", "le"))
    assert done.pin.path.startswith(f"nodes/{PORT.id}-")
    assert done.pin.version >> 63 == 1
    assert ids(any_tables, done.pin) == ["ro", "le"]


def test_edges_lie_in_a_folder_of_their_own_kind(tables: TableStore) -> None:
    rows = pa.table({"__id": ["e"], "__src": ["ro"], "__dst": ["le"], "miles": [7]}, schema=ROUTES)
    staged = stage(tables, kind="edge", type_id=ROUTE.id, schema=ROUTES, base=None, change=RowChange(rows))
    done = commit(tables, staged, None, label="main@2")
    assert done.pin.path.startswith(f"edges/{ROUTE.id}-")
    assert tables.open(done.pin).read(ROUTES).to_pylist() == rows.to_pylist()


def test_inserted_rows_follow_those_that_were_there(any_tables: TableStore) -> None:
    first = write(any_tables, None, ports("ro"))
    second = write(any_tables, first.pin, ports("le", "ha"))
    assert ids(any_tables, second.pin) == ["ro", "le", "ha"]
    assert ids(any_tables, first.pin) == ["ro"]


def test_an_update_removes_the_old_row_and_appends_the_new_one_in_one_version(any_tables: TableStore) -> None:
    first = write(any_tables, None, ports("ro", "le", "ha"))
    second = write(any_tables, first.pin, ports("le", depth=9), remove=first.appended[1:2])
    rows = any_tables.open(second.pin).read(PORTS).to_pylist()
    assert [(row["__id"], row["depth"]) for row in rows] == [("ro", 1), ("ha", 1), ("le", 9)]
    assert second.rows == 3


def test_deleted_rows_are_gone_and_the_others_keep_their_addresses(any_tables: TableStore) -> None:
    first = write(any_tables, None, ports("ro", "le", "ha", "zz"))
    second = write(any_tables, first.pin, remove=first.appended[[0, 2]])
    assert addresses(any_tables, second.pin) == {"le": 1, "zz": 3}
    assert second.rows == 2


def test_deleting_every_row_leaves_an_empty_table_that_takes_rows_again(tables: TableStore) -> None:
    first = write(tables, None, ports("ro", "le"))
    emptied = write(tables, first.pin, remove=first.appended)
    assert (ids(tables, emptied.pin), emptied.rows, emptied.bytes) == ([], 0, 0)
    assert ids(tables, write(tables, emptied.pin, ports("ha")).pin) == ["ha"]


def test_overwrite_removes_every_former_row(any_tables: TableStore) -> None:
    first = write(any_tables, None, ports("ro", "le"))
    second = write(any_tables, first.pin, ports("ha"))
    third = write(any_tables, second.pin, ports("le", depth=5), overwrite=True)
    assert any_tables.open(third.pin).read(PORTS).to_pylist() == ports("le", depth=5).to_pylist()
    assert third.rows == 1


def test_overwrite_without_rows_empties_the_table(tables: TableStore) -> None:
    first = write(tables, None, ports("ro", "le"))
    assert ids(tables, write(tables, first.pin, overwrite=True).pin) == []


def test_rows_may_come_as_a_stream_in_several_batches(tables: TableStore) -> None:
    reader = pa.concat_tables([ports("ro", "le"), ports("ha")]).to_reader(max_chunksize=1)
    assert ids(tables, write(tables, None, reader).pin) == ["ro", "le", "ha"]


def test_an_error_of_the_stream_of_rows_comes_out_as_it_is(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    refused = ConstraintViolation("no", rule_code="W001", constraint="c", entity_kind="node", type_name="Port")

    def batches() -> Iterator[pa.RecordBatch]:
        yield from ports("le").to_batches()
        raise refused

    with pytest.raises(ConstraintViolation) as raised:
        write(tables, first.pin, pa.RecordBatchReader.from_batches(PORTS, batches()))
    assert raised.value is refused
    nameless = pa.table({"__id": pa.array(["x", None], pa.utf8())})
    with pytest.raises(InternalError, match="id"):
        write(tables, first.pin, nameless.to_reader(max_chunksize=1))


def test_columns_that_are_left_out_become_null(tables: TableStore) -> None:
    done = write(tables, None, pa.table({"depth": [3], "__id": ["ro"]}))
    assert tables.open(done.pin).read(PORTS).to_pylist() == [{"__id": "ro", "name": None, "depth": 3}]


def test_blobs_are_stored_as_null_and_a_value_is_refused(tables: TableStore) -> None:
    schema = table_schema(NodeType(PORT.id, "Port", (prop("photo", scalar(Scalar.BLOB, True)), *PORT.properties)))
    done = write(tables, None, pa.table({"__id": ["ro"], "photo": pa.array([None], pa.large_binary())}), schema=schema)
    assert tables.open(done.pin).read(schema).to_pylist() == [
        {"__id": "ro", "photo": None, "name": None, "depth": None}
    ]
    with pytest.raises(InternalError, match="Blob"):
        write(
            tables,
            done.pin,
            pa.table({"__id": ["le"], "photo": pa.array([b"x"], pa.large_binary())}),
            schema=schema,
        )


def test_the_commit_says_where_its_rows_lie_in_the_order_given(tables: TableStore) -> None:
    first = write(tables, None, ports("zz", "aa", "mm"))
    second = write(tables, first.pin, ports("le", "zz", depth=4), remove=first.appended[:1])
    found = tables.open(second.pin).take(second.appended, ["__id", "depth"]).to_pylist()
    assert found == [{"__id": "le", "depth": 4}, {"__id": "zz", "depth": 4}]


def test_a_new_fragment_never_takes_the_number_of_one_that_is_gone(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    second = write(tables, first.pin, ports("le"))
    third = write(tables, second.pin, ports("ha"), remove=second.appended)
    assert second.appended.tolist() == [1 << 32]
    assert third.appended.tolist() == [2 << 32]


def test_rows_and_bytes_of_a_commit_are_those_that_a_fresh_reader_finds(tables: TableStore) -> None:
    first = write(tables, None, ports("ro", "le", "ha"))
    second = write(tables, first.pin, ports("zz"))
    steps = [
        first,
        second,
        write(tables, second.pin, ports("le", depth=2), remove=[1]),
        write(tables, second.pin, remove=second.appended),
        write(tables, second.pin, ports("q"), overwrite=True),
    ]
    fresh = TableStore(open_store(tables.location.local_path or ""))
    for step in steps:
        version = fresh.open(step.pin)
        assert (version.rows, version.bytes) == (step.rows, step.bytes)
        assert version.rows == version.read(["__id"]).num_rows


def test_the_label_is_the_transaction_property_by_which_cleanup_finds_its_base(tables: TableStore) -> None:
    done = write(tables, None, ports("ro"), label="drafts@17")
    dataset = tables.open(done.pin).dataset
    transaction = dataset.read_transaction(done.pin.version)
    assert transaction is not None
    assert transaction.transaction_properties == {"omnigraph.base": "drafts@17"}


def test_a_commit_names_every_file_it_wrote(tables: TableStore) -> None:
    first = write(tables, None, ports("ro", "le"))
    before = _files(tables)
    second = write(tables, first.pin, ports("le", depth=2), remove=[1])
    assert set(second.written) == _files(tables) - before
    assert len(second.written) == 4
    assert [name for name in second.written if name.endswith(second.files[0])]


def test_a_new_version_stands_open_after_its_commit(tables: TableStore) -> None:
    done = write(tables, None, ports("ro"))
    assert tables.open(done.pin) is tables.open(done.pin)
    tables.open(done.pin).dataset.io_stats_incremental()
    assert tables.open(done.pin).rows == 1
    assert tables.open(done.pin).dataset.io_stats_incremental().read_iops == 0


def test_every_table_has_stable_row_ids_and_the_current_data_format(tables: TableStore) -> None:
    dataset = tables.open(write(tables, None, ports("ro")).pin).dataset
    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"


def test_staging_alone_makes_no_version(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    versions = {name for name in _files(tables) if "_versions/" in name}
    staged = staged_on(tables, first.pin, RowChange(ports("le"), at(0)))
    assert {name for name in _files(tables) if "_versions/" in name} == versions
    assert (staged.rows_delta, staged.is_append, staged.is_empty) == (0, False, False)


# --- pins


def test_an_update_staged_on_an_older_pin_is_refused(tables: TableStore) -> None:
    first = write(tables, None, ports("ro", "le"))
    stale = staged_on(tables, first.pin, RowChange(ports("ro", depth=2), first.appended[:1]))
    second = write(tables, first.pin, remove=first.appended[1:])
    with pytest.raises(PinMoved):
        commit(tables, stale, second.pin, label="main@4")
    assert ids(tables, second.pin) == ["ro"]


def test_the_library_itself_would_revive_the_deleted_row(tables: TableStore) -> None:
    """Why `commit` compares pins: nothing below it does (history.md 0.4)."""
    first = write(tables, None, ports("ro", "le"))
    stale = staged_on(tables, first.pin, RowChange(ports("ro", depth=2), first.appended[:1]))
    second = write(tables, first.pin, remove=first.appended[1:])
    forced = commit(tables, dataclasses.replace(stale, base=second.pin), second.pin, label="main@4")
    assert sorted(ids(tables, forced.pin)) == ["le", "ro"]


def test_an_overwrite_staged_on_an_older_pin_is_refused(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    stale = staged_on(tables, first.pin, RowChange(ports("zz"), overwrite=True))
    second = write(tables, first.pin, ports("le"))
    with pytest.raises(PinMoved):
        commit(tables, stale, second.pin, label="main@4")


def test_an_overwrite_of_nothing_does_not_become_an_append(tables: TableStore) -> None:
    stale = staged_on(tables, None, RowChange(ports("zz"), overwrite=True))
    first = write(tables, None, ports("le"), line="")
    with pytest.raises(PinMoved):
        commit(tables, stale, first.pin, label="main@4")


def test_appended_rows_may_follow_a_newer_pin_of_their_folder(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    staged = staged_on(tables, first.pin, RowChange(ports("le")))
    second = write(tables, first.pin, ports("ro", depth=3), remove=[0])
    moved = commit(tables, staged, second.pin, label="main@4")
    assert ids(tables, moved.pin) == ["ro", "le"]
    assert moved.rows == 2
    assert tables.open(moved.pin).take(moved.appended, ["__id"]).to_pylist() == [{"__id": "le"}]


def test_two_first_writes_of_one_process_share_a_folder_and_may_follow_each_other(tables: TableStore) -> None:
    one = staged_on(tables, None, RowChange(ports("ro")))
    other = staged_on(tables, None, RowChange(ports("le")))
    first = commit(tables, one, None, label="main@2")
    second = commit(tables, other, first.pin, label="main@3")
    assert ids(tables, second.pin) == ["ro", "le"]


def test_rows_staged_in_another_folder_are_refused(tables: TableStore) -> None:
    other = TableStore(open_store(tables.location.local_path or ""))
    theirs = staged_on(other, None, RowChange(ports("le")))
    first = write(tables, None, ports("ro"))
    assert theirs.folder != first.pin.path
    with pytest.raises(PinMoved):
        commit(other, theirs, first.pin, label="main@3")


def test_each_life_of_a_branch_begins_a_folder_of_its_own(tables: TableStore) -> None:
    paths = {write(tables, None, ports("ro"), line=line).pin.path for line in ("main#1", "main#9", "drafts#1")}
    assert len(paths) == 3


def test_a_missing_base_is_not_taken_for_the_pin_that_stands_there(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    staged = staged_on(tables, first.pin, RowChange(ports("le")))
    with pytest.raises(PinMoved):
        commit(tables, staged, None, label="main@4")


# --- columns added by a later schema


def test_a_property_added_later_reads_as_null_before_the_next_write(any_tables: TableStore) -> None:
    done = write(any_tables, None, ports("ro"))
    assert any_tables.open(done.pin).read(GROWN_PORTS).to_pylist() == [
        {"__id": "ro", "name": "RO", "depth": 1, "draft": None, "berths": None}
    ]
    assert any_tables.open(done.pin).read(GROWN_PORTS).schema.field("berths").type == pa.list_(pa.utf8())


def test_the_next_write_adds_all_missing_columns_in_order_of_property_id(any_tables: TableStore) -> None:
    first = write(any_tables, None, ports("ro", "le"))
    rows = pa.table({"__id": ["ha"], "draft": [7.5]})
    second = write(any_tables, first.pin, rows, schema=GROWN_PORTS, remove=[0])
    version = any_tables.open(second.pin)
    assert version.schema.names == ["__id", "name", "depth", "berths", "draft"]
    assert version.read(GROWN_PORTS).to_pylist() == [
        {"__id": "le", "name": "LE", "depth": 1, "draft": None, "berths": None},
        {"__id": "ha", "name": None, "depth": None, "draft": 7.5, "berths": None},
    ]
    assert version.take(second.appended, ["draft"]).to_pylist() == [{"draft": 7.5}]
    assert version.rows == 2


def test_a_delete_adds_missing_columns_too(tables: TableStore) -> None:
    first = write(tables, None, ports("ro", "le"))
    second = write(tables, first.pin, remove=[0], schema=GROWN_PORTS)
    assert tables.open(second.pin).schema.names[-2:] == ["berths", "draft"]
    assert ids(tables, second.pin) == ["le"]


def test_a_dropped_property_keeps_its_column_and_new_rows_have_null_there(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    without_depth = table_schema(NodeType(PORT.id, "Port", PORT.properties[:1]))
    second = write(tables, first.pin, pa.table({"__id": ["le"], "name": ["LE"]}), schema=without_depth)
    assert tables.open(second.pin).read(["__id", "depth"]).column("depth").to_pylist() == [1, None]


def test_columns_are_added_beside_dropped_ones(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    swapped = table_schema(NodeType(PORT.id, "Port", (PORT.properties[1], prop("draft", scalar(Scalar.F64)))))
    second = write(tables, first.pin, pa.table({"__id": ["le"], "draft": [1.5], "depth": [4]}), schema=swapped)
    assert tables.open(second.pin).read(["__id", "name", "depth", "draft"]).to_pylist() == [
        {"__id": "ro", "name": "RO", "depth": 1, "draft": None},
        {"__id": "le", "name": None, "depth": 4, "draft": 1.5},
    ]


def test_rows_staged_for_other_column_numbers_are_not_appended(tables: TableStore) -> None:
    """Two branches that add a column each give one number to two properties (history.md 0.4)."""
    first = write(tables, None, ports("ro"))
    draft = table_schema(NodeType(PORT.id, "Port", (*PORT.properties, prop("draft", scalar(Scalar.I64)))))
    berth = table_schema(NodeType(PORT.id, "Port", (*PORT.properties, prop("berth", scalar(Scalar.I64)))))
    staged = staged_on(tables, first.pin, RowChange(pa.table({"__id": ["le"], "draft": [7]})), schema=draft)
    other = write(tables, first.pin, pa.table({"__id": ["ha"], "berth": [8]}), schema=berth)
    with pytest.raises(PinMoved):
        commit(tables, staged, other.pin, label="main@4")


def test_rows_staged_before_a_column_was_added_may_follow_the_extended_table(tables: TableStore) -> None:
    first = write(tables, None, ports("ro"))
    staged = staged_on(tables, first.pin, RowChange(ports("le")))
    extended = write(tables, first.pin, pa.table({"__id": ["ha"], "draft": [1.5]}), schema=GROWN_PORTS)
    moved = commit(tables, staged, extended.pin, label="main@4")
    assert [row["draft"] for row in tables.open(moved.pin).read(GROWN_PORTS).to_pylist()] == [None, 1.5, None]


def test_columns_keep_their_bytes_however_often_a_table_is_extended(tables: TableStore) -> None:
    """Lists and vectors take several numbers each, which is where counting goes wrong."""
    properties = [*PORT.properties]
    pin = write(tables, None, ports("p0")).pin
    expected = [{"__id": "p0", "name": "P0", "depth": 1}]
    for step, of in enumerate([Scalar.STRING, Scalar.I32, Scalar.DATE]):
        for kind in ("list", "scalar", "vector"):
            vector = ValueType("vector", Scalar.F32, dimension=2)
            name = f"{kind}{step}"
            properties.append(prop(name, vector if kind == "vector" else ValueType(kind, of)))
        schema = table_schema(NodeType(PORT.id, "Port", tuple(properties)))
        row = {"__id": f"p{step + 1}", f"vector{step}": [step, 0.5]}
        if of is Scalar.STRING:
            row |= {"list0": ["a", None], "scalar0": "b"}
        rows = pa.Table.from_pylist([row], schema=pa.schema([schema.field(name) for name in row]))
        pin = write(tables, pin, rows, schema=schema).pin
        expected = [each | {name: None for name in schema.names if name not in each} for each in [*expected, row]]
        assert tables.open(pin).read(schema).to_pylist() == expected


# --- misuse


@pytest.mark.parametrize("wrong", [at(7), at(9 << 32), at(0, 0)], ids=["position", "fragment", "repeated"])
def test_addresses_that_are_not_live_are_refused(tables: TableStore, wrong: np.ndarray) -> None:
    first = write(tables, None, ports("ro", "le"))
    with pytest.raises(InternalError):
        staged_on(tables, first.pin, RowChange(ports("zz"), wrong))


def test_a_row_can_not_be_removed_twice(tables: TableStore) -> None:
    first = write(tables, None, ports("ro", "le", "ha"))
    second = write(tables, first.pin, remove=[1])
    for store in (tables, TableStore(open_store(tables.location.local_path or ""))):
        with pytest.raises(InternalError):
            staged_on(store, second.pin, RowChange(None, at(1)))


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"__id": ["a"], "unknown": [1]}),
        pa.table({"__id": ["a"], "depth": ["deep"]}),
        pa.table({"__id": pa.array([None], pa.utf8())}),
    ],
    ids=["unknown column", "other type", "no id"],
)
def test_rows_that_do_not_fit_the_type_are_refused(tables: TableStore, rows: pa.Table) -> None:
    with pytest.raises(InternalError):
        write(tables, None, rows)


def test_a_commit_without_a_change_is_refused(tables: TableStore) -> None:
    staged = staged_on(tables, None, RowChange(ports()))
    assert staged.is_empty
    with pytest.raises(InternalError):
        commit(tables, staged, None, label="main@2")


# --- several types at once


def test_types_are_staged_and_committed_side_by_side(any_tables: TableStore) -> None:
    def one(number: int) -> list[str]:
        type_id, pin, expected = f"{number:016x}", None, []
        for step in range(4):
            name = f"{number}-{step}"
            remove = at() if pin is None else at(addresses(any_tables, pin)[expected[0]])
            expected = [*expected[1:], name] if len(remove) else [*expected, name]
            staged = stage(
                any_tables,
                kind="node",
                type_id=type_id,
                schema=PORTS,
                base=pin,
                change=RowChange(ports(name), remove),
            )
            pin = commit(any_tables, staged, pin, label="main@2").pin
            assert ids(any_tables, pin) == expected
        return expected

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(one, range(8)))
    assert [each[0] for each in results] == [f"{number}-3" for number in range(8)]


def test_one_process_makes_one_folder_even_if_two_writes_begin_together(tables: TableStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        staged = list(pool.map(lambda n: staged_on(tables, None, RowChange(ports(f"p{n}"))), range(4)))
    assert len({each.folder for each in staged}) == 1


def _files(tables: TableStore) -> set[str]:
    root = tables.location.local_path or ""
    return {os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names}
