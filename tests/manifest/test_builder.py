"""The next manifest: its place in the chain, its commits' place in the log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.samples import GRAPH, SCHEMA, draft, first_version, follow, fork, head, sha
from omnigraph.errors import FormatMismatch
from omnigraph.manifest.builder import (
    Built,
    base_label,
    deletion,
    forked,
    genesis,
    minted_at,
    never_created,
    next_version,
)
from omnigraph.manifest.chain import KnownHead, NoHead
from omnigraph.manifest.codec import from_bytes, to_bytes
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.lineage import truncated
from omnigraph.manifest.model import Base, CreatedFrom, Idempotency, Manifest, TablePin, TypeEntry, content_label

PIN = TypeEntry("node", "Port", TablePin("nodes/a-1", 2**63 + 5), "c", rows=3)


def test_the_first_version_of_main_publishes_the_genesis_commit() -> None:
    built = genesis(graph=GRAPH, schema=SCHEMA, draft=draft(0, kind="genesis"), now_us=77, nonce="n")
    manifest = built.manifest
    (commit,) = manifest.commits
    assert (manifest.branch, manifest.version, manifest.life, manifest.state) == ("main", 1, 1, "active")
    assert (manifest.base, manifest.forked_from, manifest.created_from, dict(manifest.types)) == (None, None, None, {})
    assert (commit.parents, commit.generation, commit.created_at, commit.kind) == ((), 0, 77, "genesis")
    assert manifest.head_commit == commit
    assert from_bytes(built.data, branch="main", version=1) == manifest


def test_a_version_follows_its_base_by_number_and_digest() -> None:
    base = head(first_version())
    built = next_version(base, [draft(1)], now_us=5_000, nonce="n", types={"a": PIN})
    manifest = built.manifest
    assert (manifest.version, manifest.base, manifest.life) == (2, Base(1, base.sha256), 1)
    assert (manifest.types, manifest.schema, manifest.nonce) == ({"a": PIN}, SCHEMA, "n")
    assert str(manifest.commits[0].id) == "main@2-0000000000000001"
    assert manifest.commits[0].parents == (base.manifest.head_commit.id,)
    assert base_label(base) == "main@1"
    later = next_version(head(built), [draft(2)], now_us=9_000, nonce="m", schema=sha("new")).manifest
    assert (later.types, later.schema) == ({"a": PIN}, sha("new"))


def test_the_commits_of_a_group_are_chained_in_order_on_the_old_head() -> None:
    base = head(first_version(now_us=100))
    manifest = follow(base, 1, 2, 3, now_us=50).manifest
    first, second, third = manifest.commits
    assert first.parents == (base.manifest.head_commit.id,)
    assert (second.parents, third.parents) == ((first.id,), (second.id,))
    assert [commit.generation for commit in manifest.commits] == [1, 2, 3]
    assert [commit.created_at for commit in manifest.commits] == [101, 102, 103]
    assert {commit.id.version for commit in manifest.commits} == {2}
    assert manifest.lineage.window[-3:] == manifest.commits


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=8))
def test_times_rise_along_first_parents_whatever_the_clock_does(clocks: list[int]) -> None:
    base = head(first_version(now_us=10**14))
    for number, now_us in enumerate(clocks, 1):
        built = follow(base, number, now_us=now_us)
        assert built.manifest.commits[0].created_at == max(now_us, base.manifest.head_commit.created_at + 1)
        base = head(built)
    assert minted_at(5, None) == 5


def test_a_merge_takes_the_records_in_before_itself_and_has_two_parents() -> None:
    main = head(first_version())
    side = head(follow(head(fork("r", main.manifest)), 1, 2))
    target = head(follow(main, 9))
    source = side.manifest.head_commit
    merge = next_version(
        target,
        [draft(3, kind="merge", merged=source)],
        now_us=0,
        nonce="n",
        absorbed=side.manifest.lineage.window[1:],
    ).manifest
    (commit,) = merge.commits
    assert commit.parents == (target.manifest.head_commit.id, source.id)
    assert commit.generation == 3
    window = merge.lineage.window
    assert [record.id.branch for record in window] == ["main", "main", "r", "r", "main"]
    seen: set[CommitId] = set()
    for record in window:
        assert set(record.parents) <= seen
        seen.add(record.id)


def test_a_fork_holds_the_state_of_its_source_and_publishes_no_commit() -> None:
    main = head(next_version(head(first_version()), [draft(1)], now_us=0, nonce="n", types={"a": PIN}))
    created = CreatedFrom("main", 1, Idempotency(sha("k"), sha("r")))
    manifest = forked(NoHead("r", 0.0), main.manifest, nonce="f", created_from=created).manifest
    assert (manifest.branch, manifest.version, manifest.life, manifest.base) == ("r", 1, 1, None)
    assert (manifest.commits, manifest.forked_from) == ((), main.manifest.head_commit.id)
    assert (manifest.types, manifest.lineage) == (main.manifest.types, main.manifest.lineage)
    assert manifest.head_commit == main.manifest.head_commit
    after = follow(head(as_built(manifest)), 5).manifest
    assert (after.created_from, after.forked_from, after.life) == (created, manifest.forked_from, 1)


def as_built(manifest: Manifest) -> Built:
    return Built(manifest, to_bytes(manifest))


def test_a_load_into_a_new_branch_is_a_fork_with_a_commit_in_one_version() -> None:
    main = head(first_version())
    manifest = fork("b", main.manifest, drafts=[draft(4, kind="load")], now_us=9, types={"a": PIN}).manifest
    assert (manifest.version, manifest.life, manifest.types) == (1, 1, {"a": PIN})
    assert manifest.forked_from == main.manifest.head_commit.id
    assert manifest.commits[0].parents == (main.manifest.head_commit.id,)
    assert str(manifest.commits[0].id).startswith("b@1-")


def test_a_deleted_name_lives_again_as_a_later_version_of_the_same_chain() -> None:
    main = head(first_version())
    first = head(fork("r", main.manifest))
    gone = deletion(first, nonce="d").manifest
    assert (gone.state, gone.version, gone.life, gone.commits) == ("deleted", 2, 1, ())
    assert (gone.types, gone.lineage) == (first.manifest.types, first.manifest.lineage)
    again = fork("r", main.manifest, target=KnownHead(gone, "ab", 0.0)).manifest
    assert (again.state, again.version, again.life, again.base) == ("active", 3, 3, Base(2, "ab"))


def test_what_can_not_follow_is_refused() -> None:
    main = head(first_version())
    branch = head(fork("r", main.manifest))
    gone = head(deletion(branch, nonce="d"))
    with pytest.raises(ValueError, match="deleted its branch"):
        follow(gone, 1)
    with pytest.raises(ValueError, match="at least one commit"):
        next_version(main, [], now_us=0, nonce="n")
    with pytest.raises(ValueError, match="main can't be deleted"):
        deletion(main, nonce="d")
    with pytest.raises(ValueError, match="deleted already"):
        deletion(gone, nonce="d")
    with pytest.raises(ValueError, match="live"):
        fork("r", main.manifest, target=branch)


def test_a_name_that_never_came_to_exist_can_be_closed_to_late_requests() -> None:
    main = head(first_version())
    built = never_created(NoHead("lost", 0.0), main.manifest, nonce="n")
    manifest = from_bytes(built.data, branch="lost", version=1)
    assert (manifest.state, manifest.version, manifest.commits) == ("deleted", 1, ())


def test_a_base_that_needs_a_newer_writer_is_not_built_upon() -> None:
    main = head(first_version())
    newer = replace(main, manifest=replace(main.manifest, min_writer=2))
    branch = replace(head(fork("r", main.manifest)), manifest=replace(fork("r", main.manifest).manifest, min_writer=2))
    gone = replace(branch, manifest=replace(branch.manifest, state="deleted"))
    for attempt in (
        lambda: follow(newer, 1),
        lambda: fork("b", newer.manifest),
        lambda: deletion(branch, nonce="d"),
        lambda: fork("r", main.manifest, target=gone),
    ):
        with pytest.raises(FormatMismatch):
            attempt()


def test_equal_inputs_give_equal_bytes_and_another_nonce_other_ones() -> None:
    base = head(first_version())
    one, same = (next_version(base, [draft(1)], now_us=0, nonce="n") for _ in range(2))
    other = next_version(base, [draft(1)], now_us=0, nonce="m")
    assert one.data == same.data != other.data


def test_the_state_after_a_commit_inside_a_group_has_the_log_up_to_it() -> None:
    manifest = follow(head(first_version()), 1, 2, 3).manifest
    assert truncated(manifest.lineage, manifest.commits[1].id).window[-1] == manifest.commits[1]


def test_a_type_that_never_held_a_row_has_the_content_none() -> None:
    assert content_label(None) == "none"
    assert content_label(TablePin("p", 7)) == "p@7"
