r"""Entities as load records (languages.md 15.3): what an export is made of, and what a load reads back.

    {"type":"Port","id":"[\"BGO\",\"NO\"]","data":{"country":"NO","code":"BGO","title":"Bergen"}}
    {"edge":"CallsAt","from":"1","to":"…","id":"c1","data":{"berth":"A"}}

Rows come in the columns of `table_schema`, in the order in which they are to be written.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from omnigraph.lang.schema.catalog import EntityType
from omnigraph.query.encode.cells import cell_text, members_text, object_text
from omnigraph.query.encode.pieces import bounded, joined_bytes, slices
from omnigraph.query.encode.strings import scalar_json
from omnigraph.tables.columns import DST, ID, SRC

PIECE_BYTES = 64 << 10


def export_records(entity: EntityType, rows: pa.Table, *, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """One record a line, `id` always there, `data` in column order without nulls; pieces of at most `piece_bytes`.

    `rows` has the columns of `table_schema(entity)`; a Blob column, if it has values, holds their texts (`base64:…` or a
    URI). Raises ValueError for Blob values that are not texts.
    """
    ends = {"from": SRC, "to": DST} if entity.kind == "edge" else {}
    keys = {**ends, "id": ID}
    wanted = [*keys.values(), *(p.column for p in entity.properties)]
    word = "type" if entity.kind == "node" else "edge"
    opening = f"{{{scalar_json(word)}:{scalar_json(entity.name)},"
    heads = [f"{scalar_json(key)}:" for key in (*keys, "data")]
    names = [p.name for p in entity.properties]
    for batch in slices(rows.select(wanted)):
        data = object_text(names, batch.columns[len(keys) :], len(batch))
        texts = [*(cell_text(column) for column in batch.columns[: len(keys)]), data]
        lines = members_text(heads, texts, len(batch), opening, "}\n")
        yield from bounded(joined_bytes(lines), piece_bytes)
