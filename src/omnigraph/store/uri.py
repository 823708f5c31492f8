"""Root addresses: text of a user -> one canonical value, or a refusal before any file exists.

    parse_root("s3://bucket/my%20data/")  -> S3Root(bucket="bucket", prefix="my data")
    parse_root("my data")                 -> LocalRoot(path="/…/my data")
    parse_root("file:///srv/h%231")       -> LocalRoot(path="/srv/h#1")

A bare path is taken literally: `%`, `#`, `?` in it are part of the name. A URI is percent-decoded exactly once here,
and encoded exactly once where another library wants a URI (`S3Root.uri`). Does no storage request; a local path is
made absolute with its links resolved, which looks at the file system and changes nothing.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import quote, unquote_to_bytes

from omnigraph.errors import InvalidRequest
from omnigraph.store.keys import unspeakable

MAX_BYTES = 4096

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_KNOWN_SCHEME_WITHOUT_SLASHES = re.compile(r"(?:s3|az|file|memory):(?!//)", re.IGNORECASE)
_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_URI_SAFE = "/-_.~!$&'()*+,;=:@"


@dataclass(frozen=True, slots=True)
class LocalRoot:
    """A folder of this host: absolute, links resolved, without a slash at its end."""

    path: str

    @property
    def uri(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class S3Root:
    """A bucket and a decoded prefix without slashes at its ends ("" is the whole bucket)."""

    bucket: str
    prefix: str

    @property
    def uri(self) -> str:
        """Percent-encoded, so that reading it as a URL gives the prefix back."""
        return f"s3://{self.bucket}" + (f"/{encoded(self.prefix)}" if self.prefix else "")


RootUri = LocalRoot | S3Root


def parse_root(text: str | os.PathLike[str]) -> RootUri:
    """The root that `text` names; two spellings of one root give equal values.

    A path object is always a local path. Raises InvalidRequest (`invalid_storage_root`) for anything that this version
    can't serve; the message repeats nothing of a text that could hold a secret.
    """
    if isinstance(text, os.PathLike):
        return _local(_text(os.fspath(text)))
    _text(text)
    if _KNOWN_SCHEME_WITHOUT_SLASHES.match(text):
        _refuse("a storage address is written scheme://…; write ./name for a folder whose name has a colon")
    match = _SCHEME.fullmatch(text)
    if match is None:
        return _local(text)
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme in ("az", "azure", "abfs", "abfss", "adl"):
        _refuse("Azure storage is not part of this version; use a local path or s3://bucket/prefix")
    if scheme not in ("s3", "file"):
        _refuse("this kind of storage is not supported; use a local path or s3://bucket/prefix")
    if "@" in rest.partition("/")[0]:
        _refuse("a storage address must not carry user info; credentials come from the environment")
    if "?" in rest or "#" in rest:
        _refuse("a storage address has no query and no fragment; in a name write ? as %3F and # as %23")
    authority, _, path = rest.partition("/")
    if scheme == "s3":
        return _s3(authority, path)
    if authority not in ("", "localhost"):
        _refuse("a file address names a folder of this host: file:///folder")
    return _local("/" + _decoded_path(path))


def _text(given: object) -> str:
    if not isinstance(given, str):
        _refuse(f"a storage address is a text or a path, not {type(given).__name__}")
    return given


def encoded(path: str) -> str:
    """A decoded path as it stands in a URI."""
    return quote(path, safe=_URI_SAFE)


def redacted(text: str) -> str:
    """An address as it may stand in a log or a message, whatever a user typed.

    Query and fragment are masked; with user info everything is, since a secret may hold any character.

    >>> redacted("s3://bucket/data?sig=abc")
    's3://bucket/data?***'
    >>> redacted("s3://key:secret@bucket/data")
    's3://***'
    """
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    match = _SCHEME.fullmatch(printable)
    if match is None:
        return printable
    shown = re.split(r"[?#]", match["rest"], maxsplit=1)[0]
    authority = shown.partition("/")[0]
    if "@" in authority or ":" in authority:
        return f"{match['scheme']}://***"
    hidden = match["rest"][len(shown) :]
    return f"{match['scheme']}://{shown}" + (f"{hidden[0]}***" if hidden else "")


def _local(path: str) -> LocalRoot:
    if not path:
        _refuse("the storage address is empty")
    if "\x00" in path:
        _refuse("a path can't hold a zero character")
    _check_length(path)  # also that it is UTF-8, which the look at the file system takes for granted
    absolute = os.path.realpath(path)
    _check_length(absolute)
    if _is_in_the_way(absolute):
        _refuse("a storage address names a folder, and here stands a file; name another folder, or move the file away")
    return LocalRoot(absolute)


def _is_in_the_way(path: str) -> bool:
    """Whether a file stands at the path, or where one of its folders would have to be."""
    while True:
        try:
            return not stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            path = os.path.dirname(path)
        except OSError:
            return False  # whoever uses the folder is told what is wrong with it


def _s3(bucket: str, path: str) -> S3Root:
    if not _BUCKET.fullmatch(bucket):
        _refuse("an S3 address is s3://bucket/prefix with a bucket name of 3 to 63 letters, digits, '.', '-' or '_'")
    prefix = _decoded_path(path)
    if any(part in (".", "..") for part in prefix.split("/")):
        _refuse("an S3 prefix has no '.' or '..' parts")
    if unspeakable(prefix):
        _refuse("an S3 prefix has no backslashes and no control characters")
    root = S3Root(bucket, prefix)
    _check_length(root.uri)
    return root


def _decoded_path(path: str) -> str:
    """Percent-decoded once, part by part, empty parts dropped."""
    if _MALFORMED_ESCAPE.search(path):
        _refuse("a storage address has a '%' that is no escape; in a name write % as %25")
    parts: list[str] = []
    for part in path.split("/"):
        if not part:
            continue
        try:
            decoded = unquote_to_bytes(part).decode("utf-8")
        except UnicodeError:
            _refuse("a storage address must be UTF-8")
        if "/" in decoded:
            _refuse("an encoded slash (%2F) can't be part of a name")
        parts.append(decoded)
    return "/".join(parts)


def _check_length(uri: str) -> None:
    try:
        length = len(uri.encode("utf-8"))
    except UnicodeEncodeError:
        _refuse("a storage address must be UTF-8")
    if length > MAX_BYTES:
        _refuse(f"a storage address has at most {MAX_BYTES} bytes")


def _refuse(message: str) -> NoReturn:
    raise InvalidRequest(message, code="invalid_storage_root")
