"""Routes of the process: alive, ready, the list of graphs, the description of the interface. None needs a place."""

from __future__ import annotations

import hashlib

from fastapi import Request
from starlette.responses import Response

from omnigraph._version import __version__
from omnigraph.engine.reading.answers import json_bytes
from omnigraph.manifest.codec import FORMAT
from omnigraph.server.answers import JSON, json_answer
from omnigraph.server.guard import CONTRACT
from omnigraph.server.openapi import answers, document_answers
from omnigraph.server.registry import Registry
from omnigraph.server.routes.paths import demanding, family
from omnigraph.server.services import services
from omnigraph.server.shapes import GraphList, Health, Readiness

router = family("process")


@router.get("/healthz", summary="The process is up", dependencies=demanding(), responses=answers(Health))
async def healthz(request: Request) -> Response:
    return _health()


@router.head("/healthz", summary="The process is up", dependencies=demanding(), responses=answers(Health))
async def healthz_head(request: Request) -> Response:
    return _health()


def _health() -> Response:
    return json_answer(
        {"status": "ok", "version": __version__, "http_api": CONTRACT, "internal_schema_version": FORMAT}
    )


@router.get(
    "/readyz",
    summary="Whether graphs are served",
    dependencies=demanding(),
    responses=answers(Readiness, also={503: Readiness}),
)
async def readyz(request: Request) -> Response:
    held = services(request)
    states = [entry.state for entry in held.registry.entries()]
    status = "draining" if held.operations.draining else _status(held.registry, states)
    body = {
        "status": status,
        "graphs": {
            "total": len(states),
            **{state: states.count(state) for state in ("ready", "loading", "blocked")},
            "transitioning": 0,
        },
        "leased": False,
        "version": __version__,
    }
    return json_answer(body, status=200 if status in ("serving", "degraded") else 503)


def _status(registry: Registry, states: list[str]) -> str:
    if not registry.loaded:
        return "loading"
    if all(state == "ready" for state in states):
        return "serving"
    return "degraded" if "ready" in states else "blocked"


@router.get("/graphs", summary="All graphs, by id", dependencies=demanding(), responses=answers(GraphList))
async def graphs(request: Request) -> Response:
    held = services(request)
    stopping = held.operations.draining
    return json_answer({"graphs": [entry.to_dict(stopping=stopping) for entry in held.registry.entries()]})


@router.get("/openapi.json", summary="This description", dependencies=demanding(), responses=document_answers())
async def openapi(request: Request) -> Response:
    data = json_bytes(request.app.state.description)
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"Cache-Control": "max-age=60", "ETag": tag}
    known = ",".join(request.headers.getlist("if-none-match"))
    if known.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=JSON, headers=headers)
