"""Values in filter texts mean themselves (security.md 3, trials.md QR-12)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import INTEGER_RANGE, STRING, Scalar, ValueType, scalar
from omnigraph.store.open import open_store
from omnigraph.tables.columns import table_schema
from omnigraph.tables.filters import address_filter, equals, one_of
from omnigraph.tables.indexes import lookup_ids
from omnigraph.tables.store import TableStore
from omnigraph.tables.version import TableVersion
from tables.samples import prop, write

AWKWARD = [
    "",
    "O'Neil",
    "''",
    "'",
    'say "hi"',
    "back\\slash",
    "\\",
    "\\'",
    "100%",
    "a_b",
    "aXb",
    "x' OR 'a'='a",
    "x' OR 1=1 --",
    "/* */ -- #",
    "`tick`",
    "{b}",
    "$p",
    "?",
    ":name",
    "line\nbreak\r\ttab",
    "nul\x00inside",
    "\x00",
    "é",
    "e\u0301",
    "\u202egnirts",
    "\U0001f600",
    "\ud7ff\ue000\uffff",
    "\N{ZERO WIDTH SPACE}",
    "NULL",
    "true",
    "1",
    "_rowaddr",
    "x" * 65536,
]
COLUMNS = ["camelCase", "select", "with space", "quo'te", "per%cent", "umlaut_ä"]
SCHEMA = table_schema(NodeType("c0", "Odd", tuple(prop(name, STRING) for name in COLUMNS)))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> TableVersion:
    """Every awkward text once, as id and in every column."""
    tables = TableStore(open_store(Path(tmp_path_factory.mktemp("odd"))))
    rows = pa.table(dict.fromkeys(SCHEMA.names, AWKWARD))
    return tables.open(write(tables, None, rows, schema=SCHEMA).pin)


def found(version: TableVersion, filter: str | pc.Expression) -> list[str]:
    return version.read(["__id"], filter=filter).column("__id").to_pylist()


texts = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.text("'\\\"`%_-/*;\x00 a", max_size=8),
    st.builds(lambda a, b: a + b, st.sampled_from(AWKWARD), st.sampled_from(["'", "\\", "\x00", " "])),
)


@given(texts)
@settings(max_examples=200, deadline=None)
def test_a_quoted_text_matches_exactly_the_rows_that_hold_it(odd: TableVersion, text: str) -> None:
    expected = [each for each in AWKWARD if each == text]
    assert found(odd, equals("__id", text)) == expected
    assert found(odd, pc.field("__id") == text) == expected


@given(st.lists(texts, min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_a_list_of_quoted_texts_matches_their_union(odd: TableVersion, wanted: list[str]) -> None:
    assert found(odd, one_of("__id", pa.array(wanted))) == [each for each in AWKWARD if each in wanted]


DAYS = (-719_162, 2_932_896)
MILLISECONDS = (-62_135_596_800_000, 253_402_300_799_999)
RAW: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.BOOL: st.booleans(),
    **{of: st.one_of(st.sampled_from(span), st.integers(*span)) for of, span in INTEGER_RANGE.items()},
    Scalar.F32: st.floats(width=32, allow_nan=False, allow_infinity=False),
    Scalar.F64: st.floats(allow_nan=False, allow_infinity=False),
    Scalar.DATE: st.one_of(st.sampled_from(DAYS), st.integers(*DAYS)),
    Scalar.DATETIME: st.one_of(st.sampled_from(MILLISECONDS), st.integers(*MILLISECONDS)),
}


@pytest.mark.parametrize("of", RAW)
def test_a_list_of_constants_matches_the_rows_that_hold_one_of_them(
    of: Scalar, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Beside a list of unsigned integers, which keeps the library from taking an expression on any column."""
    schema = table_schema(NodeType("c1", "One", (prop("x", scalar(of)), prop("l", ValueType("list", Scalar.U32)))))
    kind = schema.field("x").type
    plain = {Scalar.DATE: pa.int32(), Scalar.DATETIME: pa.int64()}.get(of, kind)

    @given(st.lists(RAW[of], min_size=1, max_size=20), st.lists(RAW[of], min_size=1, max_size=3))
    @settings(max_examples=10, deadline=None)
    def matches(held: list[Any], wanted: list[Any]) -> None:
        wanted = wanted + held[::2]
        column = pa.array([*held, None], plain).cast(kind)
        ids = [str(place) for place in range(len(column))]
        rows = pa.table({"__id": ids, "x": column, "l": pa.nulls(len(column), pa.list_(pa.uint32()))}, schema=schema)
        tables = TableStore(open_store(Path(tmp_path_factory.mktemp("one"))))
        version = tables.open(write(tables, None, rows, schema=schema).pin)
        expected = [place for place, value in zip(ids, held, strict=False) if value in wanted]
        assert found(version, one_of("x", pa.array(wanted, plain).cast(kind))) == expected

    matches()


@given(st.lists(texts, max_size=6))
@settings(max_examples=100, deadline=None)
def test_ids_are_looked_up_as_values(odd: TableVersion, wanted: list[str]) -> None:
    expected = [place for place, each in enumerate(AWKWARD) if each in wanted]
    assert lookup_ids(odd, wanted).tolist() == expected


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("text", AWKWARD[:12])
def test_a_quoted_name_means_its_column_whatever_its_letters(odd: TableVersion, column: str, text: str) -> None:
    assert found(odd, equals(column, text)) == [text]


@given(st.sets(st.integers(0, 40), min_size=1, max_size=20))
@example({3})
@example({4, 5, 6})
@settings(max_examples=60, deadline=None)
def test_an_address_filter_matches_the_rows_at_these_places(odd: TableVersion, places: set[int]) -> None:
    table = odd.read([], filter=address_filter(np.array(sorted(places), np.uint64)), with_row_address=True)
    assert table.column("_rowaddr").to_pylist() == [place for place in sorted(places) if place < len(AWKWARD)]
