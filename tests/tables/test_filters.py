"""Values in filter texts mean themselves (security.md 3, trials.md QR-12)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import STRING
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
    assert found(odd, one_of("__id", wanted)) == [each for each in AWKWARD if each in wanted]


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
