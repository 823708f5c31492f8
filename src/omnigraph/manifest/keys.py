"""Where the objects of a graph lie: folders, keys, and which branch names are allowed.

Pure text. Knows no store and no content; a key that this module did not make is answered with None, never guessed at.

    __manifest/main/9223372036854775806.json      version 1 of main: newest first in byte order
    __manifest/%52eview/.deleted-17        the marker that version 17 of `Review` deleted it
    __lineage/main/0-127-<nonce>.json             the first 128 records of main's log
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

from omnigraph.errors import InvalidRequest

GRAPH_KEY = "__graph.json"
MANIFESTS = "__manifest"
LINEAGE = "__lineage"
SCHEMAS = "__schema"
VERSION_LIMIT = 2**63 - 1

_BRANCH_BYTES_MAX = 200
_FOLDER_LENGTH_MAX = 200
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")
_DIGITS = 19
_ENCODED_BYTE = re.compile("%([0-9A-F]{2})")
_VERSION_KEY = re.compile(rf"{MANIFESTS}/(?P<folder>[^/]+)/(?P<number>[0-9]{{{_DIGITS}}})\.json")
_MARKER_KEY = re.compile(rf"{MANIFESTS}/(?P<folder>[^/]+)/\.deleted-(?P<version>[1-9][0-9]{{0,{_DIGITS - 1}}})")


@lru_cache(maxsize=4_096)
def branch_folder(branch: str) -> str:
    """The folder name of a branch: no two names share one, even where case is ignored.

    >>> branch_folder("review/Tides")
    'review%2F%54ides'
    """
    encoded = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in branch.encode())
    if len(encoded) <= _FOLDER_LENGTH_MAX:
        return encoded
    # `~` stands in no uncut name, so a cut one equals only names with the same digest
    return f"{encoded[:_FOLDER_LENGTH_MAX]}~{hashlib.sha256(branch.encode()).hexdigest()[:32]}"


def folder_branch(folder: str) -> str | None:
    """The branch whose folder this is; None if the name was cut, or if no branch has such a folder.

    >>> folder_branch("review%2F%54ides")
    'review/Tides'
    """
    try:
        branch = _ENCODED_BYTE.sub(lambda match: chr(int(match[1], 16)), folder).encode("latin-1").decode()
    except UnicodeError:
        return None
    return branch if branch_folder(branch) == folder else None


def shown_folder(folder: str) -> str:
    """The branch name for a message, with its end left out where the folder name was cut.

    >>> shown_folder("review%2Ftides")
    'review/tides'
    """
    branch = folder_branch(folder)
    if branch is not None:
        return branch
    cut = re.sub("%[0-9A-F]?$", "", folder.partition("~")[0])
    return (
        _ENCODED_BYTE.sub(lambda m: chr(int(m[1], 16)), cut).encode("latin-1", "ignore").decode(errors="ignore") + "…"
    )


def chain_prefix(branch: str) -> str:
    """The folder that holds the versions of a branch.

    >>> chain_prefix("main")
    '__manifest/main'
    """
    return f"{MANIFESTS}/{branch_folder(branch)}"


def version_key(branch: str, version: int) -> str:
    """The key of one version of a branch; newer versions sort first.

    >>> version_key("main", 1)
    '__manifest/main/9223372036854775806.json'
    """
    return folder_version_key(branch_folder(branch), version)


def folder_version_key(folder: str, version: int) -> str:
    """The key of a version, by the folder of its branch."""
    if not 1 <= version < VERSION_LIMIT:
        raise ValueError(f"a version lies between 1 and 2^63 - 2, this is {version}")
    return f"{MANIFESTS}/{folder}/{VERSION_LIMIT - version:0{_DIGITS}}.json"


def parse_version_key(key: str) -> tuple[str, int] | None:
    """Folder name and version, or None if the key is not that of a version.

    >>> parse_version_key("__manifest/main/9223372036854775806.json")
    ('main', 1)
    """
    match = _VERSION_KEY.fullmatch(key)
    if match is None:
        return None
    version = VERSION_LIMIT - int(match["number"])
    return (match["folder"], version) if 1 <= version < VERSION_LIMIT else None


def deleted_marker_key(branch: str, version: int) -> str:
    """The key of the marker which says that this version deleted the branch (history.md 1.5).

    >>> deleted_marker_key("review", 17)
    '__manifest/review/.deleted-17'
    """
    if not 1 <= version < VERSION_LIMIT:
        raise ValueError(f"a version lies between 1 and 2^63 - 2, this is {version}")
    return f"{chain_prefix(branch)}/.deleted-{version}"


def parse_deleted_marker(key: str) -> tuple[str, int] | None:
    """Folder name and version of a marker, or None if the key is none.

    >>> parse_deleted_marker("__manifest/review/.deleted-17")
    ('review', 17)
    """
    match = _MARKER_KEY.fullmatch(key)
    return None if match is None else (match["folder"], int(match["version"]))


def after_markers(folder: str) -> str:
    """A key that sorts after every marker of a chain's folder and before every version."""
    return f"{MANIFESTS}/{folder}/.deleted-~"


