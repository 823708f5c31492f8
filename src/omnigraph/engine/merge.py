"""Merge by fast-forward: the target takes over the state of the source as one commit of its own (history.md 7.2).

The test looks at state, not at history: a target whose content is that of the merge base fast-forwards, whatever commits
it has. Branches that both changed something are refused here; three-way merging is not part of this version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from omnigraph.engine.core import GraphCore
from omnigraph.engine.plan import Footprint, WritePlan
from omnigraph.engine.reading.selectors import commit_manifest
from omnigraph.errors import InvalidRequest, NotAvailable
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import check_branch_name
from omnigraph.manifest.logs import related, taken_in
from omnigraph.manifest.model import Commit, Counts, Manifest, Origin, Touch, TypeEntry
from omnigraph.query.snapshot import Snapshot

MergeOutcome = Literal["already_up_to_date", "fast_forward", "merged"]

_REPEATS = 5


class MergeOperation:
    """Takes in the source's head as it is when the first plan is made; `outcome` and `taken` are known after it.

    Not before: a merge that is repeated under its key is answered without a plan, also when its source is gone by then.
    """

    def __init__(self, core: GraphCore, source: str, target: str) -> None:
        if check_branch_name(source) == target:
            raise InvalidRequest("A branch can't be merged into itself.")
        self._core = core
        self._source = source
        self._taken: KnownHead | None = None
        self._taken_at = 0.0
        self.outcome: MergeOutcome = "already_up_to_date"

    @property
    def repeats(self) -> int:
        return _REPEATS

    @property
    def shares(self) -> bool:
        return False

    @property
    def taken(self) -> KnownHead:
        """The source's head, resolved once: later commits of it are not taken in. Raises BranchNotFound."""
        if self._taken is None:
            self._taken_at = self._core.clock.boot_seconds()
            self._taken = self._core.standing(self._source)
        return self._taken

    def plan(self, snapshot: Snapshot) -> WritePlan | None:
        """Raises BranchNotFound if there is no such source, NotAvailable if both branches changed something,
        HistoryReclaimed if the merge base is gone.
        """
        target, source, core = snapshot.manifest, self.taken.manifest, self._core
        ancestry = related(core.history, source.lineage, target.lineage)
        head = source.head_commit
        if head.id not in ancestry.left_only:
            self.outcome = "already_up_to_date"
            return None
        base = self._base(target, ancestry.bases)
        if base is None:
            raise NotAvailable(
                f"'{source.branch}' and '{target.branch}' both changed since they parted:"
                " merging such branches is not part of this version. Branch anew from"
                f" '{target.branch}', write the change again there, and merge that."
            )
        self.outcome = "fast_forward"
        absorbed = taken_in(core.history, source.lineage, ancestry)
        changed = [t for t in {**target.types, **source.types} if _content(target, t) != _content(source, t)]
        return WritePlan(
            kind="merge",
            footprint=Footprint(whole=True),
            schema=source.schema,
            types={t: _adopted(base, target, entry, t) for t, entry in source.types.items()},
            counts={t: _counted(absorbed, t) for t in changed},
            names={t: _name(source.types.get(t) or target.types[t]) for t in changed},
            touched={t: _touch(absorbed, t) for t in changed},
            origin=Origin(
                source_branch=source.branch,
                source_life=source.life,
                source_commit=str(head.id),
                bases=tuple(str(base) for base in ancestry.bases),
            ),
            merged=head,
            absorbed=absorbed,
            staged_at=self._taken_at,
        )

    def _base(self, target: Manifest, bases: tuple[CommitId, ...]) -> Manifest | None:
        """Where the two parted, if the target's contents are still those of that state."""
        if len(bases) != 1:
            return None
        if bases[0] == target.head_commit.id:
            return target
        base = commit_manifest(self._core, str(bases[0]))
        types = {*base.types, *target.types}
        same = base.schema == target.schema and all(_content(base, t) == _content(target, t) for t in types)
        return base if same else None


def _adopted(base: Manifest, target: Manifest, entry: TypeEntry, type_id: str) -> TypeEntry:
    """The source's entry; for rows that are the target's too, at the target's pin if upkeep moved it since the two parted."""
    ours, former = target.types.get(type_id), base.types.get(type_id)
    if ours is None or ours.content != entry.content or former is None or ours.pin == former.pin:
        return entry
    return replace(entry, pin=ours.pin, bytes=ours.bytes, indexes=ours.indexes)


def _content(manifest: Manifest, type_id: str) -> str:
    entry = manifest.types.get(type_id)
    return "none" if entry is None else entry.content


def _name(entry: TypeEntry) -> str:
    return f"{entry.kind}:{entry.name}"


def _counted(commits: tuple[Commit, ...], type_id: str) -> Counts:
    """What the commits taken in did to a type, together."""
    each: list[Counts] = [c.counts[type_id] for c in _own(commits) if type_id in c.counts]
    return Counts(
        inserted=sum(c.inserted for c in each),
        updated=sum(c.updated for c in each),
        deleted=sum(c.deleted for c in each),
    )


def _own(commits: tuple[Commit, ...]) -> tuple[Commit, ...]:
    """Without merges among them, whose parents' commits are counted themselves."""
    return tuple(c for c in commits if c.kind != "merge")


def _touch(commits: tuple[Commit, ...], type_id: str) -> Touch:
    touches: set[str] = {touched[type_id] for c in commits if type_id in (touched := _touched(c))}
    return "append" if touches <= {"append", "layout"} else "change"


def _touched(commit: Commit) -> Mapping[str, Touch]:
    return commit.touched
