"""HTTP/1.1 messages on plain sockets, kept byte for byte, so that a signature over the headers stays valid."""

from __future__ import annotations

import socket
from dataclasses import dataclass

HEAD_BYTES_MAX = 256 * 1024
_CHUNK = 256 * 1024


class Broken(Exception):
    """The other side stopped in the middle of a message."""


class Connection:
    """A socket with what was received and not yet used."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self._pending = bytearray()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive_head(self) -> bytes | None:
        """Up to and with the empty line; None if the connection ended before a message began."""
        searched = 0
        while (end := self._pending.find(b"\r\n\r\n", searched)) < 0:
            searched = max(len(self._pending) - 3, 0)
            if searched > HEAD_BYTES_MAX:
                raise Broken
            chunk = self.sock.recv(_CHUNK)
            if not chunk:
                if self._pending:
                    raise Broken
                return None
            self._pending += chunk
        return self._take(end + 4)

    def receive(self, count: int) -> bytes:
        while len(self._pending) < count:
            chunk = self.sock.recv(_CHUNK)
            if not chunk:
                raise Broken
            self._pending += chunk
        return self._take(count)

    def receive_line(self) -> bytes:
        while (end := self._pending.find(b"\r\n")) < 0:
            chunk = self.sock.recv(_CHUNK)
            if not chunk:
                raise Broken
            self._pending += chunk
        return self._take(end + 2)

    def receive_rest(self) -> bytes:
        while chunk := self.sock.recv(_CHUNK):
            self._pending += chunk
        return self._take(len(self._pending))

    def _take(self, count: int) -> bytes:
        taken = bytes(self._pending[:count])
        del self._pending[:count]
        return taken


@dataclass(frozen=True)
class Message:
    """`start` is the first line; `body` as it came, chunk framing included."""

    head: bytes
    body: bytes

    @property
    def start(self) -> str:
        return self.head.partition(b"\r\n")[0].decode("latin-1")

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @property
    def status(self) -> int:
        return int(self.start.split(" ", 2)[1])

    @property
    def keeps_connection(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


def receive_request(connection: Connection) -> Message | None:
    """The next request with its whole body; one that waits for leave to send its body gets it."""
    head = connection.receive_head()
    if head is None:
        return None
    message = Message(head, b"")
    if message.headers.get("expect", "").lower() == "100-continue":
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:"))
    return Message(head, _receive_body(connection, message.headers))


def receive_response(connection: Connection, method: str) -> Message:
    """The answer to a request that was just sent."""
    while True:
        head = connection.receive_head()
        if head is None:
            raise Broken
        message = Message(head, b"")
        if message.status >= 200:
            break
    if method == "HEAD" or message.status in (204, 304):
        return message
    headers = message.headers
    if "content-length" not in headers and headers.get("transfer-encoding", "").lower() != "chunked":
        return Message(head, connection.receive_rest())
    return Message(head, _receive_body(connection, headers))


def response(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A complete answer; other headers as keywords, `_` for `-`."""
    return response_head(status, len(body), **headers) + body


def response_head(status: int, length: int, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def s3_error(code: str, message: str = "says the store") -> str:
    """The body of an S3 error."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'


def _receive_body(connection: Connection, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return connection.receive(int(headers.get("content-length", "0")))
    body = b""
    while True:
        line = connection.receive_line()
        size = int(line.partition(b";")[0], 16)
        body += line + connection.receive(size + 2)
        if size == 0:
            return body
