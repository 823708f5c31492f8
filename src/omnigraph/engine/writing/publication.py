"""From a built manifest to an outcome: stores the log segments, runs the publication, remembers what it showed.

Everything definite is told by the result or by a typed error; an unknown outcome marks the branch uncertain first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from omnigraph.engine.core import GraphCore
from omnigraph.engine.evidence import staging_begins
from omnigraph.engine.logs import log_event
from omnigraph.engine.reading.commits import await_outcome
from omnigraph.errors import (
    Busy,
    GraphReplaced,
    OmnigraphError,
    OutcomeUnknown,
    RecoveryRequired,
    StorageClass,
    StorageFailure,
    StoragePhase,
)
from omnigraph.manifest.builder import Built
from omnigraph.manifest.chain import HeadState, KnownHead
from omnigraph.manifest.codec import graph_replaced
from omnigraph.manifest.driver import drive
from omnigraph.manifest.model import Commit
from omnigraph.manifest.publish import Conflict, Log, Look, NotPublished, Publication, Published, publish
from omnigraph.manifest.publish import OutcomeUnknown as Undecided
from omnigraph.store.base import StoreError

_LOGGER = "omnigraph.publication"


@dataclass(frozen=True, slots=True)
class Attempted:
    """What ended without a version: one error for each commit that was to be published, in their order."""

    errors: tuple[OmnigraphError, ...]


def publish_version(
    core: GraphCore, built: Built, base: HeadState, *, staged_at: float, kind: str, key: str | None = None
) -> Published | Conflict:
    """Publish `built`, of one writer, after `base`.

    A published head is adopted; the head that a conflict shows is adopted too. Raises StorageFailure (definite, nothing
    was published), Busy if this process may not write any more, OutcomeUnknown (`kind`, `key` are for its detail).
    """
    result = attempt(core, built, base, staged_at=staged_at, kind=kind, keys=(key,))
    if isinstance(result, Attempted):
        raise result.errors[-1]
    return result


def attempt(
    core: GraphCore, built: Built, base: HeadState, *, staged_at: float, kind: str, keys: Sequence[str | None]
) -> Published | Conflict | Attempted:
    """As `publish_version`, for a version of several writers, each with its own key and its own error.

    Raises RecoveryRequired if it was published and could not be taken over here.
    """
    staging_begins()
    for segment in built.segments:
        try:
            core.store.put_fresh(segment.key, segment.data)
        except StoreError as error:
            return Attempted(tuple(_segment_failure(error) for _ in keys))
    publication = Publication(built.manifest, built.data, base, staged_at, _look(core))
    try:
        result = drive(
            publish(publication),
            store=core.store,
            history=core.history,
            clock=core.clock,
            fence=core.fence,
            log=lambda line: _write_log(core, built, line),
        )
    except BaseException:  # interrupted, or a fault of ours: nobody saw how the request ended
        core.heads.mark_uncertain(built.manifest.branch, base.version)
        raise
    match result:
        case Published():
            _adopt(core, built, result.head)
            return result
        case Conflict():
            core.heads.adopt(result.actual)
            return result
        case NotPublished():
            return Attempted(tuple(_not_published(result, built.manifest.branch) for _ in keys))
        case Undecided():
            core.heads.mark_uncertain(built.manifest.branch, base.version)
            return Attempted(unknown_outcomes(core, built, base, kind=kind, keys=keys, cls=result.cls))


def _adopt(core: GraphCore, built: Built, head: KnownHead) -> None:
    """Step 6: the head in memory. Raises RecoveryRequired: every later write here would build on a stale head."""
    try:
        core.heads.published(head)
    except Exception:  # whatever it was, storage holds the version and memory does not
        core.heads.mark_uncertain(built.manifest.branch, built.manifest.version - 1)
        commits = built.manifest.commits
        raise RecoveryRequired(
            "The commit was published, and this process could not take it over.",
            effects="unknown",
            detail_key="recovery_required",
            details={"operation_id": str(commits[-1].id) if commits else None, "reason": "not_adopted"},
        ) from None


def _look(core: GraphCore) -> Look:
    """On a local root a look is one `stat`, and the owner's lock keeps nobody from removing the folder."""
    if core.store.local_path is not None:
        return "always"
    return "never" if core.owner else "after a while"


def unknown_outcomes(
    core: GraphCore,
    built: Built,
    base: HeadState,
    *,
    kind: str,
    keys: Sequence[str | None],
    cls: StorageClass | None = None,
) -> tuple[OutcomeUnknown, ...]:
    """What each writer of a version is told when nobody knows whether it was published."""
    commits: Sequence[Commit | None] = built.manifest.commits or (None,)
    base_commit = base.manifest.head_commit.id if isinstance(base, KnownHead) else built.manifest.forked_from
    return tuple(
        OutcomeUnknown(
            "The commit may or may not have been published.",
            kind=kind,
            branch=built.manifest.branch,
            base_commit_id=None if base_commit is None else str(base_commit),
            graph_commit_id=None if commit is None else str(commit.id),
            graph_id=core.graph_id,
            idempotency_key=key,
            commit_kind=None if commit is None or kind != "commit" else commit.kind,
            cls=cls,
            ask=None if commit is None else partial(await_outcome, core, str(commit.id)),
        )
        for commit, key in zip(commits, keys, strict=True)
    )


def _segment_failure(error: StoreError) -> StorageFailure:
    return StorageFailure(
        "A part of the history could not be stored. Nothing was published.",
        cls=error.cls,
        phase=StoragePhase.STAGE,
        effects="none",
    )


def _not_published(result: NotPublished, branch: str) -> Busy | StorageFailure | GraphReplaced:
    if result.reason == "base_gone":
        return graph_replaced(branch)
    if result.reason == "fence_closed":
        return Busy(
            "This process may not write any more; nothing was published.",
            code="server_draining",
            status=503,
            effects="none",
            retry_after=5,
        )
    if result.reason == "too_old":
        return StorageFailure(
            "The write was prepared more than 12 hours ago and was not sent. Nothing was published.",
            cls=StorageClass.TIMEOUT,
            phase=StoragePhase.PUBLISH,
            effects="none",
        )
    return StorageFailure(
        "The store refused the publication. Nothing was published."
        if result.reason == "refused"
        else "The store could not be reached. Nothing was published.",
        cls=result.cls or StorageClass.CONNECTION,
        phase=StoragePhase.PUBLISH,
        effects="none",
    )


def _write_log(core: GraphCore, built: Built, line: Log) -> None:
    fields: dict[str, str | int] = {
        "graph": core.name,
        "branch": built.manifest.branch,
        "version": built.manifest.version,
        "phase": StoragePhase.PUBLISH.value,
        **dict(line.fields),
    }
    log_event(_LOGGER, line.level, line.event, **fields)
