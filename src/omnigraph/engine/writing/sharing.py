"""Which prepared writes can share one version (history.md 9.2, G2 and G3).

A write may follow those before it in a group if it would stand had they been published alone: they changed no type that
it looked at, or only appended rows there while it looked up ids that exist or appends other ids. A pure function of
footprints and rows; what the head says is judged in `engine/writing/judge`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.lookups import one_array
from omnigraph.engine.plan import TypeChange
from omnigraph.engine.writing.staging import StagedPlan, StagedType
from omnigraph.tables.columns import ID

COMMITS_MAX = 64
FRAGMENTS_MAX = 256
GROWTH_MAX = 1 << 20
"""Bytes that a group may add to a manifest."""


class Company:
    """The writes that were taken into a group so far."""

    def __init__(self) -> None:
        self._commits = 0
        self._fragments = 0
        self._growth = 0
        self._changed: dict[str, _Appended | None] = {}  # by type id; None: changed otherwise, so that none may follow
        self._keys: set[str] = set()

    @property
    def full(self) -> bool:
        return self._commits >= COMMITS_MAX

    def take(self, staged: StagedPlan, *, key: str | None = None, growth: int = 0) -> bool:
        """Take a write in, if it may follow; the first always may.

        `key`: of its idempotency; two of one key are never in one version. `growth`: bytes that it adds to the manifest.
        """
        fragments = sum(len(each.staged.fragments) for each in staged.types)
        if self._commits:
            if self.full or self._fragments + fragments > FRAGMENTS_MAX or self._growth + growth > GROWTH_MAX:
                return False
            if key in self._keys or not self._fits(staged):
                return False
        self._commits += 1
        self._fragments += fragments
        self._growth += growth
        if key is not None:
            self._keys.add(key)
        for each in staged.types:
            self._note(each)
        return True

    def _note(self, each: StagedType) -> None:
        known = self._changed.get(each.type_id)
        if not each.staged.is_append:
            self._changed[each.type_id] = None
        elif known is None:
            self._changed[each.type_id] = _Appended(each.staged.folder, each.change)
        else:
            known.add(each.change)

    def _fits(self, staged: StagedPlan) -> bool:
        appended = {each.type_id: each for each in staged.types}
        for type_id, mode in staged.plan.footprint.modes.items():
            if type_id not in self._changed:
                continue
            before, ours = self._changed[type_id], appended.get(type_id)
            if before is not None and mode == "exists":
                continue
            if before is None or ours is None or mode != "append":
                return False
            if ours.staged.folder != before.folder or before.meets(ours.change):
                return False
        return True


class _Appended:
    """The rows that a group appends to one type."""

    def __init__(self, folder: str, change: TypeChange) -> None:
        self.folder = folder
        self._ids: list[pa.Array] = []  # those that others may have too
        self.add(change)

    def add(self, change: TypeChange) -> None:
        if change.rows is not None and not change.made_ids:
            self._ids.append(one_array(change.rows.column(ID)))

    def meets(self, change: TypeChange) -> bool:
        """Whether the change appends an id that is among these."""
        if change.rows is None or change.made_ids or not self._ids:
            return False
        among = pa.concat_arrays(self._ids)
        return bool(pc.any(pc.is_in(one_array(change.rows.column(ID)), value_set=among)).as_py())
