"""Connections to a provider: where they may lead, how long they may take, and that they leave no trace in a log.

A name is resolved here, once for a connection; the address that was judged is the one that is connected to, so that a name
which resolves differently the second time leads nowhere (security.md 2). Redirects, cookies, proxies and `.netrc` do not
exist on this level. Knows no provider and no key.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import socket
import ssl
import threading
import weakref
from collections.abc import Callable, Generator, Iterable
from typing import Any

import certifi
import httpcore

from omnigraph.ambient import Clock
from omnigraph.embed.hosts import ProviderHosts, address_of

Resolver = Callable[[str, int], list[str]]
"""The addresses of a host. Raises OSError."""

_CONNECTIONS_MAX = 16
_KEPT_SECONDS = 60.0
_LOGGERS = ("httpcore.connection", "httpcore.http11")


class AddressRefused(Exception):
    """The host leads to addresses that nothing may be sent to."""


class Network:
    """Connections to one host, kept open between requests. Thread-safe."""

    def __init__(
        self,
        clock: Clock,
        *,
        encrypted: bool,
        hosts: ProviderHosts | None = None,
        resolve: Resolver | None = None,
    ) -> None:
        self._door = _GuardedDoor(clock, encrypted, hosts, resolve or addresses_of)
        self._pool = httpcore.ConnectionPool(
            ssl_context=_trusted() if encrypted else None,
            max_connections=_CONNECTIONS_MAX,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=self._door,
        )
        weakref.finalize(self, self._pool.close)  # a graph may be let go of without being closed
        _hush()

    @contextlib.contextmanager
    def post(
        self, url: httpcore.URL, headers: dict[str, str], body: bytes, *, seconds: float, until: float
    ) -> Generator[httpcore.Response]:
        """The answer to one request, its body unread. `seconds`: for each step of it; `until`: for all of it, as a time of
        the clock's `boot_seconds`.

        Raises AddressRefused, and httpcore's TimeoutException, NetworkError and ProtocolError.
        """
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
        with self._door.open_until(until):
            sent: Any = list(headers.items())
            with self._pool.stream("POST", url, headers=sent, content=body, extensions={"timeout": timeouts}) as answer:
                yield answer

    def close(self) -> None:
        """Close them all, and so end what is under way. May be used again."""
        self._pool.close()


def addresses_of(host: str, port: int) -> list[str]:
    """As the machine resolves it, in its order. How long it tries is the machine's setting."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class _Turn(threading.local):
    """What holds for the request that this thread is sending. Read by the filter of the library's loggers too."""

    until: float | None = None


_turn = _Turn()


class _GuardedDoor(httpcore.NetworkBackend):
    """Opens connections for the pool, in the thread of the request that needs one."""

    def __init__(self, clock: Clock, encrypted: bool, hosts: ProviderHosts | None, resolve: Resolver) -> None:
        self._clock = clock
        self._encrypted = encrypted
        self._hosts = hosts
        self._resolve = resolve
        self._plain = httpcore.SyncBackend()

    @contextlib.contextmanager
    def open_until(self, until: float) -> Generator[None]:
        _turn.until = until
        try:
            yield
        finally:
            _turn.until = None

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = self._resolve(host, port)
        except OSError:  # no such name, or nobody to ask; the text would name the host
            found = []
        admitted = [address for address in found if self._admits(host, address)]
        if found and not admitted:
            raise AddressRefused
        for position, address in enumerate(admitted):
            share = self.left(timeout) / (
                len(admitted) - position
            )  # an address that swallows all leaves time for others
            with contextlib.suppress(httpcore.ConnectError, httpcore.ConnectTimeout):  # the next one may answer
                return _TimedStream(self._plain.connect_tcp(address, port, share), self)
        raise httpcore.ConnectError

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise AddressRefused

    def _admits(self, host: str, address: str) -> bool:
        if not self._encrypted:
            found = address_of(address)
            if found is None or not found.is_loopback:
                return False  # a key in the clear stays on this machine
        return self._hosts is None or self._hosts.admits(host, address)

    def left(self, timeout: float | None) -> float:
        """How long the next step may take. Raises ReadTimeout if the request's time is over."""
        until = _turn.until
        if until is None:  # the pool closes an idle connection
            return timeout or 1.0
        left = until - self._clock.boot_seconds()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left if timeout is None else min(left, timeout)


class _TimedStream(httpcore.NetworkStream):
    """A connection on which many small steps take no longer than one big one."""

    def __init__(self, inner: httpcore.NetworkStream, door: _GuardedDoor) -> None:
        self._inner = inner
        self._door = door

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._door.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._door.left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _TimedStream(self._inner.start_tls(ssl_context, server_hostname, self._door.left(timeout)), self._door)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The authorities that `SSL_CERT_FILE` or `SSL_CERT_DIR` name; without them the machine's and certifi's."""
    named = ssl.get_default_verify_paths()
    own = ssl.create_default_context()
    if not _is_named_by_environment(named):
        own.load_verify_locations(cafile=certifi.where())
    return own


def _is_named_by_environment(paths: ssl.DefaultVerifyPaths) -> bool:
    return paths.cafile not in (None, paths.openssl_cafile) or paths.capath not in (None, paths.openssl_capath)


class _Hush(logging.Filter):
    """Drops what the library says of our requests: at its lowest level it quotes headers that a provider sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        return _turn.until is None


_HUSH = _Hush()


def _hush() -> None:
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_HUSH)  # a second time changes nothing
