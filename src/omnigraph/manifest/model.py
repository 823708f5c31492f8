"""The manifest object and the records in it (storage.md 1, history.md 0.3 and 2).

Frozen values; `to_bytes`/`from_bytes` in `manifest/codec.py` give the canonical JSON. Times are microseconds since
1970-01-01 UTC. Table versions are integers here and decimal strings in the object, since detached versions use the top bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.manifest.ids import CommitId

CommitKind = Literal[
    "genesis",
    "mutation",
    "load",
    "blob",
    "embed",
    "merge",
    "schema",
    "optimize",
    "index",
    "restore",
    "neutral",
    "import",
]
Touch = Literal["append", "change", "layout", "drop"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of one type against the first parent, cascades included."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Idempotency:
    """SHA-256, hex: of the key (with its actor) and of the request."""

    key: str
    request: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a commit's state came from, as it applies."""

    source_branch: str | None = None
    source_life: int | None = None
    source_commit: str | None = None
    bases: tuple[str, ...] = ()
    restored_from: str | None = None
    imported_from: str | None = None
    proposal: str | None = None
    resolved: int | None = None  # merge: how many resolutions were used


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: an entry of a manifest's `commits` and, without `files`, a record of the log."""

    id: CommitId
    parents: tuple[CommitId, ...]
    generation: int
    kind: CommitKind
    actor: str | None
    created_at: int
    message: str | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict[str, Counts])  # by type id
    names: Mapping[str, str] = field(default_factory=dict[str, str])  # type id -> "node:Paper", as named at the time
    touched: Mapping[str, Touch] = field(default_factory=dict[str, Touch])  # by type id
    origin: Origin | None = None
    idempotency: Idempotency | None = None
    affected: tuple[int, int] | None = None  # mutation receipts: affected nodes, affected edges
    ids: tuple[str, ...] = ()  # mutation receipts: ids of the inserts, so that a replay can give them
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # by type id


@dataclass(frozen=True, slots=True)
class TablePin:
    """A table at one version. `path` is the dataset's folder relative to the graph root.

    `without`: names of data files whose rows are not part of the state, for a commit inside a group; never stored.
    """

    path: str
    version: int
    without: tuple[str, ...] = ()


def content_label(pin: TablePin | None) -> str:
    """The `content` of a type whose rows last changed at this pin; "none" if it never held a row.

    >>> content_label(TablePin("nodes/a1-01J", 9223372036854775809))
    'nodes/a1-01J@9223372036854775809'
    """
    return "none" if pin is None else f"{pin.path}@{pin.version}"


@dataclass(frozen=True, slots=True)
class TypeEntry:
    """What a manifest says of one type. A type that never held a row has no pin."""

    kind: Literal["node", "edge"]
    name: str
    pin: TablePin | None
    content: str  # label of the rows as values: equal labels mean equal rows; "none" while it never held a row
    rows: int = 0
    bytes: int = 0
    indexes: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """An immutable run of the log in an object of its own (history.md 2.3, L6)."""

    name: str  # key relative to the graph root
    sha256: str
    records: int
    generations: tuple[int, int]
    created: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Lineage:
    """The branch's log: `segments` older first, then the `window` of the newest records, parents before children."""

    window: tuple[Commit, ...]
    segments: tuple[SegmentRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Base:
    """The manifest object this one follows."""

    version: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CreatedFrom:
    """How a life of a branch began: the branch and life named as source, the creation's idempotency digests, and when
    (None in what was written before this was kept).
    """

    branch: str | None
    life: int | None
    idempotency: Idempotency | None = None
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    graph: str  # ULID of the graph
    branch: str
    version: int
    state: Literal["active", "deleted"]
    life: int  # the version that began this life of the branch
    base: Base | None
    forked_from: CommitId | None
    created_from: CreatedFrom | None
    commits: tuple[Commit, ...]
    schema: str  # digest that names the schema objects
    types: Mapping[str, TypeEntry]  # by type id
    lineage: Lineage
    nonce: str  # 32 hex digits
    min_writer: int = 1  # the format a program must know to publish on top of this version

    @property
    def head_commit(self) -> Commit:
        """The last commit of the log: for a branch without commits of its own, the commit it was forked from."""
        return self.lineage.window[-1]
