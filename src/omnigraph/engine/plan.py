"""What a write wants, as values: the rows of each type that change, and what it looked at to decide so.

An operation (mutate, load, merge, …) plans against one pinned base and returns a `WritePlan`; `engine/writing/write` stages and
publishes it. A plan holds no handle on storage and can be thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.manifest.model import Commit, CommitKind, Counts, Origin, Touch, TypeEntry
from omnigraph.tables.index_build import StagedIndexes

Mode = Literal["exists", "read", "append", "change"]
_STRENGTH: dict[Mode, int] = {"exists": 0, "append": 1, "read": 2, "change": 3}


@dataclass(frozen=True, slots=True)
class Footprint:
    """How a write used each type, by type id (history.md 9.1).

    `exists`: ids were looked up and found, nothing else read; `append`: only new ids, all known; `read`: scanned, matched
    against, or looked up in vain; `change`: everything else. `whole`: the state as it was, types without a row included,
    so that the write can follow no other version.
    """

    modes: Mapping[str, Mode] = field(default_factory=dict[str, Mode])
    whole: bool = False

    def with_mode(self, type_id: str, mode: Mode) -> Footprint:
        """The footprint after one more use; the stronger mode of a type stays, `append` with `read` is `change`."""
        old = self.modes.get(type_id)
        if old is not None and old != mode and {old, mode} == {"append", "read"}:
            mode = "change"
        elif old is not None and _STRENGTH[old] >= _STRENGTH[mode]:
            return self
        return replace(self, modes={**self.modes, type_id: mode})

    def with_rows(self, change: TypeChange, catalog: Catalog) -> Footprint:
        """The footprint after rows of a type come or go: `append` where that is all that has to hold elsewhere too."""
        entity = change.entity
        bounded = isinstance(entity, EdgeType) and entity.cardinality != (0, None)
        groups = any(set(group) != set(entity.key) for group in entity.uniques)
        mode: Mode = "append" if change.is_append and not bounded and not groups else "change"
        footprint = self.with_mode(entity.id, mode)
        if isinstance(entity, EdgeType) and change.rows is not None:
            for end in (entity.source, entity.target):
                footprint = footprint.with_mode(catalog.nodes[end].id, "exists")
        return footprint


@dataclass(frozen=True, slots=True)
class TypeChange:
    """The rows of one type that go and come.

    `rows`: new rows in the columns of the type's table schema. `remove`: uint64 row addresses in the base pin.
    `overwrite`: all former rows go (then `remove` is empty). `counts` against the base. `made_ids`: every id was made by
    this write, so that nobody else can have it.
    """

    entity: EntityType
    rows: pa.Table | None
    remove: np.ndarray
    counts: Counts
    overwrite: bool = False
    made_ids: bool = False

    @property
    def is_append(self) -> bool:
        return not self.overwrite and len(self.remove) == 0


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One commit to be.

    `changes` are staged and committed; so are `indexes`, by type id, built before, which change no row; `types` replaces the
    whole map of types first (schema changes, merges). `counts`, `names` and `touched` speak of types without a change of
    their own here. `merged` is a merge's source head and `absorbed` the records of its log that the target lacks.
    `staged_at`: when the oldest of what it rests on was captured or written, if that was before its base was; boot seconds.
    """

    kind: CommitKind
    changes: tuple[TypeChange, ...] = ()
    footprint: Footprint = field(default_factory=Footprint)
    schema: str | None = None
    types: Mapping[str, TypeEntry] | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict[str, Counts])
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    touched: Mapping[str, Touch] = field(default_factory=dict[str, Touch])
    origin: Origin | None = None
    merged: Commit | None = None
    absorbed: tuple[Commit, ...] = ()
    affected: tuple[int, int] | None = None
    ids: tuple[str, ...] = ()
    indexes: Mapping[str, StagedIndexes] = field(default_factory=dict[str, StagedIndexes])
    staged_at: float | None = None
