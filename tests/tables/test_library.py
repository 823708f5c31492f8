"""What the table library really does, as far as this room relies on it (history.md 0.4).

These tests talk to the library directly. One that fails after an upgrade says which assumption to look at.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.bitmap import Bitmap
from lance.dataset import Index, Transaction
from lance.fragment import DeletionFile, FragmentMetadata, write_fragments
from lance.schema import LanceSchema

Op = lance.LanceOperation
SCHEMA = pa.schema([pa.field("__id", pa.utf8(), nullable=False), pa.field("v", pa.int64())])


def rows(*names: str, v: int = 0) -> pa.Table:
    return pa.table({"__id": list(names), "v": [v] * len(names)}, schema=SCHEMA)


def commit(base: lance.LanceDataset, operation: Op.BaseOperation, **properties: str) -> lance.LanceDataset:
    transaction = Transaction(base.version, operation, transaction_properties=properties)
    return lance.LanceDataset.commit(base, transaction, detached=True)


def fragments(dataset: lance.LanceDataset) -> list[FragmentMetadata]:
    return [each.metadata for each in dataset.get_fragments()]


def names(dataset: lance.LanceDataset) -> list[str]:
    return dataset.to_table(columns=["__id"]).column("__id").to_pylist()


def files(path: Path) -> set[str]:
    return {os.path.relpath(os.path.join(at, name), path) for at, _, found in os.walk(path) for name in found}


@pytest.fixture
def empty(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(SCHEMA.empty_table(), str(tmp_path), enable_stable_row_ids=True)


@pytest.fixture
def table(empty: lance.LanceDataset) -> lance.LanceDataset:
    """Ten rows, detached."""
    return commit(empty, Op.Append(write_fragments(rows(*(f"k{n}" for n in range(10))), empty)))


def test_a_new_table_is_linear_version_1_and_a_detached_version_has_the_top_bit(
    empty: lance.LanceDataset, table: lance.LanceDataset
) -> None:
    assert empty.version == 1
    assert table.version >> 63 == 1
    assert empty.latest_version == 1


def test_a_detached_commit_can_not_make_a_table(tmp_path: Path) -> None:
    with pytest.raises((OSError, ValueError)):
        lance.LanceDataset.commit(str(tmp_path / "new"), Op.Overwrite(SCHEMA, []), detached=True)


def test_a_detached_commit_writes_a_transaction_and_a_version_under_names_that_are_known_and_reads_nothing(
    table: lance.LanceDataset, tmp_path: Path
) -> None:
    before, staged = files(tmp_path), write_fragments(rows("new"), table)
    data = files(tmp_path) - before
    assert data == {f"data/{staged[0].files[0].path}"}
    table.io_stats_incremental()
    transaction = Transaction(table.version, Op.Append(staged))
    after = lance.LanceDataset.commit(table, transaction, detached=True)
    stats = table.io_stats_incremental()
    assert (stats.read_iops, stats.write_iops) == (0, 2)
    assert files(tmp_path) - before - data == {
        f"_transactions/{table.version}-{transaction.uuid}.txn",
        f"_versions/d{after.version}.manifest",
    }


def test_transaction_properties_can_be_read_back(table: lance.LanceDataset) -> None:
    after = commit(table, Op.Append(write_fragments(rows("new"), table)), label="main@7")
    found = lance.dataset(table.uri, version=after.version).read_transaction(after.version)
    assert found is not None
    assert found.transaction_properties == {"label": "main@7"}


def test_a_detached_commit_looks_for_no_conflict_and_revives_deleted_rows(table: lance.LanceDataset) -> None:
    stale = table.get_fragments()[0].delete("_rowaddr = 3")
    assert stale is not None
    gone = table.get_fragments()[0].delete("_rowaddr = 5")
    assert gone is not None
    newer = commit(table, Op.Delete([gone], [], ""))
    assert "k5" not in names(newer)
    update = Op.Update(updated_fragments=[stale], new_fragments=write_fragments(rows("k3", v=1), table))
    assert "k5" in names(commit(newer, update))


def test_appended_fragments_get_their_numbers_and_row_ids_from_the_version_they_follow(
    table: lance.LanceDataset,
) -> None:
    staged = write_fragments(rows("late"), table)
    newer = commit(table, Op.Append(write_fragments(rows("a", "b"), table)))
    after = commit(newer, Op.Append(staged))
    found = after.scanner(columns=["__id"], with_row_id=True, with_row_address=True).to_table().to_pylist()
    assert found[-1] == {"__id": "late", "_rowid": 12, "_rowaddr": 2 << 32}


def test_new_fragments_are_numbered_upwards_in_the_order_given_and_no_number_comes_twice(
    table: lance.LanceDataset,
) -> None:
    staged = write_fragments(rows(*(f"n{n}" for n in range(25))), table, max_rows_per_file=10)
    assert [each.physical_rows for each in staged] == [10, 10, 5]
    after = commit(table, Op.Update(removed_fragment_ids=[0], new_fragments=staged))
    assert [(each.id, each.physical_rows) for each in fragments(after)] == [(1, 10), (2, 10), (3, 5)]
    assert names(after) == [f"n{n}" for n in range(25)]
    emptied = commit(after, Op.Delete([], [1, 2, 3], ""))
    again = commit(emptied, Op.Append(write_fragments(rows("x"), emptied)))
    assert list(again.fragment_ids()) == [4]


def test_a_fragment_keeps_its_data_files_and_its_rows_their_places_when_others_go(table: lance.LanceDataset) -> None:
    thinned = table.get_fragments()[0].delete("_rowaddr IN (0, 4)")
    assert thinned is not None
    after = commit(table, Op.Delete([thinned], [], ""))
    assert fragments(after)[0].files == fragments(table)[0].files
    live = after.get_fragments()[0].scanner(columns=[], with_row_address=True).to_table().column("_rowaddr")
    assert live.to_pylist() == [1, 2, 3, 5, 6, 7, 8, 9]


def test_take_on_a_fragment_counts_live_rows_and_not_places(table: lance.LanceDataset) -> None:
    thinned = table.get_fragments()[0].delete("_rowaddr = 0")
    assert thinned is not None
    after = commit(table, Op.Delete([thinned], [], ""))
    assert after.get_fragments()[0].take([0], columns=["__id"]).to_pylist() == [{"__id": "k1"}]
    assert table.get_fragments()[0].take([1], columns=["__id"]).to_pylist() == [{"__id": "k1"}]


def test_a_scan_of_some_fragments_filtered_by_address_finds_exactly_those_rows(table: lance.LanceDataset) -> None:
    after = commit(table, Op.Append(write_fragments(rows("a", "b"), table)))
    found = after.scanner(
        columns=["__id"],
        filter=f"_rowaddr IN (2, 9, {1 << 32})",
        fragments=[after.get_fragment(0), after.get_fragment(1)],
    )
    assert found.to_table().column("__id").to_pylist() == ["k2", "k9", "a"]


# --- deletion files: the one form of the library's own that we write


def serialized(positions: list[int]) -> bytes:
    return cast("tuple[object, tuple[bytes]]", Bitmap(pa.array(positions, pa.uint32())).__reduce__())[1][0]


def restored(data: bytes) -> list[int]:
    constructor = cast("tuple[Callable[[bytes], Bitmap], object]", Bitmap().__reduce__())[0]
    return list(constructor(data))


def test_a_bitmap_goes_through_pickling_in_the_portable_roaring_form() -> None:
    data = serialized([1, 2, 70000])
    assert data == bytes.fromhex("3a30000002000000 00000100 01000000 18000000 1c000000 01000200 7011")
    assert restored(data) == [1, 2, 70000]


def test_the_library_writes_many_deletions_in_that_form_itself(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("__id", pa.utf8(), nullable=False)])
    made = lance.write_dataset(schema.empty_table(), str(tmp_path), enable_stable_row_ids=True)
    data = pa.table({"__id": [str(n) for n in range(20_000)]}, schema=schema)
    made = commit(made, Op.Append(write_fragments(data, made)))
    thinned = made.get_fragments()[0].delete("_rowaddr < 6000")
    assert thinned is not None
    file = thinned.deletion_file
    assert file is not None
    assert (file.file_type, file.read_version, file.num_deleted_rows) == ("bitmap", made.version, 6000)
    assert restored((tmp_path / file.path(0)).read_bytes()) == list(range(6000))
    assert restored(serialized(list(range(6000)))) == list(range(6000))


@pytest.mark.parametrize("gone", [[0], [9], [2, 3, 5], list(range(9))])
def test_a_deletion_file_of_ours_is_read_counted_and_added_to_like_any_other(
    table: lance.LanceDataset, tmp_path: Path, gone: list[int]
) -> None:
    file = DeletionFile(table.version, 7, "bitmap", len(gone), None)
    assert file.path(0) == f"_deletions/0-{table.version}-7.bin"
    (tmp_path / "_deletions").mkdir()
    (tmp_path / file.path(0)).write_bytes(serialized(gone))
    thinned = dataclasses.replace(fragments(table)[0], deletion_file=file)
    after = commit(table, Op.Delete([thinned], [], ""))
    fresh = lance.dataset(table.uri, version=after.version)
    left = [f"k{n}" for n in range(10) if n not in gone]
    assert names(fresh) == left
    assert fresh.count_rows() == len(left)
    fresh.validate()
    more = fresh.get_fragments()[0].delete(f"__id = '{left[0]}'")
    found = [] if more is None else names(commit(fresh, Op.Delete([more], [], "")))
    assert found == left[1:]


# --- columns


def test_fields_are_numbered_depth_first_from_a_pyarrow_schema(empty: lance.LanceDataset) -> None:
    wide = pa.schema(
        [*SCHEMA, ("tags", pa.list_(pa.utf8())), ("vector", pa.list_(pa.float32(), 2)), ("last", pa.int8())]
    )
    assert [(each.name(), each.id()) for each in LanceSchema.from_pyarrow(wide).fields()] == [
        ("__id", 0), ("v", 1), ("tags", 2), ("vector", 4), ("last", 5),
    ]  # fmt: skip


def test_merging_unchanged_fragments_adds_columns_that_read_as_null(table: lance.LanceDataset) -> None:
    wide = pa.schema([*SCHEMA, ("tags", pa.list_(pa.utf8()))])
    after = commit(table, Op.Merge(fragments(table), LanceSchema.from_pyarrow(wide)))
    assert after.to_table(columns=["v", "tags"]).to_pylist()[0] == {"v": 0, "tags": None}
    assert [each.files for each in fragments(after)] == [each.files for each in fragments(table)]
    assert after.has_stable_row_ids


def test_files_written_to_overwrite_number_their_columns_from_zero_and_to_append_by_the_table(
    table: lance.LanceDataset,
) -> None:
    only_v = pa.schema([SCHEMA.field("__id"), pa.field("w", pa.int64())])
    data = pa.table({"__id": ["a"], "w": [1]}, schema=only_v)
    assert write_fragments(data, table, mode="overwrite")[0].files[0].fields == [0, 1]
    reversed_ = rows("a").select(["v", "__id"])
    assert write_fragments(reversed_, table)[0].files[0].fields == [1, 0]


def test_nullable_columns_may_be_left_out_of_appended_rows_and_others_may_not(table: lance.LanceDataset) -> None:
    after = commit(table, Op.Append(write_fragments(rows("a").select(["__id"]), table)))
    assert after.to_table(filter="__id = 'a'").to_pylist() == [{"__id": "a", "v": None}]
    with pytest.raises(OSError, match="fields did not match"):
        write_fragments(rows("a").select(["v"]), table)


# --- indexes


def indexed(dataset: lance.LanceDataset, *, replace: bool = False) -> Index:
    numbers = list(dataset.fragment_ids())
    return dataset.create_index_uncommitted("__id", "BTREE", name="i", replace=replace, fragment_ids=numbers)


def find(dataset: lance.LanceDataset, name: str) -> list[int]:
    return dataset.to_table(columns=["v"], filter=f"__id = '{name}'").column("v").to_pylist()


def test_an_index_needs_its_fragments_named_and_leave_to_replace_one_of_its_name(table: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="fragment_ids"):
        table.create_index_uncommitted("__id", "BTREE", name="i")
    after = commit(table, Op.CreateIndex([indexed(table)], []))
    with pytest.raises((OSError, ValueError, RuntimeError), match="already exists"):
        indexed(after)
    assert indexed(after, replace=True).name == "i"


def test_an_updated_row_is_found_once_through_an_index_that_is_older(table: lance.LanceDataset) -> None:
    built = commit(table, Op.CreateIndex([indexed(table)], []))
    thinned = built.get_fragments()[0].delete("_rowaddr = 3")
    assert thinned is not None
    update = Op.Update(updated_fragments=[thinned], new_fragments=write_fragments(rows("k3", v=9), built))
    after = commit(built, update)
    assert find(after, "k3") == [9]
    covered = [list(each.fragment_ids) for index in after.describe_indices() for each in index.segments]
    assert covered == [[0]]


def test_an_index_stays_when_columns_are_added(table: lance.LanceDataset) -> None:
    built = commit(table, Op.CreateIndex([indexed(table)], []))
    wide = LanceSchema.from_pyarrow(pa.schema([*SCHEMA, ("w", pa.int64())]))
    after = commit(built, Op.Merge(fragments(built), wide))
    assert [each.name for each in after.describe_indices()] == ["i"]
    assert find(after, "k3") == [0]


def test_an_old_segment_goes_only_if_it_is_named(table: lance.LanceDataset) -> None:
    built = commit(table, Op.CreateIndex([indexed(table)], []))
    old = built.describe_indices()[0].segments[0]
    new = indexed(built, replace=True)
    kept = commit(built, Op.CreateIndex([new], []))
    named = Index(old.uuid, "i", [0], old.dataset_version_at_last_update, old.fragment_ids, old.index_version)
    replaced = commit(built, Op.CreateIndex([new], [named]))
    assert {each.uuid for each in replaced.describe_indices()[0].segments} == {new.uuid}
    assert {each.uuid for each in kept.describe_indices()[0].segments} == {new.uuid, old.uuid}


def test_expressions_fail_beside_a_list_of_unsigned_integers_and_texts_do_not(tmp_path: Path) -> None:
    held = pa.table({"n": pa.array([1, 2], pa.uint64()), "s": ["a", "b"], "l": pa.nulls(2, pa.list_(pa.uint32()))})
    whole = lance.write_dataset(held, str(tmp_path / "whole"))
    without = lance.write_dataset(held.drop_columns(["l"]), str(tmp_path / "without"))
    assert without.count_rows(filter="n IN (2)") == whole.count_rows(filter="s IN ('a')") == 1
    assert without.scanner(filter=pc.field("s") == "a").count_rows() == 1
    for table, filter in ((without, pc.field("n").is_valid()), (whole, pc.field("s").is_valid())):
        with pytest.raises((OSError, ValueError, NotImplementedError)):
            table.scanner(filter=filter).count_rows()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_filter_takes_the_two_zeros_for_equal_with_an_index_and_without(tmp_path: Path, kind: pa.DataType) -> None:
    zeros = pa.array([0.0, -0.0] * 5_000 + [7.0, None], kind)  # more than one page of an index holds
    table = lance.write_dataset(pa.table({"x": zeros}), str(tmp_path))
    for indexed in (False, True):
        if indexed:
            table.create_scalar_index("x", "BTREE")
        for filter in ("x IN (0.0)", "x IN (-0.0)", "x IN (0.0, 1.0, 2.0, 3.0)", "x IN (-0.0, 1.0, 2.0, 3.0)"):
            assert table.count_rows(filter=filter) == 10_000
