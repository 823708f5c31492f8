"""A write under a store that answers badly ends in one of: published once, definitely not, unknown and how to find out.

The store of the graph's own requests is scripted (`FaultStore`); tables lie in the same folder, unharmed.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.receipts import LoadResult
from omnigraph.errors import (
    Busy,
    InvalidData,
    OmnigraphError,
    OutcomeUnknown,
    ReadSetConflict,
    StorageClass,
    StorageFailure,
)
from omnigraph.manifest.publish import FenceClosed, FenceOpen
from omnigraph.store.faults import (
    FailCondition,
    Fault,
    LandLate,
    LoseAfter,
    LoseBefore,
    Meanwhile,
    Refuse,
    Rule,
    Throttle,
)
from support.faulty import Faulty

SCHEMA = "node Port { code: String @key  name: String? } edge Ferry: Port -> Port { line: String? }"
INSERT = "query m($c: String) { insert Port { code: $c } }"
UPDATE = 'query m() { update Port set { name: "x" } where code = "A" }'


@pytest.fixture
def root(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.mutate(INSERT, c="A")
    return str(tmp_path / "g")


def codes(root: str) -> list[str]:
    query = "query q() { match { $p: Port } return { $p.code as c } order { c } }"
    return omnigraph.open(root).query(query).scalars()


def log(root: str) -> list[str]:
    return [commit.graph_commit_id for commit in omnigraph.open(root).commits.list()]


def manifests(root: str) -> list[str]:
    return sorted(path.name for path in Path(root, "__manifest", "main").iterdir())


@pytest.mark.parametrize("fault", [LoseBefore(), LoseAfter(), Throttle(), FailCondition(), LandLate(after=1)])
def test_one_lost_publication_is_settled_by_the_identical_request(root: str, fault: Fault) -> None:
    faulty = Faulty(root)
    faulty.publish_with(fault)
    result = faulty.graph.mutate(INSERT, c="B")
    assert result.commit is not None
    assert codes(root) == ["A", "B"]
    assert log(root)[0] == result.commit.graph_commit_id
    assert len(log(root)) == len(manifests(root)) == 3
    assert faulty.clock.slept[:1] in ([], [0.2])


def test_a_publication_that_is_never_answered_is_unknown_and_the_next_write_works(root: str) -> None:
    faulty = Faulty(root)
    faulty.publish_with(LoseBefore(), times=5)
    head = log(root)[0]
    with pytest.raises(OutcomeUnknown) as caught:
        faulty.graph.mutate(INSERT, c="B", idempotency_key="k")
    error = caught.value
    assert (error.effects, error.retry, error.status) == ("unknown", "reconcile", 500)
    assert (error.branch, error.base_commit_id) == ("main", head)
    assert error.details["idempotency_key"] == "k"
    assert error.graph_commit_id is not None
    assert faulty.clock.slept == [0.2, 0.4, 0.8, 1.6]
    outcome = faulty.graph.commits.outcome(error.graph_commit_id)
    assert (outcome.outcome, outcome.reason) == ("undetermined", "version_absent")
    repeated = faulty.graph.mutate(INSERT, c="B", idempotency_key="k")
    assert not repeated.replayed
    assert faulty.graph.commits.outcome(error.graph_commit_id).outcome == "superseded"
    assert codes(root) == ["A", "B"]


def test_an_unknown_write_that_landed_is_found_by_its_key_and_never_doubled(root: str) -> None:
    faulty = Faulty(root)
    faulty.publish_with(LandLate(after=30), times=5)
    with pytest.raises(OutcomeUnknown) as caught:
        faulty.graph.mutate(INSERT, c="B", idempotency_key="k")
    faulty.store.release()
    assert faulty.core.heads.uncertain("main")
    again = faulty.graph.mutate(INSERT, c="B", idempotency_key="k")
    assert again.replayed
    assert again.commit is not None
    assert again.commit.graph_commit_id == caught.value.graph_commit_id
    assert faulty.graph.commits.outcome(again.commit.graph_commit_id).outcome == "published"
    assert not faulty.core.heads.uncertain("main")
    assert codes(root) == ["A", "B"]


def test_a_read_after_an_unknown_write_asks_storage_even_in_the_owner(root: str) -> None:
    faulty = Faulty(root)
    faulty.publish_with(LandLate(after=30), times=5)
    with pytest.raises(OutcomeUnknown):
        faulty.graph.mutate(INSERT, c="B")
    faulty.store.release()
    assert faulty.graph.query("query q() { match { $p: Port } return { count($p) as n } }").scalar() == 2


@pytest.mark.parametrize(
    ("fault", "cls", "status", "retry"),
    [
        (Refuse(StorageClass.DENIED), StorageClass.DENIED, 500, "recover"),
        (Refuse(StorageClass.CONNECTION, sent=False), StorageClass.CONNECTION, 503, "retry"),
    ],
)
def test_a_refused_publication_is_definite(
    root: str, fault: Refuse, cls: StorageClass, status: int, retry: str
) -> None:
    faulty = Faulty(root)
    faulty.publish_with(fault)
    with pytest.raises(StorageFailure) as caught:
        faulty.graph.mutate(INSERT, c="B")
    error = caught.value
    assert (error.cls, error.phase, error.effects, error.status, error.retry) == (cls, "publish", "none", status, retry)
    assert root not in error.message
    assert codes(root) == ["A"]
    faulty.graph.mutate(INSERT, c="C")
    assert codes(root) == ["A", "C"]


def test_an_insert_that_loses_the_race_is_prepared_again_and_an_update_is_refused(root: str) -> None:
    faulty = Faulty(root)
    other = omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(INSERT, c="X")))
    faulty.graph.mutate(INSERT, c="B")
    assert codes(root) == ["A", "B", "X"]
    head = log(root)[0]
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(INSERT, c="Y")))
    with pytest.raises(ReadSetConflict) as caught:
        faulty.graph.mutate(UPDATE)
    assert caught.value.details["member"] == "type:node:Port"
    assert log(root)[1] == head
    faulty.graph.mutate(UPDATE)


def test_an_overwrite_that_loses_the_race_is_refused(root: str) -> None:
    """Prepared again it would take away what it never saw."""
    faulty = Faulty(root)
    other = omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(INSERT, c="X")))
    with pytest.raises(ReadSetConflict) as caught:
        faulty.graph.load([{"type": "Port", "data": {"code": "B"}}], mode="overwrite", progress=False)
    assert (caught.value.status, caught.value.code, caught.value.effects) == (409, "read_set_conflict", "none")
    assert codes(root) == ["A", "X"]
    assert len(log(root)) == 3
    faulty.graph.load([{"type": "Port", "data": {"code": "B"}}], mode="overwrite", progress=False)
    assert codes(root) == ["B"]


PORT_B = '{"type":"Port","data":{"code":"B","name":"b"}}\n'
SOURCES: dict[str, Callable[[Path], Any]] = {
    "list": lambda _: [{"type": "Port", "data": {"code": "B", "name": "b"}}],
    "lines": lambda _: (PORT_B,),
    "bytes": lambda _: PORT_B.encode(),
    "memoryview": lambda _: memoryview(PORT_B.encode()),
    "path": lambda folder: _written(folder),
    "frame": lambda _: pa.table({"code": ["B"], "name": ["b"]}),
}
STREAMS: dict[str, Callable[[], Any]] = {
    "bytes": lambda: io.BytesIO(PORT_B.encode()),
    "text": lambda: io.StringIO(PORT_B),
    "iterator": lambda: iter([PORT_B]),
}


def _written(folder: Path) -> Path:
    path = folder / "ports.jsonl"
    path.write_text(PORT_B)
    return path


def _loaded_while(root: str, schema: str, data: Any, mode: Any = "append", key: str | None = None) -> Any:
    """Load while another process applies a schema."""
    faulty = Faulty(root)
    other = omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.schema.apply(schema, allow_data_loss=True)))
    of = "Port" if isinstance(data, pa.Table) else None
    return faulty.graph.load(data, mode=mode, type=of, progress=False, idempotency_key=key)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_load_is_read_again_under_the_schema_that_won_the_race(
    root: str, tmp_path: Path, source: str, mode: str
) -> None:
    data = SOURCES[source](tmp_path)
    result = _loaded_while(root, SCHEMA.replace("name: String?", "name: String?  flag: String?"), data, mode)
    assert result.total_entities == 1
    query = 'query q() { match { $p: Port { code: "B" } } return { $p.name as n, $p.flag as f } }'
    assert list(omnigraph.open(root).query(query)) == [{"n": "b", "f": None}]
    with pytest.raises(InvalidData) as caught:
        _loaded_while(root, SCHEMA.replace("name: String?", "title: String?"), data, "merge")
    assert caught.value.details["code"] == "W011"


def test_a_file_with_a_key_is_read_again_too(root: str, tmp_path: Path) -> None:
    schema = SCHEMA.replace("name: String?", "name: String?  flag: String?")
    result = _loaded_while(root, schema, _written(tmp_path), key="k")
    assert result.total_entities == 1
    assert codes(root) == ["A", "B"]


@pytest.mark.parametrize("source", STREAMS)
def test_a_stream_that_met_another_schema_is_refused_and_nothing_is_loaded(root: str, source: str) -> None:
    schema = SCHEMA.replace("name: String?", "name: String?  flag: String?")
    with pytest.raises(ReadSetConflict) as caught:
        _loaded_while(root, schema, STREAMS[source]())
    assert (caught.value.details["member"], caught.value.effects) == ("schema", "none")
    assert codes(root) == ["A"]


def test_an_update_passes_over_a_commit_that_left_its_types_alone(root: str) -> None:
    omnigraph.open(root).mutate(INSERT, c="B")
    faulty = Faulty(root)
    other = omnigraph.open(root)
    ferry = 'query m() { insert Ferry { from: "A", to: "B" } }'
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(ferry)))
    result = faulty.graph.mutate(UPDATE)
    assert result.commit is not None
    assert result.commit.graph_manifest_version == 5
    counted = omnigraph.open(root).query("query q() { match { $a $f:ferry $b } return { count($f.@id) as n } }")
    assert counted.scalar() == 1


def test_two_first_writes_of_a_type_end_in_one_table(root: str) -> None:
    omnigraph.open(root).mutate(INSERT, c="B")
    faulty = Faulty(root)
    other = omnigraph.open(root)
    ferry = 'query m($l: String) { insert Ferry { from: "A", to: "B", line: $l } }'
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(ferry, l="theirs")))
    faulty.graph.mutate(ferry, l="ours")
    found = omnigraph.open(root).query("query q() { match { $a $f:ferry $b } return { $f.line as l } order { l } }")
    assert found.scalars() == ["ours", "theirs"]


def test_a_write_prepared_on_a_branch_that_is_made_anew_is_refused(root: str) -> None:
    omnigraph.open(root).branches.create("b")
    faulty = Faulty(root)
    other = omnigraph.open(root)

    def anew() -> None:
        other.branches.delete("b")
        other.branches.create("b")

    faulty.publish_with(Meanwhile(before=anew))
    with pytest.raises(ReadSetConflict) as caught:
        faulty.graph.on("b").mutate(INSERT, c="B")
    assert caught.value.details["member"] == "branch_life"
    assert codes(root) == ["A"]


def test_a_closed_fence_publishes_nothing(root: str) -> None:
    faulty = Faulty(root)
    faulty.core.fence = FenceClosed
    with pytest.raises(Busy) as caught:
        faulty.graph.mutate(INSERT, c="B")
    assert (caught.value.code, caught.value.effects) == ("server_draining", "none")
    assert codes(root) == ["A"]
    faulty.core.fence = FenceOpen
    faulty.graph.mutate(INSERT, c="B")


def _operations() -> list[tuple[str, Callable[[Graph], object]]]:
    return [
        ("mutate", lambda graph: graph.mutate(INSERT, c="B")),
        ("load", lambda graph: graph.load([{"type": "Port", "data": {"code": "B"}}], mode="append")),
        ("branch create", lambda graph: graph.branches.create("b")),
        ("schema", lambda graph: graph.schema.apply(SCHEMA + "\nnode New { k: String @key }")),
    ]


@pytest.mark.parametrize(("name", "operation"), _operations())
@pytest.mark.parametrize("fault", [LoseBefore(), LoseAfter(), Throttle(), Refuse()])
def test_whichever_request_fails_once_nothing_else_suffers(
    root: str, name: str, operation: Callable[[Graph], object], fault: object
) -> None:
    """Every request of an operation fails once in its turn; then the graph still takes the operation."""
    counted = len(log(root))
    ordinal = 0
    while True:
        ordinal += 1
        copy = f"{root}-{ordinal}"
        shutil.copytree(root, copy)
        faulty = Faulty(copy)
        first = len(faulty.store.requests)
        faulty.store.add(Rule(fault, ordinal=first + ordinal))  # type: ignore[arg-type]
        done = _tried(operation, faulty.graph)
        met = any(request.fault is not None for request in faulty.store.requests)
        commits = len(log(copy)) - counted
        changed = commits + (len(omnigraph.open(copy).branches.list()) - 1)
        assert changed == int(done), f"{name}, request {ordinal}: done is {done}, {changed} versions"
        faulty.store.heal()
        if not done:
            operation(faulty.graph)
        if not met:
            break
    assert ordinal > 1


def _tried(operation: Callable[[Graph], object], graph: Graph) -> bool:
    """Whether it was done; if not, it must say that nothing was."""
    failures: list[StorageFailure] = []
    try:
        operation(graph)
    except StorageFailure as failure:
        failures.append(failure)
    assert all(failure.effects in (None, "none") for failure in failures)
    return not failures


def test_a_failing_cache_after_the_publication_is_a_warning_and_not_a_failure(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(
        "omnigraph.engine.writing.staging.log_event", lambda _, level, event, **__: warned.append(event)
    )
    faulty = Faulty(root)
    monkeypatch.setattr(faulty.core.residency, "adopt", lambda *_: 1 / 0)
    assert faulty.graph.mutate(INSERT, c="B").commit is not None
    assert faulty.graph.load([{"type": "Port", "data": {"code": "C"}}], mode="append", branch="b", from_="main").commit
    assert codes(root) == ["A", "B"]
    assert len(warned) == 2


@pytest.mark.parametrize("verb", ["read", "list_first"])
def test_a_machine_that_slept_while_the_base_was_read_sends_nothing(root: str, verb: Any) -> None:
    faulty = Faulty(root, owner=False)
    faulty.clock.advance(13 * 3600.0)  # what was known is too old to probe from: a LIST and a read find the head
    faulty.store.add(Rule(Meanwhile(after=lambda: faulty.clock.advance(25 * 3600.0)), verb=verb, key="main"))
    with pytest.raises(StorageFailure) as caught:
        faulty.graph.mutate(INSERT, c="B")
    assert "12 hours" in caught.value.message
    assert (caught.value.effects, codes(root)) == ("none", ["A"])
    faulty.graph.mutate(INSERT, c="B")


@pytest.mark.parametrize(
    ("faults", "cls"),
    [
        ([Rule(LoseBefore(), times=1), Rule(Refuse(StorageClass.DENIED), times=9)], "timeout"),
        ([Rule(LoseBefore(), times=4), Rule(FailCondition(), times=9)], "timeout"),
        ([Rule(Throttle(), times=1), Rule(LoseBefore(StorageClass.CONNECTION), times=9)], "connection"),
        ([Rule(FailCondition(), times=9)], None),
    ],
)
def test_an_unknown_outcome_names_the_last_failure_that_had_a_class(
    root: str, faults: list[Rule], cls: str | None
) -> None:
    faulty = Faulty(root)
    faulty.store.add(*[Rule(each.fault, verb="create", key="__manifest/", times=each.times) for each in faults])
    with pytest.raises(OutcomeUnknown) as caught:
        faulty.graph.mutate(INSERT, c="B")
    assert caught.value.details["class"] == cls


def test_a_merge_is_as_old_as_its_look_at_the_source(root: str) -> None:
    """What upkeep moves makes a merge prepare again, and half a day is over by then: what it took in may be swept."""
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.graph.branches.create("side")
    faulty.graph.on("side").mutate(INSERT, c="B")

    def half_a_day() -> None:
        faulty.clock.advance(13 * 3_600.0)
        assert other.maintenance.optimize().commit is not None

    faulty.publish_with(Meanwhile(before=half_a_day))
    with pytest.raises(OmnigraphError) as caught:
        faulty.graph.branches.merge("side")
    assert caught.value.effects == "none"
    assert codes(root) == ["A"]
    assert faulty.graph.branches.merge("side").commit is not None
    assert codes(root) == ["A", "B"]


def test_a_load_that_forks_is_answered_by_the_life_that_ended_while_it_was_repeated(root: str) -> None:
    faulty, other = Faulty(root, owner=False), omnigraph.open(root)
    rows = [{"type": "Port", "data": {"code": "X"}}]

    def load() -> LoadResult:
        return faulty.graph.load(rows, mode="append", branch="b", from_="main", idempotency_key="k", progress=False)

    faulty.store.add(Rule(LandLate(after=1_000_000), verb="create", key="__manifest/b/", times=5))
    with pytest.raises(OutcomeUnknown) as first:
        load()
    faulty.store.heal()
    faulty.store.add(Rule(Meanwhile(before=faulty.store.release), verb="create", key="__manifest/b/"))
    faulty.store.add(Rule(Meanwhile(after=lambda: other.branches.delete("b")), verb="read", key="__manifest/b/"))
    again = load()
    assert again.replayed
    assert again.commit is not None
    assert again.commit.graph_commit_id == first.value.graph_commit_id
