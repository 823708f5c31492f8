"""Export records (languages.md 15.3): their form, and that a load reads back what an export wrote."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.engine.limits import LoadLimits
from omnigraph.engine.load.batch import LoadBatch
from omnigraph.engine.load.records import read_records
from omnigraph.errors import ConstraintViolation
from omnigraph.query.encode import export_records
from support.records import harbour, lines, plain_things, wide

WIDE = wide()


def load(text: bytes) -> LoadBatch:
    batch = read_records(text, WIDE, limits=LoadLimits())
    return batch.with_ids(now_ms=1_700_000_000_000, randomness=bytes(10))


def export(batch: LoadBatch, **options: Any) -> bytes:
    return b"".join(piece for each in batch.types for piece in export_records(each.entity, each.rows, **options))


def test_records_have_the_form_of_a_load_with_id_and_data_in_column_order() -> None:
    catalog = harbour()
    records = [
        {"type": "Port", "data": {"title": 'Bergen "B"', "code": "BGO", "country": "NO"}},
        {"edge": "callsAt", "from": "1", "to": '["BGO","NO"]', "id": "c1"},
    ]
    batch = read_records(lines(*records), catalog, limits=LoadLimits())
    node, edge = (b"".join(export_records(each.entity, each.rows)).decode() for each in batch.types)
    assert node == (
        '{"type":"Port","id":"[\\"BGO\\",\\"NO\\"]","data":{"country":"NO","code":"BGO","title":"Bergen \\"B\\""}}\n'
    )
    assert edge == '{"edge":"CallsAt","from":"1","to":"[\\"BGO\\",\\"NO\\"]","id":"c1","data":{}}\n'


@settings(max_examples=100, deadline=None)
@given(st.lists(plain_things(), min_size=1, max_size=4, unique=True))
def test_an_export_loads_back_equal_and_exports_alike(records: list[str]) -> None:
    try:
        first = load(lines(*records))
    except ConstraintViolation:  # an enum value outside the set, a number out of range: not what is tried here
        return
    text = export(first)
    second = load(text)
    for before, after in zip(first.types, second.types, strict=True):
        kept = before.rows.drop_columns(["line_number"])
        assert repr(after.rows.drop_columns(["line_number"]).to_pylist()) == repr(kept.to_pylist())
    assert export(second) == text


def test_lp_06_texts_lists_and_parallel_edges_survive_a_round_trip() -> None:
    texts = ['say "hi"', '""', "a\tb", "x\ny\r\n", "back\\slash", "👩‍👩‍👧", "‏שלום‏", "NA", "", "[1,2]", "\x00"]
    things = [{"type": "Thing", "data": {"key": f"{n},]", "text": t, "texts": [t, None]}} for n, t in enumerate(texts)]
    links = [{"edge": "Link", "from": "a", "to": "b"}] * 3 + [
        {"edge": "Link", "from": "a", "to": "a", "data": {"weight": 0}}
    ]
    pairs = [{"edge": "Pair", "from": 'q"', "to": "é", "data": {"rank": -1, "day": "0001-01-01"}}]
    first = load(lines(*things, *links, *pairs, {"type": "Thing", "data": {"key": "empty", "texts": []}}))
    text = export(first, piece_bytes=100)
    assert export(load(text)) == text
    assert [json.loads(line)["data"].get("text") for line in text.splitlines()[: len(texts)]] == texts


def test_pieces_are_no_larger_than_asked() -> None:
    batch = load(lines(*[{"type": "Thing", "data": {"key": str(n)}} for n in range(5000)]))
    pieces = list(export_records(batch.types[0].entity, batch.types[0].rows))
    assert len(pieces) > 1
    assert max(map(len, pieces)) <= 64 << 10


def test_blobs_are_written_as_their_texts() -> None:
    batch = load(lines({"type": "Thing", "data": {"key": "a"}}))
    entity, rows = batch.types[0].entity, batch.types[0].rows
    column = next(p.column for p in entity.properties if p.name == "file")
    texts = pa.array(["base64:AAAA"])
    with_blob = rows.set_column(rows.schema.get_field_index(column), column, texts)
    record = json.loads(b"".join(export_records(entity, with_blob)))
    assert record["data"] == {"key": "a", "file": "base64:AAAA"}
