"""Every kind of write, at every door, under every way in which its publication can go wrong (storage.md 4, interfaces.md 4).

What is told: whether it happened, what to do, and the evidence to do it with. Then that the same process, or the next
command, writes on without any repair, and that the write stands once in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

import omnigraph
import omnigraph.engine.opening
from omnigraph.ambient import SystemClock
from omnigraph.error_parts import ADVICE, ADVICE_WITHOUT_KEY
from omnigraph.errors import OmnigraphError, StorageClass
from omnigraph.store.base import Store
from omnigraph.store.faults import FailCondition, Fault, FaultStore, LandLate, LoseAfter, LoseBefore, Refuse, Rule
from omnigraph.store.open import open_store
from server.asgi import sound
from server.conftest import Served
from support.command_line import run_program
from support.doors import CODES, EVERY_WRITE, GRAPH, INSERT, Write, prepared

KEY = "k"
NEVER = 1_000_000
MERGED_AND_DELETED = next(write for write in EVERY_WRITE if write.name == "merge that deletes")


@dataclass(frozen=True)
class Told:
    """What came of a request. `number` is the exit code, or the status, of doors that have one."""

    body: Mapping[str, Any]
    number: int | None = None

    @property
    def failed(self) -> bool:
        return "code" in self.body


class Faults:
    """Every store that is opened from now on plays the same script."""

    def __init__(self) -> None:
        self._stores: list[FaultStore] = []
        self._rules: tuple[Rule, ...] = ()

    def open(self, uri: Any, **options: Any) -> Store:
        store = FaultStore(open_store(uri, **options), self._rules)
        self._stores.append(store)
        return store

    def script(self, *rules: Rule) -> None:
        self._rules = rules
        for store in self._stores:
            store.add(*rules)

    def heal(self) -> None:
        self._rules = ()
        for store in self._stores:
            store.heal()

    def release(self) -> int:
        return sum(store.release() for store in self._stores)


# --- the doors: one handle, one server, or a program for each command


class Embedded:
    name = "embedded"

    def __init__(self, root: Path) -> None:
        self._graph = omnigraph.open(root / GRAPH)

    def send(self, write: Write, key: str | None = KEY) -> Told:
        return _told(lambda: write.python(self._graph, key).to_dict())

    def insert(self, code: str, branch: str) -> Told:
        return _told(lambda: self._graph.on(branch).mutate(INSERT, c=code).to_dict())

    def outcome(self, commit_id: str) -> str:
        return self._graph.commits.outcome(commit_id).outcome

    def close(self) -> None:
        self._graph.close()


def _told(call: Callable[[], Mapping[str, Any]]) -> Told:
    try:
        return Told(call())
    except OmnigraphError as error:
        return Told(error.to_dict())


class CommandLine:
    name = "command line"

    def __init__(self, root: Path) -> None:
        self._root = root

    def send(self, write: Write, key: str | None = KEY) -> Told:
        return self._ran(*write.words(self._root, key))

    def insert(self, code: str, branch: str) -> Told:
        where = ("--store", str(self._root / GRAPH), "--branch", branch)
        return self._ran("mutate", "-e", INSERT, "--params", f'{{"c": "{code}"}}', *where, "--json")

    def outcome(self, commit_id: str) -> str:
        return self._ran("commit", "outcome", commit_id, "--store", str(self._root / GRAPH), "--json").body["outcome"]

    def _ran(self, *words: str) -> Told:
        ran = run_program(*words)
        return Told(ran.json, ran.code)

    def close(self) -> None:
        pass


class Http:
    name = "http"

    def __init__(self, root: Path) -> None:
        self._served = Served(root)

    def send(self, write: Write, key: str | None = KEY) -> Told:
        request = write.request(key)
        return self._answered(request.method, request.path, request.body, **request.headers)

    def insert(self, code: str, branch: str) -> Told:
        reply = sound(
            self._served.post("/graphs/atlas/mutate", {"query": INSERT, "params": {"c": code}, "branch": branch})
        )
        return Told(reply.json(), reply.status)

    def outcome(self, commit_id: str) -> str:
        return self._answered("GET", f"/graphs/atlas/commits/{commit_id}/outcome", b"").body["outcome"]

    def _answered(self, method: str, path: str, body: bytes, **headers: str) -> Told:
        reply = sound(self._served.send(method, path, headers=list(headers.items()), body=body))
        return Told(reply.json(), reply.status)

    def close(self) -> None:
        self._served.operations.finish()
        self._served.close()


Door = Embedded | CommandLine | Http
DOORS: tuple[type[Door], ...] = (Embedded, CommandLine, Http)


# --- the faults, and what each ends in


@dataclass(frozen=True)
class Case:
    """`ends`: as what. `cls`: of the last failure. `numbers`: exit code and status."""

    name: str
    fault: Fault
    times: int
    ends: Literal["done", "unknown", "refused"]
    numbers: tuple[int, int]
    cls: str | None = None
    action: str | None = None


CASES = (
    Case("lost for ever", LoseBefore(), NEVER, "unknown", (1, 500), "timeout", "reconcile"),
    Case("its answer is lost", LoseAfter(), 1, "done", (0, 200)),
    Case("landing late", LandLate(NEVER), NEVER, "unknown", (1, 500), "timeout", "reconcile"),
    Case("409, 3 times", FailCondition(), 3, "done", (0, 200)),
    Case("refused", Refuse(StorageClass.DENIED), 1, "refused", (1, 500), "denied", "recover"),
    Case("409 for ever", FailCondition(), NEVER, "unknown", (1, 500), None, "reconcile"),
    Case("not sent", Refuse(StorageClass.CONNECTION, sent=False), 1, "refused", (75, 503), "connection", "retry"),
)

REPEATED_FOR_NOTHING = ("schema apply", "optimize")
"""What is there already is not published again."""
ADVISED = {"schema apply": "apply the same text again", "optimize": "Run it again"}

FOR_EVERY_WRITE = 5
"""So many of them; the rest differ in class, status and exit code alone."""


@pytest.fixture(autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits: the pauses between the identical requests are shown elsewhere."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    monkeypatch.setattr(SystemClock, "sleep", lambda self, seconds: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Not a copy: what a process knows of a graph goes by its id."""
    prepared(tmp_path).close()
    return tmp_path


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    made = Faults()
    monkeypatch.setattr(omnigraph.engine.opening, "open_store", made.open)
    return made


