"""An HTTP proxy in front of a real S3 server: counts every request, adds latency, and breaks what a test asks it to.

    with S3Proxy(server.endpoint) as proxy:
        …use proxy.endpoint in place of server.endpoint…
        proxy.break_next(lose_after(), method="PUT", key="__manifest/")
    assert proxy.count("LIST") == 1

It reaches requests that no wrapper of our own store sees, Lance's above all; tests and benchmarks count with it.
Requests pass byte for byte, the Host header too, so their signatures stay valid at the server.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from support.listening import Listening
from support.wire import Broken, Connection, Message, receive_request, receive_response, response, s3_error


@dataclass(frozen=True)
class Seen:
    """One request as it passed. `verb` is the method, but LIST for a listing; `status` is what the client was
    answered, None for no answer, and `passed` says whether the server got the request.
    """

    ordinal: int
    method: str
    verb: str
    bucket: str
    key: str  # decoded; of a listing the prefix asked for
    status: int | None
    passed: bool
    bytes_sent: int
    bytes_received: int
    seconds: float


@dataclass(frozen=True)
class Asked:
    """A request before anything happened to it."""

    method: str
    verb: str
    bucket: str
    key: str
    conditional: bool  # carries If-None-Match or If-Match


Forward = Callable[[], Message]
"""Sends the request to the server and gives its answer; at most once per request."""

Fault = Callable[["Exchange"], "bytes | None"]
"""What happens instead of passing the request on: the bytes to answer, or None to break the connection."""


@dataclass
class Exchange:
    """One request in the hands of a fault."""

    asked: Asked
    forward: Forward
    later: Callable[[], None]
    keep: bool = True  # the connection may carry another request


@dataclass
class _Rule:
    fault: Fault
    matches: Callable[[Asked], bool]
    remaining: int
    skip: int


class S3Proxy(Listening):
    """`latency_seconds` is added to each round trip."""

    def __init__(self, upstream: str, *, latency_seconds: float = 0.0) -> None:
        super().__init__()
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "127.0.0.1", parts.port or 80)
        self.latency_seconds = latency_seconds
        self._seen: list[Seen] = []
        self._rules: list[_Rule] = []
        self._held: list[Forward] = []
        self._ordinal = 0

    # --- what was seen

    @property
    def requests(self) -> list[Seen]:
        """In the order in which they were finished."""
        with self.guard:
            return list(self._seen)

    def count(self, verb: str | None = None, *, key: str = "") -> int:
        """Requests of this verb (GET, HEAD, PUT, LIST, POST, DELETE) whose key contains `key`."""
        return sum(1 for each in self.requests if verb in (None, each.verb) and key in each.key)

    def forget(self) -> None:
        with self.guard:
            self._seen.clear()

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Seen]]:
        """The requests that finish inside the block; the list is filled when it ends."""
        with self.guard:
            start = len(self._seen)
        found: list[Seen] = []
        yield found
        with self.guard:
            found.extend(self._seen[start:])

    # --- faults

    def break_next(
        self,
        fault: Fault,
        *,
        method: str | None = None,
        key: str = "",
        conditional: bool | None = None,
        times: int = 1,
        skip: int = 0,
    ) -> None:
        """Applies a fault to the next `times` requests that match, after letting `skip` of them pass.

        `method` is a method or LIST, `key` a part of the decoded key.
        """

        def matches(asked: Asked) -> bool:
            return (
                method in (None, asked.method, asked.verb)
                and key in asked.key
                and conditional in (None, asked.conditional)
            )

        with self.guard:
            self._rules.append(_Rule(fault, matches, times, skip))

    def heal(self) -> None:
        """No more faults; requests held back stay held until `release`."""
        with self.guard:
            self._rules.clear()

    def release(self) -> list[int]:
        """Sends the requests that `land_late` held back, in order; the server's statuses."""
        with self.guard:
            held, self._held = self._held, []
        return [forward().status for forward in held]

    # --- serving

    def serve(self, connection: Connection) -> None:
        upstream: Connection | None = None
        try:
            while (request := receive_request(connection)) is not None:
                if upstream is None or _ended(upstream):
                    upstream = self._connected()
                if not self._exchange(connection, upstream, request):
                    return
        finally:
            if upstream is not None:
                upstream.sock.close()

    def _connected(self) -> Connection:
        return Connection(socket.create_connection(self._upstream))

    def _exchange(self, connection: Connection, upstream: Connection, request: Message) -> bool:
        asked = _asked(request)
        fault, ordinal = self._begin(asked)
        started = time.perf_counter()
        if self.latency_seconds:
            time.sleep(self.latency_seconds)
        passed = threading.Event()

        def forward() -> Message:
            passed.set()
            return _forwarded(upstream, request, asked.method)

        def forward_alone() -> Message:
            passed.set()
            with contextlib.closing((alone := self._connected()).sock):
                return _forwarded(alone, request, asked.method)

        def later() -> None:
            with self.guard:
                self._held.append(forward_alone)

        exchange = Exchange(asked, forward, later)
        answer: bytes | None = None
        try:
            answer = (fault or _pass_on)(exchange)
        finally:
            seconds = time.perf_counter() - started
            seen = Seen(
                ordinal, asked.method, asked.verb, asked.bucket, asked.key, _status(answer), passed.is_set(),
                len(request.body), len(answer or b""), seconds,
            )  # fmt: skip
            with self.guard:
                self._seen.append(seen)
        if answer is None:
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        connection.send(answer)
        return exchange.keep

    def _begin(self, asked: Asked) -> tuple[Fault | None, int]:
        with self.guard:
            self._ordinal += 1
            for rule in self._rules:
                if rule.remaining and rule.matches(asked):
                    if rule.skip:
                        rule.skip -= 1
                        break
                    rule.remaining -= 1
                    return rule.fault, self._ordinal
            return None, self._ordinal


