"""Publishing what waits in a lane: one table commit a type, one manifest version, a commit and a receipt for each writer.

    head -> judge who waits against it -> take in who can share -> commit tables -> publish -> settle everyone taken in

All or none of a group become visible, by one conditional request. A writer that has to prepare again, or whose key was
answered meanwhile, is settled on its own and holds up nobody. Whatever happens here, each entry that was taken in is
settled: its writer waits on another thread.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence

from omnigraph.ambient import random_hex
from omnigraph.engine.core import GraphCore
from omnigraph.engine.lookups import find_ids, one_array
from omnigraph.engine.writing.entry import Again, Entry, Failed, WriteRequest, Written
from omnigraph.engine.writing.judge import PrepareAgain, Rebase, verdict
from omnigraph.engine.writing.looking import looked_at_beside
from omnigraph.engine.writing.publication import Attempted, attempt, unknown_outcomes
from omnigraph.engine.writing.replay import find_replay
from omnigraph.engine.writing.sharing import Company
from omnigraph.engine.writing.staging import CommittedType, StagedPlan, carry_on, commit_together
from omnigraph.errors import InternalError, OmnigraphError, PreconditionFailed, StorageFailure
from omnigraph.manifest.builder import Built, CommitDraft, base_label, next_version
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.model import Manifest
from omnigraph.manifest.publish import Published
from omnigraph.tables.columns import ID
from omnigraph.tables.stage import PinMoved

_REBASES_MAX = 64


def publish_together(entries: Sequence[Entry]) -> None:
    """Publish the first of these and whoever can share its version; those that can't yet are left as they are.

    All share a branch. Raises what is unforeseen, with everyone settled.
    """
    core = entries[0].core
    ours = [entry for entry in entries if entry.core is core]  # another handle has tables and heads of its own
    _Round(core, ours).run()


class _Round:
    """One leader's work: publishes once, unless all that waits has to be prepared again."""

    def __init__(self, core: GraphCore, entries: Sequence[Entry]) -> None:
        self._core = core
        self._entries = entries
        self._sent: tuple[Built, KnownHead, Sequence[Entry]] | None = None  # while nobody knows how it ends
        self._landed: tuple[Manifest, Sequence[Entry]] | None = None  # once everybody may know

    def run(self) -> None:
        try:
            self._run()
        except Exception:  # a fault of ours, which the next leader would meet as well: those who wait must be told
            self._settle_abandoned()
            self._settle_the_rest()
            raise
        except (
            BaseException
        ):  # an interrupt is its own thread's: who waits on others and was not sent is led by the next
            self._settle_abandoned()
            raise

    def _run(self) -> None:
        head = self._core.heads.newest(max((entry.base for entry in self._entries), key=lambda base: base.version))
        for _ in range(_REBASES_MAX):
            group = self._taken_in(head)
            moved = self._published(head, group) if group else None
            if moved is None:
                return
            head = moved
        for entry in self._taken_in(head):  # judged once more, since the last version met may hold their keys
            entry.settle(Again(PrepareAgain("branch_head"), head))

    def _taken_in(self, head: KnownHead) -> list[Entry]:
        """Who shares the version after `head`; those that can't follow it are settled."""
        company = Company()
        group: list[Entry] = []
        for entry in self._entries:
            if entry.settled or company.full:
                continue
            refusal = self._refusal(entry, head)
            if refusal is not None:
                entry.settle(refusal)
            elif company.take(entry.staged, key=_key(entry), growth=_growth(entry)):
                group.append(entry)
        return group

    def _refusal(self, entry: Entry, head: KnownHead) -> Again | Failed | Written | None:
        """Why an entry can't follow `head` as it is, if so; or the answer that its key had meanwhile."""
        if head.version == entry.base.version:
            return None
        core, request = self._core, entry.request
        try:
            replayed = find_replay(
                core, head, request.idempotency, key=request.idempotency_key, base=entry.base.manifest.head_commit
            )
            if replayed is not None:
                return Written(replayed, head.manifest, None, replayed=True)
            check_condition(request.if_commit, head)
            judged = verdict(
                entry.plan.footprint,
                entry.base.manifest,
                head.manifest,
                lambda type_id: self._taken(entry, head, type_id),
            )
        except OmnigraphError as error:
            return Failed(error)
        return None if isinstance(judged, Rebase) else Again(judged, head)

    def _taken(self, entry: Entry, head: KnownHead, type_id: str) -> bool:
        """Whether an id that the entry appends is in the head by now. Raises StorageFailure."""
        snapshot = self._core.snapshot(head.manifest)
        for change in entry.plan.changes:
            if change.entity.id == type_id and change.rows is not None and not change.made_ids:
                return bool(find_ids(snapshot, change.entity, one_array(change.rows.column(ID))).present.any())
        return False

    def _published(self, head: KnownHead, group: Sequence[Entry]) -> KnownHead | None:
        """Publish a group after `head` and settle it; or the head that was met instead."""
        core = self._core
        captured_at = min(entry.captured_at for entry in group)
        plans = [entry.staged for entry in group]
        try:
            (types, committed), seen = looked_at_beside(
                core, head, captured_at, lambda: commit_together(core, head, plans, label=base_label(head))
            )
        except PinMoved:
            if len(group) > 1:
                return self._published(head, group[:1])
            group[0].settle(Again(PrepareAgain("pin"), head))
            return None
        except StorageFailure as error:
            for entry in group:
                entry.settle(Failed(_once_more(error)))
            return None
        plan = group[0].plan
        built = next_version(
            head,
            _drafts(group, committed),
            now_us=core.clock.now_us(),
            nonce=random_hex(32),
            types=types,
            schema=plan.schema,
            absorbed=plan.absorbed,
        )
        self._sent = built, head, group
        result = attempt(
            core,
            built,
            seen,
            staged_at=captured_at,
            kind="commit",
            keys=[entry.request.idempotency_key for entry in group],
        )
        if isinstance(result, Published):
            self._landed = result.manifest, group
            carry_on(core, head.manifest, result.manifest, committed)
            self._settle_landed()
            return None
        self._sent = None
        if isinstance(result, Attempted):
            for entry, error in zip(group, result.errors, strict=True):
                entry.settle(Failed(error))
            return None
        return result.actual

    def _settle_landed(self) -> None:
        assert self._landed is not None
        manifest, group = self._landed
        for entry, commit in zip(group, manifest.commits, strict=True):
            entry.settle(Written(commit, manifest, entry.plan))

    def _settle_abandoned(self) -> None:
        """This thread was stopped, by an interrupt or by a fault: those whose commit may have been sent are told what is known."""
        if self._landed is not None:
            self._settle_landed()
        elif self._sent is not None:
            built, head, group = self._sent
            keys = [entry.request.idempotency_key for entry in group]
            errors = unknown_outcomes(self._core, built, head, kind="commit", keys=keys)
            for entry, error in zip(group, errors, strict=True):
                error.by_fault = True
                entry.settle(Failed(error))

    def _settle_the_rest(self) -> None:
        for entry in self._entries:
            entry.settle(
                Failed(InternalError("The write was stopped by a fault before it was published.", effects="none"))
            )


