"""Files that the table library wrote, made safe against a power cut on a local root.

Lance leaves that to the operating system. Before a manifest names a version, every file of it that is new and every
folder that got a new name is fsynced here. The names are known from the commit, so no folder is listed. On object
storage there is nothing to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final

from omnigraph.errors import StoragePhase
from omnigraph.tables.failures import storage_failures
from omnigraph.tables.stage import Committed
from omnigraph.tables.store import TableStore

_FILES_AT_ONCE: Final = 8


def sync(tables: TableStore, committed: Iterable[Committed]) -> None:
    """Returns once everything that these commits wrote survives a power cut.

    Does nothing on object storage and with `OMNIGRAPH_LOCAL_SYNC=off`. Raises StorageFailure (phase stage).
    """
    root = tables.location.local_path
    if root is None or tables.local_sync == "off":
        return
    files = [each for one in committed for each in (*tables.creation_files(one.pin.path), *one.written)]
    folders = folders_to_sync(files, tables.synced_folders)
    with storage_failures(StoragePhase.STAGE):
        paths = [os.path.join(root, path) for path in (*files, *folders)]
        # side by side, since waiting for a disk is what takes the time and one flush serves them all
        try:
            list(_disk_threads().map(fsync, paths))
        except RuntimeError:  # no thread is to be had
            for each in paths:
                fsync(each)
    tables.note_synced(folders)


def folders_to_sync(files: Iterable[str], known: Set[str]) -> list[str]:
    """Folders with new names in them: those of the files, and those above as far as they may be new themselves.

    `known` are folders of which it is known that their own name is safe; "" is the root, which always is.
    """
    folders: dict[str, None] = {}
    for file in files:
        folder = os.path.dirname(file)
        folders[folder] = None
        while folder and folder not in known and (above := os.path.dirname(folder)) not in folders:
            folders[above] = None
            folder = above
    return list(folders)


@cache
def _disk_threads() -> ThreadPoolExecutor:
    """Threads of this process that wait for a disk; a fork has none of them and makes its own."""
    return ThreadPoolExecutor(_FILES_AT_ONCE, thread_name_prefix="omnigraph-sync")


os.register_at_fork(after_in_child=_disk_threads.cache_clear)


def fsync(path: str) -> None:
    """One file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
