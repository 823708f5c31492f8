"""Records one by one: what a load record may be (languages.md 15.1, 7), to the letter, and what is wrong with one.

The judge wherever the fast reader is not certain. Reading stops at the first record that is refused; the rows before it
are given too, since a constraint that one of them breaks comes first. Enum sets, required values, ranges and keys are no
matter of reading: `engine/constraints` looks at the columns.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa

from omnigraph.engine.constraints.violation import Violation
from omnigraph.engine.load.batch import rows_schema
from omnigraph.engine.load.lines import Lines
from omnigraph.errors import InvalidData, NotAvailable, OmnigraphError
from omnigraph.lang.query.faults import NOT_AVAILABLE, nearest_name
from omnigraph.lang.schema.catalog import Catalog, EntityType, Property
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.lang.values import Refused, Value, value_from_json

JSON_DEPTH_MAX = 64

_INTEGER_DIGITS_MAX = 400
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|$)|[\[{]|[\]}]')  # one pass, even over a string without an end
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that can't be taken: its line and the error to raise."""

    line_number: int
    error: OmnigraphError


@dataclass(frozen=True, slots=True)
class ExactRows:
    """Rows by type id, in record order, up to the first record that is refused."""

    tables: Mapping[str, tuple[EntityType, pa.Table]]
    refusal: Refusal | None


def read_exact(catalog: Catalog, lines: Lines) -> ExactRows:
    """The records as rows of `rows_schema`. Lines of white space are skipped. The text is UTF-8."""
    rows: dict[str, _Rows] = {}
    forms = _Forms(catalog)
    refusal: Refusal | None = None
    for text, number in zip(lines.text.to_pylist(), lines.numbers.tolist(), strict=True):
        line = cast(bytes, text).decode("utf-8")
        if not line.strip(" \t\r\n"):
            continue
        try:
            record = _record(forms, line)
        except RefusedRecord as refused:
            refusal = Refusal(number, refused.error(number))
            break
        of_type = rows.get(record.entity.id)
        if of_type is None:
            of_type = rows[record.entity.id] = _Rows(record.entity)
        of_type.add(record, number)
    return ExactRows({type_id: (each.entity, each.table()) for type_id, each in rows.items()}, refusal)


@dataclass(frozen=True, slots=True)
class _Record:
    entity: EntityType
    id: str | None
    ends: tuple[str, ...]
    values: Mapping[str, Value]  # by property name; nulls left out


class _Rows:
    """Rows of one type while they are gathered."""

    def __init__(self, entity: EntityType) -> None:
        self.entity = entity
        self._texts: list[list[str | None]] = [[] for _ in range(3 if entity.kind == "edge" else 1)]
        self._values: dict[str, list[Value | None]] = {p.name: [] for p in entity.properties}
        self._numbers: list[int] = []

    def add(self, record: _Record, number: int) -> None:
        for column, text in zip(self._texts, (record.id, *record.ends), strict=True):
            column.append(text)
        for name, column in self._values.items():
            column.append(record.values.get(name))
        self._numbers.append(number)

    def table(self) -> pa.Table:
        schema = rows_schema(self.entity)
        columns = [*self._texts, *self._values.values(), self._numbers]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)


@dataclass
class RefusedRecord(Exception):
    """One record does not fit: code, words and place in the record."""

    code: str
    what: str
    entity: EntityType | None = None
    type_name: str | None = None
    property: str | None = None
    entity_id: str | None = field(default=None)

    def error(self, line_number: int) -> OmnigraphError:
        message = f"line {line_number}: {self.what}"
        if self.code == "W009" and self.entity is not None:
            return Violation(
                code="W009",
                constraint="range",
                kind=self.entity.kind,
                type_name=self.entity.name,
                message=message,
                entity_id=self.entity_id,
                property=self.property,
                line_number=line_number,
            ).error()
        refused = InvalidData(
            message,
            data_code=self.code,
            line_number=line_number,
            type_name=self.entity.name if self.entity is not None else self.type_name,
            property_name=self.property,
        )
        if self.code != NOT_AVAILABLE:
            return refused
        # nothing is wrong with the record: the answer is that of every other such refusal
        return NotAvailable(message, detail_key=refused.detail_key, details=refused.details, line_number=line_number)


class _Form:
    """What the records of one type may hold."""

    def __init__(self, entity: EntityType) -> None:
        self.entity = entity
        self.ends = ("from", "to") if entity.kind == "edge" else ()
        self.keys = {"type" if entity.kind == "node" else "edge", "id", "data", *self.ends}
        self.types = {p.name: _read_type(p) for p in entity.properties}


