"""Reading the chain of a branch: one version, the head, all branches.

The head is the newest version that storage holds. It is found by one LIST, since names sort newest first; or by probing
upward from a head known less than 12 hours ago, since clean-up removes no version superseded less than 24 hours ago, so
that no gap can hide a newer one. Older knowledge is never believed. Whatever is returned says when it was known: the
time *before* the request that showed it, on a clock that counts suspension, so that a process which slept between
question and answer does not take an old answer for a fresh one.

All values are frozen and may be shared between threads. Nothing here writes, retries or decides what to do next.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from omnigraph.ambient import Clock
from omnigraph.errors import FormatMismatch, StorageClass, StorageFailure
from omnigraph.manifest import keys
from omnigraph.manifest.codec import branch_in, damaged_version, digest, from_bytes
from omnigraph.manifest.failures import read_failure, reading
from omnigraph.manifest.model import Base, Manifest
from omnigraph.store.base import Store, StoredObject, StoreError

PROBE_AGE_SECONDS_MAX = 12 * 3600.0
"""A head known longer ago than this is not probed from."""

_PROBES_MAX = 8  # further behind than this, a LIST is cheaper
_LISTINGS_MAX = 3  # a listed version may be gone when it is read, if clean-up runs and the chain grows meanwhile
_PAGE = 1_000  # names in a LIST page
_READS_AT_A_TIME = 32


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version as storage holds it: the manifest, the digest of its bytes, the store's time (µs since 1970)."""

    manifest: Manifest
    sha256: str
    stored_at: int

    @property
    def as_base(self) -> Base:
        """How the next version names this one."""
        return Base(self.manifest.version, self.sha256)


@dataclass(frozen=True, slots=True)
class KnownHead:
    """A version that was the head of its branch at `known_at` (seconds on a clock that counts suspension)."""

    manifest: Manifest
    sha256: str
    known_at: float
    stored_at: int | None = None  # by the store's clock, µs; None for a version this process wrote and never read

    @property
    def branch(self) -> str:
        return self.manifest.branch

    @property
    def version(self) -> int:
        return self.manifest.version

    @property
    def life(self) -> int:
        """The version that began the branch life this head belongs to."""
        return self.manifest.life

    @property
    def live(self) -> bool:
        """False if the branch is deleted."""
        return self.manifest.state == "active"

    @property
    def as_base(self) -> Base:
        """How the next version names this one."""
        return Base(self.version, self.sha256)


@dataclass(frozen=True, slots=True)
class NoHead:
    """At `known_at` there was no version of this name: it never existed."""

    branch: str
    known_at: float

    @property
    def version(self) -> int:
        """0: the next version is 1."""
        return 0


HeadState = KnownHead | NoHead


@dataclass(frozen=True, slots=True)
class BranchList:
    """The live branches, `main` first, then in byte order; and what could not be read, each with its own error.

    `folders` are those of all chains at `known_at`, live or deleted: a branch whose folder is not among them had no
    version.
    """

    heads: tuple[KnownHead, ...]
    damaged: tuple[StorageFailure | FormatMismatch, ...]
    folders: frozenset[str]
    known_at: float


def read_version(store: Store, branch: str, version: int) -> StoredVersion | None:
    """The version, or None if storage does not hold it. One GET.

    Raises StorageFailure (phase `read`; `corrupt` for a damaged object) and FormatMismatch.
    """
    return _decoded(_get(store, branch, version), branch, version)


def resolve_head(store: Store, branch: str, *, clock: Clock, known: KnownHead | None = None) -> HeadState:
    """The head of a branch: live, deleted, or `NoHead`.

    With `known`, a head of this branch known less than 12 hours ago: one GET that finds nothing above it, if it still
    is the head. Otherwise one LIST and one GET. Raises as `read_version`.
    """
    if known is not None and known.branch == branch:
        found = _probed_head(store, known, clock)
        if found is not None:
            return found
    return _listed_head(store, branch, clock)


def list_branches(store: Store, *, clock: Clock) -> BranchList:
    """The head of every live branch.

    One flat listing, which jumps over the older versions of long chains; a branch whose newest version has a `deleted`
    marker costs no further request, every other one GET, 32 at a time. Raises StorageFailure if the listing fails.
    """
    asked_at = clock.boot_seconds()
    with reading("the list of branches"):
        newest = list(_newest_by_listing(store) if store.local_path is None else _newest_on_disk(store))
    unmarked = [entry for entry in newest if not entry.deleted]

    def read(entry: _Newest) -> HeadState | StorageFailure | FormatMismatch:
        return _read_listed(store, entry, asked_at, clock)

    if len(unmarked) <= 1:
        answers = [read(entry) for entry in unmarked]
    else:
        with ThreadPoolExecutor(min(len(unmarked), _READS_AT_A_TIME), thread_name_prefix="branches") as pool:
            answers = list(pool.map(read, unmarked))
    heads = [answer for answer in answers if isinstance(answer, KnownHead) and answer.live]
    heads.sort(key=lambda head: (head.branch != "main", head.branch.encode()))
    damaged = tuple(answer for answer in answers if isinstance(answer, (StorageFailure, FormatMismatch)))
    return BranchList(tuple(heads), damaged, frozenset(entry.folder for entry in newest), asked_at)


def next_version(base: KnownHead, read: StoredVersion) -> KnownHead | None:
    """`read` as the version right after `base`, if its digest leads there; it keeps the time of `base`."""
    if read.manifest.base != base.as_base:
        return None
    return KnownHead(read.manifest, read.sha256, base.known_at, read.stored_at)


