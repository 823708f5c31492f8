"""Requests to an application without a network, byte for byte as a test wants them, and what every answer must be.

door = Door(app)
reply = door.post("/graphs/atlas/query", {"query": "…"})
error = refused(reply, 404, "graph_not_found")
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message

JSON = "application/json"
NDJSON = "application/x-ndjson"

# interfaces.md 4.3, the codes that this version has: status -> retry, by code
CODES: Mapping[str, Mapping[int, set[str]]] = {
    "api_contract_mismatch": {400: {"fix"}},
    "bad_request": {400: {"fix"}},
    "not_available": {400: {"fix"}},
    "invalid_query": {400: {"fix"}},
    "invalid_params": {400: {"fix"}},
    "wrong_verb": {400: {"fix"}},
    "invalid_setting": {400: {"fix"}},
    "condition_misplaced": {400: {"fix"}},
    "idempotency_key_invalid": {400: {"fix"}},
    "invalid_data": {400: {"fix"}},
    "constraint_violation": {400: {"fix"}},
    "change_cursor_rejected": {400: {"fix"}},
    "host_refused": {403: {"fix"}},
    "origin_refused": {403: {"fix"}},
    "route_not_found": {404: {"fix"}},
    "graph_not_found": {404: {"fix"}},
    "branch_not_found": {404: {"fix"}},
    "commit_not_found": {404: {"fix"}},
    "snapshot_not_found": {404: {"fix"}},
    "method_not_allowed": {405: {"fix"}},
    "not_acceptable": {406: {"fix"}},
    "body_timeout": {408: {"retry"}},
    "read_set_conflict": {409: {"refresh"}},
    "key_conflict": {409: {"fix"}},
    "branch_exists": {409: {"fix"}},
    "branch_has_descendants": {409: {"fix"}},
    "graph_replaced": {409: {"recover"}},
    "idempotency_in_flight": {409: {"retry"}},
    "history_reclaimed": {410: {"fix"}},
    "commit_precondition_failed": {412: {"refresh"}},
    "body_too_large": {413: {"fix"}},
    "resource_limit": {413: {"fix"}},
    "result_too_large": {413: {"fix"}},
    "uri_too_long": {414: {"fix"}},
    "headers_too_large": {431: {"fix"}},
    "unsupported_media_type": {415: {"fix"}},
    "idempotency_key_reused": {422: {"fix"}},
    "embedding_failed": {424: {"recover"}},
    "too_many_requests": {429: {"retry"}},
    "stream_busy": {429: {"retry"}},
    "internal": {500: {"recover", "reconcile"}},
    "storage_failure": {500: {"retry", "recover"}, 503: {"retry"}},
    "outcome_unknown": {500: {"reconcile"}},
    "server_draining": {503: {"retry"}},
    "graph_unavailable": {503: {"retry", "recover"}},
    "recovery_required": {503: {"recover"}},
    "query_timeout": {504: {"fix"}},
}
WAITS = {429, 503}  # statuses that say when to come again, unless someone must act first


@dataclass(frozen=True)
class Reply:
    """`complete`: the body was properly ended."""

    status: int
    headers: Mapping[str, str]
    pieces: Sequence[bytes]
    complete: bool

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def json(self) -> Any:
        return json.loads(self.body)


class Door:
    """One application and the event loop it runs on."""

    def __init__(self, app: ASGIApp, *, host: str = "localhost") -> None:
        self.app = app
        self.loop = asyncio.new_event_loop()
        self._host = host

    def close(self) -> None:
        self.loop.close()

    def send(
        self,
        method: str,
        target: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | Sequence[Message] = b"",
    ) -> Reply:
        return self.run(self.sending(method, target, headers=headers, body=body))

    def run(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def sending(
        self,
        method: str,
        target: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | Sequence[Message | Callable[[], Awaitable[Message]]] = b"",
        server: tuple[str, int] = ("127.0.0.1", 8080),
    ) -> Reply:
        """`target` is sent as it is; `body` may be a script of messages, after which nothing comes."""
        path, _, query = target.partition("?")
        given = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if not any(name == b"host" for name, _ in given):
            given.append((b"host", self._host.encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": given,
            "server": server,
            "client": ("127.0.0.1", 50_000),
        }
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        script = iter(whole if isinstance(body, bytes) else body)
        start: Message = {}
        pieces: list[bytes] = []
        complete = asyncio.Event()

        async def receive() -> Message:
            step = next(script, None)
            if step is None:
                await complete.wait()
                return {"type": "http.disconnect"}
            return await step() if callable(step) else step

        async def send(message: Message) -> None:
            assert not complete.is_set()
            if message["type"] == "http.response.start":
                assert not start
                start.update(message)
            else:
                assert start
                if message.get("body"):
                    pieces.append(message["body"])
                if not message.get("more_body", False):
                    complete.set()

        await self.app(scope, receive, send)
        found: dict[str, str] = {}
        for name, value in start.get("headers", ()):
            assert name.decode() not in found, f"{name.decode()} twice"
            found[name.decode()] = value.decode("latin-1")
        return Reply(start.get("status", 0), found, pieces, complete.is_set())

    def get(self, target: str, **headers: str) -> Reply:
        return self.send("GET", target, headers=_named(headers))

    def delete(self, target: str, **headers: str) -> Reply:
        return self.send("DELETE", target, headers=_named(headers))

    def post(self, target: str, value: Any, **headers: str) -> Reply:
        given = {"content_type": JSON, **headers}
        return self.send("POST", target, headers=_named(given), body=json.dumps(value).encode())

    def load(self, target: str, lines: str | bytes, **headers: str) -> Reply:
        data = lines.encode() if isinstance(lines, str) else lines
        return self.send("POST", target, headers=_named({"content_type": NDJSON, **headers}), body=data)


def _named(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name.replace("_", "-"), value) for name, value in headers.items()]


# --- what every answer must be


def sound(reply: Reply, *, head: bool = False) -> Reply:
    """Checks what every answer carries, and of every error its body."""
    assert reply.headers.get("omnigraph-http-api") == "1"
    assert 1 <= len(reply.headers.get("x-request-id", "")) <= 128
    assert "cache-control" in reply.headers
    if reply.status >= 400:
        code = reply.headers.get("omnigraph-error-code")
        assert code is not None
        assert reply.status in CODES[code], f"{code} with {reply.status}"
        if head:
            assert reply.body == b""
        else:
            _sound_error(reply, code)
    return reply


def _sound_error(reply: Reply, code: str) -> None:
    assert reply.headers["content-type"] == JSON
    error = reply.json()
    assert (error["code"], error["status"]) == (code, reply.status)
    assert error["retry"] in CODES[code][reply.status]
    assert error["request_id"] == reply.headers["x-request-id"]
    assert isinstance(error["error"], str)
    assert error["error"]
    assert error.get("effects", "none") in ("none", "unknown")
    assert None not in error.values()
    fixed = {"error", "code", "status", "retry", "effects", "request_id"}
    assert len(error.keys() - fixed) <= 1, "one detail object"
    if reply.status in WAITS and error["retry"] == "retry":
        assert int(reply.headers["retry-after"]) >= 1


def refused(reply: Reply, status: int, code: str, *, effects: str | None = None) -> dict[str, Any]:
    """The body of an error that must be this one."""
    sound(reply)
    error = reply.json()
    assert (reply.status, error["code"]) == (status, code), error
    assert error.get("effects") == effects, error
    return error


def done(reply: Reply) -> Any:
    """The body of an answer that must be a success."""
    sound(reply)
    assert reply.status == 200, reply.body
    return reply.json()