class _Forms:
    """The forms of a catalog's types, as records name them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[tuple[str, str], _Form] = {}

    def of(self, raw: Mapping[str, object]) -> _Form:
        """Raises RefusedRecord if the record names no type of the catalog."""
        word = "type" if "type" in raw else "edge"
        if word not in raw or (word == "type" and "edge" in raw):
            raise RefusedRecord("W010", 'a record has either "type" or "edge"')
        name = raw[word]
        if not isinstance(name, str):
            raise RefusedRecord("W010", f'"{word}" must be a string')
        form = self._known.get((word, name))
        if form is None:
            entity = self._catalog.nodes.get(name) if word == "type" else self._catalog.edge_by_word(name)
            if entity is None:
                kind, known = ("node", self._catalog.nodes) if word == "type" else ("edge", self._catalog.edges)
                what = f"the schema has no {kind} type {_quoted(name)}{_meant(name, known)}"
                raise RefusedRecord("W011", what, type_name=_shown(name))
            form = self._known[word, name] = _Form(entity)
        return form


def _record(forms: _Forms, line: str) -> _Record:
    raw = _decoded(line)
    form = forms.of(raw)
    entity = form.entity
    if not form.keys.issuperset(raw):
        stranger = next(key for key in raw if key not in form.keys)
        what = f"{_quoted(stranger)} is no key of a {entity.kind} record{_meant(stranger, form.keys)}"
        raise RefusedRecord("W010", what, entity)
    given_id = _id(raw, "id", entity) if "id" in raw else None
    ends = tuple([_id(raw, end, entity) for end in form.ends])
    data = raw.get("data", {})
    if not isinstance(data, dict):
        raise RefusedRecord("W010", '"data" must be an object', entity)
    return _Record(entity, given_id, ends, _values(form, cast("dict[str, object]", data), given_id))


def _id(raw: Mapping[str, object], key: str, entity: EntityType) -> str:
    value = raw.get(key)
    if not isinstance(value, str) or not value:
        what = "is missing" if key not in raw else "must be a string that is not empty"
        raise RefusedRecord("W010", f'{entity.name}: "{key}" {what}', entity)
    if not _is_text(value):
        raise RefusedRecord("W010", f'{entity.name}: "{key}" holds half of a surrogate pair, which is no text', entity)
    return value


def _values(form: _Form, data: Mapping[str, object], entity_id: str | None) -> dict[str, Value]:
    entity = form.entity
    values: dict[str, Value] = {}
    for name, raw in data.items():
        of = form.types.get(name)
        if of is None:
            what = f"{entity.name} has no property {_quoted(name)}{_meant(name, form.types)}"
            raise RefusedRecord("W011", what, entity, property=_shown(name), entity_id=entity_id)
        if raw is None:
            continue
        value = value_from_json(of, raw, null_elements=True)
        if isinstance(value, Refused):
            code = "W010" if value.problem == "shape" else "W009"
            what = f"{entity.name}.{name}: {value.reason}"
            raise RefusedRecord(code, what, entity, property=name, entity_id=entity_id)
        if of.scalar is Scalar.BLOB:
            what = f"{entity.name}.{name}: Blob values are not part of this version"
            raise RefusedRecord(NOT_AVAILABLE, what, entity, property=name, entity_id=entity_id)
        values[name] = value
    return values


_NAME_LENGTH_MAX = 200


def _meant(name: str, known: Iterable[str]) -> str:
    """The fix for a misspelt name, if one is near. Long texts are no slips, and costly to compare."""
    near = nearest_name(name, known) if len(name) <= _NAME_LENGTH_MAX else None
    return "" if near is None else f'. Did you mean "{near}"?'


def _read_type(each: Property) -> ValueType:
    """An enum is read as text; whether it is one of the variants is a constraint (`W002`)."""
    return ValueType("scalar", Scalar.STRING) if each.type.kind == "enum" else each.type


# --- JSON


def _decoded(line: str) -> dict[str, object]:
    """The record's object. Duplicate keys, more than 64 levels and anything behind the object are refused."""
    if line.count("[") + line.count("{") > JSON_DEPTH_MAX and _depth(line) > JSON_DEPTH_MAX:
        raise RefusedRecord("W010", f"the record is nested deeper than {JSON_DEPTH_MAX} levels")
    try:
        raw = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        raise RefusedRecord("W010", f"column {error.pos + 1}: this is no JSON object") from None
    if not isinstance(raw, dict):
        raise RefusedRecord("W010", "a record is a JSON object")
    return cast("dict[str, object]", raw)


def _depth(line: str) -> int:
    depth = deepest = 0
    for match in _BRACKETS.finditer(line):
        sign = match[0]
        if sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise RefusedRecord("W010", f"the key {_quoted(key)} comes twice")
            seen.add(key)
    return members


class _MinusZero(int):
    """`-0`: the integer 0, and the float -0.0."""

    def __float__(self) -> float:
        return -0.0


_MINUS_ZERO = _MinusZero(0)


def _integer(text: str) -> int:
    """An integer; beyond 400 digits one that is as far outside every type."""
    if text == "-0":
        return _MINUS_ZERO
    if len(text) <= _INTEGER_DIGITS_MAX:
        return int(text)
    return -(10**_INTEGER_DIGITS_MAX) if text.startswith("-") else 10**_INTEGER_DIGITS_MAX


_CONSTANTS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_read_constant: Callable[[str], float] = _CONSTANTS.__getitem__
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_constant=_read_constant)


def _is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _quoted(text: str) -> str:
    return f'"{_shown(text)}"'


def _shown(text: str) -> str:
    """Text of a record in a message: one line, bounded, without halves of surrogate pairs."""
    line = text.encode("utf-8", "replace").decode("utf-8").replace("\n", "\\n").replace("\r", "\\r")
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
