"""From the value of a constant to the value of a property (languages.md 13.2).

What fits by type was settled when the query was checked; here are the rules that only show when it runs: a parameter out
of the property's range, a float that rounds to infinity, an enum given by a parameter.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from omnigraph.engine.constraints import Violation
from omnigraph.engine.constraints.violation import quoted
from omnigraph.errors import NotAvailable
from omnigraph.lang.schema.catalog import EntityType, Property
from omnigraph.lang.types import INTEGER_RANGE, Scalar
from omnigraph.lang.values import float_text


def assigned(entity: EntityType, target: Property, value: Any, entity_id: str | None = None) -> Any:
    """The value to store, as a Python value for Arrow. Raises ConstraintViolation (W002, W009) with the id, where it is
    known; NotAvailable (Blob).
    """
    kind = target.type
    if value is None:
        return None
    if kind.kind == "enum":
        if value not in kind.variants:
            raise _refused(
                entity, target, entity_id, "W002", "enum", f"{quoted(value)} is none of {', '.join(kind.variants)}"
            )
        return value
    if kind.kind in ("list", "vector"):
        return [_scalar(entity, target, entity_id, kind.scalar, item) for item in value]
    return _scalar(entity, target, entity_id, kind.scalar, value)


def _scalar(entity: EntityType, target: Property, entity_id: str | None, scalar: Scalar, value: Any) -> Any:
    if value is None:
        return None
    if scalar is Scalar.BLOB:
        raise NotAvailable(f"{entity.name}.{target.name}: Blob values are not part of this version.")
    if scalar in INTEGER_RANGE:
        low, high = INTEGER_RANGE[scalar]
        if not low <= value <= high:
            raise _refused(entity, target, entity_id, "W009", "range", f"{value} is out of the range of {scalar}")
        return value
    if scalar in (Scalar.F32, Scalar.F64):
        number = float(value)
        if scalar is Scalar.F32:
            number = _as_f32(number)
        if not math.isfinite(number):
            raise _refused(
                entity, target, entity_id, "W009", "range", f"{_number_text(value)} is out of the range of {scalar}"
            )
        return number
    return value


def _number_text(value: float) -> str:
    return float_text(value) if isinstance(value, float) and math.isfinite(value) else str(value)


def _as_f32(number: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.inf


def _refused(
    entity: EntityType, target: Property, entity_id: str | None, code: str, constraint: Any, message: str
) -> Exception:
    of = "" if entity_id is None else f" of {quoted(entity_id)}"
    return Violation(
        code=code,
        constraint=constraint,
        kind=entity.kind,
        type_name=entity.name,
        message=f"{entity.name}.{target.name}{of}: {message}",
        entity_id=entity_id,
        property=target.name,
    ).error()
