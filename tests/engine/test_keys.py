"""Where a key is looked for, what that costs, and how long it is good for (storage.md 4, interfaces.md 5.4)."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pytest

import omnigraph
from manifest.samples import draft, put
from omnigraph.engine.graph import Graph
from omnigraph.engine.receipts import as_microseconds
from omnigraph.engine.writing.replay import FreshKey
from omnigraph.errors import BranchNotFound, IdempotencyKeyReused, OutcomeUnknown
from omnigraph.manifest.builder import next_version
from omnigraph.manifest.logs import AUTHORED_MAX, RECORDS_BACK_MAX
from omnigraph.store.faults import LoseBefore, Meanwhile
from support.faulty import Faulty

SCHEMA = "node Note { text: String }"
INSERT = "query add($t: String) { insert Note { text: $t } }"
TEXTS = "query all() { match { $n: Note } return { $n.text as t } order { t } }"
LOG = "__lineage/"


@pytest.fixture
def root(tmp_path: Path) -> str:
    omnigraph.init(tmp_path / "g", schema=SCHEMA)
    return str(tmp_path / "g")


def texts(root: str) -> list[str]:
    return omnigraph.open(root).query(TEXTS).scalars()


def write_many(root: str, count: int, branch: str = "main") -> None:
    """So many commits of the branch, in one version."""
    core = omnigraph.open(root).core
    head = core.head(branch)
    first = head.version * 10_000
    drafts = [draft(first + number) for number in range(count)]
    put(core.store, next_version(head, drafts, now_us=core.clock.now_us(), nonce=f"{first:032x}"))


def parts_read(root: str, key: str | None) -> int:
    """Requests for parts of the log that one write of a process takes which knows nothing of it."""
    faulty = Faulty(root)
    faulty.graph.mutate(INSERT, t="x", idempotency_key=key)
    return faulty.store.count("read", key=LOG)


def test_a_key_that_was_just_made_up_is_not_looked_up(root: str) -> None:
    write_many(root, 600)
    assert parts_read(root, None) == 0
    assert parts_read(root, FreshKey("made-up")) == 0
    assert parts_read(root, "given") >= 3


def test_nor_is_it_on_a_branch_that_is_deleted(root: str) -> None:
    graph = omnigraph.open(root)
    graph.branches.create("b")
    write_many(root, 600, "b")
    graph.branches.delete("b")

    def parts(key: str | None) -> int:
        faulty = Faulty(root)
        with pytest.raises(BranchNotFound):
            faulty.graph.mutate(INSERT, t="x", branch="b", idempotency_key=key)
        return faulty.store.count("read", key=LOG)

    assert parts(None) == parts(FreshKey("made-up")) == 0 < parts("given")


def test_a_made_up_key_is_stored_and_found_when_it_comes_back(root: str) -> None:
    graph = omnigraph.open(root)
    first = graph.mutate(INSERT, t="A", idempotency_key=FreshKey("k"))
    again = graph.mutate(INSERT, t="A", idempotency_key="k")
    assert (again.replayed, again.commit) == (True, first.commit)
    assert texts(root) == ["A"]


def test_it_is_looked_for_in_what_was_published_since_the_write_began(root: str) -> None:
    """One of the versions between an old base and a new one may be the write's own first attempt."""
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(INSERT, t="A", idempotency_key="k")))
    result = faulty.graph.mutate(INSERT, t="A", idempotency_key=FreshKey("k"))
    assert result.replayed
    assert texts(root) == ["A"]


@pytest.mark.parametrize("key", ["k", FreshKey("k")])
def test_another_request_that_used_the_key_meanwhile_refuses(root: str, key: str) -> None:
    faulty, other = Faulty(root), omnigraph.open(root)
    faulty.publish_with(Meanwhile(before=lambda: other.mutate(INSERT, t="B", idempotency_key="k")))
    with pytest.raises(IdempotencyKeyReused) as caught:
        faulty.graph.mutate(INSERT, t="A", idempotency_key=key)
    assert caught.value.effects == "none"
    first = other.head
    assert caught.value.details == {
        "key": "k",
        "graph_commit_id": first.graph_commit_id,
        "created_at": as_microseconds(first.created_at),
    }
    assert texts(root) == ["B"]


