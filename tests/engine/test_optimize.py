"""Optimize builds the declared search indexes as one commit that changes no content (history.md 16)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.ambient import SystemClock
from omnigraph.engine.graph import Graph
from omnigraph.engine.maintenance.optimize import optimize
from omnigraph.engine.maintenance.receipts import OptimizedType
from omnigraph.errors import BranchNotFound, InvalidRequest, OutcomeUnknown, ReadSetConflict, StorageFailure
from omnigraph.manifest.model import Manifest
from omnigraph.store.faults import LandLate, LoseBefore, Meanwhile, Refuse
from support.faulty import Faulty

SCHEMA = """
node Book { title: String @key  about: String? @index  place: Vector(2)? @index  note: String? }
node Ship { name: String  log: String? @index }
node Crew { rank: I64 @key }
edge Holds: Ship -> Book { since: String? @index }
"""
BOOK = "query m($t: String, $a: String) { insert Book { title: $t, about: $a } }"
SHIP = 'query m($l: String) { insert Ship { name: "s", log: $l } }'
ABOUT = 'query m() { update Book set { about: "moved" } where title = "b1" }'
FOUND = "query q($q: String) { match { $b: Book search($b.about, $q) } return { $b.title as t } order { t } }"


@pytest.fixture
def root(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    books = [{"type": "Book", "data": {"title": f"b{n}", "about": "ships sail", "place": [n, 0]}} for n in range(6)]
    graph.load([*books, {"type": "Ship", "data": {"name": "s", "log": "stormy"}}], mode="append", progress=False)
    return str(tmp_path / "g")


@pytest.fixture
def graph(root: str) -> Graph:
    return omnigraph.open(root)


def told(types: tuple[OptimizedType, ...]) -> dict[str, OptimizedType]:
    return {each.type_name: each for each in types}


def manifest(graph: Graph, branch: str = "main") -> Manifest:
    return graph.core.standing(branch).manifest


def built(graph: Graph, type_name: str, branch: str = "main") -> set[str]:
    """The names of the indexes that the head's table of a type has."""
    entries = manifest(graph, branch).types
    [pin] = [entry.pin for entry in entries.values() if entry.name == type_name]
    assert pin is not None
    return set(graph.core.tables.open(pin).search_indexes.described)


def test_what_the_schema_declares_for_search_is_built_as_one_commit(graph: Graph) -> None:
    before = manifest(graph)
    result = graph.maintenance.optimize()
    assert result.to_dict()["types"] == [
        {
            "entity_kind": "node",
            "type_name": "Book",
            "indexes": [
                {
                    "name": "title_terms",
                    "property": "title",
                    "segments_before": 0,
                    "segments_after": 1,
                    "rows_indexed": 6,
                },
                {
                    "name": "about_terms",
                    "property": "about",
                    "segments_before": 0,
                    "segments_after": 1,
                    "rows_indexed": 6,
                },
            ],
            "pending": [{"property": "place", "reason": "small"}],
            "skipped": None,
            "error": None,
        },
        {
            "entity_kind": "node",
            "type_name": "Ship",
            "indexes": [
                {"name": "log_terms", "property": "log", "segments_before": 0, "segments_after": 1, "rows_indexed": 1}
            ],
            "pending": [],
            "skipped": None,
            "error": None,
        },
    ]
    after = manifest(graph)
    assert (after.version, after.head_commit.kind) == (before.version + 1, "optimize")
    assert result.commit is not None
    assert str(after.head_commit.id) == str(result.commit)
    changed = {t for t in after.types if after.types[t].pin != before.types[t].pin}
    assert dict(after.head_commit.touched) == dict.fromkeys(changed, "layout")
    assert {after.types[t].name for t in changed} == {"Book", "Ship"}
    assert dict(after.head_commit.counts) == {}
    for type_id, entry in after.types.items():
        old = before.types[type_id]
        assert (entry.content, entry.rows, entry.bytes) == (old.content, old.rows, old.bytes)


def test_where_there_is_nothing_to_do_there_is_no_commit(graph: Graph) -> None:
    assert graph.maintenance.optimize()
    version = manifest(graph).version
    for full in (False, True, False):
        result = graph.maintenance.optimize(full=full)
        assert (bool(result), result.commit) == (False, None)
    graph.mutate(BOOK, t="one", a="more")
    assert manifest(graph).version == version + 1


