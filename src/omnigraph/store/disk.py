"""Steps on a local disk: folders, links, locks and syncs, and the class of an operating system's refusal.

Knows nothing of keys and outcomes. Every function raises OSError.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os

from omnigraph.ambient import Clock
from omnigraph.errors import StorageClass

_UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENAMETOOLONG, errno.EMLINK}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_LINK_UNSUPPORTED = _UNSUPPORTED | {errno.EPERM}
_LOCK_PAUSE_SECONDS = 0.005


def make_folders(folder: str) -> list[str]:
    """Makes a folder and those above it, or nothing; the ones that were missing, from the top down."""
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    missing.reverse()
    try:
        for each in missing:
            with contextlib.suppress(FileExistsError):
                os.mkdir(each)
    except OSError:
        remove_folders(missing)
        raise
    return missing


def remove_folders(folders: list[str]) -> None:
    """Removes those that are empty, given from the top down."""
    for folder in reversed(folders):
        # Not there, or in use by somebody by now: an empty folder does no harm.
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def discard(temporary: str) -> None:
    # A temporary file that can't be removed is invisible to every listing: no reason to doubt the write.
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def sync_folder(folder: str) -> None:
    """The names in the folder, not what lies in its files, are on disk afterwards."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def try_link(first: str, second: str) -> None:
    """Makes a file and a hard link to it, and removes both. ENOTSUP if the file system has no hard links."""
    os.close(os.open(first, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        os.link(first, second)
        os.unlink(second)
    except OSError as error:
        raise OSError(errno.ENOTSUP if error.errno in _LINK_UNSUPPORTED else error.errno, "link") from None
    finally:
        os.unlink(first)


def locked_folder(folder: str, clock: Clock, seconds_max: float) -> int:
    """A descriptor that holds the folder's lock. Waits no longer than a request may take: a stopped process can
    hold it for ever.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    deadline = clock.boot_seconds() + seconds_max
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if clock.boot_seconds() >= deadline:
                os.close(descriptor)
                raise TimeoutError(errno.ETIMEDOUT, "lock") from None
            clock.sleep(_LOCK_PAUSE_SECONDS)
        except OSError:
            os.close(descriptor)
            raise


def class_of(error: OSError) -> StorageClass:
    match error:
        case FileNotFoundError() | NotADirectoryError() | IsADirectoryError():
            return StorageClass.NOT_FOUND
        case TimeoutError():
            return StorageClass.TIMEOUT
        case OSError(errno=number) if number in _DENIED:
            return StorageClass.DENIED
        case OSError(errno=number) if number in _UNSUPPORTED:
            return StorageClass.UNSUPPORTED
        case _:
            return StorageClass.LOCAL_IO
