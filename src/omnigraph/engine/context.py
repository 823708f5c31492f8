"""What a handle stands on: the open graph, and whose default branch, actor and settings it speaks with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.engine.core import GraphCore
from omnigraph.engine.selectors import Pinned, Selector, parse_as_of, pinned
from omnigraph.errors import InvalidRequest
from omnigraph.manifest.builder import MAIN

MESSAGE_BYTES_MAX = 1_024
_PATH_LENGTH_MAX = 4_096

Source = str | Path


@dataclass(frozen=True, slots=True)
class Context:
    """`pinned_at`: the state that a read-only view is fixed to, unless a call names another."""

    core: GraphCore
    branch: str = MAIN
    actor: str | None = None
    read_only: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pinned_at: Selector | None = None

    def writable(self, branch: str | None = None) -> str:
        """The branch that a write goes to. Raises InvalidRequest on a read-only handle."""
        if self.read_only:
            raise InvalidRequest("This handle is read-only.", effects="none")
        return self.branch if branch is None else branch

    def selector(
        self,
        branch: str | None = None,
        snapshot: str | None = None,
        as_of: str | int | dt.datetime | None = None,
    ) -> Selector:
        if branch is None and snapshot is None and as_of is None and self.pinned_at is not None:
            return self.pinned_at
        return Selector(branch, snapshot, None if as_of is None else parse_as_of(as_of))

    def state(self, branch: str | None = None, snapshot: str | None = None) -> Pinned:
        """The state that is read. Raises BranchNotFound, CommitNotFound, HistoryReclaimed, StorageFailure."""
        return pinned(self.core, self.selector(branch, snapshot), self.branch)


def source_text(source: Source) -> str:
    """The text of a schema or query: a str as it is, a Path read. Raises InvalidRequest for a str that names a file."""
    if isinstance(source, Path):
        try:
            return source.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidRequest(f"{source.name} is not UTF-8 text.") from None
        except OSError as error:
            raise InvalidRequest(f"{source.name} can't be read: {error.strerror}.") from None
    if "\n" not in source and "{" not in source and 0 < len(source) < _PATH_LENGTH_MAX and Path(source).is_file():
        raise InvalidRequest("This text names a file: pass Path(…) to read it.")
    return source


def checked_message(message: str | None) -> str | None:
    """Raises InvalidRequest for a note that is no Unicode text or above 1,024 bytes."""
    if message is not None and len(_unicode(message, "A message")) > MESSAGE_BYTES_MAX:
        raise InvalidRequest(f"A message has at most {MESSAGE_BYTES_MAX:,} bytes.", effects="none")
    return message


def checked_actor(actor: str | None) -> str | None:
    """Raises InvalidRequest for an actor that is no Unicode text: a commit that names one could not be read again."""
    if actor is not None:
        _unicode(actor, "An actor")
    return actor


def _unicode(value: object, what: str) -> bytes:
    if not isinstance(value, str):
        raise InvalidRequest(f"{what} is a text, not {type(value).__name__}.", effects="none")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{what} holds half of a surrogate pair, which is no text.", effects="none") from None