def test_a_graph_without_rows_has_nothing_to_build(tmp_path: Path) -> None:
    result = omnigraph.init(tmp_path / "empty", schema=SCHEMA).maintenance.optimize()
    assert result.commit is None
    assert [each.reason for each in told(result.types)["Book"].pending] == ["unbuildable"] * 3


def test_only_the_types_that_are_named_are_looked_at(graph: Graph) -> None:
    assert [each.type_name for each in graph.maintenance.optimize(types=["Ship", "Crew", "Holds"]).types] == [
        "Crew",
        "Ship",
    ]
    assert built(graph, "Book") == set()
    with pytest.raises(InvalidRequest, match="Did you mean 'Ship'"):
        graph.maintenance.optimize(types=["Shipp"])


def test_what_came_since_is_covered_by_the_next_run(graph: Graph) -> None:
    graph.maintenance.optimize()
    graph.mutate(BOOK, t="late", a="late sailing")
    result = graph.maintenance.optimize()
    [index, _] = told(result.types)["Book"].indexes
    assert (index.segments_before, index.segments_after, index.rows_indexed) == (1, 2, 1)
    result = graph.maintenance.optimize(full=True)
    [index, _] = told(result.types)["Book"].indexes
    assert (index.segments_before, index.segments_after, index.rows_indexed) == (2, 1, 7)


def test_a_branch_is_optimized_by_itself(graph: Graph) -> None:
    graph.branches.create("side")
    graph.on("side").mutate(BOOK, t="late", a="late sailing")
    graph.maintenance.optimize(branch="side")
    assert (built(graph, "Book"), built(graph, "Book", "side")) == (set(), {"title_terms", "about_terms"})
    graph.on("side").mutate(ABOUT)
    merged = graph.branches.merge("side")
    assert merged.outcome == "fast_forward"
    assert built(graph, "Book") == {"title_terms", "about_terms"}
    assert graph.query(FOUND, q="sailed").scalars() == ["b0", "b2", "b3", "b4", "b5", "late"]
    with pytest.raises(BranchNotFound):
        graph.maintenance.optimize(branch="nowhere")


def test_an_optimized_source_still_fast_forwards_and_an_optimized_target_too(graph: Graph) -> None:
    graph.branches.create("side")
    graph.on("side").mutate(BOOK, t="late", a="x")
    graph.maintenance.optimize()
    assert graph.branches.merge("side").outcome == "fast_forward"
    assert graph.query(FOUND, q="x").scalars() == ["late"]
    assert built(graph, "Ship") == {"log_terms"}, "what the source did not change keeps the indexes of the target"


def test_a_type_that_the_source_alone_optimized_comes_with_its_indexes(graph: Graph) -> None:
    graph.branches.create("side")
    graph.on("side").mutate(BOOK, t="late", a="x")
    graph.maintenance.optimize(branch="side", types=["Ship"])
    graph.maintenance.optimize(types=["Book"])
    graph.branches.merge("side")
    assert (built(graph, "Ship"), built(graph, "Book")) == ({"log_terms"}, set())


class HalfADayLater(SystemClock):
    def boot_seconds(self) -> float:
        return super().boot_seconds() + 13 * 3_600


def test_what_was_built_is_published_neither_in_another_life_of_its_branch_nor_a_day_later(root: str) -> None:
    graph = omnigraph.open(root)
    graph.branches.create("side")

    def anew(done: int, total: int) -> None:
        if done == total:
            graph.branches.delete("side")
            graph.branches.create("side")

    result = graph.maintenance.optimize(branch="side", progress=anew)
    assert result.commit is None
    assert {each.skipped for each in result.types if each.type_name in ("Book", "Ship")} == {"moved"}

    def late(done: int, total: int) -> None:
        if done == total:
            object.__setattr__(graph.core, "clock", HalfADayLater())

    assert graph.maintenance.optimize(progress=late).commit is None


def test_what_is_in_memory_is_carried_on(graph: Graph) -> None:
    assert len(graph.query(FOUND, q="ship").scalars()) == 6
    counters = graph.core.residency.counters
    before = (counters.rebuilds, counters.comparisons)
    graph.maintenance.optimize()
    assert len(graph.query(FOUND, q="ship").scalars()) == 6
    assert (counters.rebuilds, counters.comparisons) == before


