"""A read: text and parameters on one pinned state, to a Result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from omnigraph.engine.core import GraphCore
from omnigraph.engine.embedding import query_embedder
from omnigraph.engine.reading.selectors import Pinned, Selector, pinned
from omnigraph.engine.receipts import as_datetime
from omnigraph.engine.result import Result, Target
from omnigraph.engine.settings import RequestSettings
from omnigraph.engine.statements import around, unexplained
from omnigraph.errors import InvalidQuery, InvalidRequest, OmnigraphError
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.params import bind_given, bind_params, choose_query
from omnigraph.lang.query.renamed import with_past_name
from omnigraph.lang.query.typed import ReadQuery
from omnigraph.manifest.ids import CommitId
from omnigraph.query.explain.answer import TYPES as EXPLAIN_TYPES
from omnigraph.query.explain.answer import explain
from omnigraph.query.explain.profile import profile as profile_rows
from omnigraph.query.expressions import Scope
from omnigraph.query.measures import UNWATCHED, Measures
from omnigraph.query.run import run_read


def run_query(
    core: GraphCore,
    source: str,
    params: Mapping[str, object],
    *,
    query_name: str | None,
    selector: Selector,
    default_branch: str,
    settings: RequestSettings,
    door: Literal["json", "python"],
    profiled: bool = False,
    explained: bool = False,
) -> Result:
    """`explained`: as if `explain` stood before the query. `profiled`: the result says what each step of the run did; what is
    explained runs nothing, and there is nothing to say.

    Raises InvalidQuery, InvalidParams, InvalidRequest (`wrong_verb`), the errors of the selector, LimitExceeded,
    QueryTimeout, FullTextRebuildRequired, EmbeddingFailed, StorageFailure.
    """
    now_us = core.clock.now_us()
    state = pinned(core, selector, default_branch)
    snapshot = state.snapshot
    try:
        queries = core.checked.queries(source, snapshot.catalog, snapshot.manifest.schema)
    except InvalidQuery as refused:
        past = selector.snapshot is not None or selector.as_of is not None
        raise (_explained(core, refused, source, state) if past else refused) from None
    beside = around(source)
    settings = settings.with_lines(beside.settings)
    explained = explained or beside.explains
    query = choose_query(queries, query_name, source=source)
    if not isinstance(query, ReadQuery):
        raise unexplained(source, query.name) if explained else _to_mutate(query.name)
    now = as_datetime(now_us - now_us % 1_000)
    named = default_branch if selector.branch is None else selector.branch
    branch = None if selector.snapshot is not None else named
    target = Target(branch, selector.snapshot)
    told = {"snapshot": str(selector.snapshot)} if branch is None else {"branch": branch}
    told["graph_commit_id"] = state.commit_id
    if explained:
        scope = Scope(bind_given(query, params, door=door), now)
        table = explain(query, snapshot, settings.query, scope, state=told)
        as_text = settings.int64_as_string
        return Result(table, EXPLAIN_TYPES, state.commit_id, query.name, target, int64_as_text=as_text)
    bound = bind_params(query, params, door=door)
    measures = Measures(core.clock.boot_seconds) if profiled else None
    with snapshot.naming():
        output = run_read(
            query,
            snapshot,
            bound,
            now=now,
            settings=settings.query,
            clock=core.clock,
            embedder=query_embedder(core, settings.query.query_timeout_ms),
            watch=measures or UNWATCHED,
        )
    profile = None
    if measures is not None:
        scope = Scope(bound, now)
        profile = profile_rows(query, snapshot, settings.query, scope, measures, rows=output.table.num_rows, state=told)
    return Result(
        table=output.table,
        types=output.types,
        commit_id=state.commit_id,
        query_name=query.name,
        target=target,
        profile=profile,
        int64_as_text=settings.int64_as_string,
    )


def _to_mutate(name: str) -> InvalidRequest:
    return InvalidRequest(f"'{name}' is a mutation: send it to mutate.", code="wrong_verb")


def _explained(core: GraphCore, refused: InvalidQuery, source: str, state: Pinned) -> InvalidQuery:
    """The refusal, with the name that something had then if the branch's present schema calls it otherwise."""
    diagnostic = refused.diagnostic
    if not isinstance(diagnostic, Diagnostic) or diagnostic.sought is None:
        return refused
    try:
        present = core.head_snapshot(CommitId.parse(state.commit_id).branch)
    except OmnigraphError:  # the branch is gone, or nobody answers: the refusal stands as it is
        return refused
    return InvalidQuery(with_past_name(diagnostic, source, state.snapshot.catalog, present.catalog))
