"""A broken constraint as a value, its words, and which of several comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from omnigraph.engine.constraints.order import line_of, statement_of
from omnigraph.errors import ConstraintViolation
from omnigraph.lang.schema.catalog import EntityKind, EntityType, Property
from omnigraph.query.encode.cells import cell_text, is_text
from omnigraph.query.encode.strings import scalar_json
from omnigraph.tables.columns import ID

Constraint = Literal["required", "enum", "range", "check", "unique", "cardinality", "endpoint", "key"]

_SHOWN_VALUE = 80


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken constraint: which rule, where, and in words."""

    code: str
    constraint: Constraint
    kind: EntityKind
    type_name: str
    message: str
    entity_id: str | None = None
    property: str | None = None
    line_number: int | None = None
    statement: int | None = None  # for the order only: a mutation's text has no numbers

    def error(self) -> ConstraintViolation:
        """The error of the public door, to be raised."""
        return ConstraintViolation(
            self.message,
            rule_code=self.code,
            constraint=self.constraint,
            entity_kind=self.kind,
            type_name=self.type_name,
            entity_id=self.entity_id,
            property_name=self.property,
            line_number=self.line_number,
        )


def first(violations: Iterable[Violation | None]) -> Violation | None:
    """The first in record or statement order, then by type name, then by id. Those without a number come last."""
    found = [violation for violation in violations if violation is not None]
    return min(found, key=_place, default=None)


def _place(violation: Violation) -> tuple[bool, int, str, str]:
    number = violation.statement if violation.line_number is None else violation.line_number
    return number is None, number or 0, violation.type_name, violation.entity_id or ""


def reporter(
    entity: EntityType,
    rows: pa.Table,
    each: Property,
    code: str,
    constraint: Constraint,
    what: str,
    *,
    shown: bool = False,
) -> Callable[[int], Violation]:
    def report(row: int) -> Violation:
        value = f"{shown_value(rows.column(each.column), row)} " if shown else ""
        return violation_at(entity, rows, row, code, constraint, f"{value}{what}", each.name)

    return report


def violation_at(
    entity: EntityType,
    rows: pa.Table,
    row: int,
    code: str,
    constraint: Constraint,
    what: str,
    property_name: str | None,
) -> Violation:
    entity_id = rows.column(ID)[row].as_py()
    line = line_of(rows, row)
    subject = (
        entity.name if property_name is None or property_name.startswith("@") else f"{entity.name}.{property_name}"
    )
    if line is None and entity_id is not None:
        subject = f"{subject} of {quoted(entity_id)}"
    return Violation(
        code=code,
        constraint=constraint,
        kind=entity.kind,
        type_name=entity.name,
        message=placed(line, f"{subject}: {what}"),
        entity_id=entity_id,
        property=property_name,
        line_number=line,
        statement=statement_of(rows, row),
    )


def placed(line: int | None, text: str) -> str:
    return text if line is None else f"line {line}: {text}"


def quoted(text: str | None) -> str:
    """A text as records and queries write it, in quotes."""
    return "null" if text is None else _bounded(scalar_json(text[: _SHOWN_VALUE + 1]))


def shown_value(column: pa.ChunkedArray, row: int) -> str:
    """One value as results and records spell it (languages.md 20)."""
    value = column.slice(row, 1).combine_chunks()
    texts: list[str | None] = (value if is_text(value.type) else cell_text(value)).to_pylist()
    return quoted(texts[0]) if is_text(value.type) else _bounded(texts[0] or "null")


def _bounded(text: str) -> str:
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 1] + "…"
