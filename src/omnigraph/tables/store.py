"""Opening tables at pinned versions.

    version = tables.open(entry.pin)

A version is immutable, so an opened one is kept (by its pin) and not checked again, unless damage was met in its table
(see `trust`). Knows folders and pins; which pin is the right one is the manifest's matter.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import lance
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.lance import _Session as Session  # pyright: ignore[reportPrivateUsage] - lance.Session

from omnigraph.ambient import Clock, SystemClock, fresh_ulid
from omnigraph.errors import StoragePhase
from omnigraph.manifest.model import TablePin
from omnigraph.store.base import Store
from omnigraph.tables.budget import MemoryBudget, Shelf, process_budget
from omnigraph.tables.columns import fields_of, is_blob
from omnigraph.tables.failures import storage_failures
from omnigraph.tables.location import Location
from omnigraph.tables.trust import Trust, TrustInTables
from omnigraph.tables.version import TableVersion
from omnigraph.tables.whole import check_version

Kind = Literal["node", "edge"]

LIBRARY_CACHE_BYTES_MAX: Final = 256 << 20
"""For each of the library's two caches, indexes and metadata: a quarter of the budget, and no more than this."""

NEWEST_KEPT: Final = 4
"""So many versions stay open of those that commits on one line of a table left behind."""

_LINES_MAX: Final = 4_096

LINEAR_VERSION: Final = 1
"""The empty version that every table folder starts with; pins are always detached versions."""

_FOLDERS: Final[dict[Kind, str]] = {"node": "nodes", "edge": "edges"}


