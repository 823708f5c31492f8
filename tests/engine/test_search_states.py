"""Answers do not depend on what indexes cover: the trials QR-10 and MT-05, through the engine, on main and on branches."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.maintenance.optimize import optimize
from omnigraph.errors import FullTextRebuildRequired
from omnigraph.query.search import vectors

SCHEMA = """
node Memo { slug: String @key  body: String? @index  rank: I64? @index  vec: Vector(3)? @index }
edge Cites: Memo -> Memo
"""
BY_INDEX = {"fts_scratch_rows": 0, "ann_nprobes": 0}
BODIES = (
    "sail the sea",
    "ships with sails",
    "sailing, sailing home",
    "the of and to",
    "shpi with a tpyo",
    "because being very",
    "Quai d'Orsay \u00e0 la mer",
    "harbour master's log",
    "",
    None,
    "a sea-boat, 3 masts",
    "Stra\u00dfe nach L\u00fcbeck",
)


@pytest.fixture(autouse=True)
def every_index_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "EFFORT", vectors.Effort(numbers=0, rows_left=1, surplus=0))


def memos(numbers: Iterable[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n in numbers:
        data = {"slug": f"m{n}", "rank": n % 7, "vec": [n % 10, n // 10 % 10, n // 100]}
        body = BODIES[n % len(BODIES)]
        rows.append({"type": "Memo", "data": data if body is None else {**data, "body": body}})
    return rows


def built(graph: Graph, branch: str = "main", *, full: bool = False) -> None:
    optimize(graph.core, branch, full=full, vector_bytes_least=0)


# --- QR-10

MOVE = 'query m($v: Vector(3)?) { update Memo set { vec: $v } where slug = "m399" }'
EMPTY = 'query m($b: String?, $v: Vector(3)?) { update Memo set { body: $b, vec: $v } where slug = "m2" }'


def nearest(graph: Graph, branch: str, limit: int) -> list[tuple[str, float]]:
    query = (
        "query q($v: Vector(3)) { match { $m: Memo } return { $m.slug as s, nearest($m.vec, $v) as d }"
        f" order {{ nearest($m.vec, $v) }} limit {limit} }}"
    )
    rows = graph.query(query, {"v": [5, 5, 1]}, branch=branch, settings=BY_INDEX)
    return [(row["s"], row["d"]) for row in rows]


def brute(model: dict[str, list[float] | None]) -> dict[str, float]:
    return {slug: float(np.square(np.array(at) - [5, 5, 1]).sum()) for slug, at in model.items() if at is not None}


def test_the_nearest_are_right_after_deletes_moves_and_nulls_with_and_without_a_newer_index(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.load(memos(range(400)), mode="append", progress=False)
    built(graph)
    graph.branches.create("side")
    start: dict[str, list[float] | None] = {row["data"]["slug"]: row["data"]["vec"] for row in memos(range(400))}
    for branch in ("main", "side"):
        model, apart = dict(start), brute(start)
        here = graph.on(branch)

        def agrees(branch: str = branch, model: dict[str, list[float] | None] = model) -> None:
            for limit in (1, 5, 8, 500):
                found, apart = nearest(graph, branch, limit), brute(model)
                assert len({slug for slug, _ in found}) == len(found) == min(limit, len(apart))
                assert [each for _, each in found] == sorted(apart.values())[:limit]
                assert all(apart[slug] == each for slug, each in found)

        agrees()
        for slug in sorted(apart, key=lambda slug: apart[slug])[:8]:
            here.mutate(f'query m() {{ delete Memo where slug = "{slug}" }}')
            model.pop(slug)
        agrees()
        for place in ([5.0, 5.0, 1.0], [90.0, 0.0, 0.0], None):
            here.mutate(MOVE, v=place)
            model["m399"] = place
            agrees()
        for full in (False, True):
            built(graph, branch, full=full)
            agrees()


def test_filters_come_before_the_rank_and_the_limit_is_filled(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.load(memos(range(400)), mode="append", progress=False)
    built(graph)
    query = "query q($v: Vector(3)) { match { $m: Memo { rank: 3 } } return { $m.slug as s } order { nearest($m.vec, $v) } limit 9 }"
    apart = brute({row["data"]["slug"]: row["data"]["vec"] for row in memos(range(3, 400, 7))})
    for settings in (BY_INDEX, {"ann_nprobes": 1}, {"exact_nearest": "on"}):
        found = graph.query(query, {"v": [5, 5, 1]}, settings=settings).scalars()
        assert [apart[slug] for slug in found] == sorted(apart.values())[:9]


# --- MT-05

QUESTIONS = (
    *(
        f'$m: Memo  search($m.body, "{text}")'
        for text in ("sail", "sails", "sailing sea", "very", "the", "lubeck", "mer quai")
    ),
    *(f'$m: Memo  match_text($m.body, "{text}")' for text in ("ships", "3", "being because")),
    *(f'$m: Memo  fuzzy($m.body, "{text}")' for text in ("ship", "seal", "typo", "harbor", "the")),
    '$m: Memo  fuzzy($m.body, "masts", 0)',
    '$m: Memo  search($m.body, "sea")  $m.rank > 3',
    '$m: Memo  not { $m: Memo  search($m.body, "sail") }',
    '$m: Memo { slug: "m7" }',
    '$m: Memo  search($m.slug, "m7 m8")',
    "$m: Memo  $m.rank >= 2  $m.rank < 4",
    '$m: Memo  $m.body starts_with "sail"',
    '$m: Memo  $m.body contains "ship"',
    '$a: Memo { slug: "m1" }  $a cites $m',
    '$a: Memo  search($a.body, "sails")  $a cites $m  search($m.body, "sea")',
)


def answers(graph: Graph, branch: str, settings: dict[str, int]) -> list[Any]:
    rows: list[Any] = [
        graph.query(
            f"query q() {{ match {{ {each} }} return {{ $m.slug as s }} order {{ s }} }}",
            branch=branch,
            settings=settings,
        ).scalars()
        for each in QUESTIONS
    ]
    ranked = 'query q() { match { $m: Memo } return { $m.slug as s } order { bm25($m.body, "sail sea") } }'
    rows.append(sorted(graph.query(ranked, branch=branch, settings=settings).scalars()))
    near = "query q() { match { $m: Memo } return { $m.slug as s } order { nearest($m.vec, [4, 3, 0]), s } limit 6 }"
    return [*rows, graph.query(near, branch=branch, settings=settings).scalars()]


def test_twenty_five_queries_answer_alike_in_every_state_of_the_indexes(tmp_path: Path) -> None:
    kept_open = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    kept_open.load(memos(range(60)), mode="append", progress=False)
    edges = [{"edge": "Cites", "from": f"m{n}", "to": f"m{n * 5 % 60}", "data": {}} for n in range(60)]
    kept_open.load(edges, mode="append", progress=False)
    kept_open.branches.create("side")
    kept_open.branches.create("deep", from_="side")
    changes = (
        'query m() { delete Memo where slug = "m13" }',
        'query m() { update Memo set { body: "new sails" } where rank = 4 }',
        EMPTY,
        'query m() { insert Memo { slug: "z", body: "sea" } }',
    )
    for branch in ("main", "deep"):
        with pytest.raises(FullTextRebuildRequired, match="omnigraph optimize"):
            answers(kept_open, branch, BY_INDEX)
        writer = omnigraph.open(tmp_path / "g", branch=branch)

        def alike(branch: str = branch) -> None:
            wanted = answers(kept_open, branch, {})
            for graph in (kept_open, omnigraph.open(tmp_path / "g")):
                assert answers(graph, branch, BY_INDEX) == wanted

        built(writer, branch)
        alike()
        writer.load(memos(range(60, 120)), mode="append", progress=False)
        alike()
        built(writer, branch)
        for _ in range(3):
            built(writer, branch)
        alike()
        for change in changes:
            writer.mutate(change)
            alike()
        built(writer, branch)
        alike()
        built(writer, branch, full=True)
        alike()


def test_relevance_is_that_of_an_index_in_memory_after_a_full_run_and_near_it_before(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.load(memos(range(240)), mode="append", progress=False)
    built(graph)
    graph.load(memos(range(240, 252)), mode="append", progress=False)
    query = 'query q() { match { $m: Memo } return { $m.slug as s, bm25($m.body, "sailing home sea") as b } order { bm25($m.body, "sailing home sea") } }'

    def scores(settings: dict[str, int]) -> dict[str, float]:
        return {row["s"]: row["b"] for row in graph.query(query, settings=settings)}

    assert scores(BY_INDEX) == pytest.approx(scores({}), rel=0.02)
    built(graph, full=True)
    assert scores(BY_INDEX) == pytest.approx(scores({}), rel=1e-5)
