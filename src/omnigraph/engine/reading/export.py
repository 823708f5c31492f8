"""Export: all entities of one state as load records (languages.md 15.3), nodes before edges, types by name, rows by id."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike, fspath
from typing import IO, Any

import pyarrow as pa

from omnigraph.engine.arguments import checked_names, checked_output
from omnigraph.engine.progress import LoadProgress, ReportProgress
from omnigraph.engine.reading.entity import unknown_type
from omnigraph.engine.reading.selectors import Pinned
from omnigraph.errors import InvalidRequest
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.types import Scalar
from omnigraph.query.encode import export_records
from omnigraph.tables.columns import ID, table_schema


@dataclass(frozen=True, slots=True)
class ExportInfo:
    """What was written."""

    commit_id: str
    entities: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        return {"graph_commit_id": self.commit_id, "entities": self.entities, "bytes": self.bytes}


def export_pieces(
    state: Pinned, *, types: Collection[str] | None = None, progress: ReportProgress | None = None
) -> Iterator[bytes]:
    """The records in pieces of NDJSON; a piece may end inside a line. Raises InvalidRequest at once for a type that the schema lacks."""
    return _pieces(state, _chosen(state, types), progress)


def records(pieces: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The records of NDJSON in pieces, one by one."""
    begun: list[bytes] = []
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield json.loads(b"".join((*begun, line)))
            begun.clear()
        begun.append(rest)


def export_to(
    state: Pinned,
    out: str | PathLike[str] | IO[bytes],
    *,
    types: Collection[str] | None = None,
    progress: ReportProgress | None = None,
) -> ExportInfo:
    """To a path (a temporary file, renamed when it is whole) or a binary file.

    Raises InvalidRequest for a type that the schema lacks or a path that can't be written, StorageFailure.
    """
    checked_output(out)
    chosen = _chosen(state, types)
    pieces = _pieces(state, chosen, progress)
    entities = sum(state.snapshot.row_count(entity.id) for entity in chosen)
    if isinstance(out, (str, PathLike)):
        return ExportInfo(state.commit_id, entities, _written_whole(fspath(out), pieces))
    return ExportInfo(state.commit_id, entities, sum(out.write(piece) or len(piece) for piece in pieces))


def _chosen(state: Pinned, types: Collection[str] | None) -> list[EntityType]:
    catalog = state.snapshot.catalog
    known: list[EntityType] = [
        *(catalog.nodes[name] for name in sorted(catalog.nodes)),
        *(catalog.edges[name] for name in sorted(catalog.edges)),
    ]
    if types is None:
        return known
    checked_names(types, "types")
    missing = sorted(set(types) - {entity.name for entity in known})
    if missing:
        raise unknown_type(catalog, missing[0])
    return [entity for entity in known if entity.name in types]


def _pieces(state: Pinned, chosen: Sequence[EntityType], progress: ReportProgress | None) -> Iterator[bytes]:
    total = sum(e.bytes for e in state.snapshot.manifest.types.values())
    done = records = 0
    for entity in chosen:
        table = state.snapshot.table(entity.id)
        if table is None:
            continue
        with state.snapshot.naming():
            rows = _without_blobs(entity, table.scan(table_schema(entity)).read_all()).sort_by(ID)
        records += rows.num_rows
        yield from export_records(entity, rows)
        done += table.bytes
        if progress is not None:
            progress(LoadProgress(done, total, records))


def _without_blobs(entity: EntityType, rows: pa.Table) -> pa.Table:
    """Blob columns as texts, all null: a table of this version holds no Blob values."""
    for each in entity.properties:
        if each.type.scalar is Scalar.BLOB:
            place = rows.schema.get_field_index(each.column)
            rows = rows.set_column(place, each.column, pa.nulls(rows.num_rows, pa.string()))
    return rows


def _written_whole(path: str, pieces: Iterator[bytes]) -> int:
    folder, name = os.path.split(os.path.abspath(path))
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    except UnicodeEncodeError:
        raise InvalidRequest("The output can't be written: its path is no text.") from None
    except OSError as error:
        raise InvalidRequest(f"The output can't be written: {error.strerror}.") from None
    size = 0
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:  # raised again: whatever it was, no half-written file stays behind
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise InvalidRequest(f"The output can't be written: {error.strerror}.") from None
        raise
    return size
