"""Random histories of several writers on one root under storage faults, and what must hold whatever happened.

Each writer is an engine of its own (as if in a process of its own) whose requests go through a script of faults. A write
says "done", "not done" or "unknown"; afterwards the faults are healed, late requests land, and a fresh engine judges what
storage holds by the invariants of storage.md 9.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import open_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import (
    AlreadyExists,
    BranchNotFound,
    ConstraintViolation,
    KeyConflict,
    NotAvailable,
    OmnigraphError,
    OutcomeUnknown,
    ReadSetConflict,
    StorageClass,
    StorageFailure,
)
from omnigraph.manifest.chain import NoHead, read_version, resolve_head
from omnigraph.store.faults import (
    Damage,
    FailCondition,
    Fault,
    FaultStore,
    LandLate,
    LoseAfter,
    LoseBefore,
    Refuse,
    Rule,
    Throttle,
)
from omnigraph.store.open import open_store
from support.clocks import SteppingClock

SCHEMA = "node Port { code: String @key  mark: String? } edge Ferry: Port -> Port { mark: String? }"

_DEFINITE = (ReadSetConflict, KeyConflict, ConstraintViolation, BranchNotFound, AlreadyExists, NotAvailable)
_ON_CREATE: tuple[Fault, ...] = (
    LoseBefore(),
    LoseAfter(),
    Throttle(),
    FailCondition(),
    Refuse(),
    Refuse(StorageClass.CONNECTION, sent=False),
    LandLate(after=2),
    LandLate(after=9),
)
_ON_ANY: tuple[Fault, ...] = (
    Throttle(),
    LoseAfter(),
    Refuse(StorageClass.SERVER_ERROR),
    Damage("half"),
    Damage("empty"),
)


@dataclass
class Told:
    """What writers were told of their writes, by the mark each one left."""

    done: dict[str, str] = field(default_factory=dict[str, str])  # mark -> commit
    refused: set[str] = field(default_factory=set[str])
    unknown: set[str] = field(default_factory=set[str])


class Writer:
    def __init__(self, root: str, number: int) -> None:
        self.name = f"w{number}"
        self.store = FaultStore(open_store(root))
        self.clock = SteppingClock(now_us=2_000_000_000_000_000 + number)
        self.graph = Graph(Context(open_core(root, store=self.store, clock=self.clock), actor=self.name))


class History:
    """One run from one seed."""

    def __init__(self, root: str, seed: int) -> None:
        self._draw = random.Random(seed)
        self._root = root
        self.told = Told()
        self.steps: list[str] = []
        first = omnigraph.init(root, schema=SCHEMA)
        first.mutate('query m() { insert Port { code: "A" } insert Port { code: "B" } }')
        self._writers = [Writer(root, number) for number in range(self._draw.randint(2, 4))]

    def run(self, steps: int) -> None:
        for number in range(steps):
            writer = self._draw.choice(self._writers)
            self._maybe_fault(writer)
            self._write(writer, f"{writer.name}-{number}")
            if self._draw.random() < 0.2:
                writer.clock.advance(self._draw.choice([1.0, 700.0]))
        for writer in self._writers:
            writer.store.heal()
            writer.store.release()

    def _maybe_fault(self, writer: Writer) -> None:
        if self._draw.random() < 0.55:
            fault = self._draw.choice(_ON_CREATE)
            times = self._draw.choice([1, 1, 2, 5, 6])
            writer.store.add(Rule(fault, verb="create", key="__manifest/", times=times))
        elif self._draw.random() < 0.3:
            ordinal = len(writer.store.requests) + self._draw.randint(1, 6)
            fault = self._draw.choice(_ON_ANY)
            verb = "read" if isinstance(fault, Damage) else None
            writer.store.add(Rule(fault, ordinal=ordinal, verb=verb))

    def _write(self, writer: Writer, mark: str) -> None:
        kind = self._draw.choice(["port", "port", "ferry", "ferry", "update", "load", "fork", "merge"])
        graph = writer.graph
        try:
            commit = self._attempt(graph, kind, mark)
        except OutcomeUnknown as error:
            must(error.effects == "unknown", "an unknown outcome said otherwise")
            self.told.unknown.add(mark)
            said = "unknown"
        except StorageFailure as error:
            must(error.effects in (None, "none"), f"{kind}: a failed request said {error.effects}")
            self.told.refused.add(mark)
            said = f"failed ({error.cls}, {error.phase})"
        except _DEFINITE as error:
            self.told.refused.add(mark)
            said = f"refused ({error.code})"
        else:
            said = f"done {commit}"
            if commit is not None and kind not in ("fork", "merge"):
                self.told.done[mark] = commit
        writer.store.heal()
        self.steps.append(f"{writer.name} {kind} {mark}: {said}")

    def _attempt(self, graph: Graph, kind: str, mark: str) -> str | None:
        result: object
        match kind:
            case "port":
                result = graph.mutate("query m($m: String) { insert Port { code: $m, mark: $m } }", m=mark)
            case "ferry":
                text = 'query m($m: String) { insert Ferry { from: "A", to: "B", mark: $m } }'
                result = graph.mutate(text, m=mark)
            case "update":
                text = 'query m($m: String) { update Port set { mark: $m } where code = "A" insert Ferry { from: "A", to: "B", mark: $m } }'
                result = graph.mutate(text, m=mark)
            case "load":
                rows = [{"edge": "Ferry", "from": "B", "to": "A", "data": {"mark": mark}}]
                result = graph.load(rows, mode="append", progress=False)
            case "fork":
                graph.branches.create(f"b/{mark}")
                return None
            case _:
                return None
        commit = getattr(result, "commit", None)
        return None if commit is None else str(commit)


def must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def judge(root: str, told: Told) -> None:
    """Raises AssertionError with what storage holds if an invariant is broken."""
    graph = omnigraph.open(root)
    log = [commit.graph_commit_id for commit in graph.commits.list()]
    assert len(log) == len(set(log)), "a commit stands twice in the log"
    ports = graph.query("query q() { match { $p: Port } return { $p.code as c, $p.mark as m } }")
    ferries = graph.query("query q() { match { $a $f:ferry $b } return { $f.mark as m } }")
    assert max(Counter(ports["c"]).values()) == 1, "two rows have one key"
    marks = Counter(row["m"] for row in ferries)
    marks.update(code for code in ports["c"] if code not in ("A", "B"))
    for mark, commit in told.done.items():
        assert marks[mark] == 1, f"{mark} was acknowledged and stands {marks[mark]} times"
        assert log.count(commit) == 1, f"the commit of {mark} is not in the log"
    for mark in told.refused:
        assert marks[mark] == 0, f"{mark} was refused and stands"
    for mark in told.unknown:
        assert marks[mark] <= 1, f"{mark} is unknown and stands {marks[mark]} times"
    strangers = set(marks) - set(told.done) - told.unknown
    assert not strangers, f"nobody wrote {strangers}"
    _judge_chain(root, graph)


def _judge_chain(root: str, graph: Graph) -> None:
    store, core = open_store(root), graph.core
    head = resolve_head(store, "main", clock=core.clock)
    assert not isinstance(head, NoHead)
    expected = None
    for version in range(head.version, 0, -1):
        stored = read_version(store, "main", version)
        assert stored is not None, f"version {version} is missing"
        assert expected in (None, stored.sha256), f"version {version} is not what the next one follows"
        base = stored.manifest.base
        assert (base is None) == (version == 1)
        expected = None if base is None else base.sha256
        for entry in stored.manifest.types.values():
            if entry.pin is not None:
                table = core.tables.open(entry.pin)
                assert table.rows == entry.rows, f"{entry.name} at {version}: {table.rows} rows, {entry.rows} said"


def go_on(history: History, root: str) -> None:
    """After the faults: every writer's next write succeeds, without anything being restarted."""
    for place, writer in enumerate(history._writers):
        mark = f"after-{place}"
        result = writer.graph.mutate("query m($m: String) { insert Port { code: $m, mark: $m } }", m=mark)
        assert result.commit is not None
        history.told.done[mark] = str(result.commit)
    judge(root, history.told)


def shown(history: History, root: str) -> str:
    """The steps, and what the store holds, for a failing run."""
    try:
        graph = omnigraph.open(root)
        log = "\n".join(f"  {c.graph_commit_id} {c.kind} by {c.actor_id}" for c in graph.commits.list())
    except OmnigraphError as error:
        log = f"  can't be opened: {error.code}"
    return "\n".join(["steps:", *(f"  {step}" for step in history.steps), "the log, newest first:", log])
