"""Limits of what is written (languages.md 15.4): names, defaults, variables. Decides nothing about a particular write."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from omnigraph.errors import InvalidRequest, LimitExceeded
from omnigraph.lang.schema.catalog import EntityType

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """`line_bytes` of one record; `write_entities` and `write_bytes` of one type, the latter also of all together: of a
    load in bytes of record lines, of a mutation in those of the columns that it writes; `expanded_bytes` of gzip input
    once expanded. None: no ceiling.
    """

    line_bytes: int = 32 * _MIB
    write_entities: int | None = 1_000_000
    write_bytes: int | None = 512 * _MIB
    expanded_bytes: int = 16 * 1024 * _MIB

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> LoadLimits:
        """Raises InvalidRequest (`invalid_setting`) naming the variable that holds no positive number."""
        variables = os.environ if environ is None else environ
        return cls(
            line_bytes=positive_number(variables, "OMNIGRAPH_LOAD_LINE_BYTES", 32 * _MIB),
            write_entities=positive_number(variables, "OMNIGRAPH_WRITE_ENTITIES", 1_000_000),
            write_bytes=positive_number(variables, "OMNIGRAPH_WRITE_BYTES", 512 * _MIB),
            expanded_bytes=positive_number(variables, "OMNIGRAPH_LOAD_EXPANDED_BYTES", 16 * 1024 * _MIB),
        )

    def without_ceilings(self) -> LoadLimits:
        """The limits of an `overwrite` load: no ceiling on entities and bytes of the write."""
        return replace(self, write_entities=None, write_bytes=None)


def line_too_long(line_number: int, limit: int, actual: int) -> LimitExceeded:
    """`actual` is the length, or what was seen of it before reading stopped."""
    return LimitExceeded(
        f"line {line_number}: a record may have {limit} bytes (OMNIGRAPH_LOAD_LINE_BYTES)",
        resource="line_bytes",
        limit=limit,
        actual=actual,
        effects="none",
    )


def expanded_too_far(limit: int, actual: int) -> LimitExceeded:
    return LimitExceeded(
        f"gzip input may expand to {limit} bytes (OMNIGRAPH_LOAD_EXPANDED_BYTES)",
        resource="load_expanded_bytes",
        limit=limit,
        actual=actual,
        effects="none",
    )


def too_many_entities(entity: EntityType, limit: int, actual: int) -> LimitExceeded:
    return LimitExceeded(
        f"one write may hold {limit} entities of {entity.kind} {entity.name} (OMNIGRAPH_WRITE_ENTITIES)",
        resource=f"write_entities:{entity.kind}:{entity.name}",
        limit=limit,
        actual=actual,
        effects="none",
    )


def too_many_bytes(entity: EntityType | None, limit: int, actual: int) -> LimitExceeded:
    """Of one type, or without one of the whole write."""
    of, suffix = ("", "") if entity is None else (f" of {entity.kind} {entity.name}", f":{entity.kind}:{entity.name}")
    return LimitExceeded(
        f"one write may hold {limit} bytes{of} (OMNIGRAPH_WRITE_BYTES)",
        resource=f"write_bytes{suffix}",
        limit=limit,
        actual=actual,
        effects="none",
    )


def positive_number(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) == 0:
        raise InvalidRequest(f"{name} must be a whole number of at least 1", code="invalid_setting")
    return int(text)
