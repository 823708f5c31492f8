"""Value types as columns (languages.md 4.2)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import Scalar, ValueType, scalar
from omnigraph.tables.columns import arrow_type, in_property_order, is_blob, table_schema
from tables.samples import GROWN_PORTS, PORT, PORTS, ROUTES, prop

STORED_AS = {
    Scalar.STRING: pa.utf8(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("ms", "UTC"),
    Scalar.BLOB: pa.large_binary(),
}


@pytest.mark.parametrize("of", list(Scalar))
def test_every_scalar_has_the_column_type_of_the_table_in_the_chapter(of: Scalar) -> None:
    assert arrow_type(scalar(of)) == STORED_AS[of]


def test_enum_is_text_list_is_a_list_of_nullable_elements_and_vector_has_a_fixed_size() -> None:
    assert arrow_type(ValueType("enum", Scalar.STRING, variants=("a", "b"))) == pa.utf8()
    assert arrow_type(ValueType("list", Scalar.DATE)) == pa.list_(pa.field("item", pa.date32(), nullable=True))
    assert arrow_type(ValueType("vector", Scalar.F32, dimension=3)) == pa.list_(pa.float32(), 3)


def test_a_table_has_the_id_the_ends_of_edges_and_then_the_properties() -> None:
    assert PORTS.names == ["__id", "name", "depth"]
    assert ROUTES.names == ["__id", "__src", "__dst", "miles"]


def test_ids_and_ends_are_required_and_properties_never_are() -> None:
    assert [field.nullable for field in ROUTES] == [False, False, False, True]


def test_a_column_keeps_its_name_when_its_property_is_renamed() -> None:
    renamed = prop("title", PORT.properties[0].type)
    moved = NodeType("t", "T", (type(renamed)(renamed.id, "caption", renamed.type, "title"),))
    assert table_schema(moved).names == ["__id", "title"]


def test_columns_to_add_are_ordered_by_property_id_and_not_by_declaration() -> None:
    assert [field.name for field in in_property_order(list(GROWN_PORTS)[3:])] == ["berths", "draft"]


def test_a_blob_is_told_from_other_columns() -> None:
    schema = table_schema(NodeType("t", "T", (prop("photo", scalar(Scalar.BLOB, True)),)))
    assert [is_blob(field) for field in schema] == [False, True]
