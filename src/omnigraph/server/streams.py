"""Streamed bodies: each piece is made on a read thread when the one before has been sent.

A slow reader slows its producer and nothing else; one that takes nothing for a minute is cut. The first piece is made
before the first byte is sent, so what goes wrong until then is an ordinary error. What goes wrong later ends the body
without its end, and the reader discards what it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from omnigraph.engine.logs import log_event
from omnigraph.errors import OmnigraphError
from omnigraph.server.operations import Operations

STALLED_SECONDS_MAX = 60.0

_LOGGER = "omnigraph.http"


class Streamed(Response):
    """The answer over an iterator that was begun: `first` is its first piece, None if it had none."""

    def __init__(
        self,
        operations: Operations,
        first: bytes | None,
        rest: Iterator[bytes],
        *,
        media_type: str,
        headers: Mapping[str, str],
        stalled_seconds_max: float = STALLED_SECONDS_MAX,
    ) -> None:
        super().__init__(media_type=media_type, headers=headers)
        del self.headers["content-length"]
        self._operations = operations
        self._first = first
        self._rest = rest
        self._stalled_seconds_max = stalled_seconds_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        leaving = asyncio.create_task(_left(receive))
        piece = self._first
        try:
            while piece is not None:
                body = {"type": "http.response.body", "body": piece, "more_body": True}
                await asyncio.wait_for(send(body), self._stalled_seconds_max)
                if leaving.done():
                    return
                piece = await self._operations.read(lambda: next(self._rest, None))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            log_event(_LOGGER, "warning", "stream cut: its reader takes nothing", req=_state(scope, "request_id"))
            _abort(scope)
        except OmnigraphError as error:
            log_event(_LOGGER, "warning", "stream cut", req=_state(scope, "request_id"), code=error.code)
        finally:
            leaving.cancel()
            close: Callable[[], None] | None = getattr(self._rest, "close", None)
            if close is not None:
                close()


def first_piece(pieces: Iterator[bytes]) -> bytes | None:
    """The first piece that is not empty."""
    return next((piece for piece in pieces if piece), None)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _state(scope: Scope, name: str) -> Any:
    return scope.get("state", {}).get(name)


def _abort(scope: Scope) -> None:
    """Let go of a connection whose buffers will never empty."""
    abort = _state(scope, "abort")
    if abort is not None:
        abort()
