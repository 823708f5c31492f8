"""A plan's rows on their way into tables: staged once, committed onto the base, several types side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from omnigraph.engine.core import GraphCore
from omnigraph.engine.logs import log_event
from omnigraph.engine.plan import TypeChange, WritePlan
from omnigraph.manifest.chain import HeadState, KnownHead
from omnigraph.manifest.model import Manifest, Touch, TypeEntry, content_label
from omnigraph.query.residency import RowDelta
from omnigraph.tables.columns import table_schema
from omnigraph.tables.stage import Committed, RowChange, Staged, commit, stage
from omnigraph.tables.sync import sync

_T = TypeVar("_T")
_R = TypeVar("_R")

_CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class StagedType:
    change: TypeChange
    staged: Staged


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """What a plan wrote; nothing refers to it yet."""

    plan: WritePlan
    types: tuple[StagedType, ...]

    @property
    def touched(self) -> dict[str, Touch]:
        return {t.change.entity.id: "append" if t.change.is_append else "change" for t in self.types}


def stage_plan(
    core: GraphCore, base: HeadState, plan: WritePlan, *, entries: Mapping[str, TypeEntry] | None = None
) -> StagedPlan:
    """Write the data and deletion files of all types at once. Raises StorageFailure (phase stage): nothing is visible.

    `entries` are the types of the base where the base is no head (a load that forks).
    """
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

    return StagedPlan(plan, tuple(_side_by_side(one, plan.changes)))


def commit_plan(
    core: GraphCore, base: HeadState, staged: StagedPlan, *, label: str, entries: Mapping[str, TypeEntry] | None = None
) -> tuple[dict[str, TypeEntry], tuple[Committed, ...]]:
    """One detached commit for each type onto the base's pins, made safe against a power cut on a local root.

    Returns the types of the manifest to be and the commits. Raises PinMoved if a pin is not the one that was staged on,
    StorageFailure (phase stage).
    """
    plan = staged.plan
    types = dict(_entries(base, entries) if plan.types is None else plan.types)

    def one(each: StagedType) -> Committed:
        entry = types.get(each.change.entity.id)
        return commit(core.tables, each.staged, None if entry is None else entry.pin, label=label)

    committed = tuple(_side_by_side(one, staged.types))
    sync(core.tables, committed)
    for each, done in zip(staged.types, committed, strict=True):
        entity = each.change.entity
        old = types.get(entity.id)
        types[entity.id] = TypeEntry(
            kind=entity.kind,
            name=entity.name,
            pin=done.pin,
            content=content_label(done.pin),
            rows=done.rows,
            bytes=done.bytes,
            indexes={} if old is None else old.indexes,
        )
    return types, committed


def carry_on(
    core: GraphCore, old: Manifest, new: Manifest, staged: StagedPlan, committed: tuple[Committed, ...]
) -> None:
    """Hand a publication's row changes to what is in memory. Never raises: the commit stands, memory holds a copy."""
    try:
        core.residency.adopt(core.tables, old, new, _row_deltas(staged, committed))
    except Exception as error:
        # Whatever went wrong with the copy, it is read again when it is next asked for; the write succeeded.
        log_event(
            "omnigraph.write",
            "warning",
            "in-memory state was not carried on",
            branch=new.branch,
            error_type=type(error).__name__,
        )


def _row_deltas(staged: StagedPlan, committed: tuple[Committed, ...]) -> dict[str, RowDelta]:
    """Changes whose rows are known one by one."""
    return {
        each.change.entity.id: RowDelta(
            removed=each.change.remove,
            rows=table_schema(each.change.entity).empty_table() if each.change.rows is None else each.change.rows,
            addresses=done.appended,
        )
        for each, done in zip(staged.types, committed, strict=True)
        if not each.change.overwrite
    }


def _entries(base: HeadState, entries: Mapping[str, TypeEntry] | None) -> Mapping[str, TypeEntry]:
    if entries is not None:
        return entries
    return base.manifest.types if isinstance(base, KnownHead) else {}


def _side_by_side(work: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
    """Results in order. All of them have ended before an error of one is raised."""
    todo = list(items)
    if len(todo) <= 1:
        return [work(item) for item in todo]
    with ThreadPoolExecutor(min(len(todo), _CONCURRENCY), thread_name_prefix="omnigraph-stage") as pool:
        return list(pool.map(work, todo))
