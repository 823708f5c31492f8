"""A result table in the formats of interfaces.md 7, as bytes in pieces.

    b"".join(json_rows(table))     ->  [{"v.title":"Alma"},{"v.title":"Brig"}]
    b"".join(ndjson(table))        ->  one row object a line
    b"".join(csv(table))           ->  header row, CRLF
    b"".join(arrow_stream(table, {"omnigraph.query_name": "q"}))

Column names are the keys. What a value looks like is `cells`' matter.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from omnigraph.query.encode.cells import (
    DEFAULT,
    Spelling,
    cell_text,
    is_list,
    is_text,
    object_text,
    plain_text,
    time_text,
)
from omnigraph.query.encode.pieces import BYTES_MAX, bounded, joined_bytes, slices

if TYPE_CHECKING:
    from typing_extensions import Buffer

_FORMULA = r"^[=+\-@\t\r]"


def json_rows(table: pa.Table, spelling: Spelling = DEFAULT) -> Iterator[bytes]:
    """The JSON array of row objects; null cells are left out. `[]` for no rows."""
    before = b"["
    for batch in slices(table):
        text = object_text(table.column_names, batch.columns, len(batch), spelling, end=",")
        yield before
        yield from bounded(joined_bytes(text)[:-1], BYTES_MAX)
        before = b","
    yield b"[]" if before == b"[" else b"]"


def ndjson(table: pa.Table, spelling: Spelling = DEFAULT) -> Iterator[bytes]:
    """One row object a line; nothing for no rows."""
    for batch in slices(table):
        text = object_text(table.column_names, batch.columns, len(batch), spelling, end="\n")
        yield from bounded(joined_bytes(text), BYTES_MAX)


def csv(table: pa.Table, spelling: Spelling = DEFAULT, *, neutralize_formulas: bool = False) -> Iterator[bytes]:
    """RFC 4180 with a header row. Null is an empty field, the empty string `""`; lists and nodes are JSON text.

    `neutralize_formulas` puts an apostrophe before texts that a spreadsheet would run (`=`, `+`, `-`, `@`, tab, CR first).
    """
    header = pa.array(table.column_names, pa.string())
    header = _neutralized(header) if neutralize_formulas else header
    yield (",".join(_csv_quoted(header).to_pylist()) + "\r\n").encode()
    for batch in slices(table):
        fields = [_csv_field(column, spelling, neutralize_formulas) for column in batch.columns]
        if not fields:
            continue
        separated: list[pa.Array | str] = [fields[0]]
        for field in fields[1:]:
            separated += [",", field]
        text = pc.binary_join_element_wise(*separated, "\r\n", "", null_handling="replace", null_replacement="")
        yield from bounded(joined_bytes(text), BYTES_MAX)


def arrow_stream(table: pa.Table, metadata: Mapping[str, str]) -> Iterator[bytes]:
    """An Arrow IPC stream with the metadata on its schema, types as interfaces.md 7 names them.

    A stream that ends early lacks its end mark.
    """
    schema = pa.schema([_plain_field(field) for field in table.schema], metadata=dict(metadata))
    written = _Written()
    writer = ipc.new_stream(written, schema)
    for batch in slices(table):
        columns = [c if c.type == kind else c.cast(kind) for c, kind in zip(batch.columns, schema.types, strict=True)]
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        yield written.taken()
    writer.close()
    yield written.taken()


class _Written(io.RawIOBase):
    """A file that keeps what was written until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        part = bytes(data)
        self._parts.append(part)
        return len(part)

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain_type(field.type), field.nullable)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Other layouts of text and lists become the usual ones."""
    if is_text(kind):
        return pa.string()
    if pa.types.is_fixed_size_list(kind):
        return kind
    if is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(place)) for place in range(kind.num_fields)])
    return kind


# --- CSV


def _csv_field(column: pa.Array, spelling: Spelling, neutralize_formulas: bool) -> pa.Array:
    if is_text(column.type):
        text = plain_text(column)
        return _csv_quoted(_neutralized(text) if neutralize_formulas else text)
    if is_list(column.type) or pa.types.is_struct(column.type):
        return _csv_quoted(cell_text(column, spelling))
    return time_text(column) if pa.types.is_temporal(column.type) else cell_text(column, spelling)


def _csv_quoted(text: pa.Array) -> pa.Array:
    """Quotes where RFC 4180 needs them, and around the empty string, which differs from null."""
    needed = pc.or_(pc.match_substring_regex(text, pattern=r'[",\r\n]'), pc.equal(pc.binary_length(text), 0))
    if not pc.any(needed, min_count=0).as_py():
        return text
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
    return pc.if_else(needed, quoted, text)


def _neutralized(text: pa.Array) -> pa.Array:
    formula = pc.match_substring_regex(text, pattern=_FORMULA)
    if not pc.any(formula, min_count=0).as_py():
        return text
    return pc.if_else(formula, pc.binary_join_element_wise("'", text, ""), text)
