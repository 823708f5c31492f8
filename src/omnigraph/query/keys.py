"""The id of a keyed node from the constants that a query gives for its key, so that a point read looks up and scans nothing.

Values are compared as `=` compares (languages.md 9.4): a constant that the key's type does not hold exactly names no node.
Spellings are those of languages.md 4.6. Knows types and values, neither rows nor expressions.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from omnigraph.lang.types import NUMBERS, Scalar, ValueType
from omnigraph.query.numbers import exact_value
from omnigraph.tables.columns import arrow_type

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def node_id(types: Sequence[ValueType], values: Sequence[Any]) -> str | None:
    """The id of the node with this key tuple, components in id order; None if no node can have it.

    >>> from omnigraph.lang.types import I64, STRING
    >>> node_id([I64], [7]), node_id([STRING, STRING], ["BGO", "NO"])
    ('7', '["BGO","NO"]')
    """
    components = [key_component(of, value) for of, value in zip(types, values, strict=True)]
    known = [component for component in components if component is not None]
    if len(known) < len(components):
        return None
    return known[0] if len(known) == 1 else json.dumps(known, ensure_ascii=False, separators=(",", ":"))


def key_component(of: ValueType, value: Any) -> str | None:
    """One component in its canonical spelling; None for null and for a value that the type does not hold exactly."""
    if value is None:
        return None
    if of.scalar in NUMBERS:
        number = exact_value(arrow_type(of), value)
        return None if number is None else _number(of.scalar, number)
    match of.scalar:
        case Scalar.BOOL:
            return "true" if value else "false"
        case Scalar.DATE:
            return str(value.toordinal() - _EPOCH_DAY)
        case Scalar.DATETIME:
            return str((value - _EPOCH) // dt.timedelta(milliseconds=1))
        case _:
            return str(value)


def _number(of: Scalar, number: float | int) -> str:
    if isinstance(number, int):
        return str(number)
    if number == 0:
        return "0"
    width = np.float32 if of is Scalar.F32 else np.float64
    return np.format_float_positional(width(number), unique=True, trim="-")
