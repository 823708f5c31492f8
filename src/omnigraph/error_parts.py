"""What errors carry and know only this much of, so that they stand below the rooms whose classes these are."""

from __future__ import annotations

from typing import Any, Literal, Protocol


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