@pytest.fixture(params=DOORS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> type[Door]:
    return request.param


@pytest.fixture
def door(kind: type[Door], root: Path, faults: Faults) -> Iterator[Door]:
    door = kind(root)
    yield door
    door.close()


def versions(root: Path) -> dict[str, int]:
    """The live branches in storage, each with its version, as a process of its own finds them."""
    return {each.name: each.graph_manifest_version for each in omnigraph.open(root / GRAPH).branches.list()}


def head(root: Path, branch: str) -> str | None:
    return omnigraph.open(root / GRAPH).branches.get(branch).head_commit_id


def codes(root: Path, branch: str) -> tuple[str, ...]:
    return tuple(omnigraph.open(root / GRAPH).on(branch).query(CODES).scalars())


def done_once(before: Mapping[str, int], write: Write, *, deleted: bool = True) -> dict[str, int]:
    """The versions when a write was done, once."""
    after = {**before, write.branch: before.get(write.branch, 0) + 1}
    gone = write.branch if not write.codes else "side" if write is MERGED_AND_DELETED and deleted else None
    return {branch: version for branch, version in after.items() if branch != gone}


def publication(write: Write, case: Case) -> Rule:
    return Rule(case.fault, verb="create", key=f"__manifest/{write.branch}/", times=case.times)


EVERY = [
    (kind, write, case)
    for kind in DOORS
    for write in EVERY_WRITE
    if kind is not Http or write.method is not None
    for case in (CASES if write is EVERY_WRITE[0] else CASES[:FOR_EVERY_WRITE])
]


@pytest.mark.parametrize(
    ("kind", "write", "case"), EVERY, ids=[f"{kind.name}: {write.name}: {case.name}" for kind, write, case in EVERY]
)
def test_a_write_says_what_became_of_it_and_the_next_one_succeeds(
    root: Path, faults: Faults, door: Door, write: Write, case: Case
) -> None:
    before, base = versions(root), head(root, write.built_on)
    done = done_once(before, write)
    faults.script(publication(write, case))
    told = door.send(write)
    faults.heal()
    check_number(door, told, case)
    attempted = None
    if case.ends == "done":
        assert not told.failed, told
    elif case.ends == "refused":
        check_refused(told, case)
    else:
        attempted = check_unknown(door, told, write, case, base)
    assert versions(root) == (done if case.ends == "done" else before)

    late = faults.release()
    landed = case.ends == "done" or late > 0
    assert (late > 0) == isinstance(case.fault, LandLate)
    check_repeated(door.send(write), write, landed=landed)
    assert versions(root) == done
    if write.codes:
        assert codes(root, write.branch) == write.codes
    if attempted is not None:
        assert door.outcome(attempted) == ("published" if landed else "superseded")
    following = door.insert("next", "main")
    assert not following.failed, following
    assert "next" in codes(root, "main")


def check_number(door: Door, told: Told, case: Case) -> None:
    if isinstance(door, CommandLine):
        assert told.number == case.numbers[0], told
    if isinstance(door, Http):
        assert told.number == case.numbers[1], told
        assert case.ends == "done" or told.body["status"] == told.number


def check_refused(told: Told, case: Case) -> None:
    body = told.body
    assert (body["code"], body["effects"], body["retry"]) == ("storage_failure", "none", case.action)
    assert body["storage_failure"] == {"class": case.cls, "phase": "publish"}
    if "command_outcome" in body:
        assert body["command_outcome"] == {"execution": "finished", "effects": "none", "action": case.action}


def check_unknown(door: Door, told: Told, write: Write, case: Case, base: str | None) -> str | None:
    """The commit that was attempted, if there was one."""
    body, evidence = told.body, told.body["outcome_unknown"]
    assert (body["code"], body["effects"], body["retry"]) == ("outcome_unknown", "unknown", "reconcile")
    assert (evidence["kind"], evidence["branch"]) == (write.kind, write.branch)
    assert evidence["base_commit_id"] == base
    assert (evidence["class"], evidence["phase"]) == (case.cls, "publish")
    assert evidence.get("idempotency_key") == (KEY if write.keyed else None)
    assert ("with this idempotency_key" in evidence["advice"]) == write.keyed
    assert ADVISED.get(write.name, "") in evidence["advice"]
    attempted = evidence["graph_commit_id"]
    assert (attempted is not None) == (write.kind == "commit")
    assert attempted is None or attempted.startswith(f"{write.branch}@")
    if isinstance(door, CommandLine):
        assert body["command_outcome"] == {"execution": "unknown", "effects": "unknown", "action": "reconcile"}
        assert body.get("idempotency_key") == (KEY if write.keyed else None)
    if isinstance(door, Http):
        assert evidence["lookup"] == (attempted and f"/graphs/atlas/commits/{attempted}/outcome")
        assert evidence["server_stopping"] is False
    return attempted


def check_repeated(again: Told, write: Write, *, landed: bool) -> None:
    """The same request once more, under its key if it takes one."""
    if write.keyed:
        assert not again.failed, again
        assert again.body.get("idempotent_replay", False) is landed
    elif landed and not write.codes:
        assert (again.body["code"], again.body["effects"]) == ("branch_not_found", "none")
    else:
        assert not again.failed, again
        assert write.name not in REPEATED_FOR_NOTHING or (again.body["commit"] is None) == landed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_merge_stands_whatever_becomes_of_the_deletion_after_it(
    root: Path, faults: Faults, door: Door, case: Case
) -> None:
    before, base = versions(root), head(root, "side")
    faults.script(Rule(case.fault, verb="create", key="__manifest/side/", times=case.times))
    told = door.send(MERGED_AND_DELETED)
    faults.heal()
    assert not told.failed, told
    assert told.number in (None, 0, 200)
    assert told.body["branch_deleted"] is (case.ends == "done")
    assert versions(root) == done_once(before, MERGED_AND_DELETED, deleted=case.ends == "done")
    if case.ends != "done":
        error = told.body["branch_delete_error_details"]
        assert (error["effects"], error["retry"]) == ("unknown" if case.ends == "unknown" else "none", case.action)
        evidence = error["outcome_unknown" if case.ends == "unknown" else "storage_failure"]
        assert (evidence["class"], evidence["phase"]) == (case.cls, "publish")
        if case.ends == "unknown":
            assert (evidence["kind"], evidence["branch"]) == ("branch_delete", "side")
            assert (evidence["base_commit_id"], evidence["graph_commit_id"]) == (base, None)
    faults.release()
    again = door.send(MERGED_AND_DELETED)
    assert (again.body["branch_deleted"], again.body["idempotent_replay"]) == (True, True)
    assert versions(root) == done_once(before, MERGED_AND_DELETED)
    assert not door.insert("next", "main").failed


def test_without_a_key_an_unknown_write_names_the_one_that_was_made_up_or_advises_to_ask(
    root: Path, faults: Faults, door: Door
) -> None:
    write = EVERY_WRITE[0]
    faults.script(publication(write, CASES[0]))
    evidence = door.send(write, None).body["outcome_unknown"]
    faults.heal()
    key = evidence.get("idempotency_key")
    assert (key is None) == isinstance(door, Embedded)
    assert evidence["advice"] == (ADVICE_WITHOUT_KEY if key is None else ADVICE)
    assert not door.send(write, key).failed
    assert codes(root, "main") == write.codes
