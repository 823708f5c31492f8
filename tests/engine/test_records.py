"""Load records (languages.md 15.1, 7, 15.4): what they may be, what is refused, which refusal comes first."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnigraph.engine.limits import LoadLimits
from omnigraph.engine.load.batch import LoadBatch
from omnigraph.engine.load.records import read_records
from omnigraph.engine.load.source import LoadSource
from omnigraph.engine.progress import LoadProgress
from omnigraph.errors import ConstraintViolation, InvalidData, InvalidRequest, LimitExceeded, NotAvailable
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.tables.columns import table_schema
from support.records import harbour, lines, wide
from support.schemas import counter

HARBOUR = harbour()
WIDE = wide()
LIMITS = LoadLimits()


def read(source: LoadSource, catalog: Any = HARBOUR, **options: Any) -> LoadBatch:
    options.setdefault("limits", LIMITS)
    return read_records(source, catalog, **options)


def rows(batch: LoadBatch, name: str) -> list[dict[str, Any]]:
    """Rows of one type by property name, without nulls."""
    for each in batch.types:
        if each.entity.name == name:
            names: dict[str | None, str] = {p.column: p.name for p in each.entity.properties}
            found = each.rows.to_pylist()
            return [{names.get(k, str(k)): v for k, v in row.items() if v is not None} for row in found]
    return []


def vessel(imo: Any, **data: Any) -> dict[str, Any]:
    return {"type": "Vessel", "data": {"imo": imo, "title": "Alma", "status": "active", **data}}


def refused(source: LoadSource, catalog: Any = HARBOUR, **options: Any) -> dict[str, Any]:
    """The detail object of the refusal."""
    with pytest.raises((InvalidData, ConstraintViolation, NotAvailable)) as caught:
        read(source, catalog, **options)
    assert caught.value.effects == "none"
    assert caught.value.status == 400
    return caught.value.details


# --- forms of records


def test_records_become_rows_by_type_with_ids_and_line_numbers() -> None:
    batch = read(
        lines(
            {"edge": "CallsAt", "from": "1", "to": '["BGO","NO"]', "id": "c1", "data": {"berth": "A"}},
            {"type": "Port", "id": '["BGO","NO"]', "data": {"country": "NO", "code": "BGO", "title": "Bergen"}},
            vessel(1, tonnage=500, tags=["ferry", "night"], hull=[0, 0]),
        )
    )
    assert [each.entity.name for each in batch.types] == ["Vessel", "Port", "CallsAt"]
    assert batch.records == 3
    assert rows(batch, "Port") == [
        {"__id": '["BGO","NO"]', "country": "NO", "code": "BGO", "title": "Bergen", "line_number": 2}
    ]
    assert rows(batch, "Vessel")[0]["__id"] == "1"
    assert rows(batch, "CallsAt") == [
        {"__id": "c1", "__src": "1", "__dst": '["BGO","NO"]', "berth": "A", "line_number": 1}
    ]


def test_rows_have_the_columns_of_the_table() -> None:
    batch = read(lines(vessel(1))).with_ids(now_ms=0, randomness=bytes(10))
    entity, found = batch.types[0].entity, batch.types[0].rows
    assert found.drop_columns(["line_number"]).schema == table_schema(entity)


def test_an_entity_without_key_and_id_has_no_id_until_one_is_minted() -> None:
    batch = read(
        lines({"type": "Sailor", "data": {"name": "Ines"}}, {"type": "Sailor", "id": "s", "data": {"name": "Otto"}})
    )
    assert [row.get("__id") for row in rows(batch, "Sailor")] == [None, "s"]
    minted = batch.with_ids(now_ms=1, randomness=bytes(10))
    assert [len(row["__id"]) for row in rows(minted, "Sailor")] == [26, 1]


def test_minted_ids_increase_in_the_order_of_lines_over_all_types() -> None:
    records: list[dict[str, Any]] = []
    for n in range(200):
        records += [{"edge": "Follows", "from": "1", "to": "2"}, {"type": "Sailor", "data": {"name": str(n)}}]
    batch = read(lines(*records)).with_ids(now_ms=5, randomness=b"\xff" * 10)
    found = sorted((row["line_number"], row["__id"]) for name in ("Follows", "Sailor") for row in rows(batch, name))
    ids = [entity_id for _, entity_id in found]
    assert ids == sorted(set(ids))
    assert len(ids) == 400


def test_data_may_be_left_out_and_edges_are_named_in_any_case() -> None:
    batch = read(
        lines({"edge": "follows", "from": "1", "to": "2"}, {"edge": "FOLLOWS", "from": "2", "to": "1", "data": {}})
    )
    assert len(rows(batch, "Follows")) == 2


def test_lines_end_with_lf_or_crlf_and_blank_ones_count_but_say_nothing() -> None:
    text = b'\r\n{"type":"Sailor","data":{"name":"a"}}\r\n   \t\n\n{"type":"Sailor","data":{"name":"b"}}'
    batch = read(text)
    assert [row["line_number"] for row in rows(batch, "Sailor")] == [2, 5]
    assert batch.records == 2


def test_an_input_without_records_gives_an_empty_batch() -> None:
    assert read(b"").types == ()
    assert read(b"\n \n").records == 0
    assert read([]).types == ()


def test_a_byte_order_mark_is_skipped() -> None:
    assert read(b"\xef\xbb\xbf" + lines(vessel(1))).records == 1


def test_a_type_keeps_record_order_whatever_form_its_lines_have() -> None:
    plain = [{"type": "Sailor", "data": {"name": f"p{n}"}} for n in range(300)]
    mixed = [json.dumps({"data": r["data"], "type": "Sailor"}) if n % 7 == 0 else r for n, r in enumerate(plain)]
    found = rows(read(lines(*mixed)), "Sailor")
    assert [row["name"] for row in found] == [f"p{n}" for n in range(300)]
    assert [row["line_number"] for row in found] == list(range(1, 301))


def test_many_types_in_any_order_are_told_apart() -> None:
    catalog = compile_schema("".join(f"node N{n} {{ a: I32 }} " for n in range(40)), mint=counter())
    records = [{"type": f"N{n * 7 % 40}", "data": {"a": n}} for n in range(4000)]
    batch = read(lines(*records), catalog)
    assert [each.entity.name for each in batch.types] == [f"N{n}" for n in range(40)]
    for place in range(40):
        wanted = [r["data"]["a"] for r in records if r["type"] == f"N{place}"]
        assert [row["a"] for row in rows(batch, f"N{place}")] == wanted


@pytest.mark.parametrize(
    ("record", "code", "says"),
    [
        ("[]", "W010", "JSON object"),
        ("null", "W010", "JSON object"),
        ("3", "W010", "JSON object"),
        ("{", "W010", "no JSON"),
        ('{"type":"Sailor","data":{"name":"x"}} x', "W010", "no JSON"),
        ('{"type":"Sailor","data":{"name":"x"}}{}', "W010", "no JSON"),
        ('{"type":"Sailor","data":{"name":"x"}} // note', "W010", "no JSON"),
        ('{"type":"Sailor","data":{"name":"x",}}', "W010", "no JSON"),
        ('{"type":"Sailor","data":{"name":"tab\there"}}', "W010", "no JSON"),
        ('{"type":"Sailor","type":"Sailor","data":{"name":"x"}}', "W010", '"type" comes twice'),
        ('{"type":"Sailor","data":{"name":"x","name":"x"}}', "W010", '"name" comes twice'),
        ('{"data":{"name":"x"}}', "W010", "either"),
        ('{"type":"Sailor","edge":"Follows","data":{}}', "W010", "either"),
        ('{"type":3,"data":{}}', "W010", "must be a string"),
        ('{"type":"Sailor","more":1,"data":{"name":"x"}}', "W010", '"more"'),
        ('{"type":"Sailor","from":"a","data":{"name":"x"}}', "W010", '"from"'),
        ('{"type":"Sailor","data":null}', "W010", '"data"'),
        ('{"type":"Sailor","data":[]}', "W010", '"data"'),
        ('{"type":"Sailor","id":null,"data":{"name":"x"}}', "W010", '"id"'),
        ('{"type":"Sailor","id":"","data":{"name":"x"}}', "W010", '"id"'),
        ('{"type":"Sailor","id":7,"data":{"name":"x"}}', "W010", '"id"'),
        ('{"type":"Sailor","id":"\\ud800","data":{"name":"x"}}', "W010", "surrogate"),
        ('{"edge":"Follows","to":"1"}', "W010", '"from" is missing'),
        ('{"edge":"Follows","from":"1","to":""}', "W010", '"to"'),
        ('{"edge":"Follows","from":1,"to":"1"}', "W010", '"from"'),
        ('{"type":"sailor","data":{"name":"x"}}', "W011", '"sailor"'),
        ('{"type":"Named","data":{}}', "W011", '"Named"'),
        ('{"edge":"Sails","from":"1","to":"2"}', "W011", '"Sails"'),
        ('{"type":"Sailor","data":{"name":"x","age":3}}', "W011", '"age"'),
        ('{"type":"Sailor","data":{"name":"x","_x":null}}', "W011", '"_x"'),
        ('{"type":"Sailor","data":{"name":"\\ud800"}}', "W009", "surrogate"),
        ('{"type":"Sailor","data":{"name":' + '{"a":' * 70 + "1" + "}" * 72, "W010", "64 levels"),
    ],
)
@pytest.mark.parametrize("before", [0, 130])
def test_a_record_that_does_not_fit_is_refused_with_its_line(record: str, code: str, says: str, before: int) -> None:
    good = [{"type": "Sailor", "data": {"name": str(n)}} for n in range(before)]
    details = refused(lines(*good, record, *good))
    assert details["code"] == code
    assert details["line_number"] == before + 1
    assert says in details["message"]


def test_deep_brackets_inside_a_string_are_no_depth() -> None:
    assert rows(read(lines({"type": "Sailor", "data": {"name": '"[{' * 100}})), "Sailor")[0]["name"] == '"[{' * 100


def test_depth_is_told_in_one_pass_even_where_a_string_never_ends() -> None:
    details = refused(lines('{"type":"Sailor","data":{"name":"' + "[" * 100 + '\\"' * 1_000_000))
    assert (details["code"], details["line_number"]) == ("W010", 1)


def test_text_that_is_not_utf8_is_refused_at_its_line_and_byte() -> None:
    details = refused(lines(vessel(1)) + b'{"type":"Sailor","data":{"name":"\xff"}}\n' + lines(vessel(2)))
    assert (details["code"], details["line_number"]) == ("W010", 2)
    assert "byte 34" in details["message"]


# --- values


def value(name: str, json_text: str) -> Any:
    """What one value of a `Thing` is read as, both alone and among many records."""
    record = f'{{"type":"Thing","data":{{"key":"a","{name}":{json_text}}}}}'
    alone = rows(read(lines(record), WIDE), "Thing")[0].get(name)
    among = rows(read(lines(*[record] * 130), WIDE), "Thing")
    assert all(repr(row.get(name)) == repr(alone) for row in among)
    return alone


@pytest.mark.parametrize(
    ("name", "json_text", "expected"),
    [
        ("text", '""', ""),
        ("text", '"NA"', "NA"),
        ("text", '"null"', "null"),
        ("text", "null", None),
        ("text", '"e\\u0301"', "e\u0301"),
        ("text", '"\\u00e9"', "é"),
        ("yes", "false", False),
        ("small", "-2147483648", -(2**31)),
        ("small", '"7"', 7),
        ("small", '"-007"', -7),
        ("natural", "-0", 0),
        ("large", "9007199254740993", 9007199254740993),
        ("large", "9223372036854775807", 2**63 - 1),
        ("large", "-9223372036854775808", -(2**63)),
        ("huge", "18446744073709551615", 2**64 - 1),
        ("huge", '"18446744073709551615"', 2**64 - 1),
        ("double", "5", 5.0),
        ("double", "5e-324", 5e-324),
        ("double", "1e-400", 0.0),
        ("double", "-0.0", -0.0),
        ("double", "-0", -0.0),
        ("double", "123456789012345678901234567890", 123456789012345678901234567890.0),
        ("single", "0.1", float(np.float32(0.1))),
        # nearest F64 first, then nearest F32 of that: not the nearest F32 of the decimal
        ("single", "1.000000059604644775390625000001", float(np.float32(np.float64("1.000000059604644775390625000001")))),
        ("day", '"2024-02-29"', dt.date(2024, 2, 29)),
        ("day", "19723", dt.date(2024, 1, 1)),
        ("day", '"0001-01-01"', dt.date(1, 1, 1)),
        ("moment", '"2024-03-01T00:30:00+02:00"', dt.datetime(2024, 2, 29, 22, 30, tzinfo=dt.UTC)),
        ("moment", '"2024-03-01"', dt.datetime(2024, 3, 1, tzinfo=dt.UTC)),
        ("moment", '"2024-03-01 10:11:12.2500000Z"', dt.datetime(2024, 3, 1, 10, 11, 12, 250_000, tzinfo=dt.UTC)),
        ("moment", "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)),
        ("state", '"laid-up"', "laid-up"),
        ("place", "[1, 2.5]", [1.0, 2.5]),
        ("texts", "[]", []),
        ("texts", '["", null]', ["", None]),
        ("counts", '[1, "2", null]', [1, 2, None]),
        ("days", '["2024-01-01", 0]', [dt.date(2024, 1, 1), dt.date(1970, 1, 1)]),
        ("file", "null", None),
    ],
)  # fmt: skip
def test_values_are_read_as_the_table_of_encodings_says(name: str, json_text: str, expected: Any) -> None:
    found = value(name, json_text)
    if name == "moment" and expected is not None:
        found = found.replace(tzinfo=dt.UTC)
    assert repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("name", "json_text", "code"),
    [
        ("text", "1", "W010"),
        ("text", "true", "W010"),
        ("yes", "0", "W010"),
        ("yes", '"true"', "W010"),
        ("small", "7.0", "W010"),
        ("small", "1e3", "W010"),
        ("small", "true", "W010"),
        ("small", '" 5"', "W009"),
        ("small", '"+5"', "W009"),
        ("small", "2147483648", "W009"),
        ("natural", "-1", "W009"),
        ("large", "9223372036854775808", "W009"),
        ("huge", "18446744073709551616", "W009"),
        ("huge", "9" * 5000, "W009"),
        ("double", "NaN", "W009"),
        ("double", "Infinity", "W009"),
        ("double", "1e309", "W009"),
        ("double", "9" * 400, "W009"),
        ("double", '"1.0"', "W010"),
        ("single", "3.5e38", "W009"),
        ("day", '"2024-01-01T00:00:00"', "W009"),
        ("day", '"2023-02-29"', "W009"),
        ("day", "19723.0", "W010"),
        ("day", "2932897", "W009"),
        ("moment", '"2024-01-01T00:00:00.1234Z"', "W009"),
        ("moment", '"2024-01-01T24:00"', "W009"),
        ("moment", '"2024-01-01t10:00z"', "W009"),
        ("moment", '"0001-01-01T00:00+00:01"', "W009"),
        ("moment", "253402300800000", "W009"),
        ("moment", "1.5", "W010"),
        ("state", '"sunk"', "W002"),
        ("state", "1", "W010"),
        ("place", "[1]", "W009"),
        ("place", "[1, null]", "W009"),
        ("place", "[1, 1e39]", "W009"),
        ("place", '[1, "2"]', "W010"),
        ("texts", '"x"', "W010"),
        ("texts", "[1]", "W010"),
        ("texts", "[[]]", "W010"),
        ("singles", "[NaN]", "W009"),
        ("file", '"base64:AAAA"', "N001"),
        ("file", '"base64:A"', "W009"),
        ("file", "3", "W010"),
    ],
)
@pytest.mark.parametrize("before", [0, 200])
def test_values_that_do_not_fit_are_refused_with_line_type_and_property(
    name: str, json_text: str, code: str, before: int
) -> None:
    good = [{"type": "Thing", "data": {"key": str(n)}} for n in range(before)]
    bad = f'{{"type":"Thing","data":{{"key":"a","{name}":{json_text}}}}}'
    details = refused(lines(*good, bad, *good), WIDE)
    assert (details["code"], details["line_number"]) == (code, before + 1)
    assert (details["type_name"], details["property"]) == ("Thing", name)


@pytest.mark.parametrize("name", ["day", "moment"])
@pytest.mark.parametrize("json_text", ["20000.5", "true", "{}", "[]", '""', '"soon"', "1e400"])
def test_lp_01_a_wrong_kind_for_a_date_is_no_null(name: str, json_text: str) -> None:
    good = {"type": "Thing", "data": {"key": "a", "day": "2024-01-01"}}
    details = refused(lines(good, f'{{"type":"Thing","data":{{"{name}":{json_text},"key":"b"}}}}'), WIDE)
    assert (details["line_number"], details["property"]) == (2, name)


def test_lp_05_texts_that_look_like_no_value_stay_texts() -> None:
    names = ["NA", "N/A", "null", "None", "nan", "true", "0", "2024-01-01", "", "  "]
    found = rows(read(lines(*[{"type": "Sailor", "data": {"name": n}} for n in names * 10])), "Sailor")
    assert [row["name"] for row in found] == names * 10


# --- constraints that one record decides


@pytest.mark.parametrize(
    ("record", "code", "constraint", "property_name"),
    [
        ({"type": "Sailor", "data": {}}, "W001", "required", "name"),
        ({"type": "Sailor", "data": {"name": None}}, "W001", "required", "name"),
        (vessel(1, tonnage=-1), "W003", "range", "tonnage"),
        ({"type": "Port", "data": {"country": "NO", "code": "BGO\n", "title": "x"}}, "W004", "check", "code"),
        ({"type": "Port", "data": {"code": "BGO", "title": "x"}}, "W008", "key", "country"),
        ({**vessel(3), "id": "2"}, "W008", "key", None),
        ({"edge": "Tows", "from": "1", "to": "2", "id": "1-2"}, "W008", "key", None),
    ],
)
@pytest.mark.parametrize("before", [0, 130])
def test_values_are_judged_while_reading(
    record: dict[str, Any], code: str, constraint: str, property_name: str | None, before: int
) -> None:
    good = [{"type": "Sailor", "data": {"name": str(n)}} for n in range(before)]
    details = refused(lines(*good, record))
    assert (details["code"], details["constraint"]) == (code, constraint)
    assert (details["line_number"], details["property"]) == (before + 1, property_name)


def test_a_supplied_id_that_is_the_derived_one_is_taken() -> None:
    batch = read(lines({**vessel(3), "id": "3"}, {"edge": "Tows", "from": "1", "to": "2", "id": '["1","2"]'}))
    assert rows(batch, "Tows")[0]["__id"] == '["1","2"]'


def test_the_first_broken_record_is_named_whatever_is_wrong_with_it() -> None:
    wrong = [
        '{"type":"Vessel"',
        {"type": "Sailor", "data": {}},
        {"type": "Boat"},
        vessel("x"),
        vessel(1, tonnage=-5),
        "\x00",
    ]
    for first in range(len(wrong)):
        good = [{"type": "Sailor", "data": {"name": "x"}}] * 100
        text = lines(*good, *wrong[first:], *wrong[:first])
        assert refused(text)["line_number"] == 101
        assert refused(text, chunk_bytes=200)["line_number"] == 101


def test_a_vector_that_is_embedded_later_may_be_missing() -> None:
    catalog = compile_schema('node N { t: String  v: Vector(2) @embed("t") }', mint=counter())
    record = lines({"type": "N", "data": {"t": "x"}})
    assert refused(record, catalog)["code"] == "W001"
    assert read(record, catalog, embedded_later=True).records == 1


# --- sources


def test_every_kind_of_source_gives_the_same(tmp_path: Path) -> None:
    records = [vessel(n) for n in range(150)]
    text = lines(*records)
    path = tmp_path / "vessels.jsonl"
    path.write_bytes(text)
    packed = tmp_path / "vessels"
    packed.write_bytes(gzip.compress(text[:700]) + gzip.compress(text[700:]) + bytes(20))
    sources: list[LoadSource] = [
        text,
        bytearray(text),
        memoryview(text),
        path,
        str(path),
        packed,
        packed.read_bytes(),
        io.BytesIO(text),
        io.StringIO(text.decode()),
        records,
        iter(records),
        text.decode().splitlines(keepends=True),
        [line + b"\r\n" for line in text.splitlines()],
    ]
    expected = rows(read(text), "Vessel")
    for source in sources:
        assert rows(read(source), "Vessel") == expected


@pytest.mark.parametrize("chunk_bytes", [1, 50, 1000])
def test_chunks_of_any_size_give_the_same(chunk_bytes: int) -> None:
    text = lines(*[vessel(n) for n in range(200)])
    packed = gzip.compress(text)
    assert rows(read(text, chunk_bytes=chunk_bytes), "Vessel") == rows(read(text), "Vessel")
    assert rows(read(packed, chunk_bytes=chunk_bytes), "Vessel") == rows(read(text), "Vessel")
    numbered = [json.loads(line) for line in text.splitlines()]
    assert rows(read(numbered, chunk_bytes=chunk_bytes), "Vessel") == rows(read(text), "Vessel")


def test_python_values_in_records_are_taken_as_parameters_take_them() -> None:
    data: dict[str, Any] = {
        "key": "a",
        "day": dt.date(2024, 1, 5),
        "moment": dt.datetime(2024, 1, 5, 6, 7, 8, 250_000),  # noqa: DTZ001 - a naive one is taken as UTC
        "moments": [dt.datetime(2024, 1, 5, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))],
        "large": np.int64(5),
        "place": np.array([1, 2], dtype=np.float32),
        "texts": ("x", "\ud83d\ude00"),
    }
    found = rows(read([{"type": "Thing", "data": data}], WIDE), "Thing")[0]
    assert found["day"] == dt.date(2024, 1, 5)
    assert found["moment"] == dt.datetime(2024, 1, 5, 6, 7, 8, 250_000, tzinfo=dt.UTC)
    assert found["moments"] == [dt.datetime(2024, 1, 5, tzinfo=dt.UTC)]
    assert (found["large"], found["place"], found["texts"]) == (5, [1.0, 2.0], ["x", "😀"])


@pytest.mark.parametrize("item", [3, {"type": object()}, {"type": {1, 2}}, '{"type":\n"Sailor"}', None])
def test_items_that_are_no_records_are_refused_with_their_number(item: Any) -> None:
    details = refused([{"type": "Sailor", "data": {"name": "x"}}, item])
    assert (details["code"], details["line_number"]) == ("W010", 2)


def test_nan_in_a_python_record_is_refused() -> None:
    assert refused([vessel(1, tonnage=float("nan"))])["code"] == "W009"


@pytest.mark.parametrize("chunk_bytes", [50, 1 << 25])
@pytest.mark.parametrize("cut", [1, 15, 40, 200])
def test_of_gzip_that_is_cut_the_first_line_that_is_not_whole_is_named(cut: int, chunk_bytes: int) -> None:
    text = lines(*[{**vessel(n), "id": str(n)} for n in range(50)])
    packed = gzip.compress(text)[:-cut]
    whole = zlib.decompressobj(31).decompress(packed).count(b"\n")
    told = refused(packed, chunk_bytes=chunk_bytes)
    assert (told["code"], told["line_number"]) == ("W010", whole + 1)
    assert told["message"] == f"line {whole + 1}: the gzip data is damaged or ends too early"


def test_of_gzip_without_a_byte_of_data_the_first_line_is_named() -> None:
    for packed in (b"\x1f\x8b", gzip.compress(lines(vessel(1)))[:9], b"\x1f\x8b\xff" + bytes(20)):
        assert refused(packed)["line_number"] == 1


@pytest.mark.parametrize("count", [1, 7, 30_000])
def test_of_damaged_gzip_every_line_before_the_damage_is_read(count: int) -> None:
    packer = zlib.compressobj(wbits=31)
    text = lines(*[vessel(n) for n in range(count)])
    packed = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    damaged = packed + b"\x07" + bytes(100)  # a block of a kind that there is not
    assert refused(damaged)["line_number"] == count + 1
    half = packer.compress(text[:-9]) + packer.flush(zlib.Z_FULL_FLUSH)
    assert refused(packed + half + b"\x07" + bytes(100))["line_number"] == 2 * count
    assert refused(gzip.compress(text) + b"more")["line_number"] == count + 1


def test_a_checksum_that_is_wrong_is_damage() -> None:
    packed = bytearray(gzip.compress(lines(*[vessel(n) for n in range(5)])))
    packed[-6] ^= 1
    assert refused(packed)["line_number"] in (5, 6)


def test_a_record_that_is_wrong_comes_before_the_damage_behind_it() -> None:
    packed = gzip.compress(lines(vessel(1), {"type": "Vessel", "data": {"knots": 3}}, vessel(3)))
    assert refused(packed[:-5])["line_number"] == 2


def test_gzip_is_text_like_any_other_where_it_is_not_accepted() -> None:
    assert refused(gzip.compress(lines(vessel(1))), accept_gzip=False)["code"] == "W010"


def test_a_path_that_can_not_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"absent\.jsonl"):
        read(tmp_path / "absent.jsonl")


# --- limits


def exceeded(source: LoadSource, limits: LoadLimits) -> tuple[str, int, int]:
    with pytest.raises(LimitExceeded) as caught:
        read(source, limits=limits)
    assert (caught.value.status, caught.value.effects) == (413, "none")
    return caught.value.resource, caught.value.limit, caught.value.actual


def test_a_line_may_have_the_bytes_of_its_limit_and_no_more() -> None:
    text = lines(vessel(1), vessel(2))
    longest = len(text.splitlines()[0])
    assert read(text.replace(b"\n", b"\r\n"), limits=LoadLimits(line_bytes=longest)).records == 2
    limits = LoadLimits(line_bytes=longest - 1)
    for source in (text, text.decode().splitlines()):
        assert exceeded(source, limits) == ("line_bytes", longest - 1, longest)


def test_a_line_without_end_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1, /) -> bytes:
            self.given += size
            return b"x" * size

    source = Endless()
    resource, limit, _ = exceeded(source, LoadLimits(line_bytes=5 << 20))
    assert (resource, limit) == ("line_bytes", 5 << 20)
    assert source.given < 10 << 20


def test_ceilings_hold_for_each_type_and_for_all_together() -> None:
    text = lines(*[vessel(n) for n in range(3)], {"type": "Sailor", "data": {"name": "x"}})
    assert exceeded(text, LoadLimits(write_entities=2)) == ("write_entities:node:Vessel", 2, 3)
    of_vessels = len(lines(*[vessel(n) for n in range(3)]))
    assert exceeded(text, LoadLimits(write_bytes=of_vessels - 1)) == (
        "write_bytes:node:Vessel",
        of_vessels - 1,
        of_vessels,
    )
    assert exceeded(text, LoadLimits(write_bytes=of_vessels)) == ("write_bytes", of_vessels, len(text))
    assert read(text, limits=LoadLimits(write_entities=3, write_bytes=len(text))).records == 4


def test_overwrite_has_no_ceilings_but_those_of_lines() -> None:
    limits = LoadLimits(write_entities=1, write_bytes=1, line_bytes=10).without_ceilings()
    assert (limits.write_entities, limits.write_bytes, limits.line_bytes) == (None, None, 10)


def test_gzip_is_bounded_by_its_expanded_size() -> None:
    bomb = gzip.compress(b"\n" * (20 << 20))
    resource, limit, actual = exceeded(bomb, LoadLimits(expanded_bytes=1 << 20))
    assert (resource, limit) == ("load_expanded_bytes", 1 << 20)
    assert actual <= 3 << 20


def test_limits_come_from_the_environment() -> None:
    names = ["LOAD_LINE_BYTES", "WRITE_ENTITIES", "WRITE_BYTES", "LOAD_EXPANDED_BYTES"]
    environ = {f"OMNIGRAPH_{name}": str(n + 1) for n, name in enumerate(names)}
    assert LoadLimits.from_environment(environ) == LoadLimits(1, 2, 3, 4)
    assert LoadLimits.from_environment({}) == LoadLimits()
    for bad in ("0", "-1", "many", "1.5"):
        with pytest.raises(InvalidRequest, match="OMNIGRAPH_WRITE_BYTES") as caught:
            LoadLimits.from_environment({"OMNIGRAPH_WRITE_BYTES": bad})
        assert caught.value.code == "invalid_setting"


def test_progress_tells_bytes_and_records(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_bytes(lines(*[vessel(n) for n in range(40)]))
    told: list[LoadProgress] = []
    read(path, progress=told.append)
    assert told[-1] == LoadProgress(path.stat().st_size, path.stat().st_size, 40)
    read([vessel(1)], progress=told.append)
    assert (told[-1].bytes_total, told[-1].records) == (None, 1)
