"""Results as bytes: values as languages.md 20 spells them, by columns, equal to a plain row-by-row encoder."""

from __future__ import annotations

import csv as csv_reader
import datetime as dt
import io
import json
import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.schema.identity import float_spelling
from omnigraph.lang.values import date_text, datetime_text, float_text
from omnigraph.query.encode import Spelling, arrow_stream, csv, json_rows, ndjson
from omnigraph.query.encode.cells import cell_text
from omnigraph.query.encode.floats import decimal_text
from omnigraph.query.encode.pieces import BYTES_MAX, ROWS_MAX, slices

MOMENT = pa.timestamp("ms", tz="UTC")

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=10),
    st.sampled_from(
        ["", '"', "\\", '\\"', "\x00", "\x1f\x7f", "\b\f\n\r\t", "/</script>", "\u2028", "𝄞", ",", "=1+1", " x "]
    ),
)
MILLISECONDS = st.datetimes().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000, tzinfo=dt.UTC))
SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.string_view(), TEXTS),
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.date32(), st.dates()),
    (MOMENT, MILLISECONDS),
]


@st.composite
def kinds(draw: st.DrawFn) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    of, values = draw(st.sampled_from(SCALARS))
    form = draw(st.sampled_from(["scalar", "scalar", "list", "vector", "node", "null"]))
    if form == "list":
        return pa.list_(of), st.lists(st.none() | values, max_size=3)
    if form == "vector":
        return pa.list_(pa.float32(), 2), st.lists(st.floats(width=32), min_size=2, max_size=2)
    if form == "node":
        members = pa.struct([("@id", pa.string()), ("p", of), ("q", pa.list_(of))])
        parts = {"@id": TEXTS, "p": st.none() | values, "q": st.none() | st.lists(st.none() | values, max_size=2)}
        return members, st.fixed_dictionaries(parts)
    return (pa.null(), st.none()) if form == "null" else (of, values)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table of up to three columns, some without nulls, perhaps sliced and in chunks."""
    count = draw(st.integers(0, 5))
    columns: dict[str, pa.Array] = {}
    for name in draw(st.lists(st.sampled_from(["a", "v.title", 'q"', "", "é"]), min_size=1, max_size=3, unique=True)):
        of, values = draw(kinds())
        filled = values if draw(st.booleans()) else st.none() | values
        columns[name] = pa.array(draw(st.lists(filled, min_size=count, max_size=count)), of)
    table = pa.table(columns)
    if draw(st.booleans()):
        cut = draw(st.integers(0, count))
        table = pa.concat_tables([table.slice(cut), table.slice(0, cut)])
    start = draw(st.integers(0, count))
    return table.slice(start) if draw(st.booleans()) else table


# --- the same, value by value


def f32_digits(value: float) -> str:
    """20.2 at 32 bits: the fewest digits that read back, in the layout of 64 bits."""
    return float_text(float(float_spelling(value, single=True))) if value else float_text(value)


def naive(value: Any, of: pa.DataType, quoted64: bool) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return f32_digits(value) if of == pa.float32() else float_text(value)
    if isinstance(value, int):
        return f'"{value}"' if quoted64 and of.bit_width == 64 else str(value)
    if isinstance(value, dt.datetime):
        return f'"{datetime_text(value.replace(tzinfo=None))}"'
    if isinstance(value, dt.date):
        return f'"{date_text(value)}"'
    if isinstance(value, list):
        return "[" + ",".join(naive(item, of.value_type, quoted64) or "null" for item in value) + "]"
    if isinstance(value, dict):
        return naive_object(value, {of.field(i).name: of.field(i).type for i in range(of.num_fields)}, quoted64)
    return json.dumps(value, ensure_ascii=False)


def naive_object(row: dict[str, Any], types: dict[str, pa.DataType], quoted64: bool) -> str:
    cells = {name: naive(value, types[name], quoted64) for name, value in row.items()}
    return "{" + ",".join(f"{json.dumps(n, ensure_ascii=False)}:{c}" for n, c in cells.items() if c is not None) + "}"


def naive_rows(table: pa.Table, quoted64: bool = False) -> list[str]:
    types = {field.name: field.type for field in table.schema}
    return [naive_object(row, types, quoted64) for row in table.to_pylist()]


@settings(max_examples=300, deadline=None)
@given(tables(), st.booleans())
def test_columns_are_encoded_as_their_values_would_be_one_by_one(table: pa.Table, quoted64: bool) -> None:
    spelling = Spelling(int64_as_text=quoted64)
    expected = naive_rows(table, quoted64)
    assert b"".join(ndjson(table, spelling)).decode() == "".join(f"{row}\n" for row in expected)
    assert b"".join(json_rows(table, spelling)).decode() == f"[{','.join(expected)}]"


@settings(max_examples=100, deadline=None)
@given(tables())
def test_json_parses_back_to_the_values(table: pa.Table) -> None:
    found = json.loads(b"".join(json_rows(table)))
    for row, expected in zip(found, table.to_pylist(), strict=True):
        for name, value in expected.items():
            if isinstance(value, str | bool | int):
                assert row[name] == value
            elif isinstance(value, float) and math.isfinite(value):
                width = "<f" if table.schema.field(name).type == pa.float32() else "<d"
                assert struct.pack(width, row[name]) == struct.pack(width, value)
            elif value is None:
                assert name not in row


# --- spellings


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(), min_size=1))
@example([1.0, 0.1, 9999999999.0, 1e10, 1.25e20, 1e-5, 1e-7, -0.0, 1e-6, 9.999e-7, 1e22, 1e23, 5e-324, 9999999999.5])
def test_f64_columns_are_spelled_as_the_chapter_says(values: list[float]) -> None:
    expected = [float_text(v) if math.isfinite(v) else None for v in values]
    assert decimal_text(pa.array(values)).to_pylist() == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(width=32), min_size=1))
@example([float("inf"), -float("inf"), float("nan"), 16777216.0])
def test_f32_columns_are_spelled_at_their_width(values: list[float]) -> None:
    expected = [f32_digits(v) if math.isfinite(v) else None for v in values]
    assert decimal_text(pa.array(values, pa.float32())).to_pylist() == expected


def test_the_examples_of_the_chapter() -> None:
    values = [1.0, 0.1, 9999999999.0, 1e10, 1.25e20, 1e-5, 1e-7]
    spelled = ["1.0", "0.1", "9999999999.0", "1.0e10", "1.25e20", "0.00001", "1.0e-7"]
    assert cell_text(pa.array(values)).to_pylist() == spelled
    assert cell_text(pa.array([0.99], pa.float32())).to_pylist() == ["0.99"]
    moments = pa.array([1704434828000, 1704434828250, -62135596800000], MOMENT)
    assert cell_text(moments).to_pylist() == [
        '"2024-01-05T06:07:08"',
        '"2024-01-05T06:07:08.250"',
        '"0001-01-01T00:00:00"',
    ]
    assert cell_text(pa.array([dt.date(2024, 1, 5), dt.date(1, 1, 1)])).to_pylist() == ['"2024-01-05"', '"0001-01-01"']


def test_strings_escape_only_what_json_requires() -> None:
    text = "".join(map(chr, range(0x80))) + "é/\u2028𝄞"
    assert cell_text(pa.array([text])).to_pylist() == [json.dumps(text, ensure_ascii=False)]


def test_int64_as_text_reaches_lists_and_nodes() -> None:
    node = {"@id": "1", "n": 5, "many": [1, None]}
    table = pa.table({"n": [3], "small": pa.array([3], pa.int32()), "list": [[2**53 + 1, None]], "node": [node]})
    expected = '[{"n":"3","small":3,"list":["9007199254740993",null],"node":{"@id":"1","n":"5","many":["1",null]}}]'
    assert b"".join(json_rows(table, Spelling(int64_as_text=True))).decode() == expected


def test_the_id_of_a_node_comes_first_wherever_it_stands() -> None:
    node = pa.array([{"imo": 1, "@id": "1"}], pa.struct([("imo", pa.uint32()), ("@id", pa.string())]))
    assert cell_text(node).to_pylist() == ['{"@id":"1","imo":1}']


def test_a_row_of_nulls_is_an_empty_object_and_no_rows_an_empty_array() -> None:
    table = pa.table({"a": pa.array([None], pa.string()), "b": pa.array([float("inf")])})
    assert b"".join(json_rows(table)) == b"[{}]"
    assert b"".join(json_rows(table.slice(1))) == b"[]"
    assert b"".join(ndjson(table.slice(1))) == b""


def test_dictionary_encoded_text_is_text() -> None:
    assert cell_text(pa.array(["a", None, "a"]).dictionary_encode()).to_pylist() == ['"a"', None, '"a"']


def test_a_type_that_no_result_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no JSON form"):
        cell_text(pa.array([b"x"]))


# --- pieces


def test_pieces_have_at_most_8192_rows_and_8_mib_unless_one_row_is_larger() -> None:
    small = pa.table({"a": pa.array(range(20_000))})
    assert [len(batch) for batch in slices(small)] == [ROWS_MAX, ROWS_MAX, 20_000 - 2 * ROWS_MAX]
    large = pa.table({"a": ["x" * (3 << 20)] * 5 + ["y" * (9 << 20)]})
    assert all(batch.nbytes <= BYTES_MAX or len(batch) == 1 for batch in slices(large))
    for form in (json_rows(large), ndjson(large), csv(large)):
        assert all(len(piece) <= BYTES_MAX for piece in form)
    assert json.loads(b"".join(json_rows(large))) == large.to_pylist()


def test_many_rows_in_ragged_chunks_keep_their_order() -> None:
    parts = [
        pa.table({"n": pa.array(range(at, at + size), pa.int64())})
        for at, size in ((0, 1), (1, 9000), (9001, 0), (9001, 9999))
    ]
    found = json.loads(b"".join(json_rows(pa.concat_tables(parts))))
    assert [row["n"] for row in found] == list(range(19_000))


# --- CSV


@settings(max_examples=200, deadline=None)
@given(tables())
def test_csv_reads_back_as_the_texts_of_the_values(table: pa.Table) -> None:
    table = table.append_column("last", pa.array(["end"] * len(table)))
    text = b"".join(csv(table)).decode()
    header, *found = csv_reader.reader(io.StringIO(text, newline=""), strict=True)
    assert header == table.column_names
    assert found == [
        [csv_text(value, of) for value, of in zip(row.values(), table.schema.types, strict=True)]
        for row in table.to_pylist()
    ]


def csv_text(value: Any, of: pa.DataType) -> str:
    cell = naive(value, of, False) or ""
    return json.loads(cell) if cell.startswith('"') else cell


def test_csv_tells_null_from_the_empty_string() -> None:
    table = pa.table({"a": ["", None, 'say "hi"', "a,b", "x\r\ny", "plain"], "b": [1, 2, 3, 4, 5, 6]})
    expected = 'a,b\r\n"",1\r\n,2\r\n"say ""hi""",3\r\n"a,b",4\r\n"x\r\ny",5\r\nplain,6\r\n'
    assert b"".join(csv(table)).decode() == expected