def check_condition(expected: str | None, head: KnownHead) -> None:
    """Raises PreconditionFailed if a head commit was named and it is another one."""
    actual = str(head.manifest.head_commit.id)
    if expected is not None and expected != actual:
        raise PreconditionFailed(
            f"The head of branch '{head.branch}' is not the commit that was named.", expected=expected, actual=actual
        )


def _drafts(group: Sequence[Entry], committed: Sequence[CommittedType]) -> list[CommitDraft]:
    shared = {each.type_id for each in committed if len(each.shares) > 1}
    return [commit_draft(entry.request, entry.staged, shared) for entry in group]


def commit_draft(request: WriteRequest, staged: StagedPlan, shared: Container[str] = ()) -> CommitDraft:
    """What the log will say of a write. `shared`: the types to which others of its version append too."""
    plan, changes = staged.plan, staged.plan.changes
    return CommitDraft(
        nonce=random_hex(16),
        kind=plan.kind,
        actor=request.actor,
        message=request.message,
        counts={change.entity.id: change.counts for change in changes} | dict(plan.counts),
        names={change.entity.id: f"{change.entity.kind}:{change.entity.name}" for change in changes} | dict(plan.names),
        touched=staged.touched | dict(plan.touched),
        origin=plan.origin,
        idempotency=request.idempotency,
        affected=plan.affected,
        ids=plan.ids if request.idempotency is not None else (),  # kept for a replay, and for nothing else
        files={each.type_id: each.staged.files for each in staged.types if each.type_id in shared},
        merged=plan.merged,
    )


def _key(entry: Entry) -> str | None:
    given = entry.request.idempotency
    return None if given is None else given.key


_RECORD_BYTES, _TYPE_BYTES = 500, 200


def _growth(entry: Entry) -> int:
    """What a commit adds to the manifest, at most: it stands there twice, among the commits and in the log, and among the
    commits with the names of its files.
    """
    ids = entry.plan.ids if entry.request.idempotency is not None else ()
    free = len(entry.request.message or "") + len(entry.request.actor or "")  # what is escaped takes six bytes at most
    record = _RECORD_BYTES + 6 * free + sum(len(json.dumps(each, ensure_ascii=False).encode()) + 2 for each in ids)
    types = sum(_TYPE_BYTES + len(change.entity.name) for change in entry.plan.changes)
    files = sum(len(name) + 4 for each in entry.staged.types for name in each.staged.files)
    return 2 * (record + types) + files


def _once_more(error: StorageFailure) -> StorageFailure:
    """The same failure as an error of another write's own."""
    return StorageFailure(error.message, cls=error.cls, phase=error.phase, effects="none", retry=error.retry)
