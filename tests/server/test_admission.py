"""Places are taken at once or refused, status routes need none, and everything is given back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from omnigraph.engine import graph as engine_graph
from omnigraph.server import streams
from omnigraph.server.admission import Admission
from omnigraph.server.limits import VARIABLES, ServerLimits
from omnigraph.server.routes import reading
from omnigraph.server.streams import Streamed
from server.asgi import JSON, NDJSON, Reply, done, refused, sound
from server.conftest import Serve, Served

QUERY = b'{"query": "query q() { match { $p: Port } return { $p.code } }"}'
INSERT = b'{"query": "query add() { insert Port { code: \\"A\\" } }"}'
LANES: list[Any] = list(ServerLimits.__dataclass_fields__)[:9]


class Held:
    """Holds every query and every load until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Semaphore(0), threading.Event()

    def wait(self) -> None:
        self.reached.release()
        assert self.opened.wait(60)

    async def arrived(self) -> None:
        while not self.reached.acquire(blocking=False):
            await asyncio.sleep(0.005)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    held = Held()
    for name in ("run_query", "write"):
        really = getattr(engine_graph, name)

        def waiting(*given: Any, really: Any = really, **named: Any) -> Any:
            held.wait()
            return really(*given, **named)

        monkeypatch.setattr(engine_graph, name, waiting)
    yield held
    held.opened.set()


def asking(served: Served, path: str, body: Any, kind: str = JSON) -> Awaitable[Reply]:
    return served.sending("POST", f"/graphs/atlas/{path}", headers=[("content-type", kind)], body=body)


def nothing_held(served: Served) -> None:
    served.operations.finish()
    assert {lane: served.operations.admission.used(lane) for lane in LANES} == dict.fromkeys(LANES, 0)


@pytest.mark.parametrize(
    ("limits", "path", "body", "lane", "limit"),
    [
        ({"read_observers": 1}, "query", QUERY, "observers", 1),
        ({"write_ops": 1}, "mutate", INSERT, "write_ops", 1),
        ({"write_bytes": len(INSERT)}, "mutate", INSERT, "write_bytes", len(INSERT)),
        ({"write_observers": 1}, "mutate", INSERT, "observers", 1),
        ({"write_ingress": 1}, "mutate", INSERT, "write_ingress", 1),
        ({"write_ingress_bytes": 1 << 20}, "mutate", INSERT, "write_ingress", 1 << 20),
        ({"read_ingress": 1}, "query", QUERY, "read_ingress", 1),
        ({"read_ingress_bytes": 1 << 20}, "query", QUERY, "read_ingress", 1 << 20),
    ],
)
def test_a_full_lane_refuses_at_once_and_says_which(
    serve: Serve, held: Held, limits: dict[str, int], path: str, body: bytes, lane: str, limit: int
) -> None:
    served = serve(limits=ServerLimits(**limits))

    async def two() -> tuple[Reply, Reply, list[Reply]]:
        first = asyncio.ensure_future(asking(served, path, body))
        await held.arrived()
        second = await asking(served, path, body)
        status = [await served.sending("GET", target) for target in ("/healthz", "/readyz", "/graphs", "/openapi.json")]
        held.opened.set()
        return await first, second, status

    first, second, status = served.run(two())
    done(first)
    effects = "none" if path == "mutate" else None
    error = refused(second, 429, "too_many_requests", effects=effects)
    assert error["admission"] == {"lane": lane, "limit": limit}
    assert second.headers["retry-after"] == "1"
    assert [reply.status for reply in status] == [200] * 4, "they need no place"
    nothing_held(served)


def test_a_lane_of_no_places_is_closed(serve: Serve) -> None:
    served = serve(limits=ServerLimits(write_ops=0))
    refused(served.insert("A"), 429, "too_many_requests", effects="none")
    assert served.codes() == []
    nothing_held(served)


def test_one_thing_larger_than_its_lane_may_pass_alone() -> None:
    admission = Admission(ServerLimits(write_bytes=10))
    with admission.take("write_bytes", 100) as place:
        assert admission.try_take("write_bytes", 1) is None
        place.shrink(1)
        assert admission.try_take("write_bytes", 9) is not None
    assert admission.used("write_bytes") == 9


def test_limits_come_from_the_environment_and_a_typo_leaves_the_default() -> None:
    given = {"OMNIGRAPH_GLOBAL_INFLIGHT_MAX": "0", "OMNIGRAPH_INGRESS_INFLIGHT_MAX": "3"}
    limits = ServerLimits.from_environment(given)
    assert (limits.write_ops, limits.write_ingress, limits.read_ingress) == (0, 3, 64)
    bad = {"OMNIGRAPH_GLOBAL_BYTES_MAX": "1 GiB", "OMNIGRAPH_BODY_TIMEOUT_SECONDS": "0", "OMNIGRAPH_READ_THREADS": "65"}
    with capture_logs() as logs:
        assert ServerLimits.from_environment(bad) == ServerLimits()
    assert {line["variable"] for line in logs} == set(bad)
    assert all(name in VARIABLES.values() for name in (*given, *bad))


