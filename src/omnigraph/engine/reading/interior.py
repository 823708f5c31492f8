"""The state right after a commit inside a group (history.md 9.3): as a manifest to read at, and as one to branch from.

A version holds the tables as its last commit left them. For an earlier one, a type that only later commits touched is as
the version before had it; a type to which some appended before and some after is the version's, without the data files of
those after. Nothing is written to read at such a commit; a branch that starts there gets table versions of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omnigraph.engine.core import GraphCore
from omnigraph.engine.evidence import staging_begins
from omnigraph.errors import HistoryReclaimed
from omnigraph.manifest.chain import read_version
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.model import Commit, Manifest, TypeEntry, content_label
from omnigraph.tables.stage import Committed, leave_out
from omnigraph.tables.sync import sync


def state_at(core: GraphCore, manifest: Manifest, commit_id: CommitId) -> Manifest:
    """The manifest of the state after one of a version's commits: itself for the last one. At most one GET.

    Raises HistoryReclaimed if the version before is gone and is needed, StorageFailure.
    """
    place = next((place for place, commit in enumerate(manifest.commits, 1) if commit.id == commit_id), 0)
    if place in (0, len(manifest.commits)):  # 0: the id of the commit that a branch without any of its own began at
        return manifest
    earlier, later = manifest.commits[:place], manifest.commits[place:]
    types: dict[str, TypeEntry] = {}
    before: Manifest | None = None
    for type_id, entry in manifest.types.items():
        if not _touching(later, type_id):
            types[type_id] = entry
        elif _touching(earlier, type_id):
            types[type_id] = _part(entry, later, type_id, place)
        else:
            before = before or _version_before(core, manifest, commit_id)
            if type_id in before.types:
                types[type_id] = before.types[type_id]
    lineage = replace(manifest.lineage, window=manifest.lineage.window[: -len(later)])
    return replace(manifest, commits=earlier, types=types, lineage=lineage)


def of_its_own(core: GraphCore, manifest: Manifest, *, label: str) -> Manifest:
    """The same state on whole table versions, so that a branch can start there. Two requests for each type that is shared
    with later commits; none otherwise. Raises StorageFailure: nothing is visible.
    """
    made: list[Committed] = []
    types = dict(manifest.types)
    for type_id, entry in manifest.types.items():
        if entry.pin is not None and entry.pin.without:
            staging_begins()
            committed = leave_out(core.tables, entry.pin, label=label)
            made.append(committed)
            types[type_id] = replace(entry, pin=committed.pin, rows=committed.rows, bytes=committed.bytes)
    if not made:
        return manifest
    sync(core.tables, made)
    return replace(manifest, types=types)


def _touching(commits: Sequence[Commit], type_id: str) -> bool:
    return any(type_id in commit.touched for commit in commits)


def _part(entry: TypeEntry, later: Sequence[Commit], type_id: str, place: int) -> TypeEntry:
    """The rows of a type without those that later commits appended. Its label says the same wherever it is met."""
    assert entry.pin is not None
    without = tuple(sorted(name for commit in later for name in commit.files.get(type_id, ())))
    rows = entry.rows - sum(commit.counts[type_id].inserted for commit in later if type_id in commit.counts)
    return replace(
        entry, pin=replace(entry.pin, without=without), content=f"{content_label(entry.pin)}/{place}", rows=rows
    )


def _version_before(core: GraphCore, manifest: Manifest, commit_id: CommitId) -> Manifest:
    stored = read_version(core.store, manifest.branch, manifest.version - 1, graph=manifest.graph)
    if stored is None:
        raise HistoryReclaimed(f"The data of commit {commit_id} was removed by clean-up.")
    return stored.manifest
