"""Records of native Python values as lines of JSON, and which of their values their property can't have.

A line is spelled before anybody knows the schema, and a spelling forgets what it was made from: bytes would turn into
text and a date into an instant. So the kinds of native values are noted while they are spelled, each with the first record
that holds it in that place, and judged with the schema at hand by the function that judges parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from omnigraph.engine.load.exact import Refusal, RefusedRecord
from omnigraph.errors import InvalidData
from omnigraph.lang.natives import PLAIN, from_array, from_python, spelled
from omnigraph.lang.schema.catalog import Catalog, EntityType, Property
from omnigraph.lang.types import Scalar, ValueType, scalar
from omnigraph.lang.values import Refused, value_from_json

_JSON: Final = PLAIN | {type(None)}
_SPELLED: Final = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a native value of a class stands: in which property of which type, on its own or in a list."""

    word: str
    type_name: str
    property: str
    kind: type
    in_list: bool
    has_spelling: bool


@dataclass(frozen=True, slots=True)
class Example:
    """The first value in a place, and the number of its record."""

    line_number: int
    value: object


Natives = Mapping[Place, Example]


class RecordLines:
    """Turns records into lines and notes the native values in them."""

    def __init__(self) -> None:
        self._seen: dict[Place, Example] = {}

    def take_seen(self) -> Natives:
        """What was noted since the last call."""
        seen, self._seen = self._seen, {}
        return seen

    def line(self, record: Mapping[str, Any], number: int) -> bytes:
        """Raises InvalidData (W010) for what can be no record, whatever the schema."""
        try:
            plain: dict[object, object] = {
                key: value if type(value) in _JSON else self._member(record, key, value, number)
                for key, value in record.items()
            }
            if not all(isinstance(key, str) for key in plain):
                raise _refused(number, "its keys are texts")
            return json.dumps(plain, separators=(",", ":")).encode("ascii")
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise _refused(number, "it holds a value that no record can hold") from None

    def _member(self, record: Mapping[str, Any], key: object, value: object, number: int) -> object:
        if key != "data" or not isinstance(value, Mapping):
            plain = spelled(value)
            if isinstance(plain, (list, tuple, Mapping)):
                return cast("object", plain)
            return value if isinstance(value, str) else None  # ids and names are texts: what is none is refused as null
        data = cast("Mapping[object, object]", value)
        if not all(isinstance(name, str) for name in data):
            raise _refused(number, "the names of its properties are texts")
        return {
            name: each if type(each) in _JSON else self._value(record, name, each, number)
            for name, each in data.items()
        }

    def _value(self, record: Mapping[str, Any], name: object, raw: object, number: int) -> object:
        value = from_array(raw)
        if not isinstance(value, (list, tuple)):
            return self._scalar(record, name, raw, value, number, in_list=False)
        items = cast("Iterable[object]", value)
        if {*map(type, items)} <= _JSON:
            return items
        return [
            item if type(item) in _JSON else self._scalar(record, name, item, from_array(item), number, in_list=True)
            for item in items
        ]

    def _scalar(
        self, record: Mapping[str, Any], name: object, raw: object, value: object, number: int, *, in_list: bool
    ) -> object:
        """The spelling; null for what has none, which its note will refuse."""
        plain = spelled(value)
        told = plain is not value and isinstance(plain, str) and not isinstance(value, str)
        if isinstance(plain, _SPELLED) and not told:
            return plain
        if isinstance(plain, (list, tuple)):
            return []  # a list in a list: no property has that
        for word in ("type", "edge"):
            type_name = record.get(word)
            if isinstance(type_name, str):
                place = Place(word, str(type_name), str(name), type(raw), in_list, isinstance(plain, str))
                self._seen.setdefault(place, Example(number, raw))
        return plain if isinstance(plain, str) else None


def _refused(number: int, what: str) -> InvalidData:
    return InvalidData(f"record {number}: {what}", data_code="W010", line_number=number)


def native_misfit(catalog: Catalog, natives: Natives) -> Refusal | None:
    """The first record with a native value that its property can't have. What the schema lacks is told by its readers."""
    return min(_misfits(catalog, natives), key=lambda refusal: refusal.line_number, default=None)


def _misfits(catalog: Catalog, natives: Natives) -> Iterator[Refusal]:
    for place, example in natives.items():
        node = catalog.nodes.get(place.type_name) if place.word == "type" else None
        entity = catalog.edge_by_word(place.type_name) if place.word == "edge" else node
        of = None if entity is None else next((p for p in entity.properties if p.name == place.property), None)
        if entity is not None and of is not None:
            refused = _judged(entity, of, place, example)
            if refused is not None:
                yield Refusal(example.line_number, refused.error(example.line_number))


def _judged(entity: EntityType, of: Property, place: Place, example: Example) -> RefusedRecord | None:
    wanted = ValueType("scalar", Scalar.STRING) if of.type.kind == "enum" else of.type
    if place.in_list:
        if wanted.kind not in ("list", "vector"):
            return None  # it is an array that is wrong here
        wanted = scalar(wanted.scalar)
    found = from_python(wanted, example.value)
    value = found if isinstance(found, Refused) else value_from_json(wanted, found)
    if not isinstance(value, Refused):
        if place.has_spelling:
            return None
        value = Refused("shape", f"it does not fit {of.type.spelling()}")
    code = "W010" if value.problem == "shape" else "W009"
    return RefusedRecord(code, f"{entity.name}.{of.name}: {value.reason}", entity, property=of.name)
