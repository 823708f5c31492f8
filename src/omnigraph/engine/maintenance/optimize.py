"""Optimize: the search indexes that a schema declares, built over what they do not cover, published as one commit.

    head -> what each type declares -> build, several types side by side -> one write that publishes all of it

Contents do not change: every touched type is `layout`. Nothing holds up other writers while indexes are being built, so
the pins that they were built on are compared again when the turn comes to publish; a type that moved is left out. What
stops before the publication leaves inert files and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.ambient import Clock
from omnigraph.engine.arguments import checked_names
from omnigraph.engine.core import GraphCore
from omnigraph.engine.evidence import staging_begins
from omnigraph.engine.maintenance.receipts import OptimizedIndex, OptimizedType, OptimizeResult, PendingIndex
from omnigraph.engine.plan import Footprint, WritePlan
from omnigraph.engine.reading.entity import unknown_type
from omnigraph.engine.receipts import Commit
from omnigraph.engine.writing.entry import WriteRequest
from omnigraph.engine.writing.write import write
from omnigraph.errors import OmnigraphError, StorageFailure
from omnigraph.lang.schema.catalog import Catalog, NodeType, Property
from omnigraph.lang.types import Scalar
from omnigraph.manifest.model import TablePin
from omnigraph.manifest.publish import STAGED_SECONDS_MAX
from omnigraph.query.snapshot import Snapshot
from omnigraph.side_by_side import side_by_side
from omnigraph.tables.coverage import Kind
from omnigraph.tables.index_build import StagedIndexes, build_indexes
from omnigraph.tables.index_plans import VECTOR_BYTES_LEAST, Wanted

_TYPES_AT_ONCE = 8

Report = Callable[[int, int], None]
"""Called with the types that are done and how many there are."""


@dataclass(frozen=True, slots=True)
class _Built:
    """What was built of a type, or why nothing could be."""

    entity: NodeType
    staged: StagedIndexes | None
    error: OmnigraphError | None = None

    @property
    def found(self) -> StagedIndexes | None:
        """What there is to publish."""
        return self.staged if self.staged is not None and self.staged.built else None


def optimize(
    core: GraphCore,
    branch: str,
    *,
    types: Collection[str] | None = None,
    full: bool = False,
    actor: str | None = None,
    report: Report | None = None,
    vector_bytes_least: int = VECTOR_BYTES_LEAST,
) -> OptimizeResult:
    """Build and publish what the declared indexes of a branch lack. `full`: one segment an index, over everything.

    Raises BranchNotFound, InvalidRequest for a type that the schema lacks, OutcomeUnknown, StorageFailure of the
    publication; what fails in one type's building is told in its part of the result.
    """
    began = core.clock.boot_seconds()
    snapshot = core.snapshot(core.standing(branch).manifest)
    chosen = _chosen(snapshot.catalog, types)
    staging_begins()
    done = _Counted(len(chosen), report)

    def one(entity: NodeType) -> _Built:
        built = _built(core, snapshot, entity, full=full, vector_bytes_least=vector_bytes_least)
        done.one_more()
        return built

    built = side_by_side(one, chosen, at_most=_TYPES_AT_ONCE, name="omnigraph-optimize")
    found = {each.entity.id: staged for each in built if (staged := each.found) is not None}
    operation = OptimizeOperation(found, snapshot.manifest.life, began, core.clock)
    commit = None
    if operation.built:
        written = write(core, WriteRequest(branch, operation, actor))
        commit = None if written.commit is None else Commit.of(written.commit)
    return OptimizeResult(branch, tuple(_told(each, operation.left_out) for each in built), actor, commit)


class OptimizeOperation:
    """Publishes what was built, by type id, as far as the tables are still at the pins that it was built on, in the same life
    of the branch, and no longer after it `began` (boot seconds) than anything staged may be. `left_out` are the types that
    are not.
    """

    def __init__(self, built: Mapping[str, StagedIndexes], life: int, began: float, clock: Clock) -> None:
        self.built = dict(built)
        self._life = life
        self._began = began
        self._clock = clock
        self.left_out: set[str] = set()

    @property
    def repeats(self) -> int:
        """Each time at least one type is left out."""
        return len(self.built) + 1

    @property
    def shares(self) -> bool:
        return False

    def plan(self, snapshot: Snapshot) -> WritePlan | None:
        """None if every type has moved."""
        # what nothing refers to may be swept once it is a day old (storage.md 4)
        fresh = self._clock.boot_seconds() - self._began <= STAGED_SECONDS_MAX
        holds = snapshot.manifest.life == self._life and fresh
        kept = {t: staged for t, staged in self.built.items() if holds and _pin(snapshot, t) == staged.base}
        self.left_out = self.built.keys() - kept.keys()
        if not kept:
            return None
        return WritePlan(
            kind="optimize",
            footprint=Footprint(dict.fromkeys(kept, "change")),
            indexes=kept,
            touched=dict.fromkeys(kept, "layout"),
            staged_at=self._began,
        )


def _pin(snapshot: Snapshot, type_id: str) -> TablePin | None:
    return None if snapshot.catalog.by_id(type_id) is None else snapshot.pin(type_id)


def _built(core: GraphCore, snapshot: Snapshot, entity: NodeType, *, full: bool, vector_bytes_least: int) -> _Built:
    pin, wanted = snapshot.pin(entity.id), _wanted(entity)
    if pin is None or not wanted:
        return _Built(entity, None)
    try:
        with snapshot.naming():
            staged = build_indexes(core.tables, pin, wanted, full=full, vector_bytes_least=vector_bytes_least)
    except OmnigraphError as error:
        if isinstance(error, StorageFailure):
            error.of_write(staged=True)
        return _Built(entity, None, error)
    return _Built(entity, staged)


def _wanted(entity: NodeType) -> list[Wanted]:
    """The indexes for search that a type declares: of texts and vectors with an @index or @key of their own."""
    return [Wanted(each.column, kind, each.type.dimension or 0) for each in entity.properties if (kind := _kind(each))]


def _kind(declared: Property) -> Kind | None:
    if not declared.indexed:
        return None
    if declared.type.kind == "vector":
        return "vector"
    return "text" if declared.type.kind == "scalar" and declared.type.scalar is Scalar.STRING else None


def _chosen(catalog: Catalog, types: Collection[str] | None) -> list[NodeType]:
    """The node types to look at, by name: only their properties are searched. Raises InvalidRequest."""
    known = {**catalog.edges, **catalog.nodes}
    if types is not None:
        checked_names(types, "types")
        missing = sorted(set(types) - known.keys())
        if missing:
            raise unknown_type(catalog, missing[0])
    return [
        entity
        for name, entity in sorted(catalog.nodes.items())
        if (_wanted(entity) if types is None else name in types)
    ]


def _told(built: _Built, left_out: Collection[str]) -> OptimizedType:
    entity, staged = built.entity, built.staged
    if staged is None:
        pending = () if built.error is not None else tuple(_unbuildable(entity))
        return OptimizedType(entity.name, pending=pending, error=built.error)
    names = {each.column: each.name for each in entity.properties}
    pending = tuple(PendingIndex(names[each.column], each.reason) for each in staged.waiting)
    if entity.id in left_out:
        return OptimizedType(entity.name, pending=pending, skipped="moved")
    indexes = tuple(
        OptimizedIndex(
            each.work.wanted.name,
            names[each.work.wanted.column],
            each.work.segments_before,
            each.work.segments_after,
            each.work.rows,
        )
        for each in staged.built
    )
    return OptimizedType(entity.name, indexes, pending)


def _unbuildable(entity: NodeType) -> Sequence[PendingIndex]:
    """Of a type that never held a row."""
    return [PendingIndex(each.name, "unbuildable") for each in entity.properties if _kind(each)]


class _Counted:
    """Tells how many of the types are done; called from several threads."""

    def __init__(self, total: int, report: Report | None) -> None:
        self._total = total
        self._report = report
        self._done = 0

    def one_more(self) -> None:
        self._done += 1  # two threads may count once: it is a number to look at
        if self._report is not None:
            self._report(self._done, self._total)
