"""From an exception to the error body: what is known of a write, where to ask about an unknown one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from omnigraph.errors import (
    InvalidRequest,
    NotFound,
    OmnigraphError,
    OutcomeUnknown,
)
from omnigraph.server.answers import error_answer, unexpected_failure
from omnigraph.server.bodies import invalid_fields
from omnigraph.server.rules import methods_of, rules
from omnigraph.server.services import staged, state_of


async def known(request: Request, error: Exception) -> Response:
    """An error of the one tree."""
    assert isinstance(error, OmnigraphError)
    complete(request, error)
    return error_answer(error, _request_id(request))


def complete(request: Request, error: OmnigraphError, *, of_a_step: bool = False) -> None:
    """Add to an error what only the request tells: where to ask about an unknown outcome, what is known of a write.

    `of_a_step`: the request itself is done but for this, and to be repeated under its key.
    """
    if isinstance(error, OutcomeUnknown):
        error.details = {**error.details, **_where_to_ask(request, error, keyed=of_a_step or error.takes_key)}
    if _writes(request):
        error.of_write(staged=staged(request))


async def routing(request: Request, error: Exception) -> Response:
    """A path or method that there is not."""
    assert isinstance(error, HTTPException)
    methods = methods_of(request.scope, request.app.router.routes)
    if not methods:
        return error_answer(NotFound("There is no such path."), _request_id(request))
    if error.status_code == 405:
        refusal = InvalidRequest("This path does not take that method.", code="method_not_allowed", status=405)
        answer = error_answer(refusal, _request_id(request))
        answer.headers["Allow"] = ", ".join(methods)
        return answer
    return error_answer(InvalidRequest("The request can't be served.", status=error.status_code), _request_id(request))


async def validation(request: Request, error: Exception) -> Response:
    """Query parameters that do not fit their model."""
    assert isinstance(error, RequestValidationError)
    return await known(request, invalid_fields(error.errors(), skip=1))


async def left(request: Request, error: Exception) -> Response:
    """The caller closed the connection in the middle of its body. Most will never see this."""
    return await known(request, InvalidRequest("The body ended before it was complete; nothing was admitted."))


async def unexpected(request: Request, error: Exception) -> Response:
    """A fault of this program. Of a write that had begun to stage nobody knows what it did, and the answer says so."""
    return await known(request, unexpected_failure())


def _where_to_ask(request: Request, error: OutcomeUnknown, *, keyed: bool) -> dict[str, Any]:
    graph_id = request.path_params.get("g")
    commit = error.graph_commit_id
    key = state_of(request, "key") if keyed else None
    return {
        "graph_id": graph_id,
        "lookup": None if commit is None else f"/graphs/{graph_id}/commits/{quote(commit, safe='@')}/outcome",
        "server_stopping": error.by_fault,
        **({} if key is None else {"idempotency_key": key}),
    }


def _writes(request: Request) -> bool:
    return rules(request.scope.get("route")).write


def _request_id(request: Request) -> str:
    return str(state_of(request, "request_id") or "")
