"""What a failed write says of itself: the one place where the write verbs let typed errors out.

An error that does not know whether it is met by a read or by a write says nothing of effects. Every failure of a write
but an unknown outcome comes before its publication or refuses it, so here it says `none`. Errors that speak for
themselves keep their word, above all `unknown`; a fault of this program proves nothing once staging had begun.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from omnigraph.engine.evidence import watching
from omnigraph.errors import OmnigraphError


@contextmanager
def definite_failures() -> Generator[None]:
    """Around a write verb, also as its decorator. Nothing in it may raise once the write was published."""
    with watching() as evidence:
        try:
            yield
        except OmnigraphError as error:
            error.of_write(staged=evidence.staged)
            raise
