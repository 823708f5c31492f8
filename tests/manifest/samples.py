"""Values for the tests of this room: small histories, and strategies for whole manifests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from omnigraph.manifest.builder import Built, CommitDraft, forked, genesis, next_version
from omnigraph.manifest.chain import HeadState, KnownHead, NoHead
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import version_key
from omnigraph.manifest.model import (
    Base,
    Commit,
    Counts,
    CreatedFrom,
    Idempotency,
    Lineage,
    Manifest,
    Origin,
    SegmentRef,
    TablePin,
    TypeEntry,
    content_label,
)
from omnigraph.store.base import Created, Store

GRAPH = "01J0000000000000000000GRPH"
SCHEMA = "5c" * 32


def nonce(number: int) -> str:
    """The nonce of a commit."""
    return f"{number:016x}"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def draft(number: int, **fields: object) -> CommitDraft:
    """A commit that differs from others by its number."""
    given: dict[str, object] = {"nonce": nonce(number), "kind": "mutation", "actor": "ann", **fields}
    return CommitDraft(**given)  # type: ignore[arg-type]


def first_version(now_us: int = 1_000) -> Built:
    return genesis(graph=GRAPH, schema=SCHEMA, draft=draft(0, kind="genesis"), now_us=now_us, nonce="0" * 32)


def head(built: Built, known_at: float = 1_000.0, seen_at: float | None = None) -> KnownHead:
    """What a process knows that has published this, and has not looked at it unless it says so."""
    return KnownHead(built.manifest, built.sha256, known_at, seen_at=seen_at)


def follow(base: KnownHead, *numbers: int, now_us: int = 0, drafts: Sequence[CommitDraft] = ()) -> Built:
    """The next version on a base: one commit for each number, and these drafts."""
    built_from = [*(draft(number) for number in numbers), *drafts]
    return next_version(base, built_from, now_us=now_us, nonce=f"{base.branch}{base.version + 1}{numbers}")


def fork(branch: str, source: Manifest, target: HeadState | None = None, *, name: str = "", **fields: object) -> Built:
    """A branch from the last commit of `source`; `name` becomes its nonce."""
    absent = NoHead(branch, 1_000.0)
    return forked(
        target or absent,
        source,
        nonce=name or f"fork {branch} {source.version}",
        created_from=CreatedFrom(source.branch, source.life),
        **fields,  # type: ignore[arg-type]
    )


def put(store: Store, built: Built) -> None:
    """Store a version and its segments, as a publication would; a taken key is a fault of the test."""
    for segment in built.segments:
        store.put_fresh(segment.key, segment.data)
    manifest = built.manifest
    assert isinstance(store.create(version_key(manifest.branch, manifest.version), built.data), Created)


def published_chain(store: Store, length: int, *, known_at: float = 1_000.0) -> list[KnownHead]:
    """`main` with so many versions, each of one commit; the heads, oldest first."""
    built = first_version()
    put(store, built)
    heads = [head(built, known_at)]
    for number in range(1, length):
        built = follow(heads[-1], number, now_us=1_000 * (number + 1))
        put(store, built)
        heads.append(head(built, known_at))
    return heads


# --- strategies

texts = st.text(st.characters(codec="utf-8"), max_size=12)
branch_names = st.text(st.characters(codec="utf-8", exclude_characters="@"), min_size=1, max_size=12)
hex_digits = st.integers(0, 2**256 - 1).map(lambda number: f"{number:064x}")
nonces = st.integers(0, 2**64 - 1).map(lambda number: f"{number:016x}")
numbers = st.integers(0, 2**63 - 1)
versions = st.integers(1, 2**63 - 2)
type_ids = st.sampled_from(["0011223344556677", "8899aabbccddeeff", "a" * 16, "t"])
commit_ids = st.builds(CommitId, branch_names, versions, nonces)
idempotencies = st.builds(Idempotency, hex_digits, hex_digits)
pairs = st.tuples(numbers, numbers)
origins = st.builds(
    Origin,
    source_branch=st.none() | texts,
    source_life=st.none() | versions,
    source_commit=st.none() | texts,
    bases=st.lists(texts, max_size=2).map(tuple),
    restored_from=st.none() | texts,
    imported_from=st.none() | texts,
    proposal=st.none() | texts,
    resolved=st.none() | numbers,
)


def commits(*, files: bool) -> st.SearchStrategy[Commit]:
    """Any commit; a record of the log has no files."""
    return st.builds(
        Commit,
        id=commit_ids,
        parents=st.lists(commit_ids, max_size=2).map(tuple),
        generation=numbers,
        kind=st.sampled_from(["genesis", "mutation", "merge", "neutral"]),
        actor=st.none() | texts,
        created_at=st.integers(-(2**62), 2**62),
        message=st.none() | texts,
        counts=st.dictionaries(type_ids, st.builds(Counts, numbers, numbers, numbers), max_size=3),
        names=st.dictionaries(type_ids, texts, max_size=3),
        touched=st.dictionaries(type_ids, st.sampled_from(["append", "change", "layout", "drop"]), max_size=3),
        origin=st.none() | origins,
        idempotency=st.none() | idempotencies,
        affected=st.none() | pairs,
        ids=st.lists(texts, max_size=2).map(tuple),
        files=st.dictionaries(type_ids, st.lists(texts, max_size=2).map(tuple), max_size=2) if files else st.just({}),
    )


def runs(*, files: bool, min_size: int = 0) -> st.SearchStrategy[tuple[Commit, ...]]:
    """Lists of commits, many of which follow the one before them as they do in a log."""

    def chained(items: list[tuple[Commit, bool]]) -> tuple[Commit, ...]:
        result: list[Commit] = []
        for commit, follows in items:
            if follows and result:
                before = result[-1]
                commit_id = CommitId(before.id.branch, commit.id.version, commit.id.nonce)
                commit = _replaced(commit, commit_id, before)
            result.append(commit)
        return tuple(result)

    return st.lists(st.tuples(commits(files=files), st.booleans()), min_size=min_size, max_size=4).map(chained)


def _replaced(commit: Commit, commit_id: CommitId, before: Commit) -> Commit:
    return replace(commit, id=commit_id, parents=(before.id,), generation=before.generation + 1)


pins = st.builds(TablePin, texts, st.integers(0, 2**64 - 1))
json_values = st.recursive(st.none() | st.booleans() | numbers | texts, lambda inner: st.lists(inner, max_size=2))


@st.composite
def type_entries(draw: st.DrawFn) -> TypeEntry:
    pin = draw(st.none() | pins)
    return TypeEntry(
        kind=draw(st.sampled_from(["node", "edge"])),
        name=draw(texts),
        pin=pin,
        content=draw(st.just(content_label(pin)) | texts),
        rows=draw(numbers),
        bytes=draw(numbers),
        indexes=draw(st.dictionaries(texts, json_values, max_size=2)),
    )


segment_refs = st.builds(SegmentRef, texts, hex_digits, numbers, pairs, pairs)
manifests = st.builds(
    Manifest,
    graph=texts,
    branch=branch_names,
    version=versions,
    state=st.sampled_from(["active", "deleted"]),
    life=versions,
    base=st.none() | st.builds(Base, versions, hex_digits),
    forked_from=st.none() | commit_ids,
    created_from=st.none()
    | st.builds(
        CreatedFrom,
        st.none() | texts,
        st.none() | versions,
        st.none() | idempotencies,
        st.none() | st.integers(0, 2**62),
    ),
    commits=runs(files=True),
    schema=hex_digits,
    types=st.dictionaries(type_ids, type_entries(), max_size=3),
    lineage=st.builds(Lineage, runs(files=False, min_size=1), st.lists(segment_refs, max_size=2).map(tuple)),
    nonce=texts,
    min_writer=st.integers(1, 9),
)
