"""What errors carry and know only this much of, so that they stand below the rooms whose classes these are."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, Protocol


class StorageClass(StrEnum):
    """What kind of storage failure it was."""

    THROTTLED = "throttled"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    DENIED = "denied"
    NOT_FOUND = "not_found"
    SERVER_ERROR = "server_error"
    CORRUPT = "corrupt"
    UNSUPPORTED = "unsupported"
    LOCAL_IO = "local_io"


class StoragePhase(StrEnum):
    """Which step of an operation sent the request that failed."""

    READ = "read"
    STAGE = "stage"
    PUBLISH = "publish"
    TAG = "tag"
    LEDGER = "ledger"
    LOCK = "lock"


class DiagnosticLike(Protocol):
    """What an error needs to know of a language diagnostic (`omnigraph.lang.diagnostics.Diagnostic`)."""

    @property
    def code(self) -> str: ...

    @property
    def message(self) -> str: ...

    def to_dict(self) -> dict[str, Any]: ...

    def render(self, source: str | None = None, *, caret: bool = True) -> str: ...


class OutcomeLike(Protocol):
    """What became of an attempted commit (`omnigraph.engine.receipts.Outcome`)."""

    @property
    def outcome(self) -> Literal["published", "superseded", "undetermined"]: ...

    def to_dict(self) -> dict[str, Any]: ...


def idempotency_details(
    key: str | None, *, graph_commit_id: str | None = None, created_at: int | None = None
) -> dict[str, object]:
    """The object `idempotency` of an error: the caller's own words, and what they were used for first, where known."""
    return {
        "key": None if key is None else str(key),
        "graph_commit_id": graph_commit_id,
        "created_at": created_at,
    }
