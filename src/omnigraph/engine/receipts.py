"""What a write, a commit and the lists answer: frozen values with `to_dict()` giving the wire object.

Times on the wire are microseconds; in Python they are aware datetimes in UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.engine.display import html_fields, text_fields, text_line
from omnigraph.errors import OmnigraphError
from omnigraph.manifest.model import Commit as CommitRecord
from omnigraph.manifest.model import Counts

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def as_datetime(microseconds: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=microseconds)


def as_microseconds(moment: dt.datetime) -> int:
    """Microseconds since 1970-01-01 UTC; a naive datetime is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


class Shown:
    """Shows itself as its wire object, nulls left out, and nothing of it steers a terminal or a page."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return text_fields(type(self).__name__, self.to_dict())

    def _repr_html_(self) -> str:
        return html_fields(type(self).__name__, self.to_dict())


class _Item(Shown):
    """One of a list, and so in one line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_line(type(self).__name__, self.to_dict())


@dataclass(frozen=True, slots=True, repr=False)
class Commit(_Item):
    """The receipt of one commit (interfaces.md 5.1)."""

    graph_commit_id: str
    graph_branch: str
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: dt.datetime
    kind: str
    message: str | None
    counts: Mapping[str, Counts] = field(default_factory=dict[str, Counts])  # by "node:Paper"

    @classmethod
    def of(cls, record: CommitRecord) -> Commit:
        parents = [str(p) for p in record.parents]
        return cls(
            graph_commit_id=str(record.id),
            graph_branch=record.id.branch,
            graph_manifest_version=record.id.version,
            parent_commit_id=parents[0] if parents else None,
            merged_parent_commit_id=parents[1] if len(parents) > 1 else None,
            actor_id=record.actor,
            created_at=as_datetime(record.created_at),
            kind=record.kind,
            message=record.message,
            counts={record.names.get(type_id, type_id): counts for type_id, counts in record.counts.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "graph_commit_id": self.graph_commit_id,
            "graph_branch": self.graph_branch,
            "graph_manifest_version": self.graph_manifest_version,
            "parent_commit_id": self.parent_commit_id,
            "merged_parent_commit_id": self.merged_parent_commit_id,
            "actor_id": self.actor_id,
            "created_at": as_microseconds(self.created_at),
            "kind": self.kind,
            "message": self.message,
            "counts": {
                name: {"inserted": c.inserted, "updated": c.updated, "deleted": c.deleted}
                for name, c in sorted(self.counts.items())
            },
        }

    def __str__(self) -> str:
        return self.graph_commit_id


def _commit_dict(commit: Commit | None) -> dict[str, Any] | None:
    return None if commit is None else commit.to_dict()


@dataclass(frozen=True, slots=True, repr=False)
class WriteResult(Shown):
    """The answer of a mutation. `bool(result)` is "something was published"."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    ids: tuple[str, ...]
    actor_id: str | None
    commit: Commit | None
    outcome: dict[str, Any] | None = None
    replayed: bool = False

    def __bool__(self) -> bool:
        return self.commit is not None

    def to_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "ids": list(self.ids),
            "actor_id": self.actor_id,
            "commit": _commit_dict(self.commit),
        }
        if self.outcome is not None:
            body["outcome"] = self.outcome
        if self.replayed:
            body["idempotent_replay"] = True
        return body


@dataclass(frozen=True, slots=True)
class LoadedType:
    name: str
    entities_loaded: int


@dataclass(frozen=True, slots=True, repr=False)
class LoadResult(Shown):
    """The answer of a load. `commit` is None if the input held no record."""

    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    nodes: tuple[LoadedType, ...]
    edges: tuple[LoadedType, ...]
    actor_id: str | None
    commit: Commit | None
    replayed: bool = False

    def __bool__(self) -> bool:
        return self.commit is not None

    @property
    def total_entities(self) -> int:
        return sum(t.entities_loaded for t in (*self.nodes, *self.edges))

    def to_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "nodes": [{"name": t.name, "entities_loaded": t.entities_loaded} for t in self.nodes],
            "edges": [{"name": t.name, "entities_loaded": t.entities_loaded} for t in self.edges],
            "total_entities": self.total_entities,
            "actor_id": self.actor_id,
            "commit": _commit_dict(self.commit),
        }
        if self.replayed:
            body["idempotent_replay"] = True
        return body


@dataclass(frozen=True, slots=True, repr=False)
class Branch(_Item):
    """One live branch."""

    name: str
    head_commit_id: str | None
    graph_manifest_version: int
    life: int
    created_from: str | None
    created_at: dt.datetime | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "head_commit_id": self.head_commit_id,
            "graph_manifest_version": self.graph_manifest_version,
            "life": self.life,
            "created_from": self.created_from,
            "created_at": None if self.created_at is None else as_microseconds(self.created_at),
        }


@dataclass(frozen=True, slots=True, repr=False)
class BranchCreated(Shown):
    uri: str
    name: str
    from_: str
    base_commit_id: str | None
    actor_id: str | None
    life: int
    replayed: bool = False

    def to_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "uri": self.uri,
            "name": self.name,
            "from": self.from_,
            "base_commit_id": self.base_commit_id,
            "actor_id": self.actor_id,
            "life": self.life,
        }
        if self.replayed:
            body["idempotent_replay"] = True
        return body


@dataclass(frozen=True, slots=True, repr=False)
class BranchDeleted(Shown):
    uri: str
    name: str
    actor_id: str | None
    unmerged_commits: int
    last_commit_id: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "name": self.name,
            "actor_id": self.actor_id,
            "unmerged_commits": self.unmerged_commits,
            "last_commit_id": self.last_commit_id,
        }


@dataclass(frozen=True, slots=True, repr=False)
class MergeResult(Shown):
    """`branch_delete_error`: why the source was not deleted, as an error; its body stands in the details."""

    source: str
    target: str
    outcome: Literal["already_up_to_date", "fast_forward", "merged"]
    commit: Commit | None
    actor_id: str | None
    dry_run: bool = False
    branch_deleted: bool | None = None
    branch_delete_error: OmnigraphError | None = None
    replayed: bool = False

    def __bool__(self) -> bool:
        return self.commit is not None

    @property
    def branch_delete_error_details(self) -> dict[str, Any] | None:
        return None if self.branch_delete_error is None else self.branch_delete_error.to_dict()

    def to_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "source": self.source,
            "target": self.target,
            "outcome": self.outcome,
            "commit": _commit_dict(self.commit),
            "actor_id": self.actor_id,
        }
        if self.dry_run:
            body["dry_run"] = True
        if self.branch_deleted is not None:
            body["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error_details is not None:
            body["branch_delete_error_details"] = self.branch_delete_error_details
        if self.replayed:
            body["idempotent_replay"] = True
        return body


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Shown):
    """What became of an attempted commit. `published` and `superseded` are final."""

    outcome: Literal["published", "superseded", "undetermined"]
    graph_commit_id: str
    branch: str
    commit: Commit | None = None
    superseding_commit_id: str | None = None
    reason: Literal["version_absent", "history_reclaimed", "unreadable"] | None = None
    head_commit_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "graph_commit_id": self.graph_commit_id,
            "branch": self.branch,
            "commit": _commit_dict(self.commit),
            "superseding_commit_id": self.superseding_commit_id,
            "reason": self.reason,
            "head_commit_id": self.head_commit_id,
        }


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    entity_kind: str
    type_name: str
    dataset_path: str | None
    published_dataset_version: str | None
    entity_count: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "entity_kind": self.entity_kind,
            "type_name": self.type_name,
            "dataset_path": self.dataset_path,
            "published_dataset_version": self.published_dataset_version,
            "entity_count": self.entity_count,
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """Tables and counts of one snapshot (interfaces.md 9.8)."""

    graph_branch: str | None
    graph_commit_id: str
    graph_manifest_version: int
    internal_schema_version: int
    datasets: tuple[DatasetSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "graph_branch": self.graph_branch,
            "graph_commit_id": self.graph_commit_id,
            "graph_manifest_version": self.graph_manifest_version,
            "internal_schema_version": self.internal_schema_version,
            "datasets": [d.to_dict() for d in self.datasets],
        }


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """The answer of a schema plan or apply: all steps, refused ones included."""

    supported: bool
    applied: bool
    steps: tuple[dict[str, Any], ...]
    schema_digest: str
    commit: Commit | None = None

    def __bool__(self) -> bool:
        return self.commit is not None

    def to_dict(self) -> dict[str, Any]:
        return {
            "supported": self.supported,
            "applied": self.applied,
            "steps": list(self.steps),
            "schema_digest": self.schema_digest,
            "commit": _commit_dict(self.commit),
        }
