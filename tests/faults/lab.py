"""One writer under observation, others beside it, and the world between them: what a schedule is run in.

The subject's own requests pass a script of faults; the others' do not. All share one clock that moves only when somebody
sleeps. Nothing here knows which operation runs or which faults come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

from faults.oracle import Deed
from faults.truth import Contents, Held, States, Violation, check_parents, held, judge, require
from faults.worlds import BEGAN_US, LATER_US, World, harmed
from omnigraph.engine.checked import CheckedQueries
from omnigraph.engine.core import GraphCore
from omnigraph.engine.graph import Graph
from omnigraph.engine.lanes import Lanes
from omnigraph.engine.opening import open_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import OmnigraphError, OutcomeUnknown, StorageFailure
from omnigraph.manifest.codec import from_bytes, to_bytes
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import version_key
from omnigraph.manifest.model import TablePin
from omnigraph.manifest.publish import FenceClosed, FenceOpen, FenceState
from omnigraph.query.residency import MemoryBudget, Residency
from omnigraph.store.base import Store
from omnigraph.store.faults import FaultStore
from omnigraph.store.open import open_store
from omnigraph.tables.store import TableStore
from support.clocks import SteppingClock

from faults.witness import Witness  # isort: skip

HOUR = 3600.0
_MEMORY_BYTES = 64 << 20
_CHECKED = CheckedQueries()
SUBJECT = "subject"


class Interrupted(BaseException):
    """The thread is stopped in the middle of a request, as by Ctrl-C."""


# --- what a writer is told


@dataclass(frozen=True)
class Done:
    """`commit` None: nothing was to be done, or the operation publishes no commit."""

    commit: str | None
    value: Any = None
    replayed: bool = False


@dataclass(frozen=True)
class Definite:
    """It did not happen."""

    error: OmnigraphError

    @property
    def of_storage(self) -> bool:
        return isinstance(self.error, StorageFailure)


@dataclass(frozen=True)
class Doubt:
    """It may have happened, under this commit id if it has one."""

    commit: str | None
    error: OmnigraphError | dict[str, Any]


@dataclass(frozen=True)
class Stopped:
    """Nobody was told anything."""


Answer = Done | Definite | Doubt | Stopped


def told(work: Callable[[], Any], *, reads: bool = False) -> Answer:
    """Run a piece of work and say what its caller learns. Raises Violation for an error that says too little."""
    try:
        value = work()
    except OutcomeUnknown as error:
        require(error.effects == "unknown", f"an unknown outcome says its effects are {error.effects}")
        require(not reads, "a read says that its outcome is unknown")
        return Doubt(error.graph_commit_id, error)
    except OmnigraphError as error:
        require(error.code != "internal", f"a fault of the program: {error}")
        if isinstance(error, StorageFailure) and error.effects == "unknown" and not reads:
            return Doubt(None, error)  # of a graph that is being made: nothing but a repeat settles it
        require(reads or error.effects == "none", f"{error.code} ({error}) says its effects are {error.effects}")
        return Definite(error)
    except Interrupted:
        return Stopped()
    return answer_of(value)


def answer_of(value: Any) -> Answer:
    """The answer that a result or a raised error is."""
    if isinstance(value, BaseException):
        caught = value

        def again() -> None:
            raise caught

        return told(again)
    commit = getattr(value, "commit", None)
    return Done(None if commit is None else commit.graph_commit_id, value, bool(getattr(value, "replayed", False)))


def shown(answer: Answer) -> str:
    match answer:
        case Done(commit, _, replayed):
            return f"done {commit or ''}{' (replayed)' if replayed else ''}"
        case Definite(error):
            more = f", {error.cls}, {error.phase}" if isinstance(error, StorageFailure) else ""
            return f"not done ({error.code}{more})"
        case Doubt(commit):
            return f"unknown {commit or ''}"
        case Stopped():
            return "interrupted"


# --- the laboratory


def by_itself(core: GraphCore) -> GraphCore:
    """The engine as if in a process on another host: no lane and no memory shared with the others."""
    core.lanes = Lanes()
    core.residency = Residency(MemoryBudget(_MEMORY_BYTES))
    core.checked = _CHECKED  # text checked against a schema, which is the same wherever it is done
    return core


class Lab:
    """One copy of a world. `rivals` counts what others did; `deeds` holds what each label means."""

    def __init__(self, root: str, world: World, *, owner: bool, cold: bool = False) -> None:
        self.root = root
        self.world = world
        self.owner = owner
        self.clock = SteppingClock(now_us=LATER_US)
        self.witness = Witness(self._plain_store(), self.clock, BEGAN_US)
        self.store = FaultStore(self._subject_store(), clock=self.clock)
        self.deeds: dict[str, Deed] = dict(world.deeds)
        self.rivals = 0
        self.foreign: set[tuple[str, int]] = set()  # versions without commits that others made
        self.sent_in_life = False  # something was sent to be published before the branch was made anew
        self.twin: Answer | None = None
        self.own: dict[str, Answer] = {}  # what other threads of the subject's process were told
        self.fence_open = True
        self.closed_at = 0  # the request during which the fence closed
        self.notes: list[str] = []
        self._beside: list[threading.Thread] = []
        self._wrong: list[BaseException] = []
        self._other: Graph | None = None
        self._held: tuple[int, Held] | None = None
        _versions_of(world)
        self._seen = dict(world.manifests)
        self._core: GraphCore | None = None if cold else self._opened()
        self.first = len(self.store.requests)
        self.answered_at: int | None = None  # so many requests had been sent when the operation ended

    # the stores

    def _plain_store(self) -> Store:
        """What lies below everything."""
        return open_store(self.root)

    def _subject_store(self) -> Store:
        """What the subject's requests reach, if they reach it."""
        return self.witness

    # the subject

    def _opened(self) -> GraphCore:
        core = open_core(self.root, store=self.store, clock=self.clock, owner=self.owner, fence=lambda: self.fence())
        return by_itself(core)

    @property
    def core(self) -> GraphCore:
        if self._core is None:
            self._core = self._opened()
        return self._core

    @property
    def graph(self) -> Graph:
        return self.handle(SUBJECT)

    def handle(self, actor: str) -> Graph:
        """A handle on the subject's engine."""
        return Graph(Context(self.core, actor=actor))

    def fence(self) -> FenceState:
        return FenceOpen() if self.fence_open else FenceClosed()

    def close_fence(self) -> None:
        self.note("the fence closes")
        self.fence_open = False
        self.closed_at = len(self.store.requests)

    def begin_beside(self, label: str, work: Callable[[], Any]) -> None:
        """Another thread of the subject's process: returns when it has ended, or waits for a publication under way."""

        def run() -> None:
            try:
                self.own[label] = told(work)
            except BaseException as error:  # it belongs to the run, which asks when it joins
                self._wrong.append(error)

        lanes = self.core.lanes
        waiting = lanes.waiting("main")
        thread = threading.Thread(target=run, daemon=True)
        self._beside.append(thread)
        thread.start()
        while thread.is_alive() and lanes.waiting("main") <= waiting:
            thread.join(0.001)

    def joined(self) -> None:
        """Returns when the other threads of the subject's process have ended."""
        for thread in self._beside:
            thread.join(60)
            require(not thread.is_alive(), "another thread of the same process never ends")
        for error in self._wrong:
            raise error

    # the others

    def beside(self) -> Lab:
        """Another process with the subject's name, whose requests all succeed."""
        beside = copy(self)
        beside._core = by_itself(open_core(self.root, store=self.witness, clock=self.clock))
        return beside

    @property
    def other(self) -> Graph:
        """Another process, whose requests all succeed."""
        if self._other is None:
            core = open_core(self.root, store=self.witness, clock=self.clock)
            by_itself(core)
            self._other = Graph(Context(core, actor="other"))
        return self._other

    def note(self, line: str) -> None:
        self.notes.append(f"[{self.clock.boot_seconds():.1f}] {line}")

    def rival(self, what: str, deed: Deed, work: Callable[[Graph, str], Any]) -> None:
        """Another process writes, under a label of its own. A refusal is an answer like any other."""
        self.rivals += 1
        label = f"rival-{self.rivals}"
        self.deeds[label] = deed
        try:
            work(self.other, label)
        except OmnigraphError as error:
            self.note(f"another process: {what}: {error.code}")
        else:
            self.note(f"another process: {what}")

    def rival_branches(self, what: str, work: Callable[[], Any]) -> None:
        """Another process makes or deletes branches; the versions that it publishes so are its own."""
        self.sent_in_life = any(each.verb == "create" for each in self.store.requests[self.first :])
        before = {(v.manifest.branch, v.manifest.version) for v in self.held().bare()}
        self.rivals += 1
        try:
            work()
        except OmnigraphError as error:
            self.note(f"another process: {what}: {error.code}")
        else:
            self.note(f"another process: {what}")
        self.foreign |= {(v.manifest.branch, v.manifest.version) for v in self.held().bare()} - before

    # time and clean-up

    def sleep(self, seconds: float) -> None:
        self.note(f"{seconds / HOUR:.2f} hours pass")
        self.clock.advance(seconds)

    def clean_up(self, branch: str, *, spare: int | None = None) -> None:
        """Remove the versions of a branch that were superseded more than 24 hours ago, but `spare`."""
        chain = self.held().chains.get(branch, [])
        now = self.clock.boot_seconds()
        for version, following in pairwise(chain):
            number = version.manifest.version
            key, next_key = version_key(branch, number), version_key(branch, following.manifest.version)
            superseded = self.witness.landed.get(next_key, 0.0)
            if now - superseded > 24 * HOUR and number != spare and key not in self.witness.removed:
                self.witness.clean_up(key)
                self.note(f"clean-up removes {version.name}")

    def stray(self, branch: str, number: int) -> None:
        """Another sleeper's version lands under a number that was used and removed."""
        key = version_key(branch, number)
        removed = self.witness.removed.get(key)
        if removed is None:
            return
        manifest = from_bytes(removed, branch=branch, version=number)
        commits = tuple(
            replace(each, id=CommitId(branch, number, "f" * 16), idempotency=None, message="a stray")
            for each in manifest.commits
        )
        window = manifest.lineage.window
        lineage = replace(manifest.lineage, window=(*window[: len(window) - len(commits)], *commits))
        foreign = replace(manifest, nonce="f" * 32, commits=commits, lineage=lineage)
        self.witness.create(key, to_bytes(foreign))
        self.note(f"another sleeper's version lands as {branch}@{number}")

    # the truth

    def held(self) -> Held:
        """The chains as they are now, read again when something came or went."""
        changes = self.witness.changes
        if self._held is None or self._held[0] != changes:
            self._held = changes, held(self.witness, self.witness.removed, self._seen)
        return self._held[1]

    def held_anew(self) -> Held:
        return held(self.witness, self.witness.removed)

    def judge(self, found: Held, branches: set[str]) -> None:
        """Everything that does not depend on an answer. `branches`: whose rows are read though their head is as it was."""
        check_parents(found)
        lasting, world = self._lasting(), self.world
        contents = Contents(self.witness, TableStore(self.witness), world.rows if lasting else None, lasting)
        states = States(found, self.deeds, self.world.states)
        judge(found, states, contents, known=self.world_heads(), branches=branches)

    def _lasting(self) -> Collection[TablePin]:
        """The tables that were there at the beginning: their files stand as they did, each of them."""
        gone = harmed(self.world.root, self.root)
        require(not gone, f"files of tables that were there from the beginning are gone or changed: {gone}")
        return _pins_of(self.world)

    def world_heads(self) -> set[tuple[str, int]]:
        """The versions that were there at the beginning."""
        return _versions_of(self.world)

    def story(self) -> str:
        """What happened, and what the store holds."""
        lines = ["requests of the subject:"]
        for each in self.store.requests[self.first :]:
            fault = "" if each.fault is None else f"  <- {each.fault}"
            lines.append(f"  {each.ordinal - self.first} {each.verb} {each.key}: {each.outcome}{fault}")
        lines += ["events:", *(f"  {note}" for note in self.notes), "the store held:"]
        try:
            lines.append(self.held_anew().shown())
        except Violation as violation:
            lines.append(f"  no chain: {violation}")
            lines += [f"  {info.key} {info.size} bytes" for info in self.witness.list("__manifest")]
        return "\n".join(lines)


