"""Work that belongs to the server: threads for writes and for reads, and how many may be under way.

A write runs on a thread of its own pool. A caller that hangs up stops waiting and nothing else; shutdown waits for what
was admitted.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Literal, TypeVar

from omnigraph.errors import Busy

_T = TypeVar("_T")

WRITES_MAX = 64
READS_MAX = 128


class Operations:
    """The two lanes of a server. `admit` never queues: a full lane refuses at once."""

    def __init__(self, *, writes_max: int = WRITES_MAX, reads_max: int = READS_MAX) -> None:
        threads = min(2 * (os.cpu_count() or 1), 64)
        self._limits = {"write_ops": writes_max, "observers": reads_max}
        self._running: dict[str, set[Future[object]]] = {"write_ops": set(), "observers": set()}
        self._writes = ThreadPoolExecutor(writes_max, thread_name_prefix="omnigraph-write")
        self._reads = ThreadPoolExecutor(max(threads, 4), thread_name_prefix="omnigraph-read")
        self._lock = threading.Lock()
        self._draining = False

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run a write to its end, whatever becomes of the caller. Raises Busy if it was not admitted, else as `work`."""
        return await self._run("write_ops", self._writes, work)

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run a read. Raises Busy if it was not admitted, else as `work`."""
        return await self._run("observers", self._reads, work)

    async def _run(
        self, lane: Literal["write_ops", "observers"], pool: ThreadPoolExecutor, work: Callable[[], _T]
    ) -> _T:
        future = self._admitted(lane, pool, work)
        return await asyncio.shield(asyncio.wrap_future(future))

    def _admitted(self, lane: str, pool: ThreadPoolExecutor, work: Callable[[], _T]) -> Future[_T]:
        effects = "none" if lane == "write_ops" else None
        with self._lock:
            if self._draining:
                raise Busy(
                    "The server is stopping; nothing was started.",
                    code="server_draining",
                    status=503,
                    effects=effects,
                    retry_after=5,
                )
            limit = self._limits[lane]
            if len(self._running[lane]) >= limit:
                raise Busy(
                    "Too many requests are under way; nothing was started.",
                    effects=effects,
                    detail_key="admission",
                    details={"lane": lane, "limit": limit},
                    retry_after=1,
                )
            future = pool.submit(work)
            running = self._running[lane]
            running.add(future)
        future.add_done_callback(lambda done: self._ended(running, done))
        return future

    def _ended(self, running: set[Future[object]], future: Future[_T]) -> None:
        with self._lock:
            running.discard(future)  # pyright: ignore[reportArgumentType]

    @property
    def draining(self) -> bool:
        return self._draining

    def close_admission(self) -> None:
        """From now on everything is refused with `server_draining`."""
        with self._lock:
            self._draining = True

    def drain(self, seconds: float) -> int:
        """Wait for what was admitted; how many writes had not ended when the time was over."""
        self.close_admission()
        with self._lock:
            pending = [*self._running["write_ops"], *self._running["observers"]]
        wait(pending, timeout=seconds)
        with self._lock:
            return len(self._running["write_ops"])
