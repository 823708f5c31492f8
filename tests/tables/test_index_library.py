"""What the table library really does about search indexes, as far as this room relies on it. See test_library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.dataset import Index, Transaction
from lance.fragment import write_fragments
from lance.query import MatchQuery

from omnigraph.tables.analysis import TERMS

Op = lance.LanceOperation
SCHEMA = pa.schema([pa.field("s", pa.utf8()), pa.field("v", pa.list_(pa.float32(), 2))])


def commit(base: lance.LanceDataset, operation: Op.BaseOperation) -> lance.LanceDataset:
    return lance.LanceDataset.commit(base, Transaction(base.version, operation), detached=True)


def rows(*texts: str, place: list[float] | None = None) -> pa.Table:
    return pa.table({"s": list(texts), "v": pa.array([place] * len(texts), SCHEMA.field("v").type)}, schema=SCHEMA)


def appended(base: lance.LanceDataset, table: pa.Table) -> lance.LanceDataset:
    return commit(base, Op.Append(write_fragments(table, base)))


def raw(dataset: lance.LanceDataset, *fragments: int, again: bool = False) -> Index:
    return dataset.create_index_uncommitted(
        "s", "INVERTED", name="t", replace=again, fragment_ids=list(fragments), with_position=False, **TERMS
    )


def search(dataset: lance.LanceDataset, query: str, *, covered_only: bool = False) -> list[int]:
    scan = dataset.scanner(
        columns=["_score"],
        full_text_query=MatchQuery(query, "s"),
        with_row_address=True,
        disable_scoring_autoprojection=True,
        fast_search=covered_only,
    )
    return sorted(scan.to_table().column("_rowaddr").to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    empty = lance.write_dataset(SCHEMA.empty_table(), str(tmp_path), enable_stable_row_ids=True)
    return appended(empty, rows("the ship sails", "Sailing ships", "because"))


def test_a_text_segment_can_not_be_read_until_it_was_merged_even_alone(table: lance.LanceDataset) -> None:
    unmerged = commit(table, Op.CreateIndex([raw(table, 0)], []))
    with pytest.raises((OSError, ValueError, RuntimeError)):
        search(unmerged, "sail")
    merged = commit(table, Op.CreateIndex([table.merge_existing_index_segments([raw(table, 0)])], []))
    assert search(merged, "sail") == [0, 1]


def test_rows_that_a_text_index_does_not_cover_are_searched_by_the_same_terms(table: lance.LanceDataset) -> None:
    built = commit(table, Op.CreateIndex([table.merge_existing_index_segments([raw(table, 0)])], []))
    later = appended(built, rows("SAILED away", "the", "Stra\u00dfe"))
    assert search(later, "sails") == [0, 1, 1 << 32]
    assert search(later, "Stra\u00dfe") == [(1 << 32) + 2]
    assert search(later, "the") == []
    assert search(later, "sails", covered_only=True) == [0, 1]


def test_committed_text_segments_are_merged_if_they_carry_details_and_the_version_of_the_handle(
    table: lance.LanceDataset,
) -> None:
    built = commit(table, Op.CreateIndex([table.merge_existing_index_segments([raw(table, 0)])], []))
    later = appended(built, rows("SAILED away"))
    made = raw(later, 1, again=True)
    [old] = later.describe_indices()[0].segments
    known = Index(old.uuid, "t", [0], later.version, old.fragment_ids, old.index_version)
    with pytest.raises(ValueError, match="same supported index type"):
        later.merge_existing_index_segments([known, made])
    known = replace(known, index_details=made.index_details)
    merged = later.merge_existing_index_segments([known, made])
    after = commit(later, Op.CreateIndex([merged], [known]))
    [segment] = after.describe_indices()[0].segments
    assert set(segment.fragment_ids) == {0, 1}
    assert search(after, "sail", covered_only=True) == [0, 1, 1 << 32]


def test_the_settings_of_a_text_index_are_recorded(table: lance.LanceDataset) -> None:
    built = commit(table, Op.CreateIndex([table.merge_existing_index_segments([raw(table, 0)])], []))
    details = built.describe_indices()[0].details
    assert {name: details[name] for name in TERMS} == dict(TERMS)
    assert details["with_position"] is False


def test_a_vector_index_over_nulls_alone_can_not_be_trained_and_segments_of_any_sort_answer_together(
    table: lance.LanceDataset,
) -> None:
    def made(dataset: lance.LanceDataset, fragment: int, sort: str, again: bool) -> Index:
        return dataset.create_index_uncommitted(
            "v", sort, name="v", metric="L2", num_partitions=1, fragment_ids=[fragment], replace=again
        )

    with pytest.raises((OSError, ValueError, RuntimeError)):
        made(table, 0, "IVF_FLAT", False)
    filled = appended(table, rows("a", "b", place=[1, 1]))
    filled = commit(filled, Op.CreateIndex([made(filled, 1, "IVF_FLAT", False)], []))
    filled = appended(filled, rows("c", "d", place=[2, 2]))
    filled = commit(filled, Op.CreateIndex([made(filled, 2, "IVF_SQ", True)], []))
    near = {"column": "v", "q": np.zeros(2, np.float32), "k": 9, "nprobes": 1 << 20, "refine_factor": 2}
    scan = filled.scanner(columns=["_distance"], nearest=near, disable_scoring_autoprojection=True)
    assert scan.to_table().column("_distance").to_pylist() == [2, 2, 8, 8]
