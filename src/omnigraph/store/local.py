"""A folder of this host as a store.

How an object comes to stand under its name: a temporary file beside it, written and fsynced; `link(2)` to the name,
which fails if the name is taken; fsync of the folder; unlink of the temporary file. So a name never shows half an
object, also after a power cut, and the answer "created" survives one.

What the answers guarantee: an error before `link` is `Refused`, since nothing has the name; an error during or after
it is `Unknown`, since the name may exist. `Exists` is answered only once the folder is synced, because the object
found there may be the caller's own, from an attempt whose folder sync failed.

A swap by ETag (the SHA-256 of the content) happens under a lock of the operating system on the folder, then by
`rename(2)`; deletes take the lock too, creations need none. It is safe between the processes of one host; a network
file system may not honour the lock. Callers put a value never used before into every version of a reused object, so
equal ETags mean the same version.
"""

from __future__ import annotations

import datetime as dt
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator

from omnigraph.ambient import NOW_US_MAX, Clock, SystemClock, fresh_ulid
from omnigraph.errors import StorageClass
from omnigraph.store.base import (
    Changed,
    Created,
    CreateOutcome,
    Exists,
    ObjectInfo,
    Refused,
    Replaced,
    ReplaceOutcome,
    StoredObject,
    StoreError,
    Unknown,
)
from omnigraph.store.disk import class_of, discard, locked_folder, make_folders, remove_folders, sync_folder, try_link
from omnigraph.store.keys import TEMPORARY_PREFIX, checked_folder, checked_key, is_temporary, unspeakable
from omnigraph.store.settings import StoreSettings
from omnigraph.store.uri import LocalRoot

_FOLDER_ATTEMPTS = 16


