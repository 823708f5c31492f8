"""Names of objects below a root: what is a key, what is a folder, and in which order they stand.

Knows nothing of any backend. A bad key is a fault of this program, hence ValueError and not a storage failure.
"""

from __future__ import annotations

import re

TEMPORARY_PREFIX = ".tmp-"
"""Objects whose last part begins so are unfinished local writes: no listing shows them, nobody may name them."""


# Control characters, what has no UTF-8 form, what XML can't say (S3 listings are XML), and the backslash, which some
# stores and systems read as a slash.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f\\\\\ud800-\udfff\ufffe\uffff]")


def checked_key(key: str) -> str:
    """The key itself. Raises ValueError unless it is `part/part/…` with no empty part, `.` or `..`, and names no
    temporary file; the characters that `unspeakable` finds are not allowed, and none is ever decoded.
    """
    if is_temporary(_checked_parts(key)):
        raise ValueError("this name is reserved for unfinished writes")
    return key


def unspeakable(text: str) -> bool:
    """True if the text holds a character that not every store keeps as it is."""
    return _FORBIDDEN.search(text) is not None


def checked_folder(prefix: str) -> str:
    """The folder as whole parts without a slash at its end, or "" for the root.

    Raises ValueError as `checked_key`, but a folder may have any name: a branch called `.tmp-x` makes one.
    """
    folder = prefix.removesuffix("/")
    return _checked_parts(folder) if folder else ""


def is_temporary(key: str) -> bool:
    return key.rpartition("/")[2].startswith(TEMPORARY_PREFIX)


def _checked_parts(key: str) -> str:
    if any(part in ("", ".", "..") for part in key.split("/")) or unspeakable(key):
        raise ValueError("a key is made of non-empty parts, without '.', '..', backslashes or control characters")
    return key
