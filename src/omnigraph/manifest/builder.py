"""The next manifest of a branch, as a pure function of its base and of what the engine decided.

No clock, no randomness, no storage: times and nonces are arguments, and what has to be stored before the manifest is
returned beside it. What this module guarantees is the shape of the chain: version, base digest, life, parents,
generation, rising `created_at`, and a log that is closed under parents. What a commit means is the engine's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from omnigraph.manifest.chain import HeadState, KnownHead, NoHead
from omnigraph.manifest.codec import check_writable, digest, to_bytes
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.lineage import SegmentToWrite, appended, log_length
from omnigraph.manifest.model import (
    Commit,
    CommitKind,
    Counts,
    CreatedFrom,
    Idempotency,
    Lineage,
    Manifest,
    Origin,
    Touch,
    TypeEntry,
)

MAIN = "main"


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """What the engine knows of a commit. Its place (id, parents, generation, time) follows from the base."""

    nonce: str  # 16 random hex digits
    kind: CommitKind
    actor: str | None
    message: str | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict[str, Counts])
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    touched: Mapping[str, Touch] = field(default_factory=dict[str, Touch])
    origin: Origin | None = None
    idempotency: Idempotency | None = None
    affected: tuple[int, int] | None = None
    ids: tuple[str, ...] = ()
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    merged: Commit | None = None  # merge: the source's head commit, which becomes the second parent


@dataclass(frozen=True, slots=True)
class Built:
    """A manifest to publish, its bytes, and the log segments to store (fresh puts) before it is published."""

    manifest: Manifest
    data: bytes
    segments: tuple[SegmentToWrite, ...] = ()

    @property
    def sha256(self) -> str:
        return digest(self.data)


def base_label(base: HeadState) -> str:
    """The transaction property `omnigraph.base` of what is staged for the version after `base`.

    >>> base_label(NoHead("main", 0.0))
    'main@0'
    """
    return f"{base.branch}@{base.version}"


def minted_at(now_us: int, first_parent: Commit | None) -> int:
    """`created_at` of a commit: the clock, but always later than the first parent, whatever the clock did."""
    return now_us if first_parent is None else max(now_us, first_parent.created_at + 1)


def genesis(
    *,
    graph: str,
    schema: str,
    draft: CommitDraft,
    now_us: int,
    nonce: str,
    types: Mapping[str, TypeEntry] | None = None,
) -> Built:
    """Version 1 of `main`: a commit without parents, so that everything else has one."""
    commit = _commit(draft, MAIN, 1, None, now_us)
    return _built(
        Manifest(
            graph=graph,
            branch=MAIN,
            version=1,
            state="active",
            life=1,
            base=None,
            forked_from=None,
            created_from=None,
            commits=(commit,),
            schema=schema,
            types=dict(types or {}),
            lineage=Lineage((replace(commit, files={}),)),
            nonce=nonce,
        )
    )


def next_version(
    base: KnownHead,
    drafts: Sequence[CommitDraft],
    *,
    now_us: int,
    nonce: str,
    types: Mapping[str, TypeEntry] | None = None,
    schema: str | None = None,
    absorbed: Sequence[Commit] = (),
    log: Lineage | None = None,
) -> Built:
    """The version that publishes these commits on a live base, in this order, each on the one before it.

    `types` and `schema` are the whole new state, the base's where left out. `absorbed` are the records that a merge
    takes in from the source's log (`logs.taken_in`), which go into the log before the first draft. `log` is the base's
    log with its segments joined (`tiers.joined`). Raises FormatMismatch if the base needs a newer writer, ValueError if
    the base is deleted, there is nothing to publish, or `log` is not the base's.
    """
    if not base.live:
        raise ValueError("a commit can't follow a version that deleted its branch")
    if not drafts:
        raise ValueError("a version publishes at least one commit")
    commits = _chained(drafts, base.branch, base.version + 1, base.manifest.head_commit, now_us)
    before = base.manifest.lineage if log is None else log
    if before.window != base.manifest.lineage.window or log_length(before) != log_length(base.manifest.lineage):
        raise ValueError("this is not the log of the base")
    lineage, segments = appended(before, (*absorbed, *commits), branch=base.branch, nonce=nonce)
    following = _following(base, nonce)
    return _built(
        replace(
            following,
            commits=commits,
            schema=base.manifest.schema if schema is None else schema,
            types=base.manifest.types if types is None else dict(types),
            lineage=lineage,
        ),
        segments,
    )


def forked(
    target: HeadState,
    source: Manifest,
    *,
    nonce: str,
    created_from: CreatedFrom,
    drafts: Sequence[CommitDraft] = (),
    now_us: int = 0,
    types: Mapping[str, TypeEntry] | None = None,
) -> Built:
    """The first version of a new life of the branch `target`: the state of `source`, which names its own last commit.

    `target` is the deleted head of the name, or NoHead. Without drafts the version publishes no commit; with them it
    publishes a fork and its first commits as one version (load into a new branch). Raises ValueError if the branch is
    live, FormatMismatch if a newer writer is needed.
    """
    if isinstance(target, KnownHead):
        if target.live:
            raise ValueError("the branch is live")
        check_writable(target.manifest)
    check_writable(source)
    version = target.version + 1
    commits = _chained(drafts, target.branch, version, source.head_commit, now_us)
    lineage, segments = appended(source.lineage, commits, branch=target.branch, nonce=nonce)
    manifest = Manifest(
        graph=source.graph,
        branch=target.branch,
        version=version,
        state="active",
        life=version,
        base=target.as_base if isinstance(target, KnownHead) else None,
        forked_from=source.head_commit.id,
        created_from=created_from,
        commits=commits,
        schema=source.schema,
        types=source.types if types is None else dict(types),
        lineage=lineage,
        nonce=nonce,
        min_writer=source.min_writer,
    )
    return _built(manifest, segments)


def deletion(base: KnownHead, *, nonce: str) -> Built:
    """The version that deletes a live branch; it keeps types and log of the head it ends.

    Raises ValueError for `main` and for a branch that is deleted already, FormatMismatch as `next_version`.
    """
    if base.branch == MAIN:
        raise ValueError("main can't be deleted")
    if not base.live:
        raise ValueError("the branch is deleted already")
    return _built(replace(_following(base, nonce), state="deleted"))


def never_created(absent: NoHead, source: Manifest, *, nonce: str) -> Built:
    """A deleted version 1 of a name that never came to exist, so that a late request to create it can't land.

    It borrows log and types of `source`, since every version has a log.
    """
    born = forked(absent, source, nonce=nonce, created_from=CreatedFrom(None, None)).manifest
    return _built(replace(born, state="deleted"))


def _following(base: KnownHead, nonce: str) -> Manifest:
    """The base's manifest one version on, without commits."""
    check_writable(base.manifest)
    return replace(base.manifest, version=base.version + 1, base=base.as_base, commits=(), nonce=nonce)


def _chained(
    drafts: Sequence[CommitDraft], branch: str, version: int, parent: Commit, now_us: int
) -> tuple[Commit, ...]:
    commits: list[Commit] = []
    for draft in drafts:
        parent = _commit(draft, branch, version, parent, now_us)
        commits.append(parent)
    return tuple(commits)


def _commit(draft: CommitDraft, branch: str, version: int, parent: Commit | None, now_us: int) -> Commit:
    parents = tuple(commit for commit in (parent, draft.merged) if commit is not None)
    return Commit(
        id=CommitId(branch, version, draft.nonce),
        parents=tuple(commit.id for commit in parents),
        generation=1 + max((commit.generation for commit in parents), default=-1),
        kind=draft.kind,
        actor=draft.actor,
        created_at=minted_at(now_us, parent),
        message=draft.message,
        counts=draft.counts,
        names=draft.names,
        touched=draft.touched,
        origin=draft.origin,
        idempotency=draft.idempotency,
        affected=draft.affected,
        ids=draft.ids,
        files=draft.files,
    )


def _built(manifest: Manifest, segments: tuple[SegmentToWrite, ...] = ()) -> Built:
    return Built(manifest, to_bytes(manifest), segments)
