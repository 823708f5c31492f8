"""What the routes are given, and how they take their turn: a graph, a body, a read, a write (interfaces.md 2.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from omnigraph.ambient import Clock, fresh_ulid
from omnigraph.engine.evidence import watching
from omnigraph.engine.graph import Graph
from omnigraph.engine.writing.replay import FreshKey
from omnigraph.errors import Busy, OmnigraphError
from omnigraph.server.admission import Lane
from omnigraph.server.bodies import JSON_BYTES_MAX, check_head, collected, json_model
from omnigraph.server.containment import judge
from omnigraph.server.operations import Operations
from omnigraph.server.registry import Registry
from omnigraph.server.rules import KEY
from omnigraph.server.streams import Streamed, first_piece

_T = TypeVar("_T")
_M = TypeVar("_M", bound=BaseModel)

_DECODED_IN_PLACE_BYTES_MAX = 64 << 10  # above, decoding takes long enough to be felt by other callers
_STREAM_TRIES, _STREAM_PAUSE_SECONDS = 5, 0.05
_STREAM_BUSY_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Services:
    """`stopping` is set when the listener closes: bodies that are still coming are not waited for."""

    registry: Registry
    operations: Operations
    clock: Clock
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    exporting: set[str] = field(default_factory=set[str])  # graphs of which an export is being made


def services(request: Request) -> Services:
    held = request.app.state.services
    assert isinstance(held, Services)
    return held


def graph_of(request: Request, graph_id: str) -> Graph:
    """Raises Busy (`server_draining`, `graph_unavailable`), GraphNotFound."""
    held = services(request)
    held.operations.begin()
    return held.registry.graph(graph_id)


def _held(request: Request) -> ExitStack[None]:
    """What is given back when the answer has been sent."""
    return cast("ExitStack[None]", request.state.held)


async def body(request: Request, content_type: str, bytes_max: int, *, write: bool) -> bytes:
    """The whole body. Raises BodyRefused, Busy (no place, or the server stops)."""
    check_head(request, content_type, bytes_max)
    serving = services(request)
    lane, in_bytes = _INGRESS[write]
    admission, held = serving.operations.admission, _held(request)
    held.enter_context(admission.take(lane))
    place = held.enter_context(admission.take(in_bytes, bytes_max))
    seconds = float(serving.operations.limits.body_seconds)
    data = await collected(request, bytes_max, seconds_max=seconds, stopping=serving.stopping)
    if data is None:
        serving.operations.begin()
        raise Busy("The server is stopping; nothing was started.", code="server_draining", status=503, retry_after=5)
    place.shrink(len(data))
    request.state.input_bytes = len(data)
    return data


_INGRESS: Mapping[bool, tuple[Lane, Lane]] = {
    True: ("write_ingress", "write_ingress_bytes"),
    False: ("read_ingress", "read_ingress_bytes"),
}


async def json_body(request: Request, model: type[_M], *, write: bool, bytes_max: int = JSON_BYTES_MAX) -> _M:
    """The body as a model. Raises InvalidRequest (`bad_request`), and as `body`."""
    data = await body(request, "application/json", bytes_max, write=write)
    if len(data) <= _DECODED_IN_PLACE_BYTES_MAX:
        return json_model(data, model)
    return await services(request).operations.read(lambda: json_model(data, model))


async def reading(request: Request, work: Callable[[], _T]) -> _T:
    """Run a read; its place is held until the answer has been sent. Raises Busy, and as `work`."""
    operations = services(request).operations
    operations.begin()
    _held(request).enter_context(operations.admission.take("read_observers"))
    return await operations.read(work)


async def streaming(
    request: Request, begin: Callable[[], tuple[Iterator[bytes], Mapping[str, str]]], media_type: str
) -> Response:
    """Run a read that gives pieces and headers, and stream it. Raises Busy, and as `begin` and the first piece."""

    def run() -> tuple[bytes | None, Iterator[bytes], Mapping[str, str]]:
        pieces, headers = begin()
        return first_piece(pieces), pieces, headers

    first, rest, headers = await reading(request, run)
    return Streamed(services(request).operations, first, rest, media_type=media_type, headers=headers)


async def take_export_place(request: Request, graph_id: str) -> None:
    """One of the places for exports, and the graph's only one. Raises Busy (`stream_busy`) if none comes free."""
    serving, held = services(request), _held(request)
    for attempt in range(_STREAM_TRIES + 1):
        if attempt:
            await asyncio.sleep(_STREAM_PAUSE_SECONDS)
        if graph_id in serving.exporting:
            continue
        place = serving.operations.admission.try_take("streams")
        if place is not None:
            serving.exporting.add(graph_id)
            held.callback(serving.exporting.discard, graph_id)
            held.enter_context(place)
            return
    refusal = serving.operations.admission.refusal("streams")
    refusal.code, refusal.retry_after = "stream_busy", _STREAM_BUSY_SECONDS
    raise refusal


async def writing(
    request: Request,
    graph: Graph,
    work: Callable[[], _T],
    *,
    graph_id: str,
    branch: str | None = None,
    kept: Callable[[_T], OmnigraphError | None] = lambda _: None,
) -> _T:
    """Run a write on the server's own threads, whatever becomes of the caller. Raises Busy, Conflict, and as `work`.

    `branch`: where the request's idempotency key counts, if its route has one. `kept`: the error that a result keeps of a
    second step; it is judged like one that was raised.
    """
    operations = services(request).operations
    operations.begin()
    _held(request).enter_context(operations.admission.take("write_observers"))
    key = request.headers.get(KEY)

    def run() -> _T:
        ended = partial(judge, operations=operations, graph_id=graph_id, request_id=state_of(request, "request_id"))
        with watching() as evidence:
            try:
                result = work()
                error = kept(result)
                if error is not None:
                    ended(error, evidence)
                return result
            except BaseException as error:  # raised again: what it proves decides whether the process may go on
                ended(error, evidence)
                raise
            finally:
                request.state.staged = evidence.staged

    return await operations.write(
        run,
        input_bytes=getattr(request.state, "input_bytes", 0),
        key=None if key is None else (graph_id, branch, key),
    )


def key_of(request: Request) -> str:
    """The caller's idempotency key, or one made now: an answer of unknown outcome must name one to repeat with."""
    key = request.headers.get(KEY) or FreshKey(fresh_ulid(services(request).clock))
    request.state.key = key
    return key


def staged(request: Request) -> bool:
    """Whether the write of this request had begun to leave anything in storage."""
    return bool(state_of(request, "staged"))


def state_of(request: Request, name: str) -> Any:
    """What was noted about a request, or None."""
    return getattr(request.state, name, None)
