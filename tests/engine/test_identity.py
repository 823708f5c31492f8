"""Ids of columns: those that keys give equal the rule for one value (languages.md 4.6); ULIDs increase."""

from __future__ import annotations

import datetime as dt
import itertools
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.ambient import ulid
from omnigraph.engine.identity import (
    component_text,
    derived_ids,
    key_columns,
    minted,
    missing_ids,
    ulid_column,
    with_derived_ids,
)
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.identity import entity_id, float_spelling
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.tables.columns import DST, ID, SRC, arrow_type
from support.records import harbour
from support.schemas import counter

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "String": TEXTS,
    "enum(a, laid-up)": st.sampled_from(["a", "laid-up"]),
    "Bool": st.booleans(),
    "I32": st.integers(-(2**31), 2**31 - 1),
    "I64": st.integers(-(2**63), 2**63 - 1),
    "U32": st.integers(0, 2**32 - 1),
    "U64": st.integers(0, 2**64 - 1),
    "F32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "F64": st.floats(allow_nan=False, allow_infinity=False),
    "Date": st.dates(),
    "DateTime": st.datetimes().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000, tzinfo=dt.UTC)),
}


@st.composite
def keyed_rows(draw: st.DrawFn) -> tuple[list[str], list[list[Any]]]:
    """The types of a key's members and the columns of some rows."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    count = draw(st.integers(1, 6))
    return types, [draw(st.lists(VALUES[of], min_size=count, max_size=count)) for of in types]


@settings(max_examples=200, deadline=None)
@given(keyed_rows(), st.booleans())
@example((["String", "String"], [['\x00\x1f\x7f\b\t\n\f\r"\\/', "a,b"], ['["x"]', "é𝄞\u2028"]]), False)
@example((["F64"], [[1e21, 5e-324, -0.0, 0.1, -1.5e-7, 1.7976931348623157e308, 123456789012345680.0]]), True)
def test_ids_of_columns_are_the_ids_of_their_rows(keyed: tuple[list[str], list[list[Any]]], edge: bool) -> None:
    types, columns = keyed
    names = [f"p{n}" for n in range(len(types))]
    properties = "  ".join(f"{name}: {of}" for name, of in zip(names, types, strict=True))
    schema = f"node N {{ {properties} @key({', '.join(names)}) }}"
    if edge:
        schema = (
            f"node M {{ a: String }} edge E: M -> M {{ {properties} @key(@dst, @src, {', '.join(reversed(names))}) }}"
        )
    catalog = compile_schema(schema, mint=counter())
    entity = catalog.edges["E"] if edge else catalog.nodes["N"]
    arrays = {
        p.column: pa.array(values, arrow_type(p.type)) for p, values in zip(entity.properties, columns, strict=True)
    }
    rows = pa.table({SRC: ["s"] * len(columns[0]), DST: ['d"'] * len(columns[0]), **arrays})
    expected = [
        entity_id(entity, {"@src": "s", "@dst": 'd"', **dict(zip(names, values, strict=True))})
        for values in zip(*columns, strict=True)
    ]
    assert derived_ids(entity, rows).to_pylist() == expected
    assert derived_ids(entity, rows.combine_chunks().to_batches()[0]).to_pylist() == expected


def powers_of_two() -> list[float]:
    """Floats at powers of two and their neighbours, where the distance to the neighbours differs."""
    bits = itertools.chain.from_iterable((e << 23, (e << 23) + 1, (e << 23) - 1) for e in range(1, 255))
    return [struct.unpack("<f", struct.pack("<I", b))[0] for b in bits]


def test_the_shortest_digits_of_f32_hold_at_powers_of_two_and_for_denormals() -> None:
    denormals = [struct.unpack("<f", struct.pack("<I", b))[0] for b in [1, 2, 3, 9, 10, 99, 2**22, 2**23 - 1]]
    values = [*powers_of_two(), *denormals]
    found = component_text(pa.array(values, pa.float32())).to_pylist()
    assert found == [float_spelling(value, single=True) for value in values]


def test_both_zeros_make_one_id() -> None:
    for kind in (pa.float32(), pa.float64()):
        assert component_text(pa.array([0.0, -0.0], kind)).to_pylist() == ["0", "0"]


def test_ids_of_the_harbour() -> None:
    catalog = harbour()
    port, tows = catalog.nodes["Port"], catalog.edges["Tows"]
    columns = {p.name: p.column for p in port.properties}
    rows = pa.table({columns["country"]: ["NO", None], columns["code"]: ["BGO", "X"]})
    assert key_columns(port) == (columns["code"], columns["country"])
    assert derived_ids(port, rows).to_pylist() == ['["BGO","NO"]', None]
    assert derived_ids(tows, pa.table({SRC: ["1"], DST: ["2"]})).to_pylist() == ['["1","2"]']


def test_a_type_without_key_derives_nothing() -> None:
    sailor = harbour().nodes["Sailor"]
    rows = pa.table({ID: pa.array([None], pa.string())})
    with pytest.raises(ValueError, match="Sailor has no key"):
        derived_ids(sailor, rows)
    assert with_derived_ids(sailor, rows) is rows


def test_vectors_and_lists_are_no_part_of_a_key() -> None:
    with pytest.raises(ValueError, match="can't be part of a key"):
        component_text(pa.array([[1]], arrow_type(ValueType("list", Scalar.I32))))


def test_given_ids_stay_and_missing_ones_are_derived() -> None:
    port = harbour().nodes["Port"]
    columns = {p.name: p.column for p in port.properties}
    rows = pa.table(
        {ID: pa.array([None, "given"], pa.string()), columns["country"]: ["NO", "PT"], columns["code"]: ["BGO", "LIS"]}
    )
    assert missing_ids(rows) == 1
    assert with_derived_ids(port, rows).column(ID).to_pylist() == ['["BGO","NO"]', "given"]
    empty = rows.set_column(0, ID, pa.nulls(2, pa.string()))
    assert with_derived_ids(port, empty).column(ID).to_pylist() == ['["BGO","NO"]', '["LIS","PT"]']


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**48 - 1),
    st.one_of(st.binary(min_size=10, max_size=10), st.just(b"\x7f" + b"\xff" * 9), st.just(b"\xff" * 10)),
    st.lists(st.integers(0, 2**40 - 1), min_size=1, max_size=20),
)
def test_a_ulid_column_is_the_ulids_of_its_steps(now_ms: int, randomness: bytes, steps: list[int]) -> None:
    found = ulid_column(now_ms, randomness, np.array(steps, dtype=np.int64)).to_pylist()
    base = int.from_bytes(randomness) & ((1 << 79) - 1)
    assert found == [ulid(now_ms, (base + step).to_bytes(10)) for step in steps]
    assert sorted(found) == [found[place] for place in np.argsort(steps, kind="stable")]


def test_times_and_randomness_that_make_no_ulid_are_refused() -> None:
    for now_ms, randomness in ((-1, bytes(10)), (1 << 48, bytes(10)), (0, bytes(9))):
        with pytest.raises(ValueError, match="48 bits"):
            ulid_column(now_ms, randomness, np.arange(1))


def test_minting_fills_what_is_missing_and_nothing_else() -> None:
    schema = pa.schema([pa.field(ID, pa.string()), pa.field("line_number", pa.int64())])
    first = pa.table([[None, "a", None], [4, 1, 2]], schema=schema)
    second = pa.table([["b", None], [5, 3]], schema=schema)
    one, two = minted([first, second], now_ms=7, randomness=bytes(10))
    ids = [ulid(7, n.to_bytes(10)) for n in range(3)]
    assert one.column(ID).to_pylist() == [ids[2], "a", ids[0]]
    assert two.column(ID).to_pylist() == ["b", ids[1]]
    assert not one.schema.field(ID).nullable
    assert minted([], now_ms=0, randomness=bytes(10)) == ()


def test_rows_without_lines_are_minted_in_the_order_in_which_they_come() -> None:
    table = pa.table({ID: pa.nulls(3, pa.string())})
    (found,) = minted([table], now_ms=7, randomness=bytes(10))
    assert found.column(ID).to_pylist() == [ulid(7, n.to_bytes(10)) for n in range(3)]
