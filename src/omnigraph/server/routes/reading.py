"""Routes that read one graph: query, summary, schema, commits, export."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from omnigraph.engine.answers import commits_answer, schema_answer
from omnigraph.engine.receipts import as_datetime
from omnigraph.engine.selectors import Selector, pinned
from omnigraph.engine.settings import request_settings
from omnigraph.errors import InvalidRequest
from omnigraph.server.answers import accepted_format, json_answer, result_answer, stream_answer
from omnigraph.server.bodies import json_body, query_parameters
from omnigraph.server.documented import body_of
from omnigraph.server.services import graph_of, services
from omnigraph.server.wire import CommitParameters, ExportRequest, NoParameters, QueryRequest, StateParameters

router = APIRouter(prefix="/graphs/{g}", tags=["reading"])
GraphId = Annotated[str, Path(alias="g", description="graph id")]


@router.get("", summary="One graph")
async def graph(request: Request, g: GraphId) -> Response:
    query_parameters(request, NoParameters)
    entry = services(request).registry.entry(g)
    handle = graph_of(request, g)
    info = await services(request).operations.read(handle.info)
    about = info.to_dict()
    keys = ("head_commit_id", "branch_count", "types")
    return json_answer({**entry.to_dict(), **{key: about[key] for key in keys}})


@router.post("/query", summary="Run a read", openapi_extra=body_of(QueryRequest))
async def query(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    form = accepted_format(request)
    body = await json_body(request, QueryRequest)
    settings = request_settings(body.settings)
    as_text = settings.int64_as_string or "omnigraph-int64=string" in request.headers.get("prefer", "")

    def run() -> Response:
        result = handle.query(
            body.query,
            body.params,
            query_name=body.name,
            branch=body.branch,
            snapshot=body.snapshot,
            as_of=body.as_of,
            settings=body.settings,
            door="json",
        )
        return result_answer(result, form, int64_as_text=as_text)

    return await services(request).operations.read(run)


@router.get("/snapshot", summary="Tables and counts of one state")
async def snapshot(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    asked = query_parameters(request, StateParameters)
    found = await services(request).operations.read(
        lambda: handle.summary(branch=asked.branch, snapshot=asked.snapshot)
    )
    return json_answer(found.to_dict())


@router.get("/schema", summary="The accepted schema of one state")
async def schema(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    asked = query_parameters(request, StateParameters)

    def run() -> dict[str, Any]:
        state = pinned(handle.core, Selector(asked.branch, asked.snapshot), handle.branch)
        return schema_answer(handle.core, state)

    return json_answer(await services(request).operations.read(run))


@router.get("/commits", summary="Commits of a branch, newest first")
async def commits(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    asked = query_parameters(request, CommitParameters)

    def run() -> dict[str, Any]:
        found = handle.commits.list(
            asked.branch,
            limit=asked.limit,
            since=None if asked.since is None else as_datetime(asked.since),
            until=None if asked.until is None else as_datetime(asked.until),
        )
        return commits_answer(found)

    return json_answer(await services(request).operations.read(run))


@router.get("/commits/{c:path}/outcome", summary="What became of an attempted commit")
async def outcome(request: Request, g: GraphId, c: str) -> Response:
    handle = graph_of(request, g)
    query_parameters(request, NoParameters)
    if "@" not in c:
        raise InvalidRequest("That is no commit id.")
    found = await services(request).operations.read(lambda: handle.commits.outcome(c))
    return json_answer(found.to_dict())


@router.get("/commits/{c:path}", summary="One commit")
async def commit(request: Request, g: GraphId, c: str) -> Response:
    handle = graph_of(request, g)
    query_parameters(request, NoParameters)
    if "@" not in c:
        raise InvalidRequest("That is no commit id.")
    found = await services(request).operations.read(lambda: handle.commits.get(c))
    return json_answer(found.to_dict())


@router.post("/export", summary="All entities as load records", openapi_extra=body_of(ExportRequest))
async def export(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    body = await json_body(request, ExportRequest)

    def run() -> Response:
        commit_id, pieces = handle.export_stream(types=body.types, branch=body.branch, snapshot=body.snapshot)
        return stream_answer(pieces, commit_id)

    return await services(request).operations.read(run)
