"""A small HTTP server on loopback which does exactly the wrong thing that a test asks for, and counts what it is sent.

    with MisbehavingServer(answer(503, SLOW_DOWN)) as server:
        …one request to server.endpoint…
    assert server.methods == ["PUT"]

It reads sockets by hand, since an HTTP library would not let it break the protocol.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

_HEADER_BYTES_MAX = 64 * 1024


@dataclass(frozen=True)
class Request:
    """What arrived: the body may be shorter than announced if the behaviour did not read it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""


Behaviour = Callable[[socket.socket, Request], bool]
"""Answers one request on a connection; True if the connection may carry another."""


@dataclass
class MisbehavingServer:
    """Plays `behaviour` for each request; a list plays one after another, the last for all that follow."""

    behaviour: Behaviour | list[Behaviour]
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> MisbehavingServer:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._guard = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._closing = False
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        # On Linux closing a listener does not wake `accept`; shutting it down does.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._guard:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.requests]

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._guard:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while not self._closing:
                request = read_request(connection)
                if request is None:
                    return
                with self._guard:
                    play = self._next(len(self.requests))
                    self.requests.append(request)
                if not play(connection, request):
                    return
        except OSError:
            return
        finally:
            with self._guard:
                self._connections.discard(connection)
            connection.close()

    def _next(self, index: int) -> Behaviour:
        if isinstance(self.behaviour, list):
            return self.behaviour[min(index, len(self.behaviour) - 1)]
        return self.behaviour


def read_request(connection: socket.socket) -> Request | None:
    """The next request with its whole body (by Content-Length), or None at the end of the connection."""
    received = b""
    while b"\r\n\r\n" not in received:
        if len(received) > _HEADER_BYTES_MAX:
            return None
        chunk = connection.recv(65536)
        if not chunk:
            return None
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    while len(body) < int(headers.get("content-length", "0")):
        chunk = connection.recv(65536)
        if not chunk:
            return None
        body += chunk
    return Request(method, target, headers, body)


# --- behaviours


def answer(status: int, body: str | bytes = b"", **headers: str) -> Behaviour:
    """A complete answer; `etag="…"` and other headers as keywords, `_` for `-`."""
    payload = body.encode() if isinstance(body, str) else body
    return raw(head(status, len(payload), **headers) + payload, keep=True)


def raw(data: bytes, *, keep: bool = False) -> Behaviour:
    """Exactly these bytes, then the end of the connection unless `keep`."""

    def play(connection: socket.socket, request: Request) -> bool:
        connection.sendall(data)
        return keep

    return play


def half(status: int, body: bytes = b"0123456789", **headers: str) -> Behaviour:
    """Headers that announce twice the body that comes."""
    return raw(head(status, 2 * len(body), **headers) + body)


def reset() -> Behaviour:
    """The connection breaks with RST after the request was read."""

    def play(connection: socket.socket, request: Request) -> bool:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    return play


def silence(seconds: float = 60.0) -> Behaviour:
    """No answer until the client gives up."""

    def play(connection: socket.socket, request: Request) -> bool:
        connection.settimeout(seconds)
        with contextlib.suppress(OSError):
            connection.recv(1)
        return False

    return play


def delayed(seconds: float, then: Behaviour) -> Behaviour:
    def play(connection: socket.socket, request: Request) -> bool:
        time.sleep(seconds)
        return then(connection, request)

    return play


def head(status: int, length: int, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def s3_error(code: str, message: str = "says the store") -> str:
    """The body of an S3 error."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
