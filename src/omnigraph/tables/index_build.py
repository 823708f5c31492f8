"""Search indexes of a table built, then committed: text indexes (INVERTED) and vector indexes (IVF).

    staged = build_indexes(tables, pin, [Wanted("about", "text")], full=False)
    committed = commit_indexes(tables, staged, onto=pin, label="main@43")

Two steps, as for rows: what was built belongs to no version yet, and the commit compares the pin that it was built on with
the pin it is to follow, since an index says where rows lie. The rows of the new version are those of the old one.

What the library does here, and what follows (pinned in tests/tables/test_index_library.py): a text segment can't be read
until it was merged, even alone; segments on a committed version can be merged again, if each carries the details that a
new one has, and a version number that is the handle's; vector segments can't be merged, but answer together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import lance
import numpy as np
from lance.dataset import Index

from omnigraph.errors import StoragePhase
from omnigraph.manifest.model import TablePin
from omnigraph.tables.analysis import TERMS
from omnigraph.tables.coverage import ColumnIndex, Segment
from omnigraph.tables.detached import detached
from omnigraph.tables.failures import storage_failures
from omnigraph.tables.filters import quoted_name
from omnigraph.tables.index_plans import VECTOR_BYTES_LEAST, Waiting, Wanted, Work, planned, vector_sort
from omnigraph.tables.stage import Committed, PinMoved
from omnigraph.tables.store import TableStore
from omnigraph.tables.version import TableVersion
from omnigraph.tables.whole import check_sizes


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """What was built of one index: `made` takes the place of `replaced`; `files` are relative to the table's folder."""

    work: Work
    made: Index
    replaced: tuple[Index, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StagedIndexes:
    """The indexes of one table that stand in storage and belong to no version, and those that were not built."""

    base: TablePin
    built: tuple[BuiltIndex, ...]
    waiting: tuple[Waiting, ...]


def build_indexes(
    tables: TableStore,
    pin: TablePin,
    wanted: Iterable[Wanted],
    *,
    full: bool = False,
    vector_bytes_least: int = VECTOR_BYTES_LEAST,
) -> StagedIndexes:
    """Builds what `index_plans` finds to be built. Nothing is visible. Raises StorageFailure (phase read for what has to be
    known of the version, stage for the rest).
    """
    version, wanted = tables.open(pin), list(wanted)
    live = {each.id: each.num_rows for each in version.fragments()}
    with storage_failures(StoragePhase.READ, version):
        known = version.search_indexes.described
        fresh = full and _is_fresh(version, [known[each.name] for each in wanted if each.name in known])
    built: list[BuiltIndex] = []
    waiting: list[Waiting] = []
    for each in wanted:
        index = known.get(each.name)
        if each.column not in version.column_names:  # a property that no row has a value of yet
            waiting.append(Waiting(each.column, "unbuildable"))
            continue
        work = planned(each, index, live, full=full, fresh=fresh, vector_bytes_least=vector_bytes_least)
        if isinstance(work, Work):
            with storage_failures(StoragePhase.STAGE, version):
                made = _built(tables, version, work, index)
            if isinstance(made, BuiltIndex):
                built.append(made)
            else:
                waiting.append(made)
        elif work is not None:
            waiting.append(work)
    return StagedIndexes(pin, tuple(built), tuple(waiting))


def commit_indexes(tables: TableStore, staged: StagedIndexes, onto: TablePin | None, *, label: str) -> Committed:
    """One detached commit of all that was built, following `onto`. Raises PinMoved if that is another pin than the one they
    were built on, StorageFailure (phase stage).
    """
    if onto != staged.base:
        raise PinMoved
    base = tables.open(staged.base)
    operation = lance.LanceOperation.CreateIndex(
        [each.made for each in staged.built], [gone for each in staged.built for gone in each.replaced]
    )
    with storage_failures(StoragePhase.STAGE, base):
        version, files = detached(tables, base, operation, label=label, rows=base.rows, size=base.bytes)
    built = [name for each in staged.built for name in each.files]
    written = tuple(f"{staged.base.path}/{each}" for each in (*built, *files))
    return Committed(version.pin, version.rows, version.bytes, np.empty(0, np.uint64), (), written)


def _is_fresh(version: TableVersion, indexes: Sequence[ColumnIndex]) -> bool:
    """Whether the version is the very one that all segments of these made of the version they were built on."""
    transaction = version.dataset.read_transaction(version.pin.version)
    if transaction is None or not isinstance(transaction.operation, lance.LanceOperation.CreateIndex):
        return False
    return all(each.built_on == transaction.read_version for index in indexes for each in index.segments)


def _built(tables: TableStore, version: TableVersion, work: Work, index: ColumnIndex | None) -> BuiltIndex | Waiting:
    made = _text(version, work, index) if work.wanted.kind == "text" else _vectors(version, work)
    if made is None:
        return Waiting(work.wanted.column, "unbuildable")
    sizes = {each.path: each.size_bytes for each in made.files or ()}
    if tables.location.local_path is not None:
        check_sizes(os.path.join(tables.location.local_path, version.pin.path, "_indices", str(made.uuid)), sizes)
    files = tuple(f"_indices/{made.uuid}/{name}" for name in sizes)
    replaced = () if index is None else _as_library(version, index, work.replaces)
    return BuiltIndex(work, made, replaced, files)


def _text(version: TableVersion, work: Work, index: ColumnIndex | None) -> Index:
    """A text segment, and with it those that it is joined with."""
    dataset = version.dataset
    made = dataset.create_index_uncommitted(  # pyright: ignore[reportUnknownMemberType]
        work.wanted.column,
        "INVERTED",
        name=work.wanted.name,
        replace=work.exists,
        fragment_ids=list(work.fragments),
        with_position=False,
        **TERMS,
    )
    joined = () if index is None else _as_library(version, index, work.joins)
    parts = [replace(each, index_details=made.index_details) for each in joined]
    return dataset.merge_existing_index_segments([*parts, replace(made, dataset_version=dataset.version)])


def _vectors(version: TableVersion, work: Work) -> Index | None:
    """A vector segment; None if no row of its fragments has a vector."""
    dataset, column = version.dataset, work.wanted.column
    fragments = [each for each in dataset.get_fragments() if each.fragment_id in work.fragments]  # pyright: ignore[reportUnknownMemberType]
    filled = dataset.scanner(  # pyright: ignore[reportUnknownMemberType]
        columns=[], filter=f"{quoted_name(column)} IS NOT NULL", fragments=fragments, with_row_id=True
    ).count_rows()
    if filled == 0:
        return None
    how = vector_sort(work.wanted.dimension, filled)
    return dataset.create_index_uncommitted(  # pyright: ignore[reportUnknownMemberType]
        column,
        how.sort,
        name=work.wanted.name,
        metric="L2",
        replace=work.exists,
        num_partitions=how.partitions,
        num_sub_vectors=how.sub_vectors,
        fragment_ids=list(work.fragments),
    )


def _as_library(version: TableVersion, index: ColumnIndex, segments: Sequence[Segment]) -> tuple[Index, ...]:
    """Segments as the library takes them. Every one that is replaced must be named, since a forgotten one would stay."""
    return tuple(
        Index(
            uuid=each.uuid,
            name=index.name,
            fields=list(index.fields),
            dataset_version=version.dataset.version,
            fragment_ids=set(each.fragments),  # pyright: ignore[reportArgumentType] - taken too, its documentation says
            index_version=each.index_version,
        )
        for each in segments
    )
