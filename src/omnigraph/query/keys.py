"""The id of a keyed node from the constants that a query gives for its key, so that a point read looks up and scans nothing.

Values are compared as `=` compares (languages.md 9.4): a constant that the key's type does not hold exactly names no node.
Knows types and values, neither rows nor expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from omnigraph.lang.schema.identity import derived_id, key_spelling
from omnigraph.lang.types import INTEGERS, NUMBERS, ValueType
from omnigraph.query.numbers import exact_value, exact_values
from omnigraph.tables.columns import arrow_type


def node_id(types: Sequence[ValueType], values: Sequence[Any]) -> str | None:
    """The id of the node with this key tuple, components in id order; None if no node can have it.

    >>> from omnigraph.lang.types import I64, STRING
    >>> node_id([I64], [7.0]), node_id([I64], [7.5]), node_id([STRING, STRING], ["BGO", "NO"])
    ('7', None, '["BGO","NO"]')
    """
    spellings: list[str] = []
    for of, value in zip(types, values, strict=True):
        held = exact_value(arrow_type(of), value) if value is not None and of.scalar in NUMBERS else value
        if held is None:
            return None
        spellings.append(key_spelling(of, held))
    return derived_id(spellings)


def node_ids(of: ValueType, values: Sequence[Any]) -> pa.Array:
    """The ids of nodes whose key is one member with one of these values; values that no node can have are left out."""
    if of.is_text:
        return pa.array(values, pa.string()).drop_null()
    if of.scalar in INTEGERS:
        present = [value for value in values if value is not None]
        return pa.array(exact_values(arrow_type(of), present), arrow_type(of)).cast(pa.string())
    return pa.array([node_id([of], [value]) for value in values], pa.string()).drop_null()