def test_a_key_is_good_for_1024_commits_of_its_branch_and_free_after_them(root: str) -> None:
    assert (AUTHORED_MAX, RECORDS_BACK_MAX) == (1_024, 4_096)
    graph = omnigraph.open(root)
    first = graph.mutate(INSERT, t="A", idempotency_key="k")
    write_many(root, AUTHORED_MAX - 1)
    again = omnigraph.open(root).mutate(INSERT, t="A", idempotency_key="k")
    assert (again.replayed, again.commit) == (True, first.commit)
    write_many(root, 1)
    assert not omnigraph.open(root).mutate(INSERT, t="A", idempotency_key="k").replayed
    assert texts(root) == ["A", "A"]


def test_nothing_is_recorded_of_a_write_that_failed_or_published_nothing(root: str) -> None:
    faulty = Faulty(root)
    graph = faulty.graph
    nothing = 'query none() { delete Note where text = "nowhere" }'
    assert graph.mutate(nothing, idempotency_key="k").commit is None
    faulty.publish_with(LoseBefore(), times=5)
    with pytest.raises(OutcomeUnknown) as caught:
        graph.mutate(INSERT, t="A", idempotency_key="k")
    assert caught.value.details["idempotency_key"] == "k"
    assert not graph.mutate(INSERT, t="A", idempotency_key="k").replayed
    assert texts(root) == ["A"]


def test_an_unknown_creation_of_a_branch_names_its_key_too(root: str) -> None:
    faulty = Faulty(root)
    faulty.publish_with(LoseBefore(), times=5)
    with pytest.raises(OutcomeUnknown) as caught:
        faulty.graph.branches.create("b", idempotency_key="k")
    told = caught.value.details
    assert (told["kind"], told["branch"], told["idempotency_key"]) == ("branch_create", "b", "k")
    assert told["base_commit_id"] == faulty.graph.head.graph_commit_id
    assert told["graph_commit_id"] is None
    with pytest.raises(omnigraph.errors.InvalidRequest, match="list of branches"):
        caught.value.resolve()
    made: Graph = faulty.graph
    assert made.branches.create("b", idempotency_key="k").name == "b"


NOTE = 'query add($i: I64, $f: F32, $at: DateTime?, $days: [Date]?) { insert Note { text: "x" } }'
MOMENT = dt.datetime(2024, 1, 5, tzinfo=dt.UTC)
SPELLINGS: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"i": 5, "f": 1}, {"i": "5", "f": 1.0}),
    ({"i": 5, "f": 0.1}, {"i": 5, "f": 0.10000000149011612}),
    ({"i": 5, "f": 1}, {"i": 5, "f": 1, "at": None}),
    ({"i": 5, "f": 1, "at": "2024-01-05T01:00:00+01:00"}, {"i": 5, "f": 1, "at": MOMENT}),
    ({"i": 5, "f": 1, "days": ["2024-01-05"]}, {"i": 5, "f": 1, "days": (MOMENT.date(),)}),
    ({"i": 5, "f": 1, "days": ["2024-01-05"]}, {"i": 5, "f": 1, "days": np.array(["2024-01-05"], "datetime64[D]")}),
]


@pytest.mark.parametrize(("first", "again"), SPELLINGS)
def test_a_repeat_may_spell_its_arguments_otherwise(
    root: str, first: dict[str, object], again: dict[str, object]
) -> None:
    graph = omnigraph.open(root)
    receipt = graph.mutate(NOTE, first, idempotency_key="k")
    repeat = graph.mutate(NOTE, again, query_name="add", idempotency_key="k")
    assert repeat.replayed
    assert repeat.commit == receipt.commit
    assert texts(root) == ["x"]


@pytest.mark.parametrize(
    "other", [{"i": 6, "f": 1}, {"i": 5, "f": 2}, {"i": 5, "f": 1, "at": MOMENT}, {"i": "x", "f": 1}]
)
def test_other_arguments_are_another_request(root: str, other: dict[str, object]) -> None:
    graph = omnigraph.open(root)
    graph.mutate(NOTE, {"i": 5, "f": 1}, idempotency_key="k")
    with pytest.raises(IdempotencyKeyReused):
        graph.mutate(NOTE, other, idempotency_key="k")
