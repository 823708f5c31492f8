"""Columns that a table lacks because their properties were declared after its last write.

Until the next write they read as nulls and cost nothing. That write adds all of them at once, in order of property id,
so that two processes that extend the same version give the columns the same numbers. The numbers decide which bytes of
a data file a column reads, so they are checked and never assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import lance
import pyarrow as pa
from lance.schema import LanceSchema

from omnigraph.errors import InternalError
from omnigraph.tables.columns import fields_of, in_property_order
from omnigraph.tables.store import stored_field
from omnigraph.tables.version import TableVersion


def lacking(version: TableVersion, schema: pa.Schema) -> list[pa.Field]:
    """Fields of `schema` that the version does not store, in the order in which they are added; usually none."""
    stored = version.column_names
    missing = [field for field in fields_of(schema) if field.name not in stored]
    return in_property_order(missing) if missing else missing


def extended_schema(version: TableVersion, missing: list[pa.Field]) -> LanceSchema:
    """The version's columns followed by the missing ones, the former with the numbers that they have.

    Raises InternalError if the numbers of the stored columns are not those of a table that this program made.
    """
    schema = LanceSchema.from_pyarrow(pa.schema([*fields_of(version.stored), *map(stored_field, missing)]))
    before, after = version.dataset.lance_schema.fields(), schema.fields()
    if [_numbers_below(each) for each in before] != [_numbers_below(each) for each in after[: len(before)]]:
        raise InternalError("a table has columns that this program did not number")
    return schema


def extension(version: TableVersion, missing: list[pa.Field]) -> lance.LanceOperation.Merge:
    """The operation that adds columns and touches no fragment."""
    return lance.LanceOperation.Merge(version.fragments(), extended_schema(version, missing))


def column_numbers(version: TableVersion, missing: list[pa.Field]) -> Mapping[str, object]:
    """The number of each column (with those of its parts), the missing ones as if they were added."""
    schema = extended_schema(version, missing) if missing else version.dataset.lance_schema
    return {each.name(): _numbers_below(each) for each in schema.fields()}


def _numbers_below(field: Any) -> tuple[int, tuple[Any, ...]]:
    children = cast(list[Any], field.children())
    return cast(int, field.id()), tuple(_numbers_below(child) for child in children)
