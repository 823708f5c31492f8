"""Routes that write one graph: mutate, load, branches. Each write runs on the server's own threads."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from omnigraph.engine.answers import branches_answer
from omnigraph.errors import InvalidRequest, NotAvailable
from omnigraph.manifest.keys import check_branch_name
from omnigraph.server.answers import NDJSON, json_answer
from omnigraph.server.bodies import LOAD_BYTES_MAX, collected, json_body, query_parameters
from omnigraph.server.documented import body_of
from omnigraph.server.guard import CONDITION
from omnigraph.server.services import graph_of, services
from omnigraph.server.wire import (
    BranchRequest,
    LoadParameters,
    LoadRequest,
    MergeRequest,
    MutateRequest,
    NoParameters,
)

router = APIRouter(prefix="/graphs/{g}", tags=["writing"])
GraphId = Annotated[str, Path(alias="g", description="graph id")]


def _key(request: Request) -> str | None:
    return request.headers.get("idempotency-key")


async def _mutate(request: Request, graph_id: str, if_commit: str | None) -> Response:
    graph = graph_of(request, graph_id)
    body = await json_body(request, MutateRequest)
    if body.settings:
        raise NotAvailable("Settings of a mutation are not part of this version.")
    result = await services(request).operations.write(
        lambda: graph.mutate(
            body.query,
            body.params,
            query_name=body.name,
            branch=body.branch,
            if_commit=if_commit,
            message=body.message,
            idempotency_key=_key(request),
            door="json",
        )
    )
    return _receipt(result.to_dict(), result.replayed)


def _receipt(body: dict[str, object], replayed: bool) -> Response:
    return json_answer(body, headers={"Idempotency-Replayed": "true"} if replayed else None)


@router.post("/mutate", summary="Run a mutation", openapi_extra=body_of(MutateRequest))
async def mutate(request: Request, g: GraphId) -> Response:
    return await _mutate(request, g, None)


@router.post(
    "/mutate/if-graph-commit",
    summary="Run a mutation if the head is the named commit",
    openapi_extra=body_of(MutateRequest),
)
async def mutate_if(request: Request, g: GraphId) -> Response:
    condition = request.headers.get(CONDITION, "")
    if "@" not in condition or any(mark in condition for mark in '"*,'):
        raise InvalidRequest(
            "Omnigraph-If-Graph-Commit names exactly one commit id here.", code="condition_misplaced", effects="none"
        )
    return await _mutate(request, g, condition)


@router.post("/load", summary="Load records in a JSON string", openapi_extra=body_of(LoadRequest))
async def load(request: Request, g: GraphId) -> Response:
    graph = graph_of(request, g)
    body = await json_body(request, LoadRequest, LOAD_BYTES_MAX)
    result = await services(request).operations.write(
        lambda: graph.load(
            body.data.encode("utf-8", "surrogatepass"),
            mode=body.mode,
            branch=body.branch,
            from_=body.from_,
            message=body.message,
            idempotency_key=_key(request),
            progress=False,
            accept_gzip=False,
        )
    )
    return _receipt(result.to_dict(), result.replayed)


@router.post("/load/ndjson", summary="Load records, one a line")
async def load_ndjson(request: Request, g: GraphId) -> Response:
    graph = graph_of(request, g)
    asked = query_parameters(request, LoadParameters)
    data = await collected(request, NDJSON, LOAD_BYTES_MAX)
    result = await services(request).operations.write(
        lambda: graph.load(
            data,
            mode=asked.mode,
            branch=asked.branch,
            from_=asked.from_,
            message=asked.message,
            idempotency_key=_key(request),
            progress=False,
            accept_gzip=False,
        )
    )
    return _receipt(result.to_dict(), result.replayed)


@router.get("/branches", summary="Live branches, main first")
async def branches(request: Request, g: GraphId) -> Response:
    graph = graph_of(request, g)
    query_parameters(request, NoParameters)
    found = await services(request).operations.read(graph.branches.list)
    return json_answer(branches_answer(found))


@router.post("/branches", summary="Create a branch", openapi_extra=body_of(BranchRequest))
async def create_branch(request: Request, g: GraphId) -> Response:
    graph = graph_of(request, g)
    body = await json_body(request, BranchRequest)
    created = await services(request).operations.write(
        lambda: graph.branches.create(body.name, from_=body.from_, idempotency_key=_key(request))
    )
    return _receipt(created.to_dict(), created.replayed)


@router.post("/branches/merge", summary="Merge a branch into another", openapi_extra=body_of(MergeRequest))
async def merge(request: Request, g: GraphId) -> Response:
    graph = graph_of(request, g)
    body = await json_body(request, MergeRequest)
    merged = await services(request).operations.write(
        lambda: graph.branches.merge(
            body.source,
            body.target,
            delete_branch=body.delete_branch,
            dry_run=body.dry_run,
            message=body.message,
            idempotency_key=_key(request),
        )
    )
    return _receipt(merged.to_dict(), merged.replayed)


@router.delete("/branches/{branch:path}", summary="Delete a branch")
async def delete_branch(request: Request, g: GraphId, branch: str) -> Response:
    graph = graph_of(request, g)
    query_parameters(request, NoParameters)
    check_branch_name(branch)
    deleted = await services(request).operations.write(lambda: graph.branches.delete(branch))
    return json_answer(deleted.to_dict())
