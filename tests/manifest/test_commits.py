"""What became of a commit: published, superseded, reclaimed, or not to be known yet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from manifest.samples import draft, first_version, follow, fork, head, nonce, put
from omnigraph.errors import StorageClass
from omnigraph.manifest import keys
from omnigraph.manifest.builder import Built, deletion
from omnigraph.manifest.chain import HeadState, KnownHead, NoHead, StoredVersion, resolve_head
from omnigraph.manifest.commits import (
    CommitLookup,
    CommitPublished,
    CommitReclaimed,
    CommitSuperseded,
    CommitUndetermined,
    VersionAbsent,
    VersionReclaimed,
    clock_skew,
    look_up,
    read_past_version,
)
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.lineage import LogReader
from omnigraph.store.faults import Damage, FaultStore, Meanwhile, Refuse, Rule
from omnigraph.store.memory import MemoryStore
from support.clocks import SteppingClock

START_US = 1_767_225_600_000_000
HOUR_US = 3_600_000_000


class Chain:
    """A store whose clock is told the time, and a branch on it."""

    def __init__(self) -> None:
        self.now_us = START_US
        self.inner = MemoryStore(now=lambda: dt.datetime.fromtimestamp(self.now_us / 1e6, dt.UTC))
        self.store = FaultStore(self.inner)
        self.heads: list[KnownHead] = []
        self.put(first_version(now_us=START_US))

    def put(self, built: Built) -> KnownHead:
        put(self.inner, built)
        self.heads.append(head(built))
        return self.heads[-1]

    def grow(self, count: int) -> None:
        for _ in range(count):
            self.now_us += HOUR_US
            self.put(follow(self.heads[-1], self.heads[-1].version, now_us=self.now_us))

    def commit(self, version: int) -> CommitId:
        return self.heads[version - 1].manifest.commits[-1].id

    def clean_up(self, *versions: int, branch: str = "main") -> None:
        self.inner.delete([keys.version_key(branch, version) for version in versions])

    def ask(self, commit_id: CommitId, head_of: Callable[[str], HeadState] | None = None) -> CommitLookup:
        self.store = FaultStore(self.inner, self.rules)
        resolve = head_of or (lambda branch: resolve_head(self.store, branch, clock=SteppingClock()))
        return look_up(self.store, LogReader(self.store), commit_id, head_of=resolve)

    def past(self, version: int, branch: str = "main") -> object:
        def head_of(name: str) -> HeadState:
            return resolve_head(self.inner, name, clock=SteppingClock())

        return read_past_version(self.inner, LogReader(self.inner), branch, version, head_of=head_of)

    rules: tuple[Rule, ...] = ()

    @property
    def requests(self) -> list[str]:
        return [each.verb for each in self.store.requests]


@pytest.fixture
def chain() -> Chain:
    grown = Chain()
    grown.grow(5)
    return grown


def attempt_at(version: int) -> CommitId:
    return CommitId("main", version, "f" * 16)


def test_a_commit_is_found_with_one_request(chain: Chain) -> None:
    found = chain.ask(chain.commit(3))
    assert isinstance(found.fate, CommitPublished)
    assert (found.fate.commit.id, found.fate.stored.manifest.version) == (chain.commit(3), 3)
    assert found.head is None
    assert chain.requests == ["read"]


def test_every_member_of_a_group_is_found_in_its_one_version(chain: Chain) -> None:
    group = chain.put(follow(chain.heads[-1], 71, 72, 73, now_us=chain.now_us))
    for commit in group.manifest.commits:
        found = chain.ask(commit.id).fate
        assert isinstance(found, CommitPublished)
        assert found.commit == commit


def test_another_commit_in_the_version_means_superseded_and_names_it(chain: Chain) -> None:
    assert chain.ask(attempt_at(3)).fate == CommitSuperseded(chain.commit(3))
    assert chain.requests == ["read"]


def test_a_version_above_the_head_is_undetermined_as_long_as_it_is_absent(chain: Chain) -> None:
    found = chain.ask(attempt_at(7))
    assert found.fate == CommitUndetermined("version_absent")
    assert isinstance(found.head, KnownHead)
    assert found.head.version == 6
    assert chain.requests == ["read", "list_first", "read"]
    chain.grow(1)
    assert chain.ask(attempt_at(7)).fate == CommitSuperseded(chain.commit(7))


def test_a_branch_that_never_was_holds_nothing_yet(chain: Chain) -> None:
    found = chain.ask(CommitId("lost", 1, "f" * 16))
    assert found.fate == CommitUndetermined("version_absent")
    assert isinstance(found.head, NoHead)


def test_a_cleaned_up_commit_keeps_its_record_and_a_stranger_never_was(chain: Chain) -> None:
    chain.clean_up(2, 3)
    found = chain.ask(chain.commit(3)).fate
    assert isinstance(found, CommitReclaimed)
    assert found.commit == chain.heads[2].manifest.commits[0]
    assert chain.ask(attempt_at(3)).fate == CommitSuperseded(None)


def test_a_head_in_memory_spares_the_list(chain: Chain) -> None:
    chain.clean_up(2, 3)
    assert isinstance(chain.ask(chain.commit(3), lambda _: chain.heads[-1]).fate, CommitReclaimed)
    assert chain.requests == ["read", "read"]
    assert chain.ask(attempt_at(9), lambda _: chain.heads[-1]).fate == CommitUndetermined("version_absent")
    assert chain.requests == ["read"]


def test_a_version_that_lands_between_the_two_requests_is_not_called_reclaimed(chain: Chain) -> None:
    late = follow(chain.heads[-1], 80, now_us=chain.now_us)
    landed = late.manifest.commits[0].id
    chain.rules = (Rule(Meanwhile(before=lambda: put(chain.inner, late)), verb="list_first"),)
    found = chain.ask(landed)
    assert isinstance(found.fate, CommitPublished)
    assert isinstance(found.head, KnownHead)
    assert found.head.version == 7


def test_commits_of_an_earlier_life_resolve_as_long_as_their_versions_stand(chain: Chain) -> None:
    branch = chain.put(fork("r", chain.heads[0].manifest))
    written = chain.put(follow(branch, 90, now_us=chain.now_us))
    gone = chain.put(deletion(written, nonce="d"))
    chain.put(fork("r", chain.heads[0].manifest, target=gone))
    commit_id = written.manifest.commits[0].id
    assert isinstance(chain.ask(commit_id).fate, CommitPublished)
    chain.clean_up(1, 2, branch="r")
    assert chain.ask(commit_id).fate == CommitUndetermined("history_reclaimed")
    # an attempt at a version that a deletion took: no commit is there, and none ever will be
    assert chain.ask(CommitId("r", 4, "f" * 16)).fate == CommitSuperseded(None)


@pytest.mark.parametrize("fault", [Refuse(StorageClass.TIMEOUT), Damage("half")])
def test_a_version_that_can_not_be_read_is_undetermined(chain: Chain, fault: Refuse | Damage) -> None:
    chain.rules = (Rule(fault, verb="read"),)
    fate = chain.ask(chain.commit(3)).fate
    assert isinstance(fate, CommitUndetermined)
    assert fate.reason == "unreadable"
    assert fate.failure is not None


# --- strays: a sleeper's late request for a version that was used and cleaned up


def stray_at(chain: Chain, version: int, *, hours_late: int = 13) -> CommitId:
    """Version `version` is cleaned up; an old attempt for the same number lands long after it was made."""
    base = chain.heads[version - 2]
    made_at = chain.heads[version - 1].manifest.commits[-1].created_at
    late = follow(base, 666, now_us=made_at)
    chain.clean_up(version)
    chain.now_us = made_at + hours_late * HOUR_US
    put(chain.inner, late)
    return late.manifest.commits[0].id


def test_a_stray_is_not_believed_and_does_not_hide_what_was_there(chain: Chain) -> None:
    stray = stray_at(chain, 3)
    assert chain.ask(stray).fate == CommitSuperseded(None)
    assert isinstance(chain.ask(chain.commit(3)).fate, CommitReclaimed)
    assert isinstance(chain.past(3), VersionReclaimed)


def test_up_to_12_hours_an_object_is_no_stray(chain: Chain) -> None:
    late = follow(chain.heads[-1], 5, now_us=chain.now_us)
    chain.now_us += 12 * HOUR_US
    chain.put(late)
    assert isinstance(chain.ask(late.manifest.commits[0].id).fate, CommitPublished)
    assert chain.requests == ["read"]
    assert isinstance(chain.past(7), StoredVersion)


def test_a_late_object_that_the_log_holds_is_the_version(chain: Chain) -> None:
    late = follow(chain.heads[-1], 5, now_us=chain.now_us)
    chain.now_us += 20 * HOUR_US
    chain.put(late)
    assert isinstance(chain.ask(late.manifest.commits[0].id).fate, CommitPublished)
    chain.grow(2)
    found = chain.ask(late.manifest.commits[0].id)
    assert isinstance(found.fate, CommitPublished)
    assert chain.requests == ["read", "list_first", "read"]
    assert isinstance(chain.past(7), StoredVersion)


def test_an_old_stray_of_an_earlier_life_is_undetermined(chain: Chain) -> None:
    branch = chain.put(fork("r", chain.heads[0].manifest))
    written = chain.put(follow(branch, 90, now_us=chain.now_us))
    gone = chain.put(deletion(written, nonce="d"))
    chain.put(fork("r", chain.heads[0].manifest, target=gone))
    stray = follow(branch, 91, now_us=chain.now_us)
    chain.clean_up(2, branch="r")
    chain.now_us += 30 * HOUR_US
    put(chain.inner, stray)
    assert chain.ask(stray.manifest.commits[0].id).fate == CommitUndetermined("history_reclaimed")


def test_a_version_without_commits_counts_if_the_next_one_names_it(chain: Chain) -> None:
    branch = chain.put(fork("r", chain.heads[0].manifest))
    attempt = CommitId("r", 1, "f" * 16)
    assert isinstance(chain.past(1, "r"), StoredVersion)  # it is the head
    chain.put(follow(branch, 90, now_us=chain.now_us))
    assert isinstance(chain.past(1, "r"), StoredVersion)  # version 2 names it
    assert chain.ask(attempt).fate == CommitSuperseded(None)
    other = fork("r", chain.heads[0].manifest, name="a late copy of another attempt")
    chain.clean_up(1, branch="r")
    put(chain.inner, other)
    assert isinstance(chain.past(1, "r"), VersionReclaimed)
    chain.clean_up(1, branch="r")
    assert isinstance(chain.past(1, "r"), VersionReclaimed)
    assert isinstance(chain.past(9, "r"), VersionAbsent)
    assert isinstance(chain.past(1, "nowhere"), VersionAbsent)


def test_a_head_whose_clock_and_the_stores_disagree_is_reported(chain: Chain) -> None:
    manifest = chain.heads[-1].manifest
    made_at = manifest.commits[-1].created_at
    assert clock_skew(made_at + HOUR_US, manifest) is None
    assert clock_skew(made_at + HOUR_US + 1, manifest) == HOUR_US + 1
    assert clock_skew(made_at - 2 * HOUR_US, manifest) == -2 * HOUR_US
    assert clock_skew(0, fork("r", manifest).manifest) is None


def test_a_commit_of_a_far_past_is_found_in_the_segments() -> None:
    chain = Chain()
    for number in range(1, 400):
        chain.put(follow(chain.heads[-1], drafts=[draft(number)], now_us=chain.now_us + number))
    chain.clean_up(*range(1, 300))
    found = chain.ask(CommitId("main", 11, nonce(10)))
    assert isinstance(found.fate, CommitReclaimed)
    assert chain.requests.count("list_first") == 1
