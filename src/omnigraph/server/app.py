"""The application: routes, the guard before them, and every error as the one body."""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from omnigraph._version import __version__
from omnigraph.errors import InternalError, InvalidRequest, NotFound, OmnigraphError
from omnigraph.server.answers import error_answer
from omnigraph.server.guard import Guard
from omnigraph.server.routes import process, reading, writing
from omnigraph.server.services import Services
from omnigraph.server.writes import is_write

_log = structlog.get_logger("omnigraph.http")


def create_app(services: Services, *, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> FastAPI:
    """The application over these services. It opens nothing and owns no thread."""
    app = FastAPI(title="OmniGraph", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.services = services
    for family in (process, reading, writing):
        app.include_router(family.router)
    app.add_exception_handler(OmnigraphError, _known)
    app.add_exception_handler(HTTPException, _routing)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(Exception, _unexpected)
    app.add_middleware(Guard, clock=services.clock, hosts=tuple(hosts), origins=tuple(origins))
    return app


async def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, OmnigraphError)
    if is_write(request) and error.effects is None:
        error.effects = "none"
    return error_answer(error, _request_id(request))


async def _routing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        refusal: OmnigraphError = InvalidRequest(
            "This path does not take that method.", code="method_not_allowed", status=405
        )
    elif error.status_code == 404:
        refusal = NotFound("There is no such path.")
    else:
        refusal = InvalidRequest(str(error.detail), status=error.status_code)
    answer = error_answer(refusal, _request_id(request))
    allow = (error.headers or {}).get("Allow")
    if allow:
        answer.headers["Allow"] = allow
    return answer


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_answer(InvalidRequest("The request does not fit this route."), _request_id(request))


async def _unexpected(request: Request, error: Exception) -> Response:
    """A fault of this program. Of a write nobody knows what it did, and the answer says so."""
    _log.error("request failed unexpectedly", request_id=_request_id(request), error_type=type(error).__name__)
    write = is_write(request)
    failure = InternalError(
        "The server met a fault of its own.",
        effects="unknown" if write else None,
        retry="reconcile" if write else "recover",
    )
    return error_answer(failure, _request_id(request))


def _request_id(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", ""))
