"""Names of objects below a root: what is a key, what is a folder, and in which order they stand.

Knows nothing of any backend. A bad key is a fault of this program, hence ValueError and not a storage failure.
"""

from __future__ import annotations

TEMPORARY_PREFIX = ".tmp-"
"""Objects whose last part begins so are unfinished local writes: no listing shows them, nobody may name them."""


def checked_key(key: str) -> str:
    """The key itself. Raises ValueError unless it is `part/part/…` with no empty part, `.` or `..`, and names no
    temporary file; characters are otherwise free and never decoded.
    """
    parts = key.split("/")
    if any(part in ("", ".", "..") for part in parts) or _has_control(key):
        raise ValueError("a key is made of non-empty parts, without '.', '..' or control characters")
    if parts[-1].startswith(TEMPORARY_PREFIX):
        raise ValueError("this name is reserved for unfinished writes")
    return key


def checked_folder(prefix: str) -> str:
    """The folder as whole parts without a slash at its end, or "" for the root. Raises ValueError as `checked_key`."""
    folder = prefix.removesuffix("/")
    return checked_key(folder) if folder else ""


def is_temporary(key: str) -> bool:
    return key.rpartition("/")[2].startswith(TEMPORARY_PREFIX)


def _has_control(text: str) -> bool:
    return any(character < " " or character == "\x7f" for character in text)
