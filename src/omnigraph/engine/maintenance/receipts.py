"""What upkeep answers: frozen values with `to_dict()` giving the wire object (history.md 16.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.engine.receipts import Commit, Shown
from omnigraph.errors import OmnigraphError


@dataclass(frozen=True, slots=True)
class OptimizedIndex:
    """An index that was built or grew. `rows_indexed`: those of the segment that was built."""

    name: str
    property: str
    segments_before: int
    segments_after: int
    rows_indexed: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "property": self.property,
            "segments_before": self.segments_before,
            "segments_after": self.segments_after,
            "rows_indexed": self.rows_indexed,
        }


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index for which nothing was done. `reason`: `small`, without one answers are as quick and exact; `unbuildable`, no
    row has a value; `few_rows`, those that it does not cover are few and are searched without it.
    """

    property: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"property": self.property, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class OptimizedType:
    """What was done for one type. `skipped`: others changed it meanwhile; the next run does it. `error`: why nothing could
    be built.
    """

    type_name: str
    indexes: tuple[OptimizedIndex, ...] = ()
    pending: tuple[PendingIndex, ...] = ()
    skipped: Literal["moved"] | None = None
    error: OmnigraphError | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "entity_kind": "node",
            "type_name": self.type_name,
            "indexes": [each.to_dict() for each in self.indexes],
            "pending": [each.to_dict() for each in self.pending],
            "skipped": self.skipped,
            "error": None if self.error is None else self.error.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeResult(Shown):
    """The answer of an optimize of one branch. `commit` is None if there was nothing to publish."""

    branch: str
    types: tuple[OptimizedType, ...]
    actor_id: str | None
    commit: Commit | None

    def __bool__(self) -> bool:
        return self.commit is not None

    @property
    def failed(self) -> bool:
        """Whether a type's indexes could not be built."""
        return any(each.error is not None for each in self.types)

    def to_dict(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "types": [each.to_dict() for each in self.types],
            "actor_id": self.actor_id,
            "commit": None if self.commit is None else self.commit.to_dict(),
        }
