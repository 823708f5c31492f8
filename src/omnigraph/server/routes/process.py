"""Routes of the process: alive, ready, the list of graphs."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from omnigraph._version import __version__
from omnigraph.manifest.codec import FORMAT
from omnigraph.server.answers import json_answer
from omnigraph.server.bodies import query_parameters
from omnigraph.server.guard import CONTRACT
from omnigraph.server.services import services
from omnigraph.server.wire import NoParameters

router = APIRouter(tags=["process"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", summary="The process is up")
async def healthz(request: Request) -> Response:
    return json_answer(
        {"status": "ok", "version": __version__, "http_api": CONTRACT, "internal_schema_version": FORMAT}
    )


@router.get("/readyz", summary="Whether graphs are served")
async def readyz(request: Request) -> Response:
    held = services(request)
    entries = held.registry.entries()
    ready = sum(entry.graph is not None for entry in entries)
    if held.operations.draining:
        status = "draining"
    elif ready == len(entries):
        status = "serving"
    else:
        status = "degraded" if ready else "blocked"
    body = {
        "status": status,
        "graphs": {
            "total": len(entries),
            "ready": ready,
            "loading": 0,
            "blocked": len(entries) - ready,
            "transitioning": 0,
        },
        "leased": False,
        "version": __version__,
    }
    return json_answer(body, status=200 if status in ("serving", "degraded") else 503)


@router.get("/graphs", summary="All graphs, by id")
async def graphs(request: Request) -> Response:
    query_parameters(request, NoParameters)
    return json_answer({"graphs": [entry.to_dict() for entry in services(request).registry.entries()]})
