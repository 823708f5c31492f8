"""A loopback server with one thread per connection, which ends when its block ends."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

from support.wire import Broken, Connection


class Listening:
    """Subclasses say what a connection does: `serve`."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()

    def serve(self, connection: Connection) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        # Closing a listener does not wake a thread that waits in `accept`; shutting it down does.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self.guard:
            connections = list(self._connections)
        for sock in connections:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self.guard:
                self._connections.add(sock)
            threading.Thread(target=self._run, args=(sock,), daemon=True).start()

    def _run(self, sock: socket.socket) -> None:
        try:
            self.serve(Connection(sock))
        except (OSError, Broken):
            return
        finally:
            with self.guard:
                self._connections.discard(sock)
            sock.close()