def _probed_head(store: Store, known: KnownHead, clock: Clock) -> KnownHead | None:
    """None if a LIST has to decide."""
    head = known
    for _ in range(_PROBES_MAX):
        asked_at = clock.boot_seconds()
        if asked_at - known.known_at >= PROBE_AGE_SECONDS_MAX:
            return None
        found = read_version(store, known.branch, head.version + 1)
        if clock.boot_seconds() - known.known_at >= PROBE_AGE_SECONDS_MAX:
            return None
        if found is None:
            return KnownHead(head.manifest, head.sha256, asked_at, head.stored_at)
        above = next_version(head, found)
        if above is None:
            return None  # what was known is not of this chain
        head = above
    return None


def _listed_head(store: Store, branch: str, clock: Clock) -> HeadState:
    for _ in range(_LISTINGS_MAX):
        asked_at = clock.boot_seconds()
        with reading(f"the versions of branch '{branch}'"):
            version = _newest_version(store, keys.branch_folder(branch))
        if version is None:
            return NoHead(branch, asked_at)
        found = read_version(store, branch, version)
        if found is not None:
            return KnownHead(found.manifest, found.sha256, asked_at, found.stored_at)
    raise read_failure(StorageClass.NOT_FOUND, f"the newest version of branch '{branch}', which storage lists")


def _newest_version(store: Store, folder: str) -> int | None:
    """The newest version in a chain's folder. Markers stand before the versions: one more LIST passes over them."""
    first = store.list_first(f"{keys.MANIFESTS}/{folder}")
    if first is None:
        return None
    parsed = keys.parse_version_key(first.key)
    if parsed is not None:
        return parsed[1]
    for info in store.list(f"{keys.MANIFESTS}/{folder}", start_after=keys.after_markers(folder)):
        parsed = keys.parse_version_key(info.key)
        if parsed is not None:
            return parsed[1]
    return None


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest version of a chain, and whether a marker says that it deleted the branch."""

    folder: str
    version: int
    deleted: bool


def _newest_by_listing(store: Store) -> Iterator[_Newest]:
    """The newest version of each chain, from one flat listing of all chains."""
    start_after: str | None = None
    while True:
        scan = _FolderScan()
        for place, info in enumerate(store.list(keys.MANIFESTS, start_after=start_after), start=1):
            newest = scan.passed(info.key)
            if newest is not None:
                yield newest
            # the next page is a request anyway: let it begin after this chain if all it would bring is older versions
            if place % _PAGE == 0 and scan.found:
                start_after = keys.after_folder(scan.folder)
                break
        else:
            return


def _newest_on_disk(store: Store) -> Iterator[_Newest]:
    """The same on a local root, where a look into each chain's own folder is cheaper than a walk through all files."""
    for folder in store.list_folders(keys.MANIFESTS):
        prefix = f"{keys.MANIFESTS}/{folder}"
        first = store.list_first(prefix)
        if first is None:
            continue
        scan = _FolderScan()
        newest = scan.passed(first.key)
        if newest is None:  # markers stand before the versions
            newest = next((found for info in store.list(prefix) if (found := scan.passed(info.key))), None)
        if newest is not None:
            yield newest


class _FolderScan:
    """Takes keys in byte order and answers, once per chain, with its newest version."""

    def __init__(self) -> None:
        self.folder = ""
        self.found = False
        self._markers: set[int] = set()

    def passed(self, key: str) -> _Newest | None:
        folder = key.split("/", 2)[1]
        if folder != self.folder:
            self.folder, self.found, self._markers = folder, False, set()
        marker = keys.parse_deleted_marker(key)
        if marker is not None:
            self._markers.add(marker[1])
        version = keys.parse_version_key(key)
        if version is None or self.found:
            return None
        self.found = True
        return _Newest(folder, version[1], version[1] in self._markers)


def _read_listed(
    store: Store, entry: _Newest, asked_at: float, clock: Clock
) -> HeadState | StorageFailure | FormatMismatch:
    """The head that a listing showed. One that can't be read is a value: the other branches are not its prisoners."""
    branch = keys.folder_branch(entry.folder)
    try:
        if branch is None:  # a name so long that its folder was cut: only the object has it
            branch = _branch_by_content(store, entry)
        found = read_version(store, branch, entry.version)
        if found is None:  # superseded more than a day ago and removed, all since the listing
            return resolve_head(store, branch, clock=clock)
        return KnownHead(found.manifest, found.sha256, asked_at, found.stored_at)
    except (StorageFailure, FormatMismatch) as failure:
        return failure


def _branch_by_content(store: Store, entry: _Newest) -> str:
    shown = keys.shown_folder(entry.folder)
    with reading(f"version {entry.version} of branch '{shown}'"):
        data = store.read(keys.folder_version_key(entry.folder, entry.version)).data
    branch = branch_in(data)
    if branch is None or keys.branch_folder(branch) != entry.folder:
        raise damaged_version(shown, entry.version, "it does not say which branch it belongs to")
    return branch


def _get(store: Store, branch: str, version: int) -> StoredObject | None:
    try:
        return store.read(keys.version_key(branch, version))
    except StoreError as error:
        if error.cls is StorageClass.NOT_FOUND:
            return None
        raise read_failure(error.cls, f"version {version} of branch '{branch}'") from None


def _decoded(stored: StoredObject | None, branch: str, version: int) -> StoredVersion | None:
    if stored is None:
        return None
    manifest = from_bytes(stored.data, branch=branch, version=version)
    return StoredVersion(manifest, digest(stored.data), microseconds(stored.info.last_modified))


def microseconds(moment: dt.datetime) -> int:
    """A time of the store as microseconds since 1970."""
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
