"""A look at the version that is to be followed, beside the table commits of those who follow it.

`publish` looks at the base before it sends anything, unless the write has just seen it (`CheckBase`). Where a look is a
round trip it is sent early, while files are on their way. Nothing is decided here: whatever the look meets but the object
itself, `publish` asks again and says what it means.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from omnigraph.engine.core import GraphCore
from omnigraph.errors import OmnigraphError
from omnigraph.manifest.chain import KnownHead, seen_again

_T = TypeVar("_T")


def looked_at_beside(core: GraphCore, head: KnownHead, since: float, work: Callable[[], _T]) -> tuple[_T, KnownHead]:
    """What `work` returns, and the head, seen meanwhile if it was not seen since then. What `work` raises passes through."""
    lately = head.seen_at is not None and head.seen_at > since
    if lately or core.owner or core.store.local_path is not None:
        return work(), head
    with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-look") as pool:
        try:
            seen = pool.submit(_seen, core, head)
        except RuntimeError:  # no thread is to be had
            return work(), head
        return work(), seen.result()


def _seen(core: GraphCore, head: KnownHead) -> KnownHead:
    try:
        return seen_again(core.store, head, clock=core.clock) or head
    except OmnigraphError:
        return head
