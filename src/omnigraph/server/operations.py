"""Work that belongs to the server: threads for writes and for reads.

A write runs on a thread of its own pool. A caller that hangs up stops waiting and nothing else; a stop of the server
waits for what was admitted.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal, TypeVar

from omnigraph.ambient import Clock
from omnigraph.engine.logs import log_event
from omnigraph.error_parts import idempotency_details
from omnigraph.errors import Busy, Conflict
from omnigraph.manifest.publish import FenceClosed, FenceOpen, FenceState
from omnigraph.server.admission import Admission
from omnigraph.server.limits import ServerLimits

_LOGGER = "omnigraph.server"

_T = TypeVar("_T")
Key = tuple[str, str | None, str]
"""Where an idempotency key counts: graph, branch, and the caller's own words."""

_STOPPING_SECONDS = 5
_ENDINGS = (StopIteration, GeneratorExit, KeyboardInterrupt, SystemExit, asyncio.CancelledError)
"""What an event loop takes for its own: it would end with them, or leave whoever waits without an answer."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """One piece of work that has not ended, and for how long it has run."""

    kind: Literal["write", "read"]
    seconds: float


class Operations:
    """Everything that runs for callers.

    `draining` is set by the first stop signal, or by `contain`; then nothing new begins. `contained` is why the process
    must end with 2, if it must; `on_contained` is called once it must. `cut_off` is set where the process ends without
    waiting any longer: from then on no publication is sent.
    """

    def __init__(self, limits: ServerLimits, clock: Clock) -> None:
        self.limits = limits
        self.admission = Admission(limits)
        self.draining = False  # written by a signal handler, which may take no lock
        self.cut_off = False
        self.contained: str | None = None
        self.on_contained: Callable[[], None] = lambda: None
        self._clock = clock
        self._running: dict[Future[object], tuple[Literal["write", "read"], float]] = {}
        self._keys: set[Key] = set()
        self._lock = threading.Lock()
        self._writes = ThreadPoolExecutor(max(limits.write_ops, 1), thread_name_prefix="omnigraph-write")
        self._reads = ThreadPoolExecutor(limits.read_threads, thread_name_prefix="omnigraph-read")

    async def write(self, work: Callable[[], _T], *, input_bytes: int = 0, key: Key | None = None) -> _T:
        """Run a write to its end, whatever becomes of the caller. `key`: while another write with this key runs, refuse.

        Raises Busy if it was not admitted or no thread can be had, Conflict (`idempotency_in_flight`), else as `work`.
        """
        with contextlib.ExitStack() as places:
            self._refuse_draining()
            places.enter_context(self.admission.take("write_ops"))
            places.enter_context(self.admission.take("write_bytes", input_bytes))
            if key is not None:
                places.callback(self._claimed(key))
            future = self._started("write", self._writes, work)
            held = places.pop_all()
        future.add_done_callback(lambda _: held.close())
        return await asyncio.shield(asyncio.wrap_future(future))

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run a read, or a part of one that began. Raises Busy if no thread can be had, else as `work`."""
        return await asyncio.shield(asyncio.wrap_future(self._started("read", self._reads, work)))

    def contain(self, reason: str) -> None:
        """Close admission for every graph, for good. A second reason changes nothing."""
        with self._lock:
            if self.contained is not None:
                return
            self.contained = reason
            self.draining = True
        self.on_contained()
        log_event(_LOGGER, "error", "admission closed", reason=reason)

    def fence(self) -> FenceState:
        """Whether a publication may still be sent; asked right before each request of one."""
        return FenceClosed() if self.cut_off else FenceOpen()

    def begin(self) -> None:
        """Raises Busy (`server_draining`) if nothing new may begin."""
        self._refuse_draining()

    def _refuse_draining(self) -> None:
        if self.draining:
            raise Busy(
                "The server is stopping; nothing was started.",
                code="server_draining",
                status=503,
                retry_after=_STOPPING_SECONDS,
            )

    def _claimed(self, key: Key) -> Callable[[], None]:
        with self._lock:
            if key in self._keys:
                raise Conflict(
                    "The first request with this idempotency key is still running.",
                    code="idempotency_in_flight",
                    retry="retry",
                    detail_key="idempotency",
                    details=idempotency_details(key[-1]),
                    retry_after=1,
                )
            self._keys.add(key)
        return lambda: self._forget(key)

    def _forget(self, key: Key) -> None:
        with self._lock:
            self._keys.discard(key)

    def _started(self, kind: Literal["write", "read"], pool: ThreadPoolExecutor, work: Callable[[], _T]) -> Future[_T]:
        """The work, on a thread. Raises Busy if none can be started: then it never runs."""
        future: Future[_T] = Future()
        with self._lock:
            try:
                pool.submit(_run, future, work)
            except (
                RuntimeError,
                MemoryError,
            ):  # no more threads; but the pool has queued the work already, and may get to it
                if future.cancel():
                    raise self._no_thread(kind) from None
            self._running[future] = (kind, self._clock.boot_seconds())  # pyright: ignore[reportArgumentType]
        future.add_done_callback(self._ended)
        return future

    def _no_thread(self, kind: Literal["write", "read"]) -> Busy:
        """The limit that was met is the machine's: as many as run now."""
        running = sum(each == kind for each, _ in self._running.values())
        return Busy(
            "The server can start no more threads now; nothing was started.",
            detail_key="admission",
            details={"lane": "write_ops" if kind == "write" else "observers", "limit": running},
            retry_after=1,
        )

    def _ended(self, future: Future[_T]) -> None:
        with self._lock:
            self._running.pop(future, None)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def unfinished(self) -> list[Unfinished]:
        with self._lock:
            running = list(self._running.values())
        now = self._clock.boot_seconds()
        return [Unfinished(kind, now - since) for kind, since in running]

    def finish(self) -> None:
        """Wait for everything that was admitted. Whoever bounds this wait ends the process."""
        while True:
            with self._lock:
                pending = list(self._running)
            if not pending:
                return
            wait(pending)


def _run(future: Future[_T], work: Callable[[], _T]) -> None:
    """The work, unless it was refused meanwhile: from here on it can't be, so it does both or neither."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except _ENDINGS as error:
        stray = RuntimeError(f"stray {type(error).__name__}")
        stray.__cause__ = error
        future.set_exception(stray)
    except BaseException as error:  # whatever ended it is the caller's to hear
        future.set_exception(error)
    else:
        future.set_result(result)