def after_folder(folder: str) -> str:
    """A key that sorts after everything in a chain's folder and before the next folder."""
    return f"{MANIFESTS}/{folder}/~"


def segment_key(branch: str, first: int, last: int, nonce: str) -> str:
    """The key of the log segment with records `first` to `last` (counted from 0 at the start of the branch's log).

    >>> segment_key("main", 0, 127, "7f3c9a0011223344")
    '__lineage/main/0-127-7f3c9a0011223344.json'
    """
    return f"{LINEAGE}/{branch_folder(branch)}/{first}-{last}-{nonce}.json"


def schema_source_key(digest: str) -> str:
    """The key of the accepted schema source with this digest."""
    return f"{SCHEMAS}/{digest}.pg"


def schema_catalog_key(digest: str) -> str:
    """The key of the compiled catalog with this digest."""
    return f"{SCHEMAS}/{digest}.json"


def check_branch_name(name: str) -> str:
    """The name itself, if a branch may be called so.

    Raises InvalidRequest (`bad_request`) that says which rule the name breaks and what to do; nothing was applied.
    """
    broken = _broken_rule(name)
    if broken is not None:
        rule, fix = broken
        raise InvalidRequest(f"{_quoted(name)} can't be a branch name: {rule}. {fix}.", effects="none")
    return name


def lookalike(name: str) -> str:
    """What people and case-blind file systems take a name for: equal results are refused side by side.

    >>> lookalike("Straße") == lookalike("STRASSE")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def _broken_rule(name: str) -> tuple[str, str] | None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it is no valid Unicode text", "Leave out the lone surrogate"
    if not name:
        return "it is empty", "Give it at least one character"
    if size > _BRANCH_BYTES_MAX:
        return f"it has {size} bytes of UTF-8, at most {_BRANCH_BYTES_MAX} are allowed", "Shorten it"
    if any(unicodedata.category(character) == "Cc" for character in name):
        return "it holds a control character", "Leave out tabs, line breaks and the like"
    if "@" in name:
        return "it holds '@', which separates branch and version in a commit id", "Leave out the '@'"
    if "\\" in name:
        return "it holds a backslash", "Use '/' to nest names"
    if name != name.strip():
        return "it begins or ends with white space", "Leave out the white space around it"
    if name.startswith("__"):
        return "names that begin with '__' are reserved", "Let it begin otherwise"
    parts = name.split("/")
    if "" in parts:
        return "a part between '/' is empty", "Use single '/' characters between parts, none at the ends"
    if "." in parts or ".." in parts:
        return "a part between '/' is '.' or '..'", "Name that part otherwise"
    return None


def _quoted(name: str, limit: int = 60) -> str:
    shown = name if len(name) <= limit else f"{name[:limit]}…"
    return "'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown) + "'"
