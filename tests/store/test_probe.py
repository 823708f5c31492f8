"""Stores that can't do what publication rests on are found out before anything of value is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import StorageClass
from omnigraph.store.base import Created, CreateOutcome, Exists, Replaced, ReplaceOutcome
from omnigraph.store.faults import FailCondition, Fault, FaultStore, LoseAfter, LoseBefore, Refuse, Rule, Throttle
from omnigraph.store.memory import MemoryStore
from omnigraph.store.open import open_store
from omnigraph.store.probe import ATTEMPTS, Capable, Incapable, Unproven, probe


class IgnoresIfNoneMatch(MemoryStore):
    def create(self, key: str, data: bytes) -> CreateOutcome:
        self.delete([key])
        return super().create(key, data)


class IgnoresIfMatch(MemoryStore):
    def replace(self, key: str, data: bytes, *, etag: str) -> ReplaceOutcome:
        self.delete([key])
        outcome = self.create(key, data)
        assert isinstance(outcome, Created)
        return Replaced(outcome.etag)


class KeepsDeletedNamesTaken(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def create(self, key: str, data: bytes) -> CreateOutcome:
        if key in self.used:
            return Exists()
        self.used.add(key)
        return super().create(key, data)


@pytest.mark.parametrize(
    ("store", "word"),
    [(IgnoresIfNoneMatch(), "If-None-Match"), (IgnoresIfMatch(), "If-Match"), (KeepsDeletedNamesTaken(), "deleted")],
)
def test_a_store_that_does_not_honour_conditions_is_incapable_and_the_reason_is_named(store: MemoryStore, word: str):
    outcome = probe(store, "__probe")
    assert isinstance(outcome, Incapable)
    assert word in outcome.reason
    assert list(store.list("")) == []


def test_a_good_store_is_capable_with_six_requests_and_nothing_is_left(tmp_path: Path):
    store = FaultStore(MemoryStore())
    assert probe(store, "__probe") == Capable()
    verbs = [each.verb for each in store.requests]
    assert verbs == ["create", "create", "replace", "delete", "create", "delete"]
    assert list(store.list("")) == []
    local = open_store(tmp_path / "root")
    assert probe(local, "__probe") == Capable()
    assert list((tmp_path / "root").iterdir()) == []


def test_a_store_that_knows_no_conditional_writes_is_incapable():
    store = FaultStore(MemoryStore(), [Rule(Refuse(StorageClass.UNSUPPORTED), verb="create", times=99)])
    assert isinstance(probe(store, "__probe"), Incapable)


def test_a_store_that_says_no_for_another_reason_proves_nothing_and_is_not_asked_again():
    store = FaultStore(MemoryStore(), [Rule(Refuse(StorageClass.DENIED), verb="create", times=99)])
    assert probe(store, "__probe") == Unproven(StorageClass.DENIED, definite=True)
    assert store.count("create") == 1


@pytest.mark.parametrize("fault", [LoseBefore(), LoseAfter(), Throttle(), FailCondition()])
@pytest.mark.parametrize("ordinal", [1, 2, 3, 5])
def test_a_fault_that_passes_does_not_condemn_a_store(fault: Fault, ordinal: int):
    inner = MemoryStore()
    store = FaultStore(inner, [Rule(fault, ordinal=ordinal)])
    assert probe(store, "__probe") == Capable()
    assert list(inner.list("")) == []


def test_a_store_that_never_answers_is_unproven_after_three_attempts():
    store = FaultStore(MemoryStore(), [Rule(LoseBefore(), verb="create", times=99)])
    assert probe(store, "__probe") == Unproven(StorageClass.TIMEOUT, definite=False)
    assert store.count("create") == ATTEMPTS
    assert len({each.key for each in store.requests}) == ATTEMPTS
