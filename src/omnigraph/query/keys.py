"""The id of a keyed node from the constants that a query gives for its key, so that a point read looks up and scans nothing.

Values are compared as `=` compares (languages.md 9.4): a constant that the key's type does not hold exactly names no node.
Knows types and values, neither rows nor expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.lang.schema.identity import derived_id, key_spelling
from omnigraph.lang.types import NUMBERS, ValueType
from omnigraph.query.numbers import exact_value
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
