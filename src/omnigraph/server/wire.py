"""Request shapes of the routes (interfaces.md 9). Unknown keys are refused everywhere."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Parameters(BaseModel):
    """Query parameters arrive as text."""

    model_config = ConfigDict(extra="forbid")


class QueryRequest(Shape):
    query: str
    name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None
    as_of: str | int | None = None
    settings: dict[str, Any] | None = None


class MutateRequest(Shape):
    query: str
    name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    settings: dict[str, Any] | None = None
    message: str | None = None


LoadMode = Literal["append", "merge", "overwrite"]


class LoadRequest(Shape):
    data: str
    mode: LoadMode
    branch: str | None = None
    from_: str | None = Field(None, alias="from")
    message: str | None = None


class LoadParameters(Parameters):
    mode: LoadMode
    branch: str | None = None
    from_: str | None = Field(None, alias="from")
    message: str | None = None


class BranchRequest(Shape):
    name: str
    from_: str | None = Field(None, alias="from")


class MergeRequest(Shape):
    source: str
    target: str | None = None
    delete_branch: bool = False
    dry_run: bool = False
    message: str | None = None


class StateParameters(Parameters):
    branch: str | None = None
    snapshot: str | None = None


class CommitParameters(Parameters):
    branch: str | None = None
    limit: int = Field(100, ge=1, le=1_000)
    since: int | None = None
    until: int | None = None


class ExportRequest(Shape):
    branch: str | None = None
    snapshot: str | None = None
    types: list[str] | None = None


class NoParameters(Parameters):
    """For routes that take none."""