class LocalStore:
    """Objects below one folder, which need not exist before the first write. Thread-safe, and safe among processes."""

    def __init__(self, root: LocalRoot, settings: StoreSettings | None = None, *, clock: Clock | None = None) -> None:
        self._root = root.path
        self._settings = settings or StoreSettings()
        self._clock = clock or SystemClock()
        self._settled: set[str] = set()  # folders whose way from the root is known to be on disk

    @property
    def uri(self) -> str:
        return self._root

    @property
    def local_path(self) -> str | None:
        return self._root

    def lance_uri(self, key: str) -> str:
        return self._path(key)

    def lance_storage_options(self) -> dict[str, str]:
        return {}

    def probe_writable(self) -> None:
        """Raises StoreError(UNSUPPORTED) on a file system without hard links, and the class of any other refusal.

        Leaves nothing behind.
        """
        made: list[str] = []
        try:
            made = make_folders(self._root)
            try_link(self._temporary(self._root), self._temporary(self._root))
        except OSError as error:
            remove_folders(made)
            raise StoreError(class_of(error)) from None

    # --- reads

    def read(self, key: str) -> StoredObject:
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                data = file.read()
                info = _info(key, os.fstat(file.fileno()), _etag(data))
        except OSError as error:
            raise StoreError(class_of(error)) from None
        return StoredObject(data, info)

    def head(self, key: str) -> ObjectInfo:
        """Without the ETag, which would need the content."""
        try:
            status = os.stat(self._path(key))
        except OSError as error:
            raise StoreError(class_of(error)) from None
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(StorageClass.NOT_FOUND)
        return _info(key, status, None)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        folder = checked_folder(prefix)
        return self._walk(folder, start_after)

    def list_first(self, prefix: str) -> ObjectInfo | None:
        folder = checked_folder(prefix)
        quick = self._first_file(folder)
        return quick if quick is not None else next(self._walk(folder, None), None)

    def list_folders(self, prefix: str) -> list[str]:
        """Folders that hold an object somewhere below them, as an object store would show them."""
        folder = checked_folder(prefix)
        names = [name[:-1] for name in self._sorted_names(folder) if name.endswith("/")]
        return [name for name in sorted(names) if next(self._walk(_joined(folder, name), None), None) is not None]

    def _first_file(self, folder: str) -> ObjectInfo | None:
        """The first object if it is a file directly in this folder: one look at the names, one stat.

        The least name decides: every other name, also a folder's with what lies below it, sorts after it. None if
        that name is a folder, one that nobody may name, or already gone, which proves nothing.
        """
        try:
            name = min(os.listdir(self._folder_path(folder)), default=None)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(class_of(error)) from None
        if name is None or is_temporary(name) or unspeakable(name):
            return None
        return self._info_if_file(_joined(folder, name))

    def _walk(self, folder: str, start_after: str | None) -> Iterator[ObjectInfo]:
        """Objects in byte order of their keys; only the names are read ahead, each object's size when it is yielded."""
        for name in self._sorted_names(folder):
            key = _joined(folder, name)
            if name.endswith("/"):
                if start_after is None or start_after < key or start_after.startswith(key):
                    yield from self._walk(key[:-1], start_after)
            elif start_after is None or key > start_after:
                info = self._info_if_file(key)
                if info is not None:
                    yield info

    def _sorted_names(self, folder: str) -> list[str]:
        """Names in a folder, a slash after those of folders, so that sorting them sorts the whole keys.

        A name that can't be part of a key is not shown: it was never an object of ours, and nobody could ask for it.
        Python orders text by code point, which is the byte order of its UTF-8 form.
        """
        try:
            with os.scandir(self._folder_path(folder)) as entries:
                shown = [(entry.name, _is_folder(entry)) for entry in entries if not unspeakable(entry.name)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoreError(class_of(error)) from None
        return sorted(
            f"{name}/" if is_folder else name
            for name, is_folder in shown
            if is_folder or not name.startswith(TEMPORARY_PREFIX)
        )

    def _info_if_file(self, key: str) -> ObjectInfo | None:
        try:
            status = os.stat(os.path.join(self._root, key))
        except FileNotFoundError:
            return None  # removed while the listing ran
        except OSError as error:
            if error.errno == errno.ELOOP:
                return None  # a link that leads to itself leads to nothing, like one whose end is missing
            raise StoreError(class_of(error)) from None
        return _info(key, status, None) if stat.S_ISREG(status.st_mode) else None

    # --- writes

    def put_fresh(self, key: str, data: bytes) -> None:
        match self.create(key, data):
            case Created() | Exists():
                return
            case Refused(cls) | Unknown(cls):
                raise StoreError(cls)

    def create(self, key: str, data: bytes) -> CreateOutcome:
        path = self._path(key)
        folder = os.path.dirname(path)
        try:
            temporary = self._write_temporary(folder, data)
        except OSError as error:
            return Refused(class_of(error))
        try:
            os.link(temporary, path)
            self._sync_folder(folder)
        except FileExistsError:
            return self._existing(folder)
        except OSError as error:
            return Unknown(class_of(error))
        finally:
            discard(temporary)
        return Created(_etag(data))

    def _existing(self, folder: str) -> Exists | Unknown:
        """The name is taken; say so once that is as durable as a creation."""
        try:
            self._sync_folder(folder)
        except OSError as error:
            return Unknown(class_of(error))
        return Exists()

    def replace(self, key: str, data: bytes, *, etag: str) -> ReplaceOutcome:
        path = self._path(key)
        folder = os.path.dirname(path)
        try:
            lock = locked_folder(folder, self._clock, self._settings.request_timeout_seconds)
        except OSError as error:
            return Refused(class_of(error))
        try:
            return self._swap(folder, path, data, etag)
        finally:
            os.close(lock)  # also gives the lock back

    def _swap(self, folder: str, path: str, data: bytes, etag: str) -> ReplaceOutcome:
        try:
            with open(path, "rb") as file:
                if _etag(file.read()) != etag:
                    return Changed()
            temporary = self._write_temporary(folder, data)
        except OSError as error:
            return Refused(class_of(error))
        try:
            os.rename(temporary, path)
            self._sync_folder(folder)
        except OSError as error:
            return Unknown(class_of(error))
        finally:
            discard(temporary)
        return Replaced(_etag(data))

    def delete(self, keys: Iterable[str]) -> None:
        """Tries every key, then raises the first failure. Folders left empty go too."""
        failed: StorageClass | None = None
        folders: set[str] = set()
        for key in keys:
            path = self._path(key)
            folder = os.path.dirname(path)
            try:
                self._unlink(folder, path)
                folders.add(folder)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                failed = failed or class_of(error)
        for folder in sorted(folders, reverse=True):
            try:
                self._sync_folder(self._pruned(folder))
            except OSError as error:
                failed = failed or class_of(error)
        if failed is not None:
            raise StoreError(failed)

    def _unlink(self, folder: str, path: str) -> None:
        """Under the lock of a swap: between its look and its rename the name must not become free for a creation."""
        lock = locked_folder(folder, self._clock, self._settings.request_timeout_seconds)
        try:
            os.unlink(path)
        finally:
            os.close(lock)

    # --- the way to the disk

    def _path(self, key: str) -> str:
        return os.path.join(self._root, checked_key(key))

    def _folder_path(self, folder: str) -> str:
        return os.path.join(self._root, folder) if folder else self._root

    def _temporary(self, folder: str) -> str:
        return os.path.join(folder, TEMPORARY_PREFIX + fresh_ulid(self._clock))

    def _write_temporary(self, folder: str, data: bytes) -> str:
        """A new file with this content, on disk. Raises OSError, and then leaves no file."""
        temporary = self._temporary(folder)
        descriptor = self._open_new(folder, temporary)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if self._settings.local_sync == "full":
                    os.fsync(file.fileno())
        except OSError:
            discard(temporary)
            raise
        return temporary

    def _open_new(self, folder: str, path: str) -> int:
        """Opens a new file, making its folder if need be. Another process may remove an empty folder in between."""
        for attempt in range(_FOLDER_ATTEMPTS):
            if folder not in self._settled:
                self._settle(folder)
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            except FileNotFoundError:
                self._settled.discard(folder)
                if attempt == _FOLDER_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _settle(self, folder: str) -> None:
        """Makes a folder and syncs the whole way down to it from the root, whoever made it, once per process."""
        made = make_folders(folder)
        above = {os.path.dirname(each) for each in made}
        while len(folder) > len(self._root):
            self._settled.add(folder)
            folder = os.path.dirname(folder)
            above.add(folder)
        self._settled.add(self._root)
        for parent in sorted(above):
            self._sync_folder(parent)

    def _sync_folder(self, folder: str) -> None:
        if self._settings.local_sync == "full":
            sync_folder(folder)

    def _pruned(self, folder: str) -> str:
        """Removes a folder and those above it while they are empty; the nearest one that stays. Never the root."""
        while len(folder) > len(self._root):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                return folder  # not empty, or not ours to remove: an empty folder does no harm
            self._settled.discard(folder)
            folder = os.path.dirname(folder)
        return folder


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether there is something to walk into. A link to a folder above itself shows nothing that is not shown anyway,
    and a walk through it would not end.
    """
    try:
        if not entry.is_dir():
            return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise
    return not entry.is_symlink() or not _leads_up(entry.path)


def _leads_up(link: str) -> bool:
    above = os.path.realpath(os.path.dirname(link))
    target = os.path.realpath(link)
    return os.path.commonpath([above, target]) == target


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _info(key: str, status: os.stat_result, etag: str | None) -> ObjectInfo:
    # ctime and not mtime: `link` sets it, so it tells when the object came to stand here. A process that slept between
    # writing the temporary file and linking it would otherwise leave an object that looks older than it is.
    modified = dt.datetime.fromtimestamp(min(max(status.st_ctime, 0.0), NOW_US_MAX / 1_000_000), dt.UTC)
    return ObjectInfo(key, status.st_size, etag, modified)
