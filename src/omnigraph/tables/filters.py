"""Filter texts for the table library: the one place where a value becomes part of a text.

    equals("__id", "O'Neil")  ->  `__id` = 'O''Neil'

Where a scan takes a pyarrow expression, that is used instead and nothing is quoted at all.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from omnigraph.tables.columns import ROW_ADDRESS


def quoted(value: str) -> str:
    """A text as an SQL string constant: only the quote has a meaning inside it, and is doubled."""
    return "'" + value.replace("'", "''") + "'"


def quoted_name(column: str) -> str:
    """A column name as it stands, whatever its letters."""
    return "`" + column.replace("`", "``") + "`"


def equals(column: str, value: str) -> str:
    return f"{quoted_name(column)} = {quoted(value)}"


def one_of(column: str, values: Iterable[str]) -> str:
    """True where the column is one of the values; at least one is needed."""
    return f"{quoted_name(column)} IN ({', '.join(map(quoted, values))})"


def address_filter(addresses: npt.NDArray[np.uint64]) -> str:
    """True at these row addresses, given sorted; a run of neighbours becomes a range."""
    if len(addresses) == 1:
        return f"{ROW_ADDRESS} = {addresses[0]}"
    if int(addresses[-1]) - int(addresses[0]) == len(addresses) - 1:
        return f"{ROW_ADDRESS} >= {addresses[0]} AND {ROW_ADDRESS} <= {addresses[-1]}"
    return f"{ROW_ADDRESS} IN ({','.join(map(str, addresses.tolist()))})"
