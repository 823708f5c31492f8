"""A few rows of a column that is not in memory are looked up where they lie; a column that is asked often becomes resident."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from omnigraph.manifest.model import TablePin
from omnigraph.query.residency.columns import AddressBlock, Columns, RowSpace
from support.memory_graphs import MemoryTable

NAME = pa.field("name", pa.string())
SIZE = pa.field("size", pa.int64())


class Watched(MemoryTable):
    """Also counts look-ups."""

    looks = 0

    def take(self, addresses: np.ndarray, columns: Iterable[str | pa.Field]) -> pa.Table:
        self.looks += 1
        return super().take(addresses, columns)


def table(rows: int) -> Watched:
    """Addresses have gaps, so that a row number is not taken for one."""
    values = pa.table({"name": [f"n{n}" for n in range(rows)], "size": range(rows)})
    return Watched(TablePin("nodes/t-1", 7), values, np.arange(rows, dtype=np.uint64) * 3)


def columns_of(source: Watched) -> Columns:
    return Columns(source, RowSpace(AddressBlock(source.addresses), AddressBlock(np.empty(0, np.uint64))))


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_a_few_rows_of_a_large_table_are_looked_up_in_the_order_asked() -> None:
    source = table(5_000)
    columns = columns_of(source)
    assert columns.values(NAME, rows(4_999, 3, 3, 1_000)).to_pylist() == ["n4999", "n3", "n3", "n1000"]
    assert (source.looks, source.scans, "name" in columns) == (1, [], False)


def test_a_column_that_is_looked_up_often_becomes_resident_and_is_read_once() -> None:
    source = table(5_000)
    columns = columns_of(source)
    for number in range(20):
        assert columns.values(SIZE, rows(number)).to_pylist() == [number]
    assert (source.looks, len(source.scans), "size" in columns) == (4, 1, True)
    assert columns.values(NAME, rows(8)).to_pylist() == ["n8"]  # counted for each column
    assert (source.looks, "name" in columns) == (5, False)


def test_a_larger_table_is_looked_at_more_often_before_a_column_is_read() -> None:
    source = table(6 * 65_536)
    columns = columns_of(source)
    for number in range(8):
        assert columns.values(SIZE, rows(number)).to_pylist() == [number]
    assert source.looks == 6


def test_many_rows_and_small_tables_are_read_at_once() -> None:
    for size, asked in ((5_000, 79), (63, 1), (100_000, 65)):
        source = table(size)
        columns = columns_of(source)
        assert columns.values(SIZE, np.arange(asked)).to_pylist() == list(range(asked))
        assert (source.looks, "size" in columns) == (0, True)


def test_versions_that_follow_go_on_counting_and_know_their_own_rows() -> None:
    source = table(5_000)
    columns = columns_of(source)
    columns.values(SIZE, rows(1))
    addresses = np.array([99_999], np.uint64)
    added = pa.table({"name": ["new"], "size": [77]})
    later = Watched(
        TablePin("nodes/t-1", 8), pa.concat_tables([source.held, added]), np.concatenate([source.addresses, addresses])
    )
    follower = columns.extended(later, columns.space.extended(addresses), added)
    for _ in range(3):
        assert follower.values(SIZE, rows(5_000, 2)).to_pylist() == [77, 2]
    assert later.looks == 3
    assert follower.values(SIZE, rows(5_000, 2)).to_pylist() == [77, 2]
    assert (later.looks, "size" in follower, "size" in columns) == (3, True, False)
