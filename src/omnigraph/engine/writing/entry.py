"""One prepared write on its way through a lane, and how it ended.

Values only: what was asked, what was planned and staged on which base, and the result that whoever publishes it leaves
here for the thread that waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from omnigraph.engine.core import GraphCore
from omnigraph.engine.plan import WritePlan
from omnigraph.engine.writing.judge import OtherLife, PrepareAgain
from omnigraph.engine.writing.replay import FreshKey
from omnigraph.engine.writing.staging import StagedPlan
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.model import Commit, Idempotency, Manifest
from omnigraph.query.snapshot import Snapshot


class Operation(Protocol):
    """One kind of write. `repeats`: how often it may be prepared again when another writer changed its inputs.

    `shares`: whether it may share a version with others; asked after `plan`.
    """

    @property
    def repeats(self) -> int: ...

    @property
    def shares(self) -> bool: ...

    def plan(self, snapshot: Snapshot) -> WritePlan | None:
        """What it wants, given this base; None if that is nothing. Raises the typed errors of bad input."""
        ...


@dataclass(frozen=True, slots=True)
class WriteRequest:
    branch: str
    operation: Operation
    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    idempotency: Idempotency | None = None
    idempotency_key: str | None = None  # the caller's own words, for the answer of an unknown outcome

    @property
    def key_is_new(self) -> bool:
        """No commit up to the first base can have this key: it need not be looked up there."""
        return isinstance(self.idempotency_key, FreshKey)


@dataclass(frozen=True, slots=True)
class Written:
    """`commit` None: nothing was to be done. `plan` None: the answer is that of an earlier request with this key."""

    commit: Commit | None
    manifest: Manifest
    plan: WritePlan | None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Again:
    """It can't follow `head` as it was prepared."""

    verdict: PrepareAgain | OtherLife
    head: KnownHead


@dataclass(frozen=True, slots=True)
class Failed:
    """The error to raise to its caller; it says what is known."""

    error: Exception


Result = Written | Again | Failed


@dataclass(eq=False, slots=True)
class Entry:
    """`base` is the head it was prepared on, `captured_at` when that was asked for. `result` is set once."""

    core: GraphCore
    request: WriteRequest
    base: KnownHead
    plan: WritePlan
    staged: StagedPlan
    captured_at: float
    result: Result | None = field(default=None, init=False)

    @property
    def settled(self) -> bool:
        return self.result is not None

    def settle(self, result: Result) -> None:
        if self.result is None:
            self.result = result
