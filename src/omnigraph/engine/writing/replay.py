"""Idempotency keys: what they hash to, and whether a request was answered before (storage.md 4, interfaces.md 5.4).

The record of a key is the commit that it published, so it exists exactly when the commit does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.ambient import random_hex
from omnigraph.engine.arguments import check_text
from omnigraph.engine.core import GraphCore
from omnigraph.error_parts import idempotency_details
from omnigraph.errors import IdempotencyKeyReused, InvalidRequest
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.logs import find_key
from omnigraph.manifest.model import Commit, CreatedFrom, Idempotency, Manifest

_KEY_LENGTH_MAX = 128


class FreshKey(str):
    """A key that this process has just made up for one request, so that nobody can have used it before.

    It is stored like any other, and looked for only in what was published after the request began.
    """

    __slots__ = ()


def idempotency(
    key: str | None, *, actor: str | None, operation: str, arguments: Mapping[str, object]
) -> Idempotency | None:
    """The digests of a key and of the request under it; None without a key.

    The actor is part of the key's digest. `arguments` are what a caller gave, not checked yet; large bodies go in as
    their own digest. Raises InvalidRequest (`idempotency_key_invalid`) for a key that is empty, too long or not visible
    ASCII.
    """
    if key is None:
        return None
    check_text(key, "idempotency_key", code="idempotency_key_invalid")
    if not 1 <= len(key) <= _KEY_LENGTH_MAX or not all("!" <= c <= "~" for c in key):
        raise InvalidRequest(
            "An idempotency key is 1 to 128 visible ASCII characters without blanks.", code="idempotency_key_invalid"
        )
    return Idempotency(key=canonical_digest([actor, key]), request=_request_digest([operation, dict(arguments)]))


def _request_digest(request: object) -> str:
    try:
        return canonical_digest(request)
    except (RecursionError, TypeError, ValueError):
        # Nested too deeply, holding itself, or of keys that don't compare: no parameter takes such a value, and whoever
        # checks it says so with the parameter's name. Until then the request equals no other, not even itself.
        return random_hex(64)


def canonical_digest(value: object) -> str:
    """SHA-256, hex, of canonical JSON: sorted keys, no blanks, non-ASCII as it is.

    Raises RecursionError, TypeError, ValueError for what has no JSON.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_spelled)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _spelled(value: object) -> object:
    """What JSON has no word for: an array by its elements, since the text of a long one leaves out its middle."""
    elements = getattr(value, "tolist", None)
    return str(value) if elements is None else elements()


def find_replay(
    core: GraphCore, head: KnownHead, given: Idempotency | None, *, key: str | None, base: Commit | None = None
) -> Commit | None:
    """The commit that this key published in the branch's present life, or None. `key`: the caller's own words.

    With `base`, only the log after that commit is looked at. Raises IdempotencyKeyReused if the key was used for another
    request, StorageFailure if the log can't be read.
    """
    if given is None:
        return None
    used = find_key(core.history, head.manifest, given.key, after=None if base is None else base.id)
    if used is None:
        return None
    if used.request != given.request or used.commit is None:
        raise key_reused(key, used.commit, head.manifest.created_from)
    return used.commit


def key_reused(key: str | None, commit: Commit | None, created: CreatedFrom | None) -> IdempotencyKeyReused:
    """The refusal of another request under a key; what used it first was a commit, or else the creation of the branch."""
    first = created if commit is None else commit
    details = idempotency_details(
        key,
        graph_commit_id=None if commit is None else str(commit.id),
        created_at=None if first is None else first.created_at,
    )
    return IdempotencyKeyReused(
        "This idempotency key was used for a different request.",
        effects="none",
        detail_key="idempotency",
        details=details,
    )


@dataclass(frozen=True, slots=True)
class EndedReplay:
    """A commit that stands in a life that is over, and the version that ended it."""

    commit: Commit
    manifest: Manifest

    @property
    def began_the_life(self) -> bool:
        """Whether the commit was published with the branch itself (a load into a branch that did not exist)."""
        return self.commit.id.version == self.manifest.life


def find_ended_replay(core: GraphCore, branch: str, given: Idempotency | None) -> EndedReplay | None:
    """What this very request published on a branch that is deleted by now, or None.

    To say "there is no such branch, nothing was done" would be false: the commit stands, and its id still resolves. The
    version that deletes a branch keeps its log. Raises StorageFailure.
    """
    state = core.heads.state(branch) if given is not None else None
    if given is None or not isinstance(state, KnownHead) or state.live:
        return None
    used = find_key(core.history, state.manifest, given.key)
    if used is None or used.commit is None or used.request != given.request:
        return None
    return EndedReplay(used.commit, state.manifest)
