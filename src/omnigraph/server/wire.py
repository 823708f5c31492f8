"""Request shapes of the routes (interfaces.md 9). Unknown keys are refused everywhere."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_TIME_MAX = 253_402_300_799_999_999  # the last microsecond of the year 9999

Name = Annotated[str, Field(min_length=1)]
Message = Annotated[str, Field(description="a note of at most 1,024 bytes, kept in the commit")]
Time = Annotated[int, Field(ge=0, le=_TIME_MAX, description="microseconds since 1970-01-01 UTC")]
AsOf = Annotated[str | int, Field(description="RFC 3339 time with an offset, or microseconds; with branch")]
LoadMode = Literal["append", "merge", "overwrite"]


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Parameters(BaseModel):
    """Query parameters arrive as text."""

    model_config = ConfigDict(extra="forbid")


class NoParameters(Parameters):
    """For routes that take none."""


class QueryRequest(Shape):
    query: str = Field(description="source in the query language")
    name: Name | None = Field(None, description="which declaration; needed when there are several")
    params: dict[str, Any] | None = Field(None, description="values of the declared parameters")
    branch: Name | None = Field(None, description="default main")
    snapshot: Name | None = Field(None, description="commit id; excludes branch")
    as_of: AsOf | None = None
    settings: dict[str, Any] | None = None


class MutateRequest(Shape):
    query: str = Field(description="source in the query language")
    name: Name | None = Field(None, description="which declaration; needed when there are several")
    params: dict[str, Any] | None = Field(None, description="values of the declared parameters")
    branch: Name | None = Field(None, description="default main")
    settings: dict[str, Any] | None = None
    message: Message | None = None


class LoadRequest(Shape):
    data: str = Field(description="records, one JSON object a line")
    mode: LoadMode
    branch: Name | None = Field(None, description="default main")
    from_: Name | None = Field(None, alias="from", description="branch to fork if `branch` does not exist")
    message: Message | None = None


def _number(given: object) -> object:
    """A parameter of digits as the number that a JSON body would hold."""
    return int(given) if isinstance(given, str) and given.isascii() and given.isdigit() else given


class LoadParameters(Parameters):
    mode: LoadMode
    branch: Name | None = Field(None, description="default main")
    from_: Name | None = Field(None, alias="from", description="branch to fork if `branch` does not exist")
    message: Message | None = None


class BranchRequest(Shape):
    name: str
    from_: Name | None = Field(None, alias="from", description="branch or commit id; default main")


class MergeRequest(Shape):
    source: Name
    target: Name | None = Field(None, description="default main")
    delete_branch: bool = False
    dry_run: bool = False
    message: Message | None = None


class StateParameters(Parameters):
    branch: Name | None = Field(None, description="default main")
    snapshot: Name | None = Field(None, description="commit id; excludes branch")
    as_of: Annotated[AsOf | None, BeforeValidator(_number)] = None


class CommitParameters(Parameters):
    branch: Name | None = Field(None, description="default main")
    limit: int = Field(100, ge=1, le=1_000)
    page_token: Annotated[str, Field(min_length=1, max_length=4_096)] | None = None
    since: Time | None = None
    until: Time | None = None


class ExportRequest(Shape):
    branch: Name | None = Field(None, description="default main")
    snapshot: Name | None = Field(None, description="commit id; excludes branch")
    as_of: AsOf | None = None
    types: list[str] | None = Field(None, description="only these types")
