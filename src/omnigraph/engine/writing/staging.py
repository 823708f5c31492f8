"""A plan's rows and indexes on their way into tables: staged once, committed onto the base, several types side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph.engine.core import GraphCore
from omnigraph.engine.evidence import staging_begins
from omnigraph.engine.logs import log_event
from omnigraph.engine.plan import TypeChange, WritePlan
from omnigraph.manifest.chain import HeadState, KnownHead
from omnigraph.manifest.model import Manifest, Touch, TypeEntry, content_label
from omnigraph.query.residency import RowDelta
from omnigraph.side_by_side import side_by_side
from omnigraph.tables.columns import DST, ID, SRC, table_schema
from omnigraph.tables.index_build import StagedIndexes, commit_indexes
from omnigraph.tables.stage import Committed, RowChange, Staged, commit, stage
from omnigraph.tables.sync import sync

_CONCURRENCY = 8
_THREADS = "omnigraph-stage"
_NO_ROWS = pa.table({name: pa.array([], pa.utf8()) for name in (ID, SRC, DST)})


@dataclass(frozen=True, slots=True)
class StagedType:
    change: TypeChange
    staged: Staged

    @property
    def type_id(self) -> str:
        return self.change.entity.id


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """What a plan wrote; nothing refers to it yet."""

    plan: WritePlan
    types: tuple[StagedType, ...]

    @property
    def touched(self) -> dict[str, Touch]:
        return {t.type_id: "append" if t.change.is_append else "change" for t in self.types}


def stage_plan(
    core: GraphCore, base: HeadState, plan: WritePlan, *, entries: Mapping[str, TypeEntry] | None = None
) -> StagedPlan:
    """Write the data and deletion files of all types at once. Raises StorageFailure (phase stage): nothing is visible.

    `entries` are the types of the base where the base is no head (a load that forks).
    """
    staging_begins()
    types = _entries(base, entries) if plan.types is None else plan.types
    life = base.life if isinstance(base, KnownHead) else 0
    line = f"{base.branch}#{life}"

    def one(change: TypeChange) -> StagedType:
        entity = change.entity
        entry = types.get(entity.id)
        staged = stage(
            core.tables,
            kind=entity.kind,
            type_id=entity.id,
            schema=table_schema(entity),
            base=None if entry is None else entry.pin,
            change=RowChange(rows=change.rows, remove=change.remove, overwrite=change.overwrite),
            line=line,
        )
        return StagedType(change, staged)

    return StagedPlan(plan, tuple(side_by_side(one, plan.changes, at_most=_CONCURRENCY, name=_THREADS)))


@dataclass(frozen=True, slots=True)
class CommittedType:
    """One table commit, and the changes that share it: several appends, or one change of any kind; none for indexes."""

    type_id: str
    shares: tuple[StagedType, ...]
    committed: Committed

    def entry(self, old: TypeEntry | None) -> TypeEntry:
        """What the manifest says of the type from now on."""
        done = self.committed
        if not self.shares:
            assert old is not None
            return replace(old, pin=done.pin)
        entity = self.shares[0].change.entity
        return TypeEntry(
            kind=entity.kind,
            name=entity.name,
            pin=done.pin,
            content=content_label(done.pin),
            rows=done.rows,
            bytes=done.bytes,
            indexes={} if old is None else old.indexes,
        )

    @property
    def delta(self) -> RowDelta | None:
        """The rows that went and came; None where they are not known one by one."""
        if not self.shares:
            return RowDelta(np.empty(0, np.uint64), _NO_ROWS, np.empty(0, np.uint64))
        first = self.shares[0].change
        if first.overwrite:
            return None
        rows = [each.change.rows for each in self.shares if each.change.rows is not None]
        return RowDelta(
            removed=first.remove,
            rows=pa.concat_tables(rows, promote_options="default")
            if rows
            else table_schema(first.entity).empty_table(),
            addresses=self.committed.appended,
        )


def commit_together(
    core: GraphCore,
    base: HeadState,
    plans: Sequence[StagedPlan],
    *,
    label: str,
    entries: Mapping[str, TypeEntry] | None = None,
) -> tuple[dict[str, TypeEntry], tuple[CommittedType, ...]]:
    """One detached commit for each type onto the base's pins, made safe against a power cut on a local root.

    Several plans share a commit only where all of them append (`engine/writing/sharing` sees to it). Returns the types of the
    manifest to be and the commits. Raises PinMoved if a pin is not the one that was staged on, StorageFailure (phase
    stage).
    """
    replaced = plans[0].plan.types
    types = dict(_entries(base, entries) if replaced is None else replaced)
    by_type: dict[str, list[StagedType]] = {}
    for plan in plans:
        for each in plan.types:
            by_type.setdefault(each.type_id, []).append(each)

    def one(work: tuple[str, list[StagedType] | StagedIndexes]) -> CommittedType:
        type_id, staged = work
        entry = types.get(type_id)
        onto = None if entry is None else entry.pin
        if isinstance(staged, StagedIndexes):
            return CommittedType(type_id, (), commit_indexes(core.tables, staged, onto, label=label))
        first, *more = [each.staged for each in staged]
        return CommittedType(type_id, tuple(staged), commit(core.tables, first, onto, label=label, more=more))

    indexes = [each for plan in plans for each in plan.plan.indexes.items()]
    committed = tuple(side_by_side(one, [*by_type.items(), *indexes], at_most=_CONCURRENCY, name=_THREADS))
    sync(core.tables, tuple(each.committed for each in committed))
    for each in committed:
        types[each.type_id] = each.entry(types.get(each.type_id))
    return types, committed


def carry_on(core: GraphCore, old: Manifest, new: Manifest, committed: Sequence[CommittedType]) -> None:
    """Hand a publication's row changes to what is in memory. Never raises: the commit stands, memory holds a copy."""
    try:
        deltas = {each.type_id: delta for each in committed if (delta := each.delta) is not None}
        core.residency.adopt(core.tables, old, new, deltas)
    except Exception as error:
        # Whatever went wrong with the copy, it is read again when it is next asked for; the write succeeded.
        log_event(
            "omnigraph.write",
            "warning",
            "in-memory state was not carried on",
            graph=core.name,
            branch=new.branch,
            error_type=type(error).__name__,
        )


def _entries(base: HeadState, entries: Mapping[str, TypeEntry] | None) -> Mapping[str, TypeEntry]:
    if entries is not None:
        return entries
    return base.manifest.types if isinstance(base, KnownHead) else {}
