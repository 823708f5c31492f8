"""Reading the chain of a branch: one version, the head, all branches.

The head is the newest version that storage holds. It is found by one LIST, since names sort newest first; or by probing
upward from a head known less than 12 hours ago, since clean-up removes no version superseded less than 24 hours ago, so
that no gap can hide a newer one. Older knowledge is never believed. Whatever is returned says when it was known: the
time *before* the request that showed it, on a clock that counts suspension, so that a process which slept between
question and answer does not take an old answer for a fresh one.

Nothing above a known version says nothing of that version: the graph may have been removed, made anew at the same place
or put back from an older copy. So a head also says when its object was last seen, and a chain that is not the one that
was known is refused (GraphReplaced), never followed.

All values are frozen and may be shared between threads. Nothing here writes, retries or decides what to do next.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from omnigraph.ambient import Clock
from omnigraph.errors import FormatMismatch, StorageClass, StorageFailure
from omnigraph.manifest import keys
from omnigraph.manifest.codec import branch_in, damaged_version, digest, from_bytes, graph_replaced
from omnigraph.manifest.failures import read_failure, reading
from omnigraph.manifest.model import Base, Manifest
from omnigraph.side_by_side import side_by_side
from omnigraph.store.base import ObjectInfo, Store, StoredObject, StoreError

_T = TypeVar("_T")

PROBE_AGE_SECONDS_MAX = 12 * 3600.0
"""A head known longer ago than this is not probed from; nor is what a listing showed so long ago read as a head: that
version may be superseded and cleaned up by now, and a stray have taken its place.
"""

SEEN_SECONDS_MAX = 5.0
"""For so long it is believed that a version which was seen is still there: on an object store by reads, and by a write only
if it has seen the version itself (`publish`).
"""

_PROBES_MAX = 8  # further behind than this, a LIST is cheaper
_LISTINGS_MAX = 3  # a listed version may be gone when it is read, if clean-up runs and the chain grows meanwhile
_PAGE = 1_000  # names in a LIST page
_READS_AT_A_TIME = 32


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version as storage holds it: the manifest, the digest of its bytes, the store's time (µs since 1970) and ETag."""

    manifest: Manifest
    sha256: str
    stored_at: int
    etag: str | None = None

    @property
    def as_base(self) -> Base:
        """How the next version names this one."""
        return Base(self.manifest.version, self.sha256)


@dataclass(frozen=True, slots=True)
class KnownHead:
    """A version that was the head of its branch at `known_at` (seconds on a clock that counts suspension).

    `seen_at`, on the same clock: its object was there then, since it was read, looked at or created.
    """

    manifest: Manifest
    sha256: str
    known_at: float
    stored_at: int | None = None  # by the store's clock, µs; None for a version this process wrote and never read
    etag: str | None = None
    seen_at: float | None = None

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


def read_version(store: Store, branch: str, version: int, *, graph: str | None = None) -> StoredVersion | None:
    """The version, or None if storage does not hold it. One GET.

    Raises StorageFailure (phase `read`; `corrupt` for a damaged object), FormatMismatch, and GraphReplaced if a graph is
    named and it belongs to another.
    """
    return _decoded(_get(store, branch, version), branch, version, graph)


def resolve_head(
    store: Store, branch: str, *, clock: Clock, graph: str | None = None, known: KnownHead | None = None
) -> HeadState:
    """The head of a branch: live, deleted, or `NoHead`.

    With `known`, a head of this branch known less than 12 hours ago: one GET that finds nothing above it, if it still
    is the head, and a look at the head itself where it was not seen lately. Otherwise one LIST and one GET. Raises as
    `read_version`; GraphReplaced also if the chain is not the one that `known` is of.
    """
    if known is not None and known.branch == branch:
        return _probed_head(store, known, clock) or relisted_head(store, known, clock=clock)
    return _listed_head(store, branch, clock, graph)


def seen_again(store: Store, head: KnownHead, *, clock: Clock) -> KnownHead | None:
    """The head with the time of this look at its object; None if that is gone or is another version.

    One HEAD, where its answer can show that the object is the same; else one GET. Raises as `read_version`: an object that
    is damaged, or was on its way here, is not another.
    """
    asked_at = clock.boot_seconds()
    marked = head.etag if store.local_path is None else head.stored_at
    if marked is not None:
        info = _unless_absent(store.head, head.branch, head.version)
        if info is None:
            return None
        if _same(store, info, head):
            return replace(head, seen_at=asked_at)
    stored = _get(store, head.branch, head.version)
    if stored is None:
        return None
    if digest(stored.data) != head.sha256:
        _decoded(stored, head.branch, head.version, None)  # raises if it is no version at all
        return None
    return replace(head, stored_at=microseconds(stored.info.last_modified), etag=stored.info.etag, seen_at=asked_at)


def list_branches(store: Store, *, clock: Clock, graph: str | None = None) -> BranchList:
    """The head of every live branch.

    One flat listing, which jumps over the older versions of long chains; a branch whose newest version has a `deleted`
    marker costs no further request, every other one GET, 32 at a time. Raises StorageFailure if the listing fails,
    GraphReplaced if a graph is named and a branch belongs to another.
    """
    for _ in range(_LISTINGS_MAX):
        asked_at = clock.boot_seconds()
        found = _branches_listed(store, asked_at, clock, graph)
        if clock.boot_seconds() - asked_at < PROBE_AGE_SECONDS_MAX:
            return found
    raise read_failure(StorageClass.TIMEOUT, "the list of branches")


