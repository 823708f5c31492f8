"""Load records into columns: every rule that one record decides by itself (languages.md 15.1, 7, 15.4).

    batch = read_records("words.jsonl.gz", catalog, limits=LoadLimits.from_environment())
    batch.types[0].rows          ->  the columns of table_schema(…) and line_number

The input is read in chunks; the lines of a chunk are grouped by the type that they seem to name, and each group goes through Arrow's JSON reader. A group that is not certainly right is cut up, and its doubtful parts are read record
by record. Both readers give the same columns; the exact one also says what is wrong.

What is refused is the first record, in the order of lines, that can't be read or whose values break a constraint by
themselves (W001 to W004, W008, W009). What several records decide (repeated ids, W005 to W007) is known only when all
are read, and is the caller's to check with `engine/constraints`. Reads no table and knows no branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.engine import constraints
from omnigraph.engine.identity import LINE_NUMBER, with_derived_ids
from omnigraph.engine.limits import (
    LoadLimits,
    line_too_long,
    too_many_bytes,
    too_many_entities,
)
from omnigraph.engine.load.batch import LoadBatch, TypeRows
from omnigraph.engine.load.exact import Refusal, read_exact
from omnigraph.engine.load.fast import read_fast
from omnigraph.engine.load.lines import Group, Lines, groups, split
from omnigraph.engine.load.natives import native_misfit
from omnigraph.engine.load.source import CHUNK_BYTES, Chunk, Source, chunks
from omnigraph.engine.progress import LoadProgress, ReportProgress
from omnigraph.errors import InvalidData
from omnigraph.lang.schema.catalog import Catalog, EntityType

_FAST_LINES_MIN = 64  # below, Arrow's reader costs more than it saves
_PARTS = 8


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one type from one chunk, in record order, and the bytes of their lines."""

    entity: EntityType
    rows: pa.Table
    bytes: int


