"""Values as JSON text, whole columns at a time (languages.md 20.1): one string a row, null where there is no value.

The Arrow type says everything: integers and floats by width, dates, datetimes, lists, vectors, nodes as structs. A null
member of a node is left out, a null element of a list is `null`. A Blob has no text here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.encode.floats import decimal_text
from omnigraph.query.encode.strings import json_text, scalar_json


@dataclass(frozen=True, slots=True)
class Spelling:
    """`int64_as_text`: setting `int64_json = string`, under which 64-bit integers are strings at every depth."""

    int64_as_text: bool = False


DEFAULT = Spelling()


def cell_text(column: pa.Array, spelling: Spelling = DEFAULT) -> pa.Array:
    """The column's values as JSON. Raises ValueError for a type that no result has.

    >>> cell_text(pa.array([[1.0, None], None])).to_pylist()
    ['[1.0,null]', None]
    """
    kind = column.type
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    if is_text(kind):
        return json_text(plain_text(column))
    if pa.types.is_integer(kind):
        text = pc.cast(column, pa.string())
        return _quoted(text) if spelling.int64_as_text and kind.bit_width == 64 else text
    if pa.types.is_floating(kind):
        return decimal_text(column)
    if pa.types.is_boolean(kind):
        return pc.cast(column, pa.string())
    if pa.types.is_temporal(kind):
        return _quoted(time_text(column))
    if is_list(kind):
        return _list_text(column, spelling)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        members = column.flatten()
        if "@id" in names and names[0] != "@id":
            first = names.index("@id")
            names.insert(0, names.pop(first))
            members.insert(0, members.pop(first))
        text = object_text(names, members, len(column), spelling)
        return pc.if_else(pc.is_null(column), None, text) if column.null_count else text
    raise ValueError(f"a column of type {kind} has no JSON form")


def object_text(
    names: Sequence[str], columns: Sequence[pa.Array], rows: int, spelling: Spelling = DEFAULT, end: str = ""
) -> pa.Array:
    """One JSON object a row with the cells that are not null, `end` after each.

    >>> object_text(["a", "b"], [pa.array([1, None]), pa.array(["x", None])], 2).to_pylist()
    ['{"a":1,"b":"x"}', '{}']
    """
    texts = [cell_text(column, spelling) for column in columns]
    return members_text([f"{scalar_json(name)}:" for name in names], texts, rows, "{", "}" + end)


def members_text(heads: Sequence[str], texts: Sequence[pa.Array], rows: int, opening: str, closing: str) -> pa.Array:
    """One text a row: `opening`, then each head with its text, comma-separated, nulls left out, then `closing`."""
    if not texts:
        return pa.array([opening + closing]).take(pa.array(np.zeros(rows, dtype=np.int8)))
    if texts[0].null_count:  # every member brings its comma, and the first comma of the row goes
        members = [_member("," + head, text) for head, text in zip(heads, texts, strict=True)]
        text = _joined([opening, *members, closing])
        return pc.replace_substring(text, opening + ",", opening, max_replacements=1)
    pieces: list[pa.Array | str] = [opening + heads[0], texts[0]]
    for head, text in zip(heads[1:], texts[1:], strict=True):
        pieces += [_member("," + head, text)] if text.null_count else ["," + head, text]
    return _joined([*pieces, closing])


def plain_text(column: pa.Array) -> pa.Array:
    """A text column of any layout as `string`."""
    return column if pa.types.is_string(column.type) else pc.cast(column, pa.string())


def time_text(column: pa.Array) -> pa.Array:
    """Dates as `2024-01-05`, datetimes as `2024-01-05T06:07:08` with three digits of fraction unless they are zero."""
    if pa.types.is_date(column.type):
        return pc.cast(pc.cast(column, pa.date32()), pa.string())
    whole = pc.cast(pc.cast(column, pa.timestamp("ms", column.type.tz)), pa.timestamp("ms"))
    text = pc.replace_substring(pc.cast(whole, pa.string()), " ", "T")
    even = pc.ends_with(text, ".000")
    if not pc.any(even, min_count=0).as_py():
        return text
    return pc.if_else(even, pc.utf8_slice_codeunits(text, 0, -4), text)


def is_list(kind: pa.DataType) -> bool:
    """A list or vector of any layout."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def is_text(kind: pa.DataType) -> bool:
    """Strings of any layout, dictionary-encoded ones included."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _member(head: str, text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(head, text, "")


def _joined(pieces: Sequence[pa.Array | str]) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement="")


def _list_text(lists: pa.Array, spelling: Spelling) -> pa.Array:
    if not pa.types.is_list(lists.type):
        lists = lists.cast(pa.list_(lists.type.value_type))
    items = pc.fill_null(cell_text(pc.list_flatten(lists), spelling), "null")
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = pc.is_null(lists) if lists.null_count else None
    inside = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), items, mask=mask), ",")
    return pc.binary_join_element_wise("[", inside, "]", "")
