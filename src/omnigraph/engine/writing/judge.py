"""Whether a write that was prepared on one head may be published on a newer one (history.md 9.1).

A pure function of the write's footprint and the two manifests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.engine.plan import Footprint
from omnigraph.manifest.model import Commit, Manifest, TypeEntry

_KEEPING = (None, "append", "layout")
"""What a commit may have done to a type of which every row is still there."""


@dataclass(frozen=True, slots=True)
class Rebase:
    """The same staged rows may follow the new head."""


@dataclass(frozen=True, slots=True)
class PrepareAgain:
    """An input changed: `member` of the read set, to be named if the operation is not prepared again. `layout`: only in
    where rows lie, so that every operation is prepared again.
    """

    member: str
    expected: str | None = None
    actual: str | None = None
    layout: bool = False


@dataclass(frozen=True, slots=True)
class OtherLife:
    """The branch was deleted, and perhaps made anew: what was prepared belongs to another branch."""


Verdict = Rebase | PrepareAgain | OtherLife


def verdict(
    footprint: Footprint, base: Manifest, head: Manifest, taken: Callable[[str], bool] = lambda _: True
) -> Verdict:
    """Judge a write with this footprint, prepared on `base`, against `head`.

    Unless the footprint is the whole state, only its types count, by their content: layout commits change none. Where the
    commits in between only appended rows, ids that were found are still there, and rows with other ids can follow: `taken`
    says of a type id whether an id that the write appends is in `head`, and is asked there only. A type whose pin moved
    without its content is prepared again if we change its rows, whatever the operation, since deletions name fragments that
    may be gone.
    """
    if head.life != base.life or head.state != "active":
        return OtherLife()
    if head.schema != base.schema:
        return PrepareAgain("schema", base.schema, head.schema)
    if footprint.whole and head.version != base.version:
        return PrepareAgain("branch_head")
    between, moved = _between(base, head), None
    for type_id, mode in sorted(footprint.modes.items()):
        before, after = base.types.get(type_id), head.types.get(type_id)
        if _content(before) != _content(after):
            grew = between is not None and all(commit.touched.get(type_id) in _KEEPING for commit in between)
            if grew and (mode == "exists" or (mode == "append" and not taken(type_id))):
                continue
            entry = after or before
            name = type_id if entry is None else f"{entry.kind}:{entry.name}"
            return PrepareAgain(f"type:{name}", _content(before), _content(after))
        if mode == "change" and _pin(before) != _pin(after):
            entry = after or before
            name = type_id if entry is None else f"{entry.kind}:{entry.name}"
            moved = PrepareAgain(f"type:{name}", layout=True)  # unless the content of another type changed
    return moved or Rebase()


def _between(base: Manifest, head: Manifest) -> list[Commit] | None:
    """The commits after a base, as far as the head itself tells; None if it does not reach back so far."""
    found: list[Commit] = []
    for commit in reversed(head.lineage.window):
        if commit.id == base.head_commit.id:
            return found
        found.append(commit)
    return None


def _content(entry: TypeEntry | None) -> str:
    return "none" if entry is None else entry.content


def _pin(entry: TypeEntry | None) -> object:
    return None if entry is None else entry.pin
