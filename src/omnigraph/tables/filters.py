"""Filter texts for the table library: the one place where a value becomes part of a text.

    equals("__id", "O'Neil")  ->  `__id` = 'O''Neil'

A scan takes pyarrow expressions too, with nothing quoted at all. They are of no use here: the library refuses every one
on a table that has a list of unsigned integers, and those over an unsigned column.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.tables.columns import ROW_ADDRESS

_I64_LEAST: Final = str(-(2**63))
_I64_LEAST_CONSTANT: Final = f"arrow_cast('{_I64_LEAST}', 'Int64')"  # bare, its digits alone are read, and as a float


def quoted(value: str) -> str:
    """A text as an SQL string constant: only the quote has a meaning inside it, and is doubled."""
    return "'" + value.replace("'", "''") + "'"


def quoted_name(column: str) -> str:
    """A column name as it stands, whatever its letters."""
    return "`" + column.replace("`", "``") + "`"


def equals(column: str, value: str) -> str:
    return f"{quoted_name(column)} = {quoted(value)}"


def one_of(column: str, values: pa.Array) -> str:
    """True where the column equals one of the values: scalars of its own type, non-null, at least one. The library takes
    -0.0 and 0.0 for equal.
    """
    return f"{quoted_name(column)} IN ({', '.join(_constants(values))})"


def address_filter(addresses: npt.NDArray[np.uint64]) -> str:
    """True at these row addresses, given sorted; a run of neighbours becomes a range."""
    if len(addresses) == 1:
        return f"{ROW_ADDRESS} = {addresses[0]}"
    if int(addresses[-1]) - int(addresses[0]) == len(addresses) - 1:
        return f"{ROW_ADDRESS} >= {addresses[0]} AND {ROW_ADDRESS} <= {addresses[-1]}"
    return f"{ROW_ADDRESS} IN ({','.join(map(str, addresses.tolist()))})"


def _constants(values: pa.Array) -> list[str]:
    """Each value as an SQL constant that the library reads back as exactly that value."""
    kind = values.type
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())  # the fewest digits of an F32 may name another F64, and are rounded twice
    texts: list[str] = values.cast(pa.string()).to_pylist()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        word = "date" if pa.types.is_date(kind) else "timestamp"
        return [f"{word} '{text}'" for text in texts]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return [_I64_LEAST_CONSTANT if text == _I64_LEAST else text for text in texts]
    return list(map(quoted, texts))