# --- bodies that are slow, too long, or cut short


def pieces(*parts: bytes, then: Any = None) -> list[Any]:
    messages: list[Any] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    return [*messages, *([] if then is None else [then])]


def test_a_body_that_does_not_end_in_time_is_refused_and_admitted_nothing(serve: Serve) -> None:
    served = serve(limits=ServerLimits(body_seconds=1))
    reply = served.run(asking(served, "mutate", pieces(b"{")))
    assert refused(reply, 408, "body_timeout", effects="none")["retry"] == "retry"
    nothing_held(served)


def test_a_body_over_its_limit_is_refused_by_its_length_or_when_it_gets_there(served: Served) -> None:
    too_long = 1 << 20

    async def never() -> Message:
        raise AssertionError("read further")

    announced = served.sending(
        "POST",
        "/graphs/atlas/mutate",
        headers=[("content-type", JSON), ("content-length", str(too_long + 1))],
        body=[never],
    )
    refused(served.run(announced), 413, "body_too_large", effects="none")
    half = b" " * (too_long // 2 + 1)
    refused(served.run(asking(served, "mutate", pieces(half, half, then=never))), 413, "body_too_large", effects="none")
    nothing_held(served)


def test_loads_may_be_longer(served: Served) -> None:
    padded = b'{"type": "Port", "data": {"code": "A"}}' + b" " * (2 << 20)
    reply = served.run(asking(served, "load/ndjson?mode=append", padded, NDJSON))
    assert done(reply)["total_entities"] == 1


def test_a_caller_that_leaves_in_the_middle_of_a_body_admitted_nothing(served: Served) -> None:
    async def gone() -> Message:
        return {"type": "http.disconnect"}

    for path, kind in (("mutate", JSON), ("load/ndjson?mode=append", NDJSON), ("query", JSON)):
        reply = served.run(asking(served, path, pieces(b'{"type":', then=gone), kind))
        refused(reply, 400, "bad_request", effects=None if path == "query" else "none")
    assert served.head().startswith("main@1-")
    nothing_held(served)


def test_a_body_that_still_comes_when_the_server_stops_is_not_waited_for(served: Served) -> None:
    async def stopping() -> Reply:
        request = asyncio.ensure_future(asking(served, "mutate", pieces(b"{")))
        await asyncio.sleep(0.05)
        served.operations.draining = True
        served.services.stopping.set()
        return await request

    refused(served.run(stopping()), 503, "server_draining", effects="none")
    nothing_held(served)


# --- streams


def test_one_export_of_a_graph_at_a_time_and_the_next_waits_a_little(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, begun = asyncio.Event(), asyncio.Event()

    async def slowly(*given: Any) -> Any:
        begun.set()
        await opened.wait()
        return await really(*given)

    really = reading.streaming
    monkeypatch.setattr(reading, "streaming", slowly)

    async def two() -> tuple[Reply, Reply, Reply]:
        first = asyncio.ensure_future(asking(served, "export", b"{}"))
        await begun.wait()
        second = await asking(served, "export", b"{}")
        waiting = asyncio.ensure_future(asking(served, "export", b"{}"))
        await asyncio.sleep(0.02)
        opened.set()
        return await first, second, await waiting

    first, second, third = served.run(two())
    assert sound(first).status == sound(third).status == 200
    error = refused(second, 429, "stream_busy")
    assert error["admission"] == {"lane": "stream", "limit": 8}
    assert second.headers["retry-after"] == "2"
    nothing_held(served)
    assert not served.services.exporting


class Produced:
    """An endless stream that counts what was taken of it."""

    def __init__(self) -> None:
        self.made = 0
        self.closed = False

    def __iter__(self) -> Produced:
        return self

    def __next__(self) -> bytes:
        self.made += 1
        return b"x" * 1_000

    def close(self) -> None:
        self.closed = True


def stream(served: Served, produced: Produced, *, seconds: float = 30.0) -> Streamed:
    return Streamed(served.operations, b"first", produced, media_type=NDJSON, headers={}, stalled_seconds_max=seconds)


def test_a_reader_that_leaves_stops_the_producer(served: Served) -> None:
    produced = Produced()
    leave = asyncio.Event()

    async def receive() -> Message:
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if produced.made == 3:
            leave.set()
            await asyncio.sleep(0)

    served.run(stream(served, produced)({"type": "http"}, receive, send))
    assert produced.closed
    assert produced.made <= 5


def test_a_reader_that_takes_nothing_is_cut(served: Served) -> None:
    produced, cut = Produced(), threading.Event()

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    answer = stream(served, produced, seconds=0.05)
    served.run(answer({"type": "http", "state": {"abort": cut.set}}, receive, send))
    assert cut.is_set()
    assert produced.closed
    assert produced.made == 0, "nothing is made before what was made is taken"
    assert streams.STALLED_SECONDS_MAX == 60