def test_a_type_that_moves_while_its_indexes_are_built_is_left_for_the_next_run(root: str) -> None:
    graph, other = omnigraph.open(root), omnigraph.open(root)
    wrote: list[int] = []

    def write_once(done: int, total: int) -> None:
        assert (done, total) in ((1, 2), (2, 2))
        if not wrote:
            wrote.append(1)
            other.mutate(BOOK, t="x", a="y")

    result = graph.maintenance.optimize(progress=write_once)
    assert (told(result.types)["Book"].skipped, told(result.types)["Book"].indexes) == ("moved", ())
    assert told(result.types)["Ship"].skipped is None
    assert (built(graph, "Book"), built(graph, "Ship")) == (set(), {"log_terms"})
    assert manifest(graph).head_commit.kind == "optimize"
    assert told(graph.maintenance.optimize().types)["Book"].skipped is None
    assert len(built(graph, "Book")) == 2


def test_if_every_type_moved_there_is_no_commit(root: str) -> None:
    graph, other = omnigraph.open(root), omnigraph.open(root)

    def write_both(done: int, total: int) -> None:
        other.mutate(BOOK, t=f"x{done}", a="y")
        other.mutate(SHIP, l="z")

    result = graph.maintenance.optimize(progress=write_both)
    assert [each.skipped for each in result.types] == ["moved", "moved"]
    assert result.commit is None
    assert manifest(graph).head_commit.kind == "mutation"


def test_a_write_that_lands_first_leaves_out_its_type_and_nothing_else(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(SHIP, l="calm")))
    result = faulty.graph.maintenance.optimize()
    assert {each.type_name: each.skipped for each in result.types} == {"Book": None, "Ship": "moved"}
    kinds = [commit.kind for commit in other.commits.list()]
    assert kinds[:2] == ["optimize", "mutation"]
    assert built(other, "Book") == {"title_terms", "about_terms"}


def test_optimize_follows_a_write_to_a_type_that_it_does_not_touch(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.mutate("query m() { insert Crew { rank: 7 } }")))
    result = faulty.graph.maintenance.optimize()
    assert result.commit is not None
    assert [each.skipped for each in result.types] == [None, None]
    assert other.query("query q() { match { $c: Crew } return { $c.rank } }").scalars() == [7]
    assert built(other, "Ship") == {"log_terms"}


@pytest.mark.parametrize(
    "write",
    [
        lambda graph: graph.mutate(ABOUT),
        lambda graph: graph.mutate('query m() { delete Book where title = "b1" }'),
        lambda graph: graph.mutate(BOOK, t="new", a="moved"),
        lambda graph: graph.load(
            [{"type": "Book", "data": {"title": "b1", "about": "moved"}}], mode="merge", progress=False
        ),
        lambda graph: graph.load(
            [{"type": "Book", "data": {"title": "b1", "about": "moved"}}], mode="overwrite", progress=False
        ),
    ],
    ids=["update", "delete", "insert", "merge", "overwrite"],
)
def test_no_write_is_refused_because_an_optimize_landed_first(root: str, write: Callable[[Graph], object]) -> None:
    """Only where the rows lie has changed: an update that could not follow other content can follow this."""
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.maintenance.optimize()))
    assert write(faulty.graph)
    kinds = [commit.kind for commit in other.commits.list()]
    assert kinds[1] == "optimize"
    titles = other.query("query q() { match { $b: Book } return { $b.title as t } order { t } }").scalars()
    assert len(titles) == len(set(titles))
    still = other.query(FOUND, q="ship").scalars()
    assert ("b1" in still) == ("new" in titles)


def test_an_update_that_loses_to_content_is_refused_though_an_optimize_landed_too(root: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)

    def both() -> None:
        other.maintenance.optimize()
        other.mutate(BOOK, t="x", a="y")

    faulty.publish_with(Meanwhile(before=both))
    with pytest.raises(ReadSetConflict) as caught:
        faulty.graph.mutate(ABOUT)
    assert caught.value.details["member"] == "type:node:Book"


def test_an_unknown_outcome_is_told_and_the_next_run_works(root: str) -> None:
    faulty = Faulty(root)
    faulty.publish_with(LoseBefore(), times=5)
    with pytest.raises(OutcomeUnknown) as caught:
        faulty.graph.maintenance.optimize()
    assert caught.value.graph_commit_id is not None
    assert faulty.graph.commits.outcome(caught.value.graph_commit_id).outcome == "undetermined"
    assert faulty.graph.maintenance.optimize()
    assert faulty.graph.commits.outcome(caught.value.graph_commit_id).outcome == "superseded"