def _pass_on(exchange: Exchange) -> bytes:
    message = exchange.forward()
    exchange.keep = message.keeps_connection
    return message.head + message.body


# --- the faults


def refuse(status: int = 503, code: str = "SlowDown") -> Fault:
    """An S3 error; the server never hears of the request."""
    return lambda exchange: response(status, s3_error(code).encode(), Content_Type="application/xml")


def lose_before() -> Fault:
    """The connection breaks before the server hears of the request."""
    return lambda exchange: None


def lose_after() -> Fault:
    """The server does what was asked; the connection breaks instead of an answer."""

    def play(exchange: Exchange) -> bytes | None:
        exchange.forward()
        return None

    return play


def answer_after(status: int, body: bytes = b"<html>Bad gateway</html>") -> Fault:
    """The server does what was asked; the client is told something else."""

    def play(exchange: Exchange) -> bytes | None:
        exchange.forward()
        return response(status, body)

    return play


def land_late() -> Fault:
    """The connection breaks; the server gets the request when the test says `proxy.release()`."""

    def play(exchange: Exchange) -> bytes | None:
        exchange.later()
        return None

    return play


def delay(seconds: float) -> Fault:
    """The request waits, then passes."""

    def play(exchange: Exchange) -> bytes | None:
        time.sleep(seconds)
        return _pass_on(exchange)

    return play


def corrupt() -> Fault:
    """The body of the answer has the right length and the wrong bytes."""

    def play(exchange: Exchange) -> bytes | None:
        message = exchange.forward()
        return message.head + bytes(byte ^ 0x55 for byte in message.body)

    return play


def truncate() -> Fault:
    """Half the body that the headers announce."""

    def play(exchange: Exchange) -> bytes | None:
        message = exchange.forward()
        exchange.keep = False
        return message.head + message.body[: len(message.body) // 2]

    return play


def empty() -> Fault:
    """200, and nothing: the request was passed on, and of its answer only that it went well comes back."""

    def play(exchange: Exchange) -> bytes | None:
        exchange.forward()
        return response(200, b"")

    return play


# --- reading requests


def _asked(request: Message) -> Asked:
    method, target, _ = request.start.split(" ", 2)
    parts = urlsplit(target)
    bucket, _, key = parts.path.lstrip("/").partition("/")
    query = parse_qs(parts.query, keep_blank_values=True)
    headers = request.headers
    listing = method == "GET" and "list-type" in query
    return Asked(
        method,
        "LIST" if listing else method,
        bucket,
        query.get("prefix", [""])[0] if listing else unquote(key),
        "if-none-match" in headers or "if-match" in headers,
    )


def _forwarded(upstream: Connection, request: Message, method: str) -> Message:
    upstream.send(request.head + request.body)
    return receive_response(upstream, method)


def _ended(connection: Connection) -> bool:
    """True if the server closed an idle connection."""
    try:
        return connection.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def _status(answer: bytes | None) -> int | None:
    return None if answer is None else int(answer.split(b" ", 2)[1])


__all__ = [
    "Asked", "Broken", "Exchange", "Fault", "S3Proxy", "Seen", "answer_after", "corrupt", "delay", "land_late",
    "lose_after", "lose_before", "refuse", "truncate",
]  # fmt: skip
