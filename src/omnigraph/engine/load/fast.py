"""Records of one type by Arrow's JSON reader: many at a time, or not at all.

`read_fast` gives the rows only if they are certainly what the exact reader would give. Arrow's reader is stricter than
JSON asks in most places and laxer in five, each of which is looked for here:

- it takes `NaN`, `Infinity` and `1e400`-like numbers: floats must be finite (`columns`);
- it takes several objects on one line: the rows must be as many as the lines, each of which begins with `{` and ends
  with `}`, so that a line break never falls inside an object;
- it takes `null` for an object, and at the start of its input it crashes on one: no `}` may be followed by `null`;
- it does not tell `"id": null` from no id, nor `"data": null` from no data: neither may occur where such a value is missing;
- it does not check UTF-8: the caller has.
"""

from __future__ import annotations

import json
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from omnigraph.engine.constraints.order import truths
from omnigraph.engine.load.batch import rows_schema
from omnigraph.engine.load.columns import Spelling, has_two_spellings, json_type, spelling_of, stored_column
from omnigraph.engine.load.lines import Lines
from omnigraph.lang.schema.catalog import EntityType

_SAMPLED_RECORDS = 16
_BLOCK_BYTES = (1 << 18, 1 << 22)
_NULLS_LOOKED_AT = 1_000
_BLANKS_LOOKED_AT = 64
_NULL_BEHIND_OBJECT = r"\}[ \t\r]*null"
_NULL_KEYS = (("id", r'"id"[ \t\r]*:[ \t\r]*null'), ("data", r'"data"[ \t\r]*:[ \t\r]*null'))
_ESCAPED_LETTER = r"\\u00[4-7]"


def read_fast(entity: EntityType, word: str, name: str, lines: Lines) -> pa.Table | None:
    """The records as rows of `rows_schema`, or None if they need the exact reader.

    Every line begins with `{` and ends with `}`; its record is expected to name the type by `word` and `name`.
    """
    with_null = _lines_with_null(lines)
    if _any_match(with_null, _NULL_BEHIND_OBJECT):
        return None
    table = _parsed(entity, word, lines)
    if table is None or len(table) != len(lines):
        return None
    if not pc.all(pc.fill_null(pc.equal(table.column(word), name), False), min_count=0).as_py():
        return None
    if len(with_null) and _hides_null(table, with_null):
        return None
    schema = rows_schema(entity)
    batches: list[pa.RecordBatch] = []
    start = 0
    for batch in table.to_batches():
        columns = _stored_columns(entity, batch)
        if columns is None:
            return None
        numbers = pa.array(lines.numbers[start : start + len(batch)])
        batches.append(pa.RecordBatch.from_arrays([*columns, numbers], schema=schema))
        start += len(batch)
    return pa.Table.from_batches(batches, schema=schema)


def _parsed(entity: EntityType, word: str, lines: Lines) -> pa.Table | None:
    data = lines.data()
    longest = lines.longest()
    block = max(longest + 1, min(max(data.size // 8, _BLOCK_BYTES[0]), _BLOCK_BYTES[1]))
    parse = arrow_json.ParseOptions(
        explicit_schema=_json_schema(entity, word, lines), unexpected_field_behavior="error"
    )
    try:
        return arrow_json.read_json(
            pa.BufferReader(data), read_options=arrow_json.ReadOptions(block_size=block), parse_options=parse
        )
    except pa.ArrowInvalid:  # some record is no JSON or has another shape; the exact reader says which and why
        return None


def _json_schema(entity: EntityType, word: str, lines: Lines) -> pa.Schema:
    spellings = _spellings(entity, lines)
    fields = [(p.name, json_type(p.type, spellings.get(p.name, "usual"))) for p in entity.properties]
    ends = ("from", "to") if entity.kind == "edge" else ()
    texts = [(name, pa.string()) for name in (word, *ends, "id")]
    return pa.schema([*texts, ("data", pa.struct(fields))])


def _spellings(entity: EntityType, lines: Lines) -> dict[str, Spelling]:
    """For properties whose values may be numbers or strings: which of them the first records use."""
    undecided = {p.name: p for p in entity.properties if has_two_spellings(p.type.scalar)}
    decided: dict[str, Spelling] = {}
    for text in lines.text.slice(0, _SAMPLED_RECORDS).to_pylist():
        if not undecided:
            break
        for name, value in _sampled_data(text).items():
            if name in undecided and (sample := _first_item(value)) is not None:
                decided[name] = spelling_of(undecided.pop(name).type.scalar, sample)
    return decided


def _sampled_data(text: bytes) -> dict[str, object]:
    try:
        data = json.loads(text).get("data")
    except (ValueError, RecursionError):  # left to be found when the record is read
        return {}
    return cast("dict[str, object]", data) if isinstance(data, dict) else {}


def _first_item(value: object) -> object | None:
    """The value, or of a list its first element that is not null."""
    if not isinstance(value, list):
        return value
    return next((item for item in cast("list[object]", value) if item is not None), None)


def _hides_null(table: pa.Table, with_null: Lines) -> bool:
    """Whether a missing id or missing data may have been written as null."""
    patterns = [pattern for key, pattern in _NULL_KEYS if table.column(key).null_count]
    # with an escaped letter a key could be spelled in another way
    return any(_any_match(with_null, pattern) for pattern in (*patterns, *([_ESCAPED_LETTER] if patterns else [])))


def _lines_with_null(lines: Lines) -> Lines:
    """The lines in which a null may stand for a value or an object."""
    if not _may_hold_null(lines.data().to_pybytes()):
        return lines.part(0, 0)
    return lines.where(truths(pc.match_substring(lines.text, "null")))


def _may_hold_null(data: bytes) -> bool:
    """Whether `null` stands behind a colon or a closing brace; true without looking on if the word is frequent."""
    place = data.find(b"null")
    for _ in range(_NULLS_LOOKED_AT):
        if place < 0:
            return False
        if data[max(0, place - _BLANKS_LOOKED_AT) : place].rstrip(b" \t\r")[-1:] in (b"", b":", b"}"):
            return True
        place = data.find(b"null", place + 4)
    return True


def _any_match(lines: Lines, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(lines.text, pattern=pattern), min_count=0).as_py())


def _stored_columns(entity: EntityType, batch: pa.RecordBatch) -> list[pa.Array] | None:
    """The columns of `table_schema` from one batch of records; None if an id or a value may not fit."""
    ends = [batch.column(name) for name in ("from", "to")] if entity.kind == "edge" else []
    ids = batch.column("id")
    if any(end.null_count for end in ends) or any(_has_empty(texts) for texts in (ids, *ends)):
        return None
    columns = [ids, *ends]
    for each, values in zip(entity.properties, batch.column("data").flatten(), strict=True):
        column = stored_column(each.type, values)
        if column is None:
            return None
        columns.append(column)
    return columns


def _has_empty(texts: pa.Array) -> bool:
    return bool(pc.any(pc.equal(pc.binary_length(texts), 0), min_count=0).as_py())
