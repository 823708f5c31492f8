"""What this process believes of branch heads.

A head in memory only rises. The process that owns a graph's writes (`owner`) believes its memory; any other asks storage
at each read and write (one GET above a head it knows, else one LIST and one GET). A branch whose last publication ended
unknown is *uncertain*: until a version after the unknown one's base is known, storage is asked even by the owner. So is
every branch for a while after the lock was taken over from another process, whose last requests may still land.

A head below the one that was known, or of another graph, is no head: what was opened is gone (GraphReplaced).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from omnigraph.ambient import Clock
from omnigraph.engine.logs import log_event
from omnigraph.errors import BranchNotFound
from omnigraph.manifest.chain import (
    BranchList,
    HeadState,
    KnownHead,
    NoHead,
    list_branches,
    relisted_head,
    resolve_head,
    seen_again,
)
from omnigraph.manifest.codec import graph_replaced
from omnigraph.manifest.commits import clock_skew
from omnigraph.manifest.keys import branch_folder, check_branch_name
from omnigraph.store.base import Store

SKEW_EVENT = "the store's time of a head and the time in it are over an hour apart"
_LOGGER = "omnigraph.heads"

FORMER_OWNER_SECONDS = 20 * 60.0
"""For so long after the lock was taken over, requests of the process that had it before may land (storage.md 4)."""

_LOOK_AGAIN_SECONDS = 1.0
"""So long a look is believed meanwhile: at most one look a second."""


class Heads:
    """Branch heads of one graph; `name` is what operators call it. Thread-safe.

    `taken_over_at`: for an owner that has taken the lock on an object store, when it did, on the clock that counts
    suspension. A branch is uncertain then until the first publication on it, or a resolution that began 20 minutes later.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        owner: bool,
        graph: str | None = None,
        name: str | None = None,
        taken_over_at: float | None = None,
    ) -> None:
        self._store = store
        self._graph = graph
        self.name = name
        self._clock = clock
        self.owner = owner
        self._known: dict[str, KnownHead] = {}
        self._uncertain: dict[str, int] = {}  # branch -> version of the base of the unknown publication
        self._listed: tuple[frozenset[str], float] | None = None  # the folders that the owner has seen once, and when
        self._former_until = None if taken_over_at is None else taken_over_at + FORMER_OWNER_SECONDS
        self._looked: dict[str, float] = {}  # when the last resolution of a branch began, while that matters
        self._published: set[str] = set()  # branches that this process has published on since it took over
        self._lock = threading.Lock()

    def current(self, branch: str) -> KnownHead:
        """The head of a live branch. Raises BranchNotFound if it never existed or is deleted; StorageFailure."""
        return self._live(self.state(branch), branch)

    def standing(self, branch: str) -> KnownHead:
        """As `current`, for what is built upon: its object was seen since this was asked, or nobody else can touch it.

        A read may believe for a moment that what was seen is still there; a write must not. Raises GraphReplaced too.
        """
        asked_at = self._clock.boot_seconds()
        head = self._live(self.state(branch), branch)
        alone = self.owner and self._store.local_path is None
        if alone or (head.seen_at is not None and head.seen_at > asked_at):
            return head
        seen = seen_again(self._store, head, clock=self._clock)
        if seen is None:  # this process may have slept while others wrote, and clean-up removed what it knew
            return self._live(self.adopt(relisted_head(self._store, head, clock=self._clock)), branch)
        return self.adopt(seen)

    def base(self, branch: str) -> KnownHead:
        """As `current`, for what a publication will follow, which looks at it by itself (`publish`).

        On a local root, where a look costs next to nothing and staging would make folders anew, it is looked at here too.
        """
        return self.current(branch) if self._store.local_path is None else self.standing(branch)

    @staticmethod
    def _live(head: HeadState, branch: str) -> KnownHead:
        if isinstance(head, NoHead) or not head.live:
            raise BranchNotFound(f"There is no branch '{branch}'.")
        return head

    def state(self, branch: str) -> HeadState:
        """The head, live, deleted or absent."""
        with self._lock:
            known = self._known.get(branch)
            listed = self._listed
            trusted = self.owner and branch not in self._uncertain and not self._former_may_write(branch)
        if trusted and known is not None:
            return known
        if trusted and listed is not None and branch_folder(branch) not in listed[0]:
            return NoHead(branch, listed[1])  # nobody else makes branches here
        return self.resolve(branch)

    def newest(self, head: KnownHead) -> KnownHead:
        """The newest head of its branch that this process knows, at least this one. No request."""
        with self._lock:
            known = self._known.get(head.branch)
        return head if known is None or known.version < head.version else known

    def resolve(self, branch: str) -> HeadState:
        """Ask storage, starting from what is known. Raises InvalidRequest for what can't be a branch name."""
        with self._lock:
            known = self._known.get(branch)
        if known is None:
            check_branch_name(branch)
        asked_at = self._clock.boot_seconds()
        found = resolve_head(self._store, branch, clock=self._clock, graph=self._graph, known=known)
        self._note_look(branch, asked_at)
        return self.adopt(found) if isinstance(found, KnownHead) else found

    def shown(self, branch: str, version: int) -> None:
        """Storage was seen to hold this version: if the head in memory is older, storage is asked from now on, until it
        shows a head that is not (storage.md 4). No request.
        """
        with self._lock:
            known = self._known.get(branch)
            if known is None or known.version < version:
                self._uncertain[branch] = max(version - 1, self._uncertain.get(branch, 0))

    def published(self, head: KnownHead) -> KnownHead:
        """`adopt` of what this process published: no request of a former owner can land on that branch any more."""
        with self._lock:
            if self._former_until is not None:
                self._published.add(head.branch)
        return self.adopt(head)

    def adopt(self, head: KnownHead) -> KnownHead:
        """Take over a head that is known to be published; a lower version than the known one is dropped."""
        with self._lock:
            known = self._known.get(head.branch)
            if known is not None and known.version > head.version:
                return known
            self._known[head.branch] = head
            base = self._uncertain.get(head.branch)
            if base is not None and head.version > base:
                del self._uncertain[head.branch]
        if known is None or known.version < head.version:
            self._report_skew(head)
        return head

    def _report_skew(self, head: KnownHead) -> None:
        """history.md 2.4. Not of a local file that is younger than its commit: it may be a copy's."""
        apart = None if head.stored_at is None else clock_skew(head.stored_at, head.manifest)
        if apart is not None and (apart < 0 or self._store.local_path is None):
            graph = self.name or head.manifest.graph
            fields = {"graph": graph, "branch": head.branch, "version": head.version, "seconds": apart // 1_000_000}
            log_event(_LOGGER, "warning", SKEW_EVENT, **fields)

    def mark_uncertain(self, branch: str, base_version: int) -> None:
        """A publication on this base ended unknown."""
        with self._lock:
            self._uncertain[branch] = max(base_version, self._uncertain.get(branch, 0))

    def uncertain(self, branch: str) -> bool:
        with self._lock:
            return branch in self._uncertain

    def _note_look(self, branch: str, asked_at: float) -> None:
        if self._former_until is not None:
            with self._lock:
                self._looked[branch] = max(asked_at, self._looked.get(branch, 0.0))

    def _former_may_write(self, branch: str) -> bool:
        """Whether a former owner's request may have moved the branch since it was looked at. Called under the lock."""
        return branch not in self._published and self._former_may_write_since(self._looked.get(branch))

    def _former_may_write_since(self, looked: float | None) -> bool:
        until = self._former_until
        if until is None or (looked is not None and looked >= until):
            return False
        return looked is None or self._clock.boot_seconds() - looked >= _LOOK_AGAIN_SECONDS

    def live(self) -> list[KnownHead]:
        """The heads of all live branches, `main` first, then in byte order; from memory in the owner that has listed once.

        Raises StorageFailure, also for a branch whose newest version is damaged.
        """
        with self._lock:
            from_memory = self._listed is not None and not self._former_may_write_since(self._listed[1])
            known = list(self._known.values())
            uncertain = list(self._uncertain)
        if from_memory:
            # one whose creation ended unknown may have landed since
            states = [self.state(name) for name in dict.fromkeys([*(head.branch for head in known), *uncertain])]
            heads = [state for state in states if isinstance(state, KnownHead) and state.live]
            return sorted(heads, key=lambda head: (head.branch != "main", head.branch.encode()))
        found = list_branches(self._store, clock=self._clock, graph=self._graph)
        self._check_listed(found, known)
        if found.damaged:
            raise found.damaged[0]
        heads = [self.adopt(head) for head in found.heads]
        for head in heads:
            self._note_look(head.branch, found.known_at)
        with self._lock:
            self._listed = (found.folders, found.known_at) if self.owner else None
        return heads

    def _check_listed(self, found: BranchList, known: Iterable[KnownHead]) -> None:
        """Raises GraphReplaced if a head that was known before the listing began is neither in it nor in storage."""
        listed = {head.branch: head for head in found.heads}
        for head in known:
            shown = listed.get(head.branch)
            if branch_folder(head.branch) in found.folders and (shown is None or _may_follow(shown, head)):
                continue
            if seen_again(self._store, head, clock=self._clock) is None:
                raise graph_replaced(head.branch)


def _may_follow(shown: KnownHead, known: KnownHead) -> bool:
    """Whether a listed head may be the known one or stand above it; a copy that was put back may have grown as long."""
    if shown.version == known.version:
        return shown.sha256 == known.sha256
    if shown.version == known.version + 1:
        return shown.manifest.base == known.as_base
    return shown.version > known.version
