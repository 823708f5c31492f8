"""Routes that read one graph: query, summary, schema, branches, commits, export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from omnigraph.engine.reading.answers import branches_answer, json_bytes, schema_answer
from omnigraph.engine.reading.selectors import Selector, parse_commit_id, pinned
from omnigraph.engine.result import Result
from omnigraph.errors import InvalidRequest, NotFound
from omnigraph.manifest.ids import CommitId
from omnigraph.query.encode import Spelling
from omnigraph.server.answers import (
    ARROW,
    JSON,
    NDJSON,
    accepted_format,
    buffered_result,
    json_answer,
    streamed_result,
)
from omnigraph.server.openapi import answers, record_answers, result_answers
from omnigraph.server.pages import commit_page
from omnigraph.server.routes.paths import GraphId, demanding, family
from omnigraph.server.rules import INT64_AS_TEXT, PROFILE, in_header, preferences
from omnigraph.server.services import graph_of, json_body, reading, services, streaming, take_export_place
from omnigraph.server.shapes import (
    BranchList,
    CommitList,
    GraphDetail,
    OutcomeAnswer,
    QueryAnswer,
    Receipt,
    SchemaAnswer,
    SnapshotAnswer,
)
from omnigraph.server.wire import CommitParameters, ExportRequest, QueryRequest, StateParameters

router = family("reading", "/graphs/{g}")

_COMMIT = "Omnigraph-Graph-Commit"


@router.get("", summary="One graph", dependencies=demanding(), responses=answers(GraphDetail))
async def graph(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    entry = services(request).registry.entry(g)
    about = (await reading(request, handle.info)).to_dict()
    keys = ("head_commit_id", "branch_count", "types")
    return json_answer({**entry.to_dict(), **{key: about[key] for key in keys}})


@router.post(
    "/query",
    summary="Run a read",
    dependencies=demanding(rows=True, body=QueryRequest),
    responses=result_answers(QueryAnswer),
)
async def query(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    form = accepted_format(request)
    asked = await json_body(request, QueryRequest, write=False)
    preferred = preferences(request.headers)
    wanted, profiled = INT64_AS_TEXT in preferred, PROFILE in preferred
    if profiled and form not in (JSON, ARROW):
        raise InvalidRequest(f"A profile is part of an answer as {JSON} or {ARROW}; {form} has no place for it.")

    def run() -> Result:
        return handle.query(
            asked.query,
            asked.params,
            query_name=asked.name,
            branch=asked.branch,
            snapshot=asked.snapshot,
            as_of=asked.as_of,
            settings=asked.settings,
            profile=profiled,
            door="json",
        )

    def spelling(result: Result) -> Spelling:
        return Spelling(int64_as_text=result.int64_as_text or wanted)

    def buffered() -> Response:
        result = run()
        bytes_max = services(request).operations.limits.json_result_bytes
        data = buffered_result(result, spelling(result), bytes_max)
        return Response(data, media_type=JSON, headers={_COMMIT: in_header(result.commit_id)})

    def streamed() -> tuple[Iterator[bytes], Mapping[str, str]]:
        result = run()
        headers = {_COMMIT: in_header(result.commit_id), "Omnigraph-Query-Name": in_header(result.query_name)}
        return streamed_result(result, form, spelling(result)), headers

    return await (reading(request, buffered) if form == JSON else streaming(request, streamed, form))


@router.get(
    "/snapshot",
    summary="Tables and counts of one state",
    dependencies=demanding(parameters=StateParameters),
    responses=answers(SnapshotAnswer),
)
async def snapshot(request: Request, g: GraphId, asked: Annotated[StateParameters, Query()]) -> Response:
    handle = graph_of(request, g)
    found = await reading(
        request, lambda: handle.summary(branch=asked.branch, snapshot=asked.snapshot, as_of=asked.as_of)
    )
    return _read(found.to_dict(), found.graph_commit_id)


@router.get(
    "/schema",
    summary="The accepted schema of one state",
    dependencies=demanding(parameters=StateParameters),
    responses=answers(SchemaAnswer),
)
async def schema(request: Request, g: GraphId, asked: Annotated[StateParameters, Query()]) -> Response:
    handle = graph_of(request, g)

    def run() -> dict[str, Any]:
        core, selector = handle.core, Selector.asked(asked.branch, asked.snapshot, asked.as_of)
        return schema_answer(core, pinned(core, selector, handle.branch))

    found = await reading(request, run)
    return _read(found, found["graph_commit_id"])


def _read(body: Mapping[str, Any], commit_id: str) -> Response:
    return Response(json_bytes(body), media_type=JSON, headers={_COMMIT: in_header(commit_id)})


@router.get("/branches", summary="Live branches, main first", dependencies=demanding(), responses=answers(BranchList))
async def branches(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    return json_answer(await reading(request, lambda: branches_answer(handle.branches.list())))


@router.get(
    "/commits",
    summary="Commits of a branch, newest first",
    dependencies=demanding(parameters=CommitParameters),
    responses=answers(CommitList),
)
async def commits(request: Request, g: GraphId, asked: Annotated[CommitParameters, Query()]) -> Response:
    handle = graph_of(request, g)

    def run() -> dict[str, Any]:
        return commit_page(
            handle.core,
            asked.branch,
            since=asked.since,
            until=asked.until,
            limit=asked.limit,
            token=asked.page_token,
        )

    return json_answer(await reading(request, run))


@router.get(
    "/commits/{c:path}/outcome",
    summary="What became of an attempted commit",
    dependencies=demanding(),
    responses=answers(OutcomeAnswer),
)
async def outcome(request: Request, g: GraphId, c: str) -> Response:
    handle = graph_of(request, g)
    commit_id = _commit_id(c)
    found = await reading(request, lambda: handle.commits.outcome(commit_id))
    return json_answer(found.to_dict())


@router.get("/commits/{c:path}", summary="One commit", dependencies=demanding(), responses=answers(Receipt))
async def commit(request: Request, g: GraphId, c: str) -> Response:
    handle = graph_of(request, g)
    commit_id = _commit_id(c)
    found = await reading(request, lambda: handle.commits.get(commit_id))
    return json_answer(found.to_dict())


def _commit_id(text: str) -> str:
    """Raises InvalidRequest for what is no commit id, NotFound for a path that goes on after one."""
    try:
        return str(CommitId.parse(text))
    except ValueError:
        pass
    before, _, _ = text.rpartition("/")
    try:
        CommitId.parse(before)
    except ValueError:
        return str(parse_commit_id(text))
    raise NotFound("There is no such path.")


@router.post(
    "/export",
    summary="All entities as load records",
    dependencies=demanding(body=ExportRequest),
    responses=record_answers(),
)
async def export(request: Request, g: GraphId) -> Response:
    handle = graph_of(request, g)
    asked = await json_body(request, ExportRequest, write=False)
    await take_export_place(request, g)

    def begin() -> tuple[Iterator[bytes], Mapping[str, str]]:
        commit_id, pieces = handle.export_stream(
            types=asked.types, branch=asked.branch, snapshot=asked.snapshot, as_of=asked.as_of
        )
        return pieces, {_COMMIT: in_header(commit_id)}

    return await streaming(request, begin, NDJSON)
