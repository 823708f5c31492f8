"""Files of a configuration folder, which may come from anybody's pull request: read once each, never through a link.

Every part of a path is opened from the folder above it without following links, so nothing can be swapped in between.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

FILE_BYTES_MAX = 16 << 20

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not make us wait


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file can't be had: a code of cluster.md 12 and words that repeat nothing of the file."""

    code: str
    message: str


class ConfigFolder:
    """`path` is as the user gave it; links on the way to the folder itself are the user's own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: dict[str, str | Unreadable] = {}

    def text(self, path: str, *, bytes_max: int = FILE_BYTES_MAX) -> str | Unreadable:
        """A file's text, the same at each call."""
        if path not in self._read:
            self._read[path] = self._text(path, bytes_max)
        return self._read[path]

    def _text(self, path: str, bytes_max: int) -> str | Unreadable:
        parts = PurePosixPath(path).parts
        if path.startswith("/") or ".." in parts:
            return Unreadable("config_path_escape", "must be a path inside the configuration folder")
        if not parts or "\0" in path:
            return Unreadable("invalid_value", "must be the path of a file")
        try:
            data = self._data(parts, bytes_max)
        except OSError as error:
            return Unreadable("config_file_unreadable", f"can't be read: {error.strerror}")
        if isinstance(data, Unreadable):
            return data
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return Unreadable("invalid_encoding", "is not UTF-8")

    def _data(self, parts: tuple[str, ...], bytes_max: int) -> bytes | Unreadable:
        try:
            at = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return Unreadable("config_file_missing", "there is no such folder")
        try:
            for part in parts[:-1]:
                inner = _opened(part, _FOLDER, at)
                if isinstance(inner, Unreadable):
                    return inner
                os.close(at)
                at = inner
            file = _opened(parts[-1], _FILE, at)
            if isinstance(file, Unreadable):
                return file
        finally:
            os.close(at)
        with os.fdopen(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return Unreadable("config_file_unreadable", "is no ordinary file")
            data = opened.read(bytes_max + 1)
        if len(data) > bytes_max:
            return Unreadable("config_file_too_large", f"has more than {bytes_max:,} bytes")
        return data


def _opened(name: str, flags: int, folder: int) -> int | Unreadable:
    """A descriptor. Raises OSError for what is neither absent nor a link."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        try:
            kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return Unreadable("config_file_missing", "there is no such file")
        if stat.S_ISLNK(kind):
            return Unreadable("config_path_symlink", "leads through a symbolic link")
        if isinstance(error, NotADirectoryError):
            return Unreadable("config_file_missing", "there is no such file")
        raise