def _branches_listed(store: Store, asked_at: float, clock: Clock, graph: str | None) -> BranchList:
    with reading("the list of branches"):
        newest = list(_newest_by_listing(store) if store.local_path is None else _newest_on_disk(store))
    unmarked = [entry for entry in newest if not entry.deleted]

    def read(entry: _Newest) -> HeadState | StorageFailure | FormatMismatch:
        return _read_listed(store, entry, asked_at, clock, graph)

    answers = side_by_side(read, unmarked, at_most=_READS_AT_A_TIME, name="branches")
    heads = [answer for answer in answers if isinstance(answer, KnownHead) and answer.live]
    heads.sort(key=lambda head: (head.branch != "main", head.branch.encode()))
    damaged = tuple(answer for answer in answers if isinstance(answer, (StorageFailure, FormatMismatch)))
    return BranchList(tuple(heads), damaged, frozenset(entry.folder for entry in newest), asked_at)


def _probed_head(store: Store, known: KnownHead, clock: Clock) -> KnownHead | None:
    """None if a LIST has to decide."""
    head = known
    for _ in range(_PROBES_MAX):
        asked_at = clock.boot_seconds()
        if asked_at - known.known_at >= PROBE_AGE_SECONDS_MAX:
            return None
        found = read_version(store, known.branch, head.version + 1, graph=known.manifest.graph)
        if clock.boot_seconds() - known.known_at >= PROBE_AGE_SECONDS_MAX:
            return None
        if found is None:
            standing = head if head is not known else _standing(store, known, asked_at, clock)
            return None if standing is None else replace(standing, known_at=asked_at)
        if found.manifest.base != head.as_base:
            raise graph_replaced(known.branch)
        head = _seen(found, known.known_at, asked_at)
    return None


def _standing(store: Store, known: KnownHead, asked_at: float, clock: Clock) -> KnownHead | None:
    """The known head, once it was seen lately enough: on a local root now, where a look costs next to nothing.

    The look comes *after* nothing was found above: a version that is there now was there then, too. None if it is not
    there: this process may have slept between the two, so that it was superseded and cleaned up.
    """
    lately = known.seen_at is not None and asked_at - known.seen_at <= SEEN_SECONDS_MAX
    if lately and store.local_path is None:
        return known
    return seen_again(store, known, clock=clock)


def relisted_head(store: Store, known: KnownHead, *, clock: Clock) -> KnownHead:
    """The head by a LIST, which can't be below one that was known, nor another of its number.

    For whoever misses the known one: it may have been superseded and cleaned up. Raises as `resolve_head`.
    """
    for _ in range(_LISTINGS_MAX):
        found = _listed_head(store, known.branch, clock, known.manifest.graph)
        if isinstance(found, KnownHead) and found.version >= known.version:
            same = found.version == known.version and found.sha256 == known.sha256
            next_one = found.version == known.version + 1 and found.manifest.base == known.as_base
            if same or next_one or found.version > known.version + 1:
                return found
            raise graph_replaced(known.branch)
        if seen_again(store, known, clock=clock) is None:
            raise graph_replaced(known.branch)
    raise read_failure(StorageClass.NOT_FOUND, f"the newest version of branch '{known.branch}' in a listing")


def _listed_head(store: Store, branch: str, clock: Clock, graph: str | None) -> HeadState:
    for _ in range(_LISTINGS_MAX):
        asked_at = clock.boot_seconds()
        with reading(f"the versions of branch '{branch}'"):
            version = _newest_version(store, keys.branch_folder(branch))
        if version is None:
            return NoHead(branch, asked_at)
        found = read_version(store, branch, version, graph=graph)
        if found is not None and clock.boot_seconds() - asked_at < PROBE_AGE_SECONDS_MAX:
            return _seen(found, asked_at, asked_at)
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
    store: Store, entry: _Newest, asked_at: float, clock: Clock, graph: str | None
) -> HeadState | StorageFailure | FormatMismatch:
    """The head that a listing showed. One that can't be read is a value: the other branches are not its prisoners."""
    branch = keys.folder_branch(entry.folder)
    try:
        if branch is None:  # a name so long that its folder was cut: only the object has it
            branch = _branch_by_content(store, entry)
        found = read_version(store, branch, entry.version, graph=graph)
        if found is None:  # superseded more than a day ago and removed, all since the listing
            return resolve_head(store, branch, clock=clock, graph=graph)
        return _seen(found, asked_at, asked_at)
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
    return _unless_absent(store.read, branch, version)


def _unless_absent(ask: Callable[[str], _T], branch: str, version: int) -> _T | None:
    """What storage says of a version; None if it does not hold it."""
    try:
        return ask(keys.version_key(branch, version))
    except StoreError as error:
        if error.cls is StorageClass.NOT_FOUND:
            return None
        raise read_failure(error.cls, f"version {version} of branch '{branch}'") from None


def _same(store: Store, info: ObjectInfo, head: KnownHead) -> bool:
    """Whether a look at the object shows that it is the one that was read or created; False proves nothing.

    A local look has no ETag, but there the store's time is as fine as the disk's and no copy can keep it.
    """
    if store.local_path is not None:
        return microseconds(info.last_modified) == head.stored_at
    return info.etag is not None and info.etag == head.etag


def _decoded(stored: StoredObject | None, branch: str, version: int, graph: str | None) -> StoredVersion | None:
    if stored is None:
        return None
    manifest = from_bytes(stored.data, branch=branch, version=version, graph=graph)
    return StoredVersion(manifest, digest(stored.data), microseconds(stored.info.last_modified), stored.info.etag)


def _seen(found: StoredVersion, known_at: float, seen_at: float) -> KnownHead:
    return KnownHead(found.manifest, found.sha256, known_at, found.stored_at, found.etag, seen_at)


def microseconds(moment: dt.datetime) -> int:
    """A time of the store as microseconds since 1970."""
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