def read_records(
    source: Source,
    catalog: Catalog,
    *,
    limits: LoadLimits,
    progress: ReportProgress | None = None,
    accept_gzip: bool = True,
    embedded_later: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> LoadBatch:
    """All records of a source. `limits` are those of the mode (`without_ceilings` for overwrite).

    `embedded_later`: a required vector with `@embed` may be missing, since an embedding step fills it. `progress` is
    called after each chunk.

    Raises InvalidData (W010, W011), ConstraintViolation (W001 to W004, W008, W009), LimitExceeded (`line_bytes`,
    `write_entities:…`, `write_bytes…`, `load_expanded_bytes`), InvalidRequest for a path that can't be read. Nothing is
    kept of a source that is refused.
    """
    totals = _Totals(limits)
    parts: dict[str, list[_Part]] = {}
    for chunk in chunks(source, limits, accept_gzip=accept_gzip, chunk_bytes=chunk_bytes):
        for part in _chunk_parts(catalog, chunk, limits, embedded_later):
            totals.add(part)
            parts.setdefault(part.entity.id, []).append(part)
        totals.bytes_read += len(chunk.data)
        if progress is not None:
            progress(LoadProgress(chunk.bytes_read, chunk.bytes_total, totals.records))
    order = [entity for kind in (catalog.nodes, catalog.edges) for entity in kind.values()]
    types = tuple(_type_rows(parts[entity.id]) for entity in order if entity.id in parts)
    return LoadBatch(types, totals.records, totals.bytes_read)


class _Totals:
    """What has been read so far, against the ceilings of a write."""

    def __init__(self, limits: LoadLimits) -> None:
        self._limits = limits
        self._entities: dict[str, int] = {}
        self._bytes: dict[str, int] = {}
        self.bytes_read = 0

    @property
    def records(self) -> int:
        return sum(self._entities.values())

    def add(self, part: _Part) -> None:
        """Raises LimitExceeded if the part is one too many."""
        entity = part.entity
        entities = self._entities[entity.id] = self._entities.get(entity.id, 0) + len(part.rows)
        size = self._bytes[entity.id] = self._bytes.get(entity.id, 0) + part.bytes
        most = self._limits.write_entities
        if most is not None and entities > most:
            raise too_many_entities(entity, most, entities)
        largest = self._limits.write_bytes
        if largest is not None and size > largest:
            raise too_many_bytes(entity, largest, size)
        everything = sum(self._bytes.values())
        if largest is not None and everything > largest:
            raise too_many_bytes(None, largest, everything)


def _type_rows(parts: list[_Part]) -> TypeRows:
    return TypeRows(parts[0].entity, _in_record_order(pa.concat_tables([part.rows for part in parts])))


def _in_record_order(rows: pa.Table) -> pa.Table:
    numbers = rows.column(LINE_NUMBER).to_numpy()
    if len(numbers) < 2 or bool((numbers[1:] > numbers[:-1]).all()):
        return rows
    return rows.take(pa.array(np.argsort(numbers, kind="stable")))


# --- one chunk


def _chunk_parts(catalog: Catalog, chunk: Chunk, limits: LoadLimits, embedded_later: bool) -> list[_Part]:
    """The rows of a chunk by type. Raises the error of the first record in it that is refused."""
    data, refusal = _utf8_part(chunk)
    parts: list[_Part] = []
    if data:
        lines = split(data, chunk.first_line)
        if lines.longest > limits.line_bytes:
            raise line_too_long(lines.longest_number, limits.line_bytes, lines.longest)
        for read in _read_lines(catalog, lines.plain, lines.others):
            if isinstance(read, Refusal):
                refusal = _earlier(refusal, read)
            else:
                parts.append(read)
    misfit = native_misfit(catalog, chunk.natives)
    if misfit is not None:  # of one record it is told rather than what its spelling looks like
        refusal = misfit if refusal is None else _earlier(misfit, refusal)
    if refusal is not None:
        before = refusal.line_number
        parts = [_Part(p.entity, _lines_before(p.rows, before), p.bytes) for p in parts]
    violation = constraints.first(
        constraints.value_violation(part.entity, part.rows, embedded_later=embedded_later) for part in parts
    )
    if violation is not None:
        raise violation.error()
    if refusal is not None:
        raise refusal.error
    return [_Part(part.entity, with_derived_ids(part.entity, part.rows), part.bytes) for part in parts]


def _read_lines(catalog: Catalog, plain: Lines, others: Lines) -> Iterator[_Part | Refusal]:
    if len(others):
        yield from _exact_parts(catalog, others)
    for group in groups(plain):
        match group:
            case Lines():
                yield from _exact_parts(catalog, group)
            case Group(word, name, lines):
                entity = catalog.nodes.get(name) if word == "type" else catalog.edge_by_word(name)
                if entity is None:
                    yield from _exact_parts(catalog, lines)
                else:
                    yield from _group_parts(catalog, entity, group, lines)


def _group_parts(catalog: Catalog, entity: EntityType, group: Group, lines: Lines) -> Iterator[_Part | Refusal]:
    """Rows of lines that seem to name one type, up to the first refused one."""
    count = len(lines)
    rows = read_fast(entity, group.word, group.name, lines) if count >= _FAST_LINES_MIN else None
    if rows is not None:
        yield _Part(entity, rows, lines.data().size)
        return
    if count < _FAST_LINES_MIN * 2:
        yield from _exact_parts(catalog, lines)
        return
    step = max(-(-count // _PARTS), _FAST_LINES_MIN)
    for start in range(0, count, step):
        for read in _group_parts(catalog, entity, group, lines.part(start, min(step, count - start))):
            yield read
            if isinstance(read, Refusal):
                return


def _exact_parts(catalog: Catalog, lines: Lines) -> Iterable[_Part | Refusal]:
    """What the exact reader makes of lines; their bytes are counted to the types by their share of the records."""
    read = read_exact(catalog, lines)
    size = lines.data().size
    records = sum(len(rows) for _, rows in read.tables.values())
    for entity, rows in read.tables.values():
        yield _Part(entity, rows, size * len(rows) // records)
    if read.refusal is not None:
        yield read.refusal


def _earlier(one: Refusal | None, other: Refusal) -> Refusal:
    return other if one is None or other.line_number < one.line_number else one


def _lines_before(rows: pa.Table, line_number: int) -> pa.Table:
    return rows.filter(pa.array(rows.column(LINE_NUMBER).to_numpy() < line_number))


def _utf8_part(chunk: Chunk) -> tuple[bytes, Refusal | None]:
    """The chunk's lines that are UTF-8, up to the first that is not."""
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, len(chunk.data)], dtype=np.int32)), pa.py_buffer(chunk.data)]
    )
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        pass
    else:
        return chunk.data, None
    try:
        chunk.data.decode("utf-8")
    except UnicodeDecodeError as error:
        start = chunk.data.rfind(b"\n", 0, error.start) + 1
        number = chunk.first_line + chunk.data.count(b"\n", 0, error.start)
        what = f"line {number}: byte {error.start - start + 1} is not UTF-8"
        return chunk.data[:start], Refusal(number, InvalidData(what, data_code="W010", line_number=number))
    return chunk.data, None
