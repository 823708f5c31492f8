"""The application: routes, what surrounds them, and every error as the one body."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from omnigraph._version import __version__
from omnigraph.errors import OmnigraphError
from omnigraph.server import failures
from omnigraph.server.guard import Guard
from omnigraph.server.openapi import described
from omnigraph.server.routes import FAMILIES
from omnigraph.server.rules import rules_of
from omnigraph.server.services import Services


def create_app(services: Services, *, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> Guard:
    """The application over these services. It opens nothing and owns no thread."""
    app = routed(services)

    def is_write(scope: Scope) -> bool:
        return rules_of(scope, app.router.routes).write

    return Guard(app, clock=services.clock, is_write=is_write, hosts=hosts, origins=origins)


def routed(services: Services | None = None) -> FastAPI:
    """The routes with their error handlers, and the description of them."""
    app = FastAPI(title="OmniGraph", version=__version__, openapi_url=None, redirect_slashes=False)
    app.state.services = services
    for family in FAMILIES:
        app.router.routes.extend(family.routes)
    app.add_exception_handler(OmnigraphError, failures.known)
    app.add_exception_handler(HTTPException, failures.routing)
    app.add_exception_handler(RequestValidationError, failures.validation)
    app.add_exception_handler(ClientDisconnect, failures.left)
    app.add_exception_handler(Exception, failures.unexpected)
    app.state.description = described(app)
    return app
