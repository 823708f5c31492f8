"""Answer shapes of the routes (interfaces.md 4.1, 5.1, 9), for the description of the interface.

Answers are made elsewhere; a test holds every answer against its shape. `T | None = None` is a key that may be left out.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Health(Answer):
    status: Literal["ok"]
    version: str
    http_api: Literal["1"]
    internal_schema_version: int


class GraphCounts(Answer):
    total: int
    ready: int
    loading: int
    blocked: int
    transitioning: int


class Readiness(Answer):
    status: Literal["waiting_for_lock", "loading", "serving", "degraded", "blocked", "draining"]
    graphs: GraphCounts
    leased: bool
    version: str


class GraphEntry(Answer):
    graph_id: str
    uri: str
    state: Literal["ready", "loading", "blocked", "stopping"]
    read_available: bool
    write_available: bool
    action: Literal["none", "wait_for_startup", "wait_for_restart", "restart_after_correction"]
    failure: Literal["graph_missing", "open_failed"] | None = None


class GraphList(Answer):
    graphs: list[GraphEntry]


class TypeNames(Answer):
    nodes: list[str]
    edges: list[str]


class GraphDetail(GraphEntry):
    head_commit_id: str | None
    branch_count: int
    types: TypeNames


class Counts(Answer):
    inserted: int
    updated: int
    deleted: int


class Receipt(Answer):
    """One commit."""

    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    kind: str
    message: str | None
    counts: dict[str, Counts]


class Target(Answer):
    branch: str | None
    snapshot: str | None


class PlanRow(Answer):
    """One row of `explain`, or of tree `profile`."""

    tree: Literal["logical", "physical", "plan", "profile"]
    depth: int | None = None
    node: str
    detail: str


class QueryAnswer(Answer):
    query_name: str
    target: Target
    graph_commit_id: str
    row_count: int
    columns: list[str]
    column_types: list[str]
    rows: list[dict[str, Any]]
    warnings: list[dict[str, str]] | None = None
    profile: list[PlanRow] | None = None


class StatementOutcome(Answer):
    """What a branch statement did."""

    kind: Literal["created", "deleted", "merged"]
    branch: str
    from_: str | None = Field(None, alias="from")
    merge: Literal["already_up_to_date", "fast_forward", "merged"] | None = None


class MutateAnswer(Answer):
    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    ids: list[str]
    actor_id: str | None
    commit: Receipt | None
    outcome: StatementOutcome | None = None
    idempotent_replay: Literal[True] | None = None


class LoadedType(Answer):
    name: str
    entities_loaded: int


class LoadAnswer(Answer):
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: Literal["append", "merge", "overwrite"]
    nodes: list[LoadedType]
    edges: list[LoadedType]
    total_entities: int
    actor_id: str | None
    commit: Receipt | None
    idempotent_replay: Literal[True] | None = None


class Branch(Answer):
    name: str
    head_commit_id: str | None
    graph_manifest_version: int
    life: int
    created_from: str | None
    created_at: int | None


class BranchList(Answer):
    branches: list[str]
    details: list[Branch]


class BranchCreated(Answer):
    uri: str
    name: str
    from_: str = Field(alias="from")
    base_commit_id: str | None
    actor_id: str | None
    life: int
    idempotent_replay: Literal[True] | None = None


class BranchDeleted(Answer):
    uri: str
    name: str
    actor_id: str | None
    unmerged_commits: int
    last_commit_id: str | None


class MergeAnswer(Answer):
    source: str
    target: str
    outcome: Literal["already_up_to_date", "fast_forward", "merged"]
    commit: Receipt | None
    actor_id: str | None
    dry_run: Literal[True] | None = None
    branch_deleted: bool | None = None
    branch_delete_error_details: dict[str, Any] | None = None
    idempotent_replay: Literal[True] | None = None


class Dataset(Answer):
    entity_kind: Literal["node", "edge"]
    type_name: str
    dataset_path: str | None
    published_dataset_version: str | None
    entity_count: int


class SnapshotAnswer(Answer):
    graph_branch: str | None
    graph_commit_id: str | None
    graph_manifest_version: int
    internal_schema_version: int
    datasets: list[Dataset]


class SystemColumns(Answer):
    id: str
    src: str
    dst: str


class Property(Answer):
    name: str
    type: str
    nullable: bool
    key: bool


class EntityType(Answer):
    entity_kind: Literal["node", "edge"]
    name: str
    properties: list[Property]
    src: str | None = None
    dst: str | None = None


class SchemaAnswer(Answer):
    schema_source: str
    schema_digest: str
    graph_commit_id: str | None
    system_columns: SystemColumns
    types: list[EntityType]


class CommitList(Answer):
    commits: list[Receipt]
    next_page_token: str | None


class OutcomeAnswer(Answer):
    outcome: Literal["published", "superseded", "undetermined"]
    graph_commit_id: str
    branch: str
    commit: Receipt | None
    superseding_commit_id: str | None
    reason: Literal["version_absent", "history_reclaimed", "unreadable"] | None
    head_commit_id: str | None


class ErrorBody(BaseModel):
    """What every status from 400 up carries; one detail object beside these, named by its own key."""

    model_config = ConfigDict(extra="allow", strict=True, title="Error")

    error: str
    code: str
    status: int
    retry: Literal["fix", "retry", "refresh", "recover", "reconcile"]
    effects: Literal["none", "unknown"] | None = Field(None, description="of a write: what is known of it")
    request_id: str
