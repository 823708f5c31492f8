"""The ids that keys give (languages.md 4.6), one entity at a time.

    derived_id(["BGO", "NO"])          -> '["BGO","NO"]'
    entity_id(catalog.nodes["Port"], {"country": "NO", "code": "BGO"})  -> the same

This is the rule as the chapter words it, made to be read and to judge: what computes ids of whole columns must agree
with it value by value. Values are those of `lang.values` (a DateTime is an aware `datetime` in UTC); of a load or a
parameter they arrive in this form.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import cast

from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.schema.constraints import DST, SRC
from omnigraph.lang.types import FLOATS, Scalar, ValueType

KeyValue = str | bool | int | float | dt.date | dt.datetime

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_F32_DIGITS_MAX = 9


def entity_id(entity: EntityType, values: Mapping[str, KeyValue]) -> str:
    """The id of an entity from its key values, by property name; of an edge also `@src` and `@dst`, ids themselves.

    Raises `ValueError` for a type without a key, `KeyError` if a member is missing.
    """
    if not entity.key:
        raise ValueError(f"{entity.kind} type {entity.name} has no key")
    types = {declared.name: declared.type for declared in entity.properties}
    return derived_id(
        [
            str(values[member]) if member in (SRC, DST) else key_spelling(types[member], values[member])
            for member in entity.key
        ]
    )


def derived_id(spellings: Sequence[str]) -> str:
    r"""The id that key components make, in key order: the one spelling itself, or a JSON array of several.

    The array has no spaces, leaves non-ASCII unescaped, and writes controls by JSON's short escapes, else as `\u00`
    and two lower-case hex digits.
    """
    if len(spellings) == 1:
        return spellings[0]
    return json.dumps(list(spellings), ensure_ascii=False, separators=(",", ":"))


def key_spelling(of: ValueType, value: KeyValue) -> str:
    """The canonical spelling of one key component."""
    if of.is_text:
        return cast("str", value)
    if of.scalar is Scalar.BOOL:
        return "true" if value else "false"
    if of.scalar is Scalar.DATE:
        return str(cast("dt.date", value).toordinal() - _EPOCH_DAY)
    if of.scalar is Scalar.DATETIME:
        return str((cast("dt.datetime", value) - _EPOCH) // _MILLISECOND)
    if of.scalar in FLOATS:
        return float_spelling(cast("float", value), single=of.scalar is Scalar.F32)
    return str(int(cast("int", value)))


def float_spelling(value: float, *, single: bool) -> str:
    """The fewest decimal digits that read back as this value (at 32 bits if `single`), positional, `0` for both zeros.

    >>> float_spelling(1e21, single=False), float_spelling(-0.5, single=False), float_spelling(-0.0, single=False)
    ('1000000000000000000000', '-0.5', '0')
    """
    if value == 0:
        return "0"
    digits = _shortest_f32(value) if single else Decimal(repr(value))
    text = f"{digits:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _shortest_f32(value: float) -> Decimal:
    """Of the decimals that read back as this 32-bit float and have the fewest digits, the nearest, then the even one.

    `repr` does this for 64 bits. Rounding its result would not do: between neighbours of unlike distance (at powers of
    two) the nearest short decimal may read back as the neighbour while the one on the other side does not.
    """
    exact = Decimal(value)
    low, high, closed = _f32_interval(value)
    for precision in range(1, _F32_DIGITS_MAX):
        sides = [Context(prec=precision, rounding=r).plus(exact) for r in (ROUND_FLOOR, ROUND_CEILING)]
        fitting = [side for side in sides if low < Fraction(side) < high or (closed and Fraction(side) in (low, high))]
        if fitting:
            return min(
                fitting, key=lambda side: (abs(Fraction(side) - Fraction(exact)), side.as_tuple().digits[-1] % 2)
            )
    return Context(prec=_F32_DIGITS_MAX).plus(exact)


def _f32_interval(value: float) -> tuple[Fraction, Fraction, bool]:
    """The numbers that read as this 32-bit float: both ends, and whether they belong to it (ties go to even)."""
    bits: int = struct.unpack("<I", struct.pack("<f", abs(value)))[0]
    size = Fraction(abs(value))
    below = Fraction(_f32(bits - 1))
    # Above the largest float lies what would be the next one, if the exponent went on.
    above = Fraction(_f32(bits + 1)) if bits + 1 < 0x7F800000 else size + (size - below)
    low, high = (size + below) / 2, (size + above) / 2
    return (low, high, bits % 2 == 0) if value > 0 else (-high, -low, bits % 2 == 0)


def _f32(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]
