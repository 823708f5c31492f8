"""Pages of a branch's log. A token pins the head at which the list began, so that commits made meanwhile shift nothing.

Tokens are untrusted: whatever one says is looked up again, and one that fits no list of this server is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, cast

from omnigraph.engine.core import GraphCore
from omnigraph.engine.reading.selectors import commit_manifest
from omnigraph.engine.receipts import Commit
from omnigraph.errors import CommitNotFound, InvalidRequest

_KIND = "commits/1"


@dataclass(frozen=True, slots=True)
class CommitPage:
    """Which part of which list: what a token says."""

    graph: str  # the graph's own id, which another graph under the same name does not have
    head: str
    since: int | None
    until: int | None
    place: int  # how many commits were given already


def commit_page(
    core: GraphCore, branch: str | None, *, since: int | None, until: int | None, limit: int, token: str | None
) -> dict[str, Any]:
    """The answer object: commits newest first, and the token of what follows or null.

    With a token the other arguments are left out or those of the first page. Raises BranchNotFound, InvalidRequest
    (`change_cursor_rejected`), HistoryReclaimed, StorageFailure.
    """
    if token is None:
        head = core.head(branch or "main").manifest
        page = CommitPage(core.graph_id, str(head.head_commit.id), since, until, 0)
        lineage = head.lineage
    else:
        page = _checked(_decoded(token), core, branch, since, until)
        try:
            lineage = commit_manifest(core, page.head).lineage
        except CommitNotFound:
            raise _rejected("names a commit that this graph does not have") from None
    walk = core.history.walk(lineage, since=page.since, until=page.until)
    found = list(islice(walk, page.place, page.place + limit + 1))
    following = CommitPage(page.graph, page.head, page.since, page.until, page.place + limit)
    return {
        "commits": [Commit.of(record).to_dict() for record in found[:limit]],
        "next_page_token": _encoded(following) if len(found) > limit else None,
    }


def _checked(page: CommitPage, core: GraphCore, branch: str | None, since: int | None, until: int | None) -> CommitPage:
    if page.graph != core.graph_id:
        raise _rejected("belongs to another graph")
    if branch is not None and page.head.rpartition("@")[0] != branch:
        raise _rejected("belongs to another branch")
    if (since is not None and since != page.since) or (until is not None and until != page.until):
        raise _rejected("belongs to a list of another time")
    return page


def _encoded(page: CommitPage) -> str:
    text = json.dumps({"kind": _KIND, **asdict(page)}, separators=(",", ":"), sort_keys=True)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "kind": lambda value: value == _KIND,
    "graph": lambda value: isinstance(value, str),
    "head": lambda value: isinstance(value, str) and "@" in value,
    "since": lambda value: value is None or _is_count(value),
    "until": lambda value: value is None or _is_count(value),
    "place": lambda value: _is_count(value),
}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _decoded(token: str) -> CommitPage:
    try:
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        fields: Any = json.loads(text.decode())
    except (binascii.Error, ValueError, RecursionError):
        raise _rejected("is none of this server") from None
    if not isinstance(fields, dict) or cast("dict[str, Any]", fields).keys() != _FIELDS.keys():
        raise _rejected("is of another kind")
    said = cast("dict[str, Any]", fields)
    if not all(check(said[name]) for name, check in _FIELDS.items()):
        raise _rejected("is of another kind")
    return CommitPage(said["graph"], said["head"], said["since"], said["until"], said["place"])


def _rejected(why: str) -> InvalidRequest:
    return InvalidRequest(f"The page token {why}: begin the list anew.", code="change_cursor_rejected")
