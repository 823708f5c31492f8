"""Work that the server owns runs once and is told, or is refused and never runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from omnigraph.ambient import SystemClock
from omnigraph.engine import graph as engine_graph
from omnigraph.engine.evidence import staging_begins
from omnigraph.errors import Busy
from omnigraph.server.admission import Admission
from omnigraph.server.limits import ServerLimits
from omnigraph.server.operations import Operations
from server.asgi import done, refused
from server.conftest import Served

PATIENCE_SECONDS = 20
KEY = ("atlas", "main", "k")


class NoMoreThreads:
    """From `begin` on no thread can be started; `meanwhile` happens before that is known."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self._patched = patched
        self.meanwhile: Callable[[], None] = lambda: None

    def begin(self) -> None:
        def refuse(thread: threading.Thread) -> None:
            self.meanwhile()
            raise RuntimeError("can't start new thread")

        self._patched.setattr(threading.Thread, "start", refuse)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> NoMoreThreads:
    return NoMoreThreads(monkeypatch)


@pytest.fixture
def operations() -> Operations:
    return Operations(ServerLimits(), SystemClock())


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def running() -> Any:
        return await work()

    return asyncio.run(running())


def test_work_that_was_refused_for_want_of_a_thread_never_runs_and_gives_its_key_back(
    operations: Operations, threads: NoMoreThreads
) -> None:
    gate, ran = threading.Event(), list[str]()

    async def story() -> None:
        first = asyncio.ensure_future(operations.write(lambda: gate.wait(PATIENCE_SECONDS)))
        await asyncio.sleep(0)
        threads.begin()
        for _ in range(2):  # the second time the key is free
            with pytest.raises(Busy) as caught:
                await operations.write(lambda: ran.append("refused"), key=KEY, input_bytes=7)
            assert (caught.value.code, caught.value.retry, caught.value.retry_after) == (
                "too_many_requests",
                "retry",
                1,
            )
            assert caught.value.details == {"lane": "write_ops", "limit": 1}
        assert [operations.admission.used("write_ops"), operations.admission.used("write_bytes")] == [1, 0]
        with pytest.raises(Busy):
            await operations.read(lambda: ran.append("refused"))
        gate.set()
        assert await first
        await operations.write(lambda: ran.append("ours"), key=KEY)  # on the thread that is free by now

    run(story)
    operations.finish()
    assert ran == ["ours"]


def test_work_that_a_thread_had_taken_before_the_want_was_known_is_told_as_done(
    operations: Operations, threads: NoMoreThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that has just ended other work is not idle yet when the next is queued, and free a moment later."""
    go, ending, free, begun = (threading.Event() for _ in range(4))
    give = operations.admission.give

    def giving(*given: Any) -> None:
        ending.set()
        assert free.wait(PATIENCE_SECONDS)
        give(*given)

    def taken() -> None:
        free.set()
        assert begun.wait(PATIENCE_SECONDS)

    def second() -> str:
        begun.set()
        return "done"

    async def story() -> str:
        monkeypatch.setattr(operations.admission, "give", giving)
        first = asyncio.ensure_future(operations.write(lambda: go.wait(PATIENCE_SECONDS)))
        await asyncio.sleep(0)
        go.set()
        assert ending.wait(PATIENCE_SECONDS)
        threads.meanwhile = taken
        threads.begin()
        answer = await operations.write(second)
        assert await first
        return answer

    assert run(story) == "done"


@pytest.mark.parametrize(
    "raised", [SystemExit(), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), StopIteration()]
)
def test_whatever_ends_a_write_on_its_thread_is_judged_and_reaches_its_caller(
    served: Served, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    """No owner of a write is lost: not even by what usually ends a thread, a task or a process."""

    def breaks(*given: Any) -> Any:
        staging_begins()
        raise raised

    monkeypatch.setattr(engine_graph, "write", breaks)
    refused(served.insert("A"), 500, "internal", effects="unknown")
    assert served.operations.contained == "X1"
    assert served.operations.unfinished() == []


def test_a_caller_that_is_cancelled_takes_no_work_out_of_the_queue() -> None:
    gate, ran = threading.Event(), list[int]()
    operations = Operations(ServerLimits(write_ops=1), SystemClock())  # one thread
    operations.admission = Admission(ServerLimits(write_ops=2))

    async def story() -> None:
        first = asyncio.ensure_future(operations.write(lambda: gate.wait(PATIENCE_SECONDS)))
        queued = asyncio.ensure_future(operations.write(lambda: ran.append(1)))
        await asyncio.sleep(0)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        assert [each.kind for each in operations.unfinished()] == ["write", "write"]
        first.cancel()  # and then the event loop ends

    run(story)
    gate.set()
    operations.finish()
    assert ran == [1]


def test_a_request_that_no_thread_can_be_had_for_is_told_that_nothing_was_started(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        NoMoreThreads(patched).begin()
        told = refused(served.insert("A", idempotency_key="k"), 429, "too_many_requests", effects="none")
        refused(served.post("/graphs/atlas/query", {"query": "query q() {}"}), 429, "too_many_requests")
    assert (told["retry"], told["admission"]) == ("retry", {"lane": "write_ops", "limit": 0})
    assert "idempotent_replay" not in done(served.insert("A", idempotency_key="k"))
    served.operations.finish()
    assert served.codes() == ["A"]
