"""A load into a branch that does not exist: fork and load are one version (history.md 9.4).

Nobody ever sees the branch empty, and a failed load leaves no branch.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ambient import random_hex
from omnigraph.engine.core import GraphCore
from omnigraph.engine.load.operation import LoadOperation
from omnigraph.engine.reading.interior import of_its_own
from omnigraph.engine.writing.branches import fork_source, refuse_branch
from omnigraph.engine.writing.entry import WriteRequest, Written
from omnigraph.engine.writing.groups import commit_draft
from omnigraph.engine.writing.publication import publish_version
from omnigraph.engine.writing.replay import find_ended_replay
from omnigraph.engine.writing.staging import carry_on, commit_together, stage_plan
from omnigraph.engine.writing.write import write
from omnigraph.errors import AlreadyExists, BranchNotFound
from omnigraph.manifest.builder import base_label, forked
from omnigraph.manifest.chain import HeadState, KnownHead
from omnigraph.manifest.keys import check_branch_name
from omnigraph.manifest.publish import Published


def load_into_fork(core: GraphCore, request: WriteRequest, load: LoadOperation, from_: str) -> tuple[Written, bool]:
    """The write, and whether the branch was created. A live branch takes an ordinary load.

    Raises AlreadyExists if the branch is live and was created from another one; what `write` raises.
    """
    check_branch_name(request.branch)
    captured_at = core.clock.boot_seconds()
    target = core.heads.state(request.branch)
    if isinstance(target, KnownHead) and target.live:
        return _onto_live(core, request, target, from_)
    ended = None if request.key_is_new else find_ended_replay(core, request.branch, request.idempotency)
    if ended is not None:
        return Written(ended.commit, ended.manifest, None, replayed=True), ended.began_the_life
    with core.writing(request.branch):
        written = _forked(core, request, load, from_, target, captured_at)
    if written is not None:
        return written, written.commit is not None  # without records nothing was published, so no branch came to be
    try:
        now_live = core.head(request.branch)
    except BranchNotFound:  # gone again: this request may have been answered by the life that ended
        ended = find_ended_replay(core, request.branch, request.idempotency)
        if ended is None:
            raise
        return Written(ended.commit, ended.manifest, None, replayed=True), ended.began_the_life
    return _onto_live(core, request, now_live, from_)


def _onto_live(core: GraphCore, request: WriteRequest, head: KnownHead, from_: str) -> tuple[Written, bool]:
    made = head.manifest.created_from
    if made is None or made.branch != from_:
        raise AlreadyExists(f"There is a branch '{request.branch}' already, and it was not created from '{from_}'.")
    written = write(core, request)
    first = written.commit if written.replayed else None
    return written, first is not None and first.id.version == written.manifest.life


def _forked(
    core: GraphCore, request: WriteRequest, load: LoadOperation, from_: str, target: HeadState, captured_at: float
) -> Written | None:
    """None if the branch came to be meanwhile."""
    source = fork_source(core, from_, request.idempotency)
    refuse_branch(core, request.branch)
    plan = load.plan(core.snapshot(source.manifest))
    if plan is None:
        return Written(None, source.manifest, None)
    state = of_its_own(core, source.manifest, label=base_label(target))
    plan = replace(plan, types=state.types)
    staged = stage_plan(core, target, plan)
    types, committed = commit_together(core, target, [staged], label=base_label(target))
    built = forked(
        target,
        state,
        nonce=random_hex(32),
        created_from=source.created_from,
        drafts=[commit_draft(request, staged)],
        now_us=core.clock.now_us(),
        types=types,
    )
    result = publish_version(core, built, target, staged_at=captured_at, kind="commit", key=request.idempotency_key)
    if not isinstance(result, Published):
        return None
    carry_on(core, state, result.manifest, committed)
    return Written(result.manifest.commits[-1], result.manifest, plan)
