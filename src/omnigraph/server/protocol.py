"""HTTP/1.1 on one connection: what is refused before there is a request, and how long a connection may dawdle.

uvicorn answers malformed requests with plain text; here they get the one error body with its headers, like all others.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from omnigraph.ambient import SystemClock, fresh_ulid
from omnigraph.engine.logs import log_event
from omnigraph.engine.reading.answers import json_bytes
from omnigraph.errors import InvalidRequest
from omnigraph.server.answers import JSON, error_headers
from omnigraph.server.guard import HEADER_BYTES_MAX, TARGET_BYTES_MAX, standard_headers

HEAD_BYTES_MAX = TARGET_BYTES_MAX + HEADER_BYTES_MAX
HEAD_SECONDS_MAX = 10.0
DISCARDED_BYTES_MAX = 64 << 20

_LOGGER = "omnigraph.http"


class Protocol(H11Protocol):
    """One connection."""

    _head_timer: asyncio.TimerHandle | None = None
    _discarded = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, "abort": transport.abort}  # for streams that nobody takes
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        refused = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        super().data_received(data)
        if refused:
            self._discard(len(data))
        # The rest of a request's head must come soon: whoever sends it byte by byte would hold the connection for ever.
        unfinished = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not unfinished:
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS_MAX, self.transport.abort)

    def _discard(self, size: int) -> None:
        """The rest of a body that was refused: read so that the answer is seen, but not without end."""
        self._discarded += size
        if self._discarded > DISCARDED_BYTES_MAX:
            self.transport.abort()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _unsupported_upgrade_warning(self) -> None:
        """An offer to speak another protocol may be passed over in silence."""

    def send_400_response(self, msg: str) -> None:
        """Called where the bytes that came are no request."""
        cycle = cast(Any, self.cycle)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # whoever waits for the rest of this body is told that it does not come
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.abort()
                return
        refusal = _refusal(sys.exc_info()[1], self.conn.trailing_data[0])
        refusal.request_id = fresh_ulid(SystemClock())
        log_event(_LOGGER, "info", "request", req=refusal.request_id, status=refusal.status, code=refusal.code)
        body = json_bytes(refusal.to_dict())
        headers = {
            **standard_headers(refusal.request_id),
            **error_headers(refusal),
            "Content-Type": JSON,
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        events = [
            h11.Response(status_code=refusal.status, headers=encoded, reason=STATUS_PHRASES[refusal.status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        for event in events:
            self.transport.write(self.conn.send(event))
        self.transport.close()


def _refusal(error: BaseException | None, head: bytes) -> InvalidRequest:
    if getattr(error, "error_status_hint", 400) == 431:
        first_line = head.split(b"\n", 1)[0]
        if len(first_line) > TARGET_BYTES_MAX:
            return InvalidRequest(
                f"An address has at most {TARGET_BYTES_MAX:,} bytes.", code="uri_too_long", status=414
            )
        return InvalidRequest(f"Headers have at most {HEADER_BYTES_MAX:,} bytes.", code="headers_too_large", status=431)
    return InvalidRequest("This is no HTTP/1.1 request.")