def test_csv_has_its_header_without_rows_and_can_neutralize_formulas() -> None:
    table = pa.table({"=a": ["=1+1", "@x", "-5", "+", "ok", "\tz", None], "n": [-1] * 7})
    assert b"".join(csv(table.slice(7))) == b"=a,n\r\n"
    found = b"".join(csv(table, neutralize_formulas=True)).decode()
    assert found == "'=a,n\r\n'=1+1,-1\r\n'@x,-1\r\n'-5,-1\r\n'+,-1\r\nok,-1\r\n'\tz,-1\r\n,-1\r\n"


# --- Arrow


@settings(max_examples=50, deadline=None)
@given(tables())
def test_an_arrow_stream_holds_the_table_and_its_metadata(table: pa.Table) -> None:
    data = b"".join(arrow_stream(table, {"omnigraph.query_name": "q"}))
    reader = ipc.open_stream(data)
    assert reader.schema.metadata == {b"omnigraph.query_name": b"q"}
    found = reader.read_all()
    assert repr(found.to_pylist()) == repr(table.to_pylist())
    assert all(not pa.types.is_large_string(kind) and not pa.types.is_string_view(kind) for kind in found.schema.types)


def test_an_arrow_stream_comes_in_pieces_and_shows_when_it_was_cut() -> None:
    table = pa.table({"a": pa.array(range(20_000))})
    pieces = list(arrow_stream(table, {}))
    assert len(pieces) == 4
    assert ipc.open_stream(b"".join(pieces)).read_all().equals(table)
    assert pieces[-1][-8:] == b"\xff\xff\xff\xff\x00\x00\x00\x00"
    assert not b"".join(pieces[:-1]).endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")
