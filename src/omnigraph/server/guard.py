"""What surrounds every request: its id, the contract, Host and Origin; the headers of every answer; one line in the log.

Plain ASGI and outermost, so that an answer made anywhere, the framework's own included, passes here. Nothing is wrapped
around a request that would be cancelled with it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph.ambient import Clock, fresh_ulid
from omnigraph.engine.logs import log_event
from omnigraph.errors import ContractMismatch, InvalidRequest, OmnigraphError
from omnigraph.server.answers import error_answer, unexpected_failure
from omnigraph.server.frames import frames_of
from omnigraph.server.origins import Origins

CONTRACT = "1"
TARGET_BYTES_MAX = 16 << 10
HEADER_BYTES_MAX = 64 << 10

_REQUEST_ID = re.compile(r"[!-~]{1,128}")
_MALFORMED_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_METHODS = frozenset("GET HEAD POST PUT PATCH DELETE OPTIONS".split())
_ENDINGS = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)
"""Not failures of a request: somebody ends it, or the process."""

_LOGGER = "omnigraph.http"


def standard_headers(request_id: str) -> dict[str, str]:
    """What every answer carries, whoever makes it."""
    return {"Omnigraph-Http-Api": CONTRACT, "X-Request-Id": request_id, "Cache-Control": "no-store"}


class Guard:
    """`is_write` tells from a scope whether its route writes, for refusals that come before routing."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        clock: Clock,
        is_write: Callable[[Scope], bool],
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
    ) -> None:
        self._app = app
        self._clock = clock
        self._is_write = is_write
        self._origins = Origins(hosts, origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else fresh_ulid(self._clock)
        answer = _Answer(
            send, scope["method"] == "HEAD", {**standard_headers(request_id), **self._origins.shown(headers)}
        )
        began = self._clock.boot_seconds()
        with ExitStack() as held:
            scope.setdefault("state", {}).update(request_id=request_id, held=held)
            await self._answered(scope, headers, receive, answer, request_id)
        self._tell(scope, answer, request_id, self._clock.boot_seconds() - began)

    async def _answered(
        self, scope: Scope, headers: Headers, receive: Receive, answer: _Answer, request_id: str
    ) -> None:
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            if self._is_write(scope):
                refusal.effects = "none"
            await error_answer(refusal, request_id)(scope, receive, answer)
        elif (preflight := self._origins.preflight(scope["method"], headers)) is not None:
            await preflight(scope, receive, answer)
        else:
            try:
                await self._app(scope, receive, answer)
            except _ENDINGS:
                raise
            except BaseException as error:  # a fault of ours: told with where it was and without what it said
                log_event(_LOGGER, "error", "request failed unexpectedly", req=request_id, **frames_of(error))
                if answer.status is None:  # native code that gives up raises what no handler of the framework takes
                    failure = unexpected_failure()
                    if self._is_write(scope):
                        failure.of_write(staged=bool(scope["state"].get("staged")))
                    await error_answer(failure, request_id)(scope, receive, answer)

    def _refusal(self, scope: Scope, headers: Headers) -> OmnigraphError | None:
        target = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope["query_string"]
        if len(target) + len(query) > TARGET_BYTES_MAX:
            return InvalidRequest(
                f"An address has at most {TARGET_BYTES_MAX:,} bytes.", code="uri_too_long", status=414
            )
        if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > HEADER_BYTES_MAX:
            return InvalidRequest(
                f"Headers have at most {HEADER_BYTES_MAX:,} bytes.", code="headers_too_large", status=431
            )
        contracts = headers.getlist("omnigraph-http-api")
        if contracts and contracts != [CONTRACT]:
            return ContractMismatch(
                f"This server speaks contract {CONTRACT}.",
                detail_key="api_contract",
                details={"required": CONTRACT, "received": ", ".join(contracts)},
            )
        if not (_well_escaped(target) and _well_escaped(query.replace(b"+", b" "))):
            return InvalidRequest("The address is not UTF-8, percent-encoded.")
        return self._origins.refusal(scope, headers)

    def _tell(self, scope: Scope, answer: _Answer, request_id: str, seconds: float) -> None:
        """One line. No text of the caller's stands in it but the request id."""
        route: Any = scope.get("route")
        log_event(
            _LOGGER,
            "info",
            "request",
            req=request_id,
            method=scope["method"] if scope["method"] in _METHODS else "other",
            route=getattr(route, "path", None),
            status=answer.status,
            code=answer.code,
            ms=round(1_000 * seconds, 1),
            bytes=answer.bytes,
        )


class _Answer:
    """The way out: adds the headers, leaves out the body of a HEAD, and counts."""

    def __init__(self, send: Send, head_only: bool, headers: dict[str, str]) -> None:
        self._send = send
        self._head_only = head_only
        self._headers = headers
        self.status: int | None = None
        self.code: str | None = None
        self.bytes = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            sent = MutableHeaders(scope=message)
            for name, value in self._headers.items():
                sent.setdefault(name, value)
            self.status, self.code = message["status"], sent.get("omnigraph-error-code")
        elif message["type"] == "http.response.body":
            if self._head_only:
                message = {**message, "body": b""}
            self.bytes += len(message.get("body", b""))
        await self._send(message)


def _well_escaped(text: bytes) -> bool:
    if _MALFORMED_ESCAPE.search(text):
        return False
    try:
        unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return False
    return True
