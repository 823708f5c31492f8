r"""JSON strings, whole columns at a time: only what JSON requires is escaped (languages.md 20.1, 4.6).

Quote and backslash by a backslash, controls by the short escapes `\b \t \n \f \r`, other controls as `\u00` and two
lower-case hex digits. Everything else stands as it is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
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
    """The insides of the JSON strings. A column without a character to escape is returned as it is."""
    data = column_bytes(column)
    places = np.flatnonzero(_MUST_ESCAPE[data])
    if not len(places):
        return column
    affected = np.zeros(len(column), dtype=bool)
    affected[np.searchsorted(_ends(column), places, side="right")] = True
    mask = pa.array(affected)
    text = column.filter(mask)
    codes = np.unique(data[places]).tolist()
    for code in sorted(codes, key=lambda code: code != ord("\\")):  # backslashes first: the others bring new ones
        text = pc.replace_substring(text, pattern=chr(code), replacement=_ESCAPES[code])
    return pc.replace_with_mask(column, mask, text)


def scalar_json(text: str) -> str:
    """One string as a JSON string, by the same rule."""
    return '"' + "".join(_ESCAPES.get(ord(c), c) for c in text) + '"'


def column_bytes(column: pa.Array) -> npt.NDArray[np.uint8]:
    """The values of a `string` or `binary` array end to end, without copying."""
    offsets, data = _offsets(column), column.buffers()[2]
    if data is None or not len(column):
        return np.empty(0, dtype=np.uint8)
    return np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]]


def _ends(column: pa.Array) -> npt.NDArray[np.int32]:
    """Where each value ends in `column_bytes`."""
    offsets = _offsets(column)
    return offsets[1:] - offsets[0]


def _offsets(column: pa.Array) -> npt.NDArray[np.int32]:
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(1, dtype=np.int32)
    return np.frombuffer(buffer, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
