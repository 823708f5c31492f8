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


ADVICE = (
    "Repeat this write with this idempotency_key, or ask for the outcome of graph_commit_id. "
    "Not seeing it proves nothing until a later commit follows the base."
)
ADVICE_WITHOUT_KEY = (
    "Ask for the outcome of graph_commit_id before this is repeated: it had no idempotency_key, so a repeat is"
    " another write. Not seeing it proves nothing until a later commit follows the base."
)
_OF_KINDS = {
    ("schema", False): (
        "Ask for the outcome of graph_commit_id, or apply the same text again: if it is accepted by then, nothing is"
        " changed; what others accepted since would be replaced by it. Not seeing it proves nothing until a later"
        " commit follows the base."
    ),
    ("optimize", False): "Run it again: what is indexed by then is left as it is.",
    ("branch_create", True): (
        "Repeat this with this idempotency_key, or look at the list of branches after the branch's next write."
    ),
    ("branch_create", False): (
        "Look at the list of branches after the branch's next write. This had no idempotency_key, so a repeat can't"
        " tell what it made itself from what others made: branch_exists may then mean either."
    ),
    ("branch_delete", False): (
        "Look at the list of branches after the branch's next write. Before this is repeated, see that nobody made"
        " the branch anew."
    ),
    ("init", False): (
        "Repeat this as it was: it takes over what stands there half made. already_initialized then says that a graph is"
        " there by now, this attempt's or another's."
    ),
}


def advice(kind: str, *, committed: bool, keyed: bool) -> str:
    """What to do about an unknown outcome of this kind: not everything attempts a commit or takes a key."""
    found = _OF_KINDS.get((kind, keyed))
    if found is not None and not (committed and kind.startswith("branch_")):
        return found
    return ADVICE if keyed else ADVICE_WITHOUT_KEY
