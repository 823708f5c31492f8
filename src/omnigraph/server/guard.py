"""What every request passes first: its id, the contract header, the Host and Origin rules; and the headers of every answer.

Plain ASGI, so that nothing is wrapped around a request that could be cancelled with it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph.ambient import Clock, fresh_ulid
from omnigraph.errors import ContractMismatch, Forbidden, InvalidRequest, OmnigraphError
from omnigraph.server.answers import error_answer

CONTRACT = "1"
CONDITION = "omnigraph-if-graph-commit"
CONDITIONAL_ROUTE = "/if-graph-commit"

_REQUEST_ID = re.compile(r"[!-~]{1,128}")
_log = structlog.get_logger("omnigraph.http")


class Guard:
    """`hosts` are names that a caller may use for this server besides addresses and loopback names."""

    def __init__(self, app: ASGIApp, *, clock: Clock, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._app = app
        self._clock = clock
        self._hosts = {host.lower() for host in hosts}
        self._origins = set(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else fresh_ulid(self._clock)
        scope.setdefault("state", {})["request_id"] = request_id

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                sent["Omnigraph-Http-Api"] = CONTRACT
                sent["X-Request-Id"] = request_id
                sent.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope["method"], scope["path"], headers)
        if refusal is not None:
            await error_answer(refusal, request_id)(scope, receive, answer)
            return
        await self._app(scope, receive, answer)

    def _refusal(self, method: str, path: str, headers: Headers) -> OmnigraphError | None:
        contracts = headers.getlist("omnigraph-http-api")
        if contracts and contracts != [CONTRACT]:
            received = ", ".join(contracts)
            return ContractMismatch(
                f"This server speaks contract {CONTRACT}.",
                detail_key="api_contract",
                details={"required": CONTRACT, "received": received},
            )
        if not self._host_allowed(headers.get("host", "")):
            return Forbidden("This server does not answer under that host name.", code="host_refused")
        origin = headers.get("origin")
        if (origin is not None and origin not in self._origins) or headers.get("sec-fetch-site") == "cross-site":
            return Forbidden("Requests from that origin are not answered.", code="origin_refused")
        conditions = headers.getlist(CONDITION)
        if conditions and (len(conditions) > 1 or not path.endswith(CONDITIONAL_ROUTE)):
            return InvalidRequest("A commit condition has no place here.", code="condition_misplaced")
        if "idempotency-key" in headers and not _takes_key(method, path):
            return InvalidRequest("This route takes no idempotency key.", code="idempotency_key_invalid")
        return None

    def _host_allowed(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self._hosts or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _takes_key(method: str, path: str) -> bool:
    """The write routes of interfaces.md 5.4 that this version has."""
    last = path.rsplit("/", 1)[-1]
    return method == "POST" and ("/mutate" in path or "/load" in path or last in ("branches", "merge"))
