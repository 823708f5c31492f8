"""Routes that write one graph: mutate, load, branches. Each write runs on the server's own threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.receipts import LoadResult
from omnigraph.manifest.builder import MAIN
from omnigraph.manifest.keys import check_branch_name
from omnigraph.server.answers import NDJSON, json_answer
from omnigraph.server.bodies import LOAD_BYTES_MAX
from omnigraph.server.failures import complete
from omnigraph.server.openapi import answers
from omnigraph.server.routes.paths import GraphId, demanding, family
from omnigraph.server.rules import condition_of
from omnigraph.server.services import body, graph_of, json_body, key_of, state_of, writing
from omnigraph.server.shapes import BranchCreated, BranchDeleted, LoadAnswer, MergeAnswer, MutateAnswer
from omnigraph.server.wire import BranchRequest, LoadParameters, LoadRequest, MergeRequest, MutateRequest

router = family("writing", "/graphs/{g}")


def _receipt(answer: dict[str, Any], replayed: bool) -> Response:
    return json_answer(answer, headers={"Idempotency-Replayed": "true"} if replayed else None)


@router.post(
    "/mutate",
    summary="Run a mutation",
    dependencies=demanding(write=True, key=True, body=MutateRequest),
    responses=answers(MutateAnswer),
)
async def mutate(request: Request, g: GraphId) -> Response:
    return await _mutate(request, g, lambda: None)


@router.post(
    "/mutate/if-graph-commit",
    summary="Run a mutation if the head is the named commit",
    dependencies=demanding(write=True, key=True, condition=True, body=MutateRequest),
    responses=answers(MutateAnswer),
)
async def mutate_if_graph_commit(request: Request, g: GraphId) -> Response:
    return await _mutate(request, g, lambda: condition_of(request))


async def _mutate(request: Request, graph_id: str, condition: Callable[[], str | None]) -> Response:
    graph = graph_of(request, graph_id)
    asked = await json_body(request, MutateRequest, write=True)
    if_commit, key = condition(), key_of(request)
    result = await writing(
        request,
        graph,
        lambda: graph.mutate(
            asked.query,
            asked.params,
            query_name=asked.name,
            branch=asked.branch,
            settings=asked.settings,
            if_commit=if_commit,
            message=asked.message,
            idempotency_key=key,
            door="json",
        ),
        graph_id=graph_id,
        branch=asked.branch or MAIN,
    )
    return _receipt(result.to_dict(), result.replayed)


@router.post(
    "/load",
    summary="Load records in a JSON string",
    dependencies=demanding(write=True, key=True, body=LoadRequest),
    responses=answers(LoadAnswer),
)
async def load(request: Request, g: GraphId) -> Response:
    graph = graph_of(request, g)
    asked = await json_body(request, LoadRequest, write=True, bytes_max=LOAD_BYTES_MAX)
    return await _loaded(request, g, graph, asked, asked.data.encode)


@router.post(
    "/load/ndjson",
    summary="Load records, one a line",
    dependencies=demanding(write=True, key=True, parameters=LoadParameters, body=NDJSON),
    responses=answers(LoadAnswer),
)
async def load_ndjson(request: Request, g: GraphId, asked: Annotated[LoadParameters, Query()]) -> Response:
    graph = graph_of(request, g)
    data = await body(request, NDJSON, LOAD_BYTES_MAX, write=True)
    return await _loaded(request, g, graph, asked, lambda: data)


async def _loaded(
    request: Request, graph_id: str, graph: Graph, asked: LoadRequest | LoadParameters, data: Callable[[], bytes]
) -> Response:
    key = key_of(request)

    def run() -> LoadResult:
        return graph.load(
            data(),
            mode=asked.mode,
            branch=asked.branch,
            from_=asked.from_,
            message=asked.message,
            idempotency_key=key,
            progress=False,
            accept_gzip=False,
        )

    result = await writing(request, graph, run, graph_id=graph_id, branch=asked.branch or MAIN)
    return _receipt(result.to_dict(), result.replayed)


@router.post(
    "/branches",
    summary="Create a branch",
    dependencies=demanding(write=True, key=True, body=BranchRequest),
    responses=answers(BranchCreated),
)
async def create_branch(request: Request, g: GraphId) -> Response:
    graph = graph_of(request, g)
    asked = await json_body(request, BranchRequest, write=True)
    key = key_of(request)
    created = await writing(
        request,
        graph,
        lambda: graph.branches.create(asked.name, from_=asked.from_, idempotency_key=key),
        graph_id=g,
        branch=asked.name,
    )
    return _receipt(created.to_dict(), created.replayed)


@router.post(
    "/branches/merge",
    summary="Merge a branch into another",
    dependencies=demanding(write=True, key=True, body=MergeRequest),
    responses=answers(MergeAnswer),
)
async def merge(request: Request, g: GraphId) -> Response:
    graph = graph_of(request, g)
    asked = await json_body(request, MergeRequest, write=True)
    key = key_of(request)
    merged = await writing(
        request,
        graph,
        lambda: graph.branches.merge(
            asked.source,
            asked.target,
            delete_branch=asked.delete_branch,
            dry_run=asked.dry_run,
            message=asked.message,
            idempotency_key=key,
        ),
        graph_id=g,
        branch=asked.target or MAIN,
        kept=lambda merged: merged.branch_delete_error,
    )
    if merged.branch_delete_error is not None:
        complete(request, merged.branch_delete_error, of_a_step=True)
        merged.branch_delete_error.request_id = state_of(request, "request_id")
    return _receipt(merged.to_dict(), merged.replayed)


@router.delete(
    "/branches/{branch:path}",
    summary="Delete a branch",
    dependencies=demanding(write=True),
    responses=answers(BranchDeleted),
)
async def delete_branch(request: Request, g: GraphId, branch: str) -> Response:
    graph = graph_of(request, g)
    check_branch_name(branch)
    deleted = await writing(request, graph, lambda: graph.branches.delete(branch), graph_id=g)
    return json_answer(deleted.to_dict())
