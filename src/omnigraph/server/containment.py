"""What the failure of an owned write proves, and what the process does then (storage.md 5, cluster.md 9.2).

A failure whose error says what is known concerns its write alone, an unknown outcome included. A failure that says
nothing, of a write that had begun to leave something in storage, ends the process: nobody knows which step was the last.
Then admission closes for every graph, what was admitted gets the grace, and the exit code is 2.
"""

from __future__ import annotations

from typing import Literal

from omnigraph.engine.evidence import Evidence
from omnigraph.engine.logs import log_event
from omnigraph.errors import InternalError, OmnigraphError, OutcomeUnknown, RecoveryRequired, StorageFailure
from omnigraph.server.operations import Operations

Reason = Literal["X1", "X3", "X4"]
"""Of cluster.md 9.2: a panic; a publication that memory could not take over; a failure without evidence.

X2, a write whose owner is lost, can't happen here: a write is owned by one call on a thread of the server's own
(`operations`), not by a task. Whatever leaves that call, SystemExit and cancellations raised inside it too, passes `judge`
and is the write's result; a caller that is cancelled, or an event loop that ends, stops waiting and reaches neither the
call nor its place in the queue; and should a thread hang for ever, the drain waits for it up to the cutoff, which is 2.
"""

_LOGGER = "omnigraph.server"


def reason_to_contain(error: BaseException, *, staged: bool) -> Reason | None:
    """Why this end of a write must end the process; None if it concerns that write alone."""
    match error:
        case RecoveryRequired():
            return "X3"
        case InternalError() if error.effects != "none" and staged:
            return "X4"
        case OmnigraphError():
            return None
        case _:
            return "X1" if staged else None


def judge(
    error: BaseException, evidence: Evidence, operations: Operations, *, graph_id: str, request_id: str | None
) -> None:
    """Close admission if the process must end, then tell operators of a write that ended without a definite outcome."""
    reason = reason_to_contain(error, staged=evidence.staged)
    if reason is not None:
        operations.contain(reason)
    status = error.status if isinstance(error, OmnigraphError) else 500
    if reason is not None or isinstance(error, OutcomeUnknown):
        fields = {"status": status, "graph": graph_id, "req": request_id}
        failed = {"class": _class(error), "phase": _phase(error), "scoped_to_keys": False, **fields}
        log_event(_LOGGER, "warning", "engine failure without definite completion evidence", **failed)
        ended = {"contained_process": reason is not None, **fields}
        level = "warning" if reason is None else "error"
        log_event(_LOGGER, level, "owned write ended without a definite outcome", **ended)


def _class(error: BaseException) -> str:
    """The class of a storage failure, if that is what it was."""
    cls = error.cls if isinstance(error, (OutcomeUnknown, StorageFailure)) else None
    return "unknown" if cls is None else str(cls)


def _phase(error: BaseException) -> str | None:
    """The phase of a storage failure; None for a fault of the program, since nobody knows which step was the last."""
    if isinstance(error, (OutcomeUnknown, StorageFailure)):
        return str(error.phase)
    return "publish" if isinstance(error, RecoveryRequired) else None
