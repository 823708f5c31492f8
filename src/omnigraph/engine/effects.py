"""What a failed write says of itself: the one place where the write verbs let definite errors out.

An error that does not know whether it is met by a read or by a write says nothing of effects. Every failure of a write
but an unknown outcome comes before its publication or refuses it, so here it says `none`. Errors that speak for
themselves keep their word, above all `unknown`; a fault of this program is no proof of anything and stays silent.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from omnigraph.errors import InternalError, OmnigraphError, RecoveryRequired

_PROVES_NOTHING = (InternalError, RecoveryRequired)


@contextmanager
def definite_failures() -> Generator[None]:
    """Around a write verb, also as its decorator. Nothing in it may raise once the write was published."""
    try:
        yield
    except OmnigraphError as error:
        if error.effects is None and not isinstance(error, _PROVES_NOTHING):
            error.effects = "none"
        raise