def test_one_lost_publication_is_settled_by_the_identical_request(root: str) -> None:
    faulty = Faulty(root)
    faulty.publish_with(LandLate(after=1))
    assert faulty.graph.maintenance.optimize()
    assert [commit.kind for commit in faulty.graph.commits.list()] == ["optimize", "load", "genesis"]


def test_a_refused_publication_leaves_everything_as_it_was(root: str) -> None:
    faulty = Faulty(root)
    faulty.publish_with(Refuse())
    with pytest.raises(StorageFailure) as caught:
        faulty.graph.maintenance.optimize()
    assert caught.value.effects == "none"
    graph = omnigraph.open(root)
    assert manifest(graph).head_commit.kind == "load"
    assert built(graph, "Book") == set()


def folder(graph: Graph, type_name: str) -> Path:
    [pin] = [entry.pin for entry in manifest(graph).types.values() if entry.name == type_name]
    assert pin is not None
    return Path(graph.core.store.local_path or "") / pin.path


def test_a_fault_while_one_type_is_built_is_told_and_the_others_are_published(graph: Graph) -> None:
    (folder(graph, "Book") / "_indices").write_text("in the way")
    result = graph.maintenance.optimize()
    book = told(result.types)["Book"]
    assert (book.indexes, book.pending, result.failed) == ((), (), True)
    assert book.error is not None
    assert (book.error.code, book.error.effects) == ("storage_failure", "none")
    assert built(graph, "Ship") == {"log_terms"}
    (folder(graph, "Book") / "_indices").unlink()
    assert not graph.maintenance.optimize().failed
    assert len(built(graph, "Book")) == 2


def test_if_nothing_could_be_built_nothing_is_published(graph: Graph) -> None:
    for name in ("Book", "Ship"):
        (folder(graph, name) / "_indices").write_text("in the way")
    result = graph.maintenance.optimize()
    assert (result.failed, result.commit) == (True, None)
    assert manifest(graph).head_commit.kind == "load"


def test_a_read_only_handle_builds_nothing(root: str) -> None:
    with pytest.raises(InvalidRequest):
        omnigraph.open(root, mode="r").maintenance.optimize()


def test_a_graph_that_took_the_place_of_this_one_is_not_optimized(root: str, tmp_path: Path) -> None:
    graph = omnigraph.open(root)
    graph.maintenance.optimize(types=["Crew"])
    shutil.rmtree(root)
    omnigraph.init(root, schema=SCHEMA)
    with pytest.raises(omnigraph.OmnigraphError):
        graph.maintenance.optimize()


def test_indexes_serve_another_process_that_makes_none_of_its_own(graph: Graph) -> None:
    graph.maintenance.optimize()
    graph.mutate(BOOK, t="late", a="sailing late")
    graph.mutate('query m() { delete Book where title = "b0" }')
    graph.mutate(ABOUT)
    program = "import sys, omnigraph;print(*omnigraph.open(sys.argv[1]).query(sys.argv[2], q='sailed').scalars())"
    ran = subprocess.run(
        [sys.executable, "-c", program, graph.uri, FOUND],
        env={"OMNIGRAPH_FTS_SCRATCH_ROWS": "0", "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.split()) == (0, ["b2", "b3", "b4", "b5", "late"]), ran.stderr


def test_indexes_are_built_and_asked_on_every_kind_of_storage(any_root: str) -> None:
    graph = omnigraph.init(any_root, schema=SCHEMA)
    graph.mutate(BOOK, t="one", a="ships sail")
    graph.maintenance.optimize()
    graph.mutate(BOOK, t="two", a="sailed")
    fresh = omnigraph.open(any_root, settings={"fts_scratch_rows": 0})
    assert fresh.query(FOUND, q="sailing").scalars() == ["one", "two"]
    assert graph.maintenance.optimize(full=True)
    assert fresh.query(FOUND, q="sailing").scalars() == ["one", "two"]


def test_a_vector_index_is_published_like_any_other(graph: Graph) -> None:
    rows = [{"type": "Book", "data": {"title": f"v{n}", "place": [n % 20, n // 20]}} for n in range(400)]
    graph.load(rows, mode="append", progress=False)
    result = optimize(graph.core, "main", types=["Book"], vector_bytes_least=0)
    assert [each.name for each in told(result.types)["Book"].indexes] == ["title_terms", "about_terms", "place_vectors"]
    assert built(graph, "Book") == {"title_terms", "about_terms", "place_vectors"}
