"""How far a write has come, for whoever owns it and has to judge an exception that nobody foresaw.

    with watching() as evidence:
        graph.mutate(...)              # whatever leaves this block
    evidence.staged                    # False: not one file was written, so nothing can have happened

A typed error says by itself what is known. Of any other exception only this can be said: before staging began it had no
effect, afterwards nobody knows which step was the last (storage.md 5). A write stages on the thread that called it, so
the evidence goes with the thread's context; where nobody watches, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar


class Evidence:
    """`staged`: a request that may have written something was about to be sent."""

    __slots__ = ("outer", "staged")

    def __init__(self, outer: Evidence | None) -> None:
        self.outer = outer
        self.staged = False


_watched: ContextVar[Evidence | None] = ContextVar("omnigraph_evidence", default=None)


@contextmanager
def watching() -> Generator[Evidence]:
    """What the writes of this block did, as it happens. Who watches outside sees it too."""
    evidence = Evidence(_watched.get())
    token = _watched.set(evidence)
    try:
        yield evidence
    finally:
        _watched.reset(token)


def staging_begins() -> None:
    """To be called before the first request of a write that leaves anything in storage."""
    evidence = _watched.get()
    while evidence is not None:
        evidence.staged = True
        evidence = evidence.outer
