"""A small HTTP server on loopback which does exactly the wrong thing that a test asks for, and keeps what it is sent.

with MisbehavingServer(answer(503, s3_error("SlowDown"))) as server:
…one request to server.endpoint…
assert server.methods == ["PUT"]
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable

from support.listening import Listening
from support.wire import Connection, Message, receive_request, response, response_head, s3_error

__all__ = ["MisbehavingServer", "answer", "cut", "delayed", "half", "raw", "reset", "s3_error", "silence"]

Behaviour = Callable[[Connection, Message], bool]
"""Answers one request on a connection; True if the connection may carry another."""


class MisbehavingServer(Listening):
    """Plays one behaviour after another, the last one for all requests that follow."""

    def __init__(self, *behaviours: Behaviour) -> None:
        super().__init__()
        self._behaviours = behaviours
        self.requests: list[Message] = []

    @property
    def methods(self) -> list[str]:
        return [request.start.partition(" ")[0] for request in self.requests]

    def serve(self, connection: Connection) -> None:
        while (request := receive_request(connection)) is not None:
            with self.guard:
                play = self._behaviours[min(len(self.requests), len(self._behaviours) - 1)]
                self.requests.append(request)
            if not play(connection, request):
                return


# --- behaviours


def answer(status: int, body: str | bytes = b"", **headers: str) -> Behaviour:
    """A complete answer; `etag="…"` and other headers as keywords, `_` for `-`."""
    return raw(response(status, body.encode() if isinstance(body, str) else body, **headers), keep=True)


def raw(data: bytes, *, keep: bool = False) -> Behaviour:
    """Exactly these bytes, then the end of the connection unless `keep`."""

    def play(connection: Connection, request: Message) -> bool:
        connection.send(data)
        return keep

    return play


def half(status: int, body: bytes = b"0123456789", **headers: str) -> Behaviour:
    """Headers that announce twice the body that comes."""
    return raw(response_head(status, 2 * len(body), **headers) + body)


def cut() -> Behaviour:
    """The end of the connection, in good order, instead of an answer."""
    return raw(b"")


def reset() -> Behaviour:
    """The connection breaks with RST after the request was read."""

    def play(connection: Connection, request: Message) -> bool:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    return play


def silence() -> Behaviour:
    """No answer until the client gives up."""

    def play(connection: Connection, request: Message) -> bool:
        connection.sock.settimeout(60)
        with contextlib.suppress(OSError):
            connection.sock.recv(1)
        return False

    return play


def delayed(seconds: float, then: Behaviour) -> Behaviour:
    def play(connection: Connection, request: Message) -> bool:
        time.sleep(seconds)
        return then(connection, request)

    return play
