"""A load as an operation of the write path: the records read once, then judged against each base they are tried on.

Modes (languages.md 15.2): `append` refuses ids that exist, `merge` replaces their whole rows, `overwrite` replaces every
type that occurs and leaves the others.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from omnigraph.ambient import random_bytes
from omnigraph.engine.constraints import existing_id, last_of_each_id, repeated_id
from omnigraph.engine.core import GraphCore
from omnigraph.engine.identity import LINE_NUMBER
from omnigraph.engine.load.batch import LoadBatch, TypeRows
from omnigraph.engine.load.frames import read_frame
from omnigraph.engine.load.input import Frame, LoadData
from omnigraph.engine.load.records import read_records
from omnigraph.engine.load.source import can_be_read_again
from omnigraph.engine.lookups import NO_ADDRESSES, find_ids, one_array
from omnigraph.engine.plan import Footprint, TypeChange, WritePlan
from omnigraph.engine.progress import Progress, reporting
from omnigraph.engine.validate import FinalState, FinalType
from omnigraph.errors import ReadSetConflict
from omnigraph.lang.schema.catalog import EdgeType, EntityType
from omnigraph.manifest.model import Counts
from omnigraph.query.snapshot import Snapshot
from omnigraph.tables.columns import ID

Mode = Literal["append", "merge", "overwrite"]

_REPEATS = 32


class LoadOperation:
    """One batch of records. The source is read with the first plan, under the schema of that base; where a later base has
    another schema it is read again, if it can be.
    """

    def __init__(
        self,
        core: GraphCore,
        source: LoadData,
        mode: Mode,
        *,
        progress: Progress = False,
        accept_gzip: bool = True,
    ) -> None:
        self._core = core
        self._source = source
        self.mode: Mode = mode
        self._progress: Progress = progress
        self._accept_gzip = accept_gzip
        self._now_ms = core.clock.now_us() // 1_000
        self._randomness = random_bytes(10)
        self._read: tuple[str, LoadBatch] | None = None
        self.loaded: tuple[tuple[EntityType, int], ...] = ()

    @property
    def repeats(self) -> int:
        return 0 if self.mode == "overwrite" else _REPEATS

    @property
    def shares(self) -> bool:
        return self.mode != "overwrite"

    def batch(self, snapshot: Snapshot) -> LoadBatch:
        """The records, with ids. Raises InvalidData, ConstraintViolation, LimitExceeded with line numbers.

        Raises ReadSetConflict if the schema changed since they were read and their source can be read once only.
        """
        digest = snapshot.manifest.schema
        if self._read is None or (self._read[0] != digest and self._can_be_read_again):
            batch = self._records(snapshot).with_ids(now_ms=self._now_ms, randomness=self._randomness)
            self._read = digest, batch
            self.loaded = tuple((each.entity, each.rows.num_rows) for each in batch.types)
        schema, batch = self._read
        if schema != digest:
            raise ReadSetConflict(
                "The schema changed while the records were being read.",
                member="schema",
                expected=schema,
                actual=digest,
            )
        return batch

    @property
    def _can_be_read_again(self) -> bool:
        return isinstance(self._source, Frame) or can_be_read_again(self._source)

    def _records(self, snapshot: Snapshot) -> LoadBatch:
        limits = self._core.limits.without_ceilings() if self.mode == "overwrite" else self._core.limits
        if isinstance(self._source, Frame):
            return read_frame(self._source, snapshot.catalog, limits)
        with reporting(self._progress, "load") as report:
            return read_records(
                self._source, snapshot.catalog, limits=limits, progress=report, accept_gzip=self._accept_gzip
            )

    def plan(self, snapshot: Snapshot) -> WritePlan | None:
        """Raises KeyConflict, ConstraintViolation, StorageFailure, and what `batch` raises."""
        batch = self.batch(snapshot)
        if batch.records == 0:
            return None
        prepared = [self._prepared(snapshot, each) for each in batch.types]
        FinalState(snapshot, [final for _, final in prepared]).check()
        changes = tuple(change for change, _ in prepared)
        return WritePlan("load", changes, self._footprint(snapshot, changes))

    def _prepared(self, snapshot: Snapshot, each: TypeRows) -> tuple[TypeChange, FinalType]:
        """The change of one type, and what the type will be then."""
        entity, rows = each.entity, each.rows
        if self.mode == "merge":
            rows = last_of_each_id(rows)
        else:
            repeated = repeated_id(entity, rows)
            if repeated is not None:
                raise repeated
        found = find_ids(snapshot, entity, one_array(rows.column(ID)))
        held = int(found.present.sum())
        if self.mode == "append" and held:
            conflict = existing_id(entity, rows, pa.array(found.present))
            if conflict is not None:
                raise conflict
        overwrite = self.mode == "overwrite"
        deleted = snapshot.row_count(entity.id) - held if overwrite else 0
        counts = Counts(inserted=len(rows) - held, updated=held, deleted=deleted)
        remove = NO_ADDRESSES if overwrite else found.addresses[found.present]
        lines = None if overwrite else rows.column(LINE_NUMBER).to_numpy()[found.present]
        change = TypeChange(entity, rows.drop_columns([LINE_NUMBER]), remove, counts, overwrite=overwrite)
        return change, FinalType(entity, rows, remove, overwrite, values_checked=True, removed_by=lines)

    def _footprint(self, snapshot: Snapshot, changes: tuple[TypeChange, ...]) -> Footprint:
        footprint = Footprint()
        catalog = snapshot.catalog
        for change in changes:
            entity = change.entity
            footprint = footprint.with_rows(change, catalog)
            if change.overwrite and not isinstance(entity, EdgeType):
                for edge in catalog.incident_edges(entity.name):
                    footprint = footprint.with_mode(edge.id, "read")
        return footprint