def new_session(budget_bytes: int | None = None) -> Session:
    """The library's caches, which all tables of a process share; their limits follow from that of the budget."""
    share = min((process_budget().limit if budget_bytes is None else budget_bytes) // 4, LIBRARY_CACHE_BYTES_MAX)
    return Session(index_cache_size_bytes=share, metadata_cache_size_bytes=share)


@dataclass(frozen=True, slots=True)
class _Opening:
    """A version that is about to be opened."""

    pin: TablePin
    trust: Trust[Session]

    def doubt(self) -> None:
        self.trust.lost = True


class TableStore:
    """The tables of one graph root in one process. Thread-safe.

    `session` and `budget` are shared by all graphs of a process; `local_sync` is `OMNIGRAPH_LOCAL_SYNC`; `clock` dates
    the names of new folders.
    """

    def __init__(
        self,
        store: Store,
        *,
        session: Session | None = None,
        budget: MemoryBudget | None = None,
        local_sync: Literal["full", "off"] = "full",
        clock: Clock | None = None,
    ) -> None:
        self.location = Location(store)
        self.local_sync: Literal["full", "off"] = local_sync
        budget = budget or process_budget()
        self.session = session or new_session()
        self.deleted: Shelf[str, Bitmap] = Shelf(budget)
        """Positions that the deletion file of this name lists (see `deletions`)."""
        self.synced_folders: set[str] = set()
        """Folders whose own names are known to survive a power cut (see `sync`)."""
        self._clock: Clock = clock or SystemClock()
        self._versions: Shelf[TablePin, TableVersion] = Shelf(budget)
        self._lines: OrderedDict[tuple[str, str], list[TablePin]] = OrderedDict()
        self._trust: TrustInTables[Session] = TrustInTables(self.session, new_session)
        self._lock = threading.Lock()
        self._folders: dict[tuple[str, str], str] = {}
        self._folder_locks: dict[tuple[str, str], threading.Lock] = {}
        self._creation_files: dict[str, tuple[str, ...]] = {}

    def open(self, pin: TablePin) -> TableVersion:
        """The table at a pin, from memory if it was opened or committed here before.

        Raises StorageFailure (phase read), MissingTable if the version is not there any more.
        """
        known = self._versions.get(pin)
        if known is not None and not known.doubtful:
            return known
        if known is not None:
            self.deleted.clear()  # read from the files that damage was met in, perhaps
        if pin.without:
            whole = self.open(TablePin(pin.path, pin.version))
            return self.keep(TableVersion(pin, whole.dataset, stored=whole.stored, trust=whole.trust))
        return self.keep(self._opened(_Opening(pin, self._trust.of(pin.path))))

    def _opened(self, opening: _Opening) -> TableVersion:
        pin, trust = opening.pin, opening.trust
        with storage_failures(StoragePhase.READ, opening):
            dataset = lance.LanceDataset(
                self.location.uri(pin.path),
                version=pin.version,
                storage_options=self.location.storage_options,
                session=trust.session,
            )
            # the columns are looked at here, so that a version whose schema is damaged is never kept
            return TableVersion(pin, dataset, stored=dataset.schema, trust=trust)

    def keep(self, version: TableVersion, *, line: str | None = None) -> TableVersion:
        """Remembers an open version until others need the room; losing one costs time only.

        `line`: the branch on which a commit made it. Of such versions all but the newest few are forgotten at once, since
        every write leaves one behind; who still reads an older one opens it, and it stays like any other.
        """
        self._versions.put(version.pin, version, version.weight, part=version.dataset)
        if line is not None:
            self._versions.drop(self._left_behind(version.pin, line))
        return version

    def _left_behind(self, pin: TablePin, line: str) -> list[TablePin]:
        key = (pin.path, line)
        with self._lock:
            pins = [*self._lines.pop(key, ()), pin]
            self._lines[key] = pins[-NEWEST_KEPT:]
            while len(self._lines) > _LINES_MAX:
                self._lines.popitem(last=False)
        return pins[:-NEWEST_KEPT]

    def forget(self) -> None:
        """Lets go of everything that is kept open."""
        self._versions.clear()
        self.deleted.clear()

    def create_folder(self, kind: Kind, type_id: str, schema: pa.Schema) -> str:
        """A fresh table folder, `nodes/<type id>-<ulid>`, holding an empty linear version 1 with stable row ids.

        Raises StorageFailure (phase stage).
        """
        path = f"{_FOLDERS[kind]}/{type_id}-{fresh_ulid(self._clock)}"
        with storage_failures(StoragePhase.STAGE):
            dataset = lance.write_dataset(
                stored_schema(schema).empty_table(),
                self.location.uri(path),
                mode="create",
                enable_stable_row_ids=True,
                storage_options=self.location.storage_options,
                session=self.session,
            )
            if self.location.local_path is not None:
                self._creation_files[path] = _checked_creation(self.location.local_path, path)
        self.keep(TableVersion(TablePin(path, dataset.version), dataset, rows=0, size=0, trust=self._trust.of(path)))
        return path

    def creation_files(self, path: str) -> tuple[str, ...]:
        """Files of version 1 of a folder made by this process on a local root, until it was synced."""
        return self._creation_files.get(path, ())

    def note_synced(self, folders: Iterable[str]) -> None:
        """These folders and what they hold are safe."""
        for folder in folders:
            self.synced_folders.add(folder)
            self._creation_files.pop(folder, None)

    def folder(self, line: str, kind: Kind, type_id: str, schema: pa.Schema) -> str:
        """The folder in which this process writes the first rows of a type on one line of history.

        `line` names the branch life; the folder is made when first asked for. Raises StorageFailure (phase stage).
        """
        key = (line, type_id)
        with self._lock:
            lock = self._folder_locks.setdefault(key, threading.Lock())
        with lock:
            path = self._folders.get(key)
            if path is None:
                path = self._folders[key] = self.create_folder(kind, type_id, schema)
            return path


def _checked_creation(root: str, path: str) -> tuple[str, ...]:
    """The files of version 1 of a new folder, relative to the root. Raises StorageFailure if one is not whole."""
    files = [
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(os.path.join(root, path))
        for name in names
    ]
    (transaction,) = [each for each in files if each.endswith(".txn")]
    (version,) = [each for each in files if each.endswith(".manifest")]
    check_version(root, transaction, version)  # the one file more is a hint, which readers do not depend on
    return tuple(files)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Columns as Lance gets them when a table is made: Blobs as Lance blobs, no metadata of ours."""
    return pa.schema([stored_field(field) for field in fields_of(schema)])


def stored_field(field: pa.Field) -> pa.Field:
    """One column as Lance gets it."""
    if is_blob(field):
        return lance.blob_field(field.name)
    return pa.field(field.name, field.type, field.nullable)
