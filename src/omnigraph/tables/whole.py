"""Whether files that the table library wrote on a local root are whole, looked at before anything names them.

The library's local writer loses the error of a file's last write (a full disk, a quota, a limit on file sizes): it
reports success and leaves a short file, the smaller files after it may fit again, and a commit would be answered whose
rows nobody can read. So the size of each new file is compared with what is known of it from elsewhere: of a data file
from its fragment, of an index file from its index, of a transaction from the copy in the version's own file, of a version
from its frame. That costs one stat a file and one short read a version. `OMNIGRAPH_LOCAL_SYNC=off` changes nothing
here: it gives up safety against power cuts, not against full disks.

Files that this program writes itself need no look: Python's files raise the error of every write, the last included. On
object storage there is nothing to look at either. A PUT carries its length, and a store that received fewer bytes or can't
keep them answers with an error; an object of several parts is put together from the tags of parts that it has.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from typing import Final

from lance.fragment import FragmentMetadata

from omnigraph.errors import StorageClass, StorageFailure, StoragePhase

_LENGTH: Final = struct.Struct("<I")
_END: Final = struct.Struct("<QHH4s")
"""The last bytes of a version's file: where its last message begins, the format, and the magic word."""

_MAGIC: Final = b"LANC"


def check_data(folder: str, fragments: Iterable[FragmentMetadata]) -> None:
    """The data files of new fragments, below a table's folder on this host. Raises StorageFailure, OSError."""
    for fragment in fragments:
        check_sizes(os.path.join(folder, "data"), {file.path: file.file_size_bytes for file in fragment.files})


def check_sizes(folder: str, sizes: Mapping[str, int | None]) -> None:
    """Each file of the folder has its size; one whose size nobody knows is not believed. Raises as `check_data`."""
    for name, size in sizes.items():
        if os.stat(os.path.join(folder, name)).st_size != size:
            raise _cut_short()


def check_version(folder: str, transaction: str, version: str) -> None:
    """The two files of a commit, relative to a table's folder on this host. Raises as `check_data`."""
    messages = _messages(os.path.join(folder, version))
    if not messages:
        raise _cut_short()
    if len(messages) > 1:  # before the version itself stands a copy of its transaction
        check_sizes(folder, {transaction: messages[-2]})


def _messages(path: str) -> list[int]:
    """Lengths of the messages in a version's file, the version itself last; none if they do not fill the file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = os.fstat(descriptor).st_size - _END.size
        if end < 0:
            return []
        last, _, _, magic = _END.unpack(os.pread(descriptor, _END.size, end))
        lengths: list[int] = []
        at = began = 0
        while at < end:
            began = at
            lengths.append(*_LENGTH.unpack(os.pread(descriptor, _LENGTH.size, at)))
            at += _LENGTH.size + lengths[-1]
        return lengths if (magic, at, began) == (_MAGIC, end, last) else []
    finally:
        os.close(descriptor)


def _cut_short() -> StorageFailure:
    return StorageFailure(
        "A file of a table was not written whole: the disk is full, or files may not be so large. Nothing was published.",
        cls=StorageClass.LOCAL_IO,
        phase=StoragePhase.STAGE,
        effects="none",
    )