_versions: dict[str, set[tuple[str, int]]] = {}


def _versions_of(world: World) -> set[tuple[str, int]]:
    found = _versions.get(world.root)
    if found is None:
        begun = held(open_store(world.root), seen=world.manifests)
        found = _versions[world.root] = {(b, v.manifest.version) for b, chain in begun.chains.items() for v in chain}
        replay = States(begun, world.deeds, {})
        world.states.update({commit.id: replay.after(commit.id) for commit in begun.commits()})
    return found


@cache
def _pins_of(world: World) -> frozenset[TablePin]:
    """What its versions pin."""
    begun = held(open_store(world.root), seen=dict(world.manifests))
    versions = (version for chain in begun.chains.values() for version in chain)
    return frozenset(e.pin for v in versions for e in v.manifest.types.values() if e.pin is not None)


@contextmanager
def explained(lab: Lab, name: str, answers: dict[str, Answer]) -> Iterator[None]:
    """Whatever goes wrong inside is told with the whole story."""
    try:
        yield
    except Exception as wrong:  # an error that nobody expected is a violation too
        lines = "\n".join(f"  {label}: {shown(answer)}" for label, answer in answers.items())
        what = str(wrong) if isinstance(wrong, AssertionError) else f"{type(wrong).__name__}: {wrong}"
        raise Violation(f"{name}: {what}\nthe writers were told:\n{lines}\n{lab.story()}") from wrong
