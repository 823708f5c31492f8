"""What all operations of one open graph share: its store, tables, caches, heads, lanes and clock.

Components, not decisions: each operation has a file of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from omnigraph.ambient import Clock, SystemClock
from omnigraph.embed.embedder import Embedder
from omnigraph.engine.checked import CheckedQueries
from omnigraph.engine.heads import Heads
from omnigraph.engine.lanes import Lanes, Ticket
from omnigraph.engine.limits import LoadLimits
from omnigraph.engine.schemas import SchemaStore
from omnigraph.engine.settings import RequestSettings
from omnigraph.errors import BranchNotFound, FormatMismatch, OmnigraphError, StorageFailure
from omnigraph.lang.query.faults import nearest_name
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.failures import reading
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import MANIFESTS, check_branch_name, folder_branch
from omnigraph.manifest.lineage import LogReader
from omnigraph.manifest.model import Manifest
from omnigraph.manifest.publish import FenceOpen, FenceState
from omnigraph.query.residency import Residency
from omnigraph.query.snapshot import Snapshot
from omnigraph.store.base import Store
from omnigraph.tables.store import TableStore

_SNAPSHOTS_KEPT = 16


def _always_open() -> FenceState:
    return FenceOpen()


@dataclass
class GraphCore:
    """One open graph in this process. Thread-safe.

    `owner`: this process alone writes the graph (it holds the lock), so heads in memory are believed, but for what
    `taken_over_at` brings (`Heads`). `fence` says whether it may still write. `settings` are the defaults of reads.
    `write_guard` is entered around every write; it raises if this process may not write now. `embedder` makes vectors of
    the texts of queries. `name` is what operators call the graph; its id where nobody has named it.
    """

    store: Store
    tables: TableStore
    graph_id: str
    owner: bool = False
    taken_over_at: float | None = None
    clock: Clock = field(default_factory=SystemClock)
    fence: Callable[[], FenceState] = _always_open
    residency: Residency = field(default_factory=Residency)
    limits: LoadLimits = field(default_factory=LoadLimits)
    settings: RequestSettings = field(default_factory=RequestSettings)
    lanes: Lanes = field(default_factory=Lanes)
    write_guard: Callable[[], AbstractContextManager[object]] = nullcontext
    embedder: Embedder | None = None
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or self.graph_id
        self.schemas = SchemaStore(self.store)
        self.history = LogReader(self.store)
        self.heads = Heads(
            self.store,
            self.clock,
            owner=self.owner,
            graph=self.graph_id,
            name=self.name,
            taken_over_at=self.taken_over_at,
        )
        self.checked = CheckedQueries()
        self._snapshots: OrderedDict[tuple[str, CommitId], Snapshot] = OrderedDict()
        self._lock = threading.Lock()

    def called(self, name: str) -> None:
        """What operators call the graph, from now on."""
        self.name = self.heads.name = name

    def snapshot(self, manifest: Manifest) -> Snapshot:
        """The state that a manifest pins. Raises StorageFailure if its schema can't be read."""
        key = (manifest.nonce, manifest.head_commit.id)  # a version may hold the states of several commits
        with self._lock:
            found = self._snapshots.get(key)
            if found is not None:
                self._snapshots.move_to_end(key)
                return found
        catalog = self.schemas.catalog(manifest.schema)
        made = Snapshot(manifest, catalog, self.tables, self.residency)
        with self._lock:
            made = self._snapshots.setdefault(key, made)
            while len(self._snapshots) > _SNAPSHOTS_KEPT:
                self._snapshots.popitem(last=False)
        return made

    def head_snapshot(self, branch: str) -> Snapshot:
        """The head of a live branch at this moment. Raises BranchNotFound, StorageFailure."""
        return self.snapshot(self.head(branch).manifest)

    def head(self, branch: str) -> KnownHead:
        """The head of a live branch. Raises BranchNotFound, with a live name that is near if there is one; StorageFailure."""
        return self._named(self.heads.current, branch)

    def base(self, branch: str) -> KnownHead:
        """As `head`, for what a publication will follow and look at. Raises GraphReplaced too."""
        return self._named(self.heads.base, branch)

    def standing(self, branch: str) -> KnownHead:
        """As `head`, for what is built upon: seen in storage since this was asked. Raises GraphReplaced too."""
        return self._named(self.heads.standing, branch)

    def _named(self, ask: Callable[[str], KnownHead], branch: str) -> KnownHead:
        try:
            return ask(branch)
        except BranchNotFound as missing:
            near = self._near(branch)
            raise BranchNotFound(missing.message + (f" Did you mean '{near}'?" if near else "")) from None

    def _near(self, branch: str) -> str | None:
        """A live branch that a misspelt name most likely means."""
        try:
            near = nearest_name(branch, set(self.branch_names()) - {branch})
            state = None if near is None else self.heads.state(near)
        except OmnigraphError:  # a suggestion is no reason for another failure
            return None
        return near if isinstance(state, KnownHead) and state.live else None

    def branch_names(self) -> list[str]:
        """Names of branches, some of them perhaps deleted: from memory in the owner, else by one LIST. Raises StorageFailure."""
        if self.owner:
            try:
                return [head.branch for head in self.heads.live()]
            except (StorageFailure, FormatMismatch):
                pass  # one of them is damaged; of names alone the folders tell
        with reading("the list of branches"):
            folders = self.store.list_folders(MANIFESTS)
        return [name for folder in folders if (name := folder_branch(folder)) is not None]

    @contextmanager
    def writing(self, branch: str, *, alone: bool = True) -> Generator[Ticket]:
        """Around every write: the right to write first, then a place in the branch's lane, or the lane to oneself.

        Raises InvalidRequest for what can't be a branch name, and what the guard raises.
        """
        check_branch_name(branch)
        with self.write_guard(), self.lanes.enter(branch, alone=alone) as ticket:
            yield ticket

    def forget(self) -> None:
        """Drop what this graph keeps in memory; nothing is lost but time."""
        with self._lock:
            self._snapshots.clear()
        self.tables.forget()
