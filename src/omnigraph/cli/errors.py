"""What a failure means for the caller: exit codes and `command_outcome` (interfaces.md 12.6), in one place.

The text of an error is made elsewhere; here is only which number ends the process and what a failed write says of
itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Literal

from omnigraph.errors import Busy, InvalidRequest, OmnigraphError, OutcomeUnknown, PreconditionFailed, StorageFailure

Execution = Literal["not_started", "finished", "unknown"]
Effects = Literal["none", "partial", "unknown"]


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    PRECONDITION = 4
    WAIT_OVER = 5
    RETRY = 75
    INTERRUPTED = 130


EXIT_MEANINGS: dict[Exit, str] = {
    Exit.DONE: "done, or nothing to do",
    Exit.FAILED: "failed, or there are findings: read them; no licence to repeat",
    Exit.USAGE: "usage: bad flags, wrong scope, missing consent; nothing sent",
    Exit.PRECONDITION: "the named precondition does not hold; nothing done",
    Exit.WAIT_OVER: "a wait ran out; the work goes on",
    Exit.RETRY: "proved to be without effect and safe to repeat unchanged",
    Exit.INTERRUPTED: "interrupted by the user",
}


class UsageRefused(InvalidRequest):
    """The command line itself is at fault, or asks for what this version does not have; nothing was sent. Exit 2."""

    default_code: ClassVar[str] = "bad_request"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message, code=code, effects="none")


class ConsentRequired(UsageRefused):
    """The command would do harm and nobody could be asked. Exit 2."""

    default_code = "consent_required"


class Declined(OmnigraphError):
    """The prompt was answered with no. Exit 1; nothing was done."""

    default_code = "consent_declined"
    default_status = 400
    default_retry = "fix"

    def __init__(self) -> None:
        super().__init__("Not confirmed; nothing was done.", effects="none")


class OutputFailed(OmnigraphError):
    """The answer could not be written. Exit 1. A write whose receipt is lost may have taken effect."""

    default_code = "output_failed"
    default_status = 500
    default_retry = "fix"

    def __init__(self, reason: str, *, write_sent: bool = False) -> None:
        super().__init__(reason, retry="reconcile" if write_sent else None, effects="unknown" if write_sent else None)


class WaitOver(OmnigraphError):
    """A wait ran out; what was waited for goes on. Exit 5. `answer` is what is known so far."""

    default_code = "pending"
    default_status = 408
    default_retry = "retry"

    def __init__(self, message: str, answer: dict[str, Any]) -> None:
        super().__init__(message)
        self.answer = answer


class Interrupted(OmnigraphError):
    """Ctrl-C. Exit 130. `staged`: a write had begun to leave something in storage."""

    default_code = "interrupted"
    default_status = 499

    def __init__(self, *, staged: bool) -> None:
        if staged:
            super().__init__(
                "Interrupted: the write may or may not have taken effect.", retry="reconcile", effects="unknown"
            )
        else:
            super().__init__("Interrupted; nothing was changed.", retry="retry", effects="none")


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far a command had come when it failed. `sent`: the engine had been asked to write; `staged`: it had begun to
    leave something in storage.
    """

    writes: bool
    sent: bool = False
    idempotency_key: str | None = None
    staged: bool = False


def exit_code(error: OmnigraphError, at: Progressed) -> Exit:
    """The number that ends the process."""
    match error:
        case UsageRefused():
            return Exit.USAGE
        case PreconditionFailed():
            return Exit.PRECONDITION
        case WaitOver():
            return Exit.WAIT_OVER
        case Interrupted():
            return Exit.INTERRUPTED
        case _ if error.retry == "retry" and effects_of(error) == "none":
            return Exit.RETRY
        case _:
            return Exit.FAILED


def effects_of(error: OmnigraphError) -> Effects:
    """What the whole command did, as far as it is proved. An error without a word about effects stands for a definite
    failure: before publication, or of a read.
    """
    return error.effects or "none"


def execution_of(error: OmnigraphError, at: Progressed) -> Execution:
    """`not_started` also where storage failed before the write had sent anything to it: whether the graph had to be opened
    first, or, as by `init`, made, is no difference to the caller.
    """
    unreached = isinstance(error, StorageFailure) and not at.staged
    if not at.sent or unreached or isinstance(error, (UsageRefused, Busy)):
        return "not_started"
    return "unknown" if effects_of(error) == "unknown" else "finished"


def takes_key(error: OmnigraphError) -> bool:
    """Whether the same command may be repeated under its key: `mutate` takes one, and deletes branches too."""
    return not isinstance(error, OutcomeUnknown) or error.takes_key


def failure_body(error: OmnigraphError, at: Progressed) -> dict[str, Any]:
    """The error body of the wire; for a command that writes also `command_outcome`, `retry_after`, `idempotency_key`."""
    body = error.to_dict()
    if isinstance(error, WaitOver):
        body["outcome"] = "pending"
        body["answer"] = error.answer
    if error.retry_after is not None:
        body["retry_after"] = error.retry_after
    if not at.writes:
        return body
    body["effects"] = effects_of(error)
    body["command_outcome"] = {
        "execution": execution_of(error, at),
        "effects": effects_of(error),
        "action": error.retry,
    }
    if at.idempotency_key is not None and takes_key(error):
        body["idempotency_key"] = at.idempotency_key
    return body
