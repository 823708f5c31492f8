"""Questions to whole logs: relation, what a merge takes in, first parents, times, idempotency keys."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.samples import draft, first_version, follow, fork, head, put, sha
from omnigraph.manifest.builder import MAIN, deletion, forked, next_version
from omnigraph.manifest.chain import KnownHead, NoHead
from omnigraph.manifest.lineage import LogReader
from omnigraph.manifest.logs import KeyUsed, as_of, find_key, first_parents, related, taken_in
from omnigraph.manifest.model import Commit, CreatedFrom, Idempotency
from omnigraph.store.faults import FaultStore
from omnigraph.store.memory import MemoryStore


class Graph:
    """Branches in memory, written by builder calls."""

    def __init__(self) -> None:
        self.store = FaultStore(MemoryStore())
        self.history = LogReader(self.store)
        self.heads: dict[str, KnownHead] = {}
        self._number = 0
        self._keep(first_version())

    def _keep(self, built: object) -> KnownHead:
        put(self.store.inner, built)  # type: ignore[arg-type]
        known = head(built)  # type: ignore[arg-type]
        self.heads[known.branch] = known
        return known

    def write(self, branch: str = MAIN, key: str | None = None, **fields: object) -> Commit:
        self._number += 1
        idempotency = None if key is None else Idempotency(sha(key), sha(f"body of {key}"))
        base = self.heads[branch]
        built = follow(base, now_us=self._number * 10, drafts=[draft(self._number, idempotency=idempotency, **fields)])
        return self._keep(built).manifest.head_commit

    def write_many(self, count: int, branch: str = MAIN) -> None:
        """So many commits in one version."""
        self._number += count
        drafts = [draft(self._number - place) for place in range(count)]
        self._keep(follow(self.heads[branch], now_us=self._number * 10, drafts=drafts))

    def fork(self, branch: str, source: str = MAIN) -> None:
        self._number += 1
        self._keep(fork(branch, self.heads[source].manifest, target=self.heads.get(branch), name=f"f{self._number}"))

    def delete(self, branch: str) -> None:
        self._keep(deletion(self.heads[branch], nonce=f"d{self.heads[branch].version}"))

    def merge(self, source: str, target: str) -> Commit:
        self._number += 1
        from_log, onto = self.heads[source].manifest, self.heads[target]
        ancestry = related(self.history, from_log.lineage, onto.manifest.lineage)
        absorbed = taken_in(self.history, from_log.lineage, ancestry)
        merging = draft(self._number, kind="merge", merged=from_log.head_commit)
        built = next_version(onto, [merging], now_us=self._number * 10, nonce=f"m{self._number}", absorbed=absorbed)
        return self._keep(built).manifest.head_commit

    def log(self, branch: str = MAIN) -> tuple[Commit, ...]:
        return self.history.newest(self.heads[branch].manifest.lineage, 10**6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["write", "merge", "fork"]),
            st.sampled_from("abcm"),
            st.sampled_from("abcm"),
            st.integers(1, 90),
        ),
        max_size=14,
    )
)
def test_a_log_is_the_head_and_all_its_ancestors_once_parents_first(steps: list[tuple[str, str, str, int]]) -> None:
    graph = Graph()
    names = {"m": MAIN, "a": "a", "b": "b", "c": "c"}
    for what, one, other, times in steps:
        source, target = names[one], names[other]
        if what == "fork" and target not in graph.heads and source in graph.heads:
            graph.fork(target, source)
        elif what == "write" and source in graph.heads:
            graph.write_many(times, source)
        elif what == "merge" and source in graph.heads and target in graph.heads and source != target:
            lineages = (graph.heads[name].manifest.lineage for name in (source, target))
            if related(graph.history, *lineages).left_only:
                graph.merge(source, target)
    everything = {record.id: record for branch in graph.heads for record in graph.log(branch)}
    for branch in graph.heads:
        log = graph.log(branch)
        seen: set[object] = set()
        for record in log:
            assert record.id not in seen
            assert set(record.parents) <= seen
            seen.add(record.id)
        reachable, todo = set(), [log[-1].id]
        while todo:
            here = todo.pop()
            if here not in reachable:
                reachable.add(here)
                todo += everything[here].parents
        assert reachable == seen
        assert 1 <= len(graph.heads[branch].manifest.lineage.window) <= 191


def test_a_merge_takes_in_what_the_target_lacks_in_the_order_of_the_source() -> None:
    graph = Graph()
    graph.fork("r")
    graph.fork("s")
    mine = [graph.write("r") for _ in range(3)]
    theirs = [graph.write("s") for _ in range(2)]
    graph.merge("s", "r")
    more = graph.write("r")
    graph.write(MAIN)
    ancestry = related(graph.history, graph.heads["r"].manifest.lineage, graph.heads[MAIN].manifest.lineage)
    absorbed = taken_in(graph.history, graph.heads["r"].manifest.lineage, ancestry)
    assert [record.id for record in absorbed if record.kind != "merge"] == [r.id for r in [*mine, *theirs, more]]
    assert ancestry.bases == (first_version().manifest.head_commit.id,)


def test_two_branches_that_forked_long_ago_are_related_at_the_cost_of_what_is_new() -> None:
    graph = Graph()
    graph.write_many(700)
    graph.fork("r")
    graph.write("r")
    graph.write(MAIN)
    history = LogReader(FaultStore(graph.store.inner))
    before = graph.store.count("read")
    ancestry = related(history, graph.heads["r"].manifest.lineage, graph.heads[MAIN].manifest.lineage)
    assert len(ancestry.left_only) == len(ancestry.right_only) == 1
    assert taken_in(history, graph.heads["r"].manifest.lineage, ancestry)[0].id.branch == "r"
    assert graph.store.count("read") == before


def test_first_parents_run_through_the_fork_point_and_past_merged_commits() -> None:
    graph = Graph()
    early = graph.write()
    graph.fork("r")
    graph.fork("s")
    graph.write("s")
    kept = graph.write("r")
    merge = graph.merge("s", "r")
    chain = [commit.id for commit in first_parents(graph.history, graph.heads["r"].manifest.lineage)]
    assert chain == [merge.id, kept.id, early.id, first_version().manifest.head_commit.id]


def test_a_time_names_the_last_commit_made_until_then_on_the_first_parent_chain() -> None:
    graph = Graph()
    commits = [graph.write() for _ in range(300)]
    lineage = graph.heads[MAIN].manifest.lineage
    genesis = first_version().manifest.head_commit
    for wanted in (commits[3], commits[150], commits[299]):
        for moment, expected in ((wanted.created_at, wanted.id), (wanted.created_at - 1, wanted.parents[0])):
            found = as_of(graph.history, lineage, moment)
            assert found is not None
            assert found.id == expected
    assert as_of(graph.history, lineage, genesis.created_at - 1) is None
    assert as_of(graph.history, lineage, 10**18) == commits[299]


# --- idempotency keys


def used(graph: Graph, key: str, branch: str = MAIN, **options: object) -> KeyUsed | None:
    return find_key(graph.history, graph.heads[branch].manifest, sha(key), **options)  # type: ignore[arg-type]


def test_a_key_gives_the_commit_that_used_it_and_its_request() -> None:
    graph = Graph()
    graph.write(key="other")
    commit = graph.write(key="k")
    for _ in range(5):
        graph.write()
    assert used(graph, "k") == KeyUsed(commit, sha("body of k"))
    assert used(graph, "unused") is None


def test_a_key_is_free_again_after_1024_commits_of_the_branch() -> None:
    graph = Graph()
    graph.write(key="k")
    graph.write_many(1_023)
    assert used(graph, "k") is not None
    graph.write()
    assert used(graph, "k") is None


def test_what_forks_and_merges_brought_in_does_not_count() -> None:
    graph = Graph()
    graph.write(key="before the fork")
    graph.fork("r")
    assert used(graph, "before the fork", "r") is None
    graph.write("r", key="on r")
    graph.merge("r", MAIN)
    assert used(graph, "on r") is None
    assert used(graph, "on r", "r") is not None
    assert used(graph, "before the fork") is not None


def test_merged_records_do_not_push_a_key_out_but_4096_records_do() -> None:
    graph = Graph()
    commit = graph.write(key="k")
    graph.fork("r")
    graph.write_many(1_500, "r")
    graph.merge("r", MAIN)
    assert used(graph, "k") == KeyUsed(commit, sha("body of k"))
    graph.write_many(2_700, "r")
    graph.merge("r", MAIN)
    assert used(graph, "k") is None


def test_a_key_is_good_for_one_life() -> None:
    graph = Graph()
    graph.fork("r")
    graph.write("r", key="k")
    graph.fork("from-r", "r")
    graph.delete("r")
    graph.fork("r", "from-r")
    assert any(record.idempotency for record in graph.log("r"))
    assert used(graph, "k", "r") is None


@pytest.mark.parametrize("key", ["creation", "other"])
def test_the_creation_of_a_branch_uses_a_key_too(key: str) -> None:
    graph = Graph()
    created = CreatedFrom(MAIN, 1, Idempotency(sha("creation"), sha("body")))
    built = forked(NoHead("r", 0.0), graph.heads[MAIN].manifest, nonce="n", created_from=created)
    graph._keep(built)
    graph.write("r")
    assert used(graph, key, "r") == (KeyUsed(None, sha("body")) if key == "creation" else None)


def test_between_an_old_base_and_a_new_one_only_what_came_since_is_looked_at() -> None:
    graph = Graph()
    graph.write(key="old")
    base = graph.write()
    graph.write(key="new")
    graph.write()
    assert used(graph, "new", after=base.id) is not None
    assert used(graph, "old", after=base.id) is None
    assert used(graph, "old") is not None
