r"""JSON strings, whole columns at a time: only what JSON requires is escaped (languages.md 20.1, 4.6).

Quote and backslash by a backslash, controls by the short escapes `\b \t \n \f \r`, other controls as `\u00` and two
lower-case hex digits. Everything else stands as it is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES = {ord(c): _SHORT.get(c, f"\\u{ord(c):04x}") for c in ["\\", '"', *map(chr, range(0x20))]}
_MUST_ESCAPE = np.zeros(256, dtype=bool)
_MUST_ESCAPE[list(_ESCAPES)] = True


def json_text(column: pa.Array) -> pa.Array:
    r"""Each string as a JSON string with its quotes; null for null. The column is `string`.

    >>> json_text(pa.array(['say "hi"', None])).to_pylist()
    ['"say \\"hi\\""', None]
    """
    return pc.binary_join_element_wise('"', escaped(column), '"', "")


def escaped(column: pa.Array) -> pa.Array:
    """The insides of the JSON strings. Columns without a character to escape are returned as they are."""
    present = _present(column)
    if not present:
        return column
    affected = pc.fill_null(pc.match_substring_regex(column, pattern=r'[\x00-\x1f"\\]'), False)
    text = column.filter(affected)
    for code in present:
        text = pc.replace_substring(text, pattern=chr(code), replacement=_ESCAPES[code])
    return pc.replace_with_mask(column, affected, text)


def scalar_json(text: str) -> str:
    """One string as a JSON string, by the same rule."""
    return '"' + "".join(_ESCAPES.get(ord(c), c) for c in text) + '"'


def _present(column: pa.Array) -> list[int]:
    """The codes to escape that occur in the column's bytes, the backslash first since the others bring new ones."""
    data = column_bytes(column)
    found = np.unique(data[_MUST_ESCAPE[data]]).tolist()
    return sorted(found, key=lambda code: (code != ord("\\"), code))


def column_bytes(column: pa.Array) -> np.ndarray:
    """The values of a `string` or `binary` array end to end, without copying."""
    offsets, data = column.buffers()[1:3]
    if data is None or offsets is None or not len(column):
        return np.empty(0, dtype=np.uint8)
    ends = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]]
