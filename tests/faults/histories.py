"""Random histories of several writers on one root under storage faults, and what must hold whatever happened.

Each writer is an engine of its own (as if in a process of its own) whose requests go through a script of faults; in every
fourth history they are threads of one that owns the root, as in a server. What each of them is told is kept by label;
afterwards the faults are healed, late requests land, and what storage holds is judged by replaying the chain on a model.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from faults.lab import (
    Answer,
    Definite,
    Done,
    Doubt,
    Interrupted,
    Stopped,
    answer_of,
    by_itself,
    shown,
    told,
)
from faults.operations import optimized
from faults.oracle import SCHEMA, Deed, accepted, also, gone, marked, nothing, only, put
from faults.places import Place, Way, happens
from faults.reading import rows_read, shown_types
from faults.truth import Contents, Held, States, Violation, check_parents, held, judge, label_of, require
from faults.witness import Witness
from omnigraph.engine.core import GraphCore
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init_core, open_core
from omnigraph.engine.reading.context import Context
from omnigraph.errors import OmnigraphError
from omnigraph.manifest.ids import CommitId
from omnigraph.tables.store import TableStore, new_session
from support.clocks import SteppingClock
from support.grouping import Together

_KINDS = (
    "port port note ferry leg update delete load merge-rows overwrite fork fork-load merge remove schema optimize"
    " crowd crowd repeat repeat look read"
).split()
_IN_A_CROWD = ("port", "port", "note", "ferry", "leg", "update", "load")
_NESTED = ("port", "note", "ferry", "update", "delete", "load", "schema", "optimize", "fork", "remove", "repeat")

Work = Callable[[Graph, str | None], Any]


class Writer:
    """One engine, or a handle on the one that all share."""

    def __init__(self, number: int, way: Way, core: GraphCore) -> None:
        self.name = f"w{number}"
        self.way = way
        self.core = core
        self.graph = Graph(Context(core, actor=self.name))


class History:
    """One run, drawn from `draw`. With `served` the writers are threads of one owner, else engines of their own; without
    `crowds` nothing is left to the order in which threads get their turn, so that the same draws give the same run.
    """

    def __init__(self, place: Place, draw: random.Random, *, served: bool, crowds: bool = True) -> None:
        self._draw = draw
        self._kinds = _KINDS if crowds else [kind for kind in _KINDS if kind != "crowd"]
        self._place = place
        self._clock = SteppingClock(now_us=place.began_us)
        self.witness = Witness(place.store(), self._clock, place.began_us)
        self.served = served
        self.steps: list[str] = []
        self.deeds: dict[str, Deed] = {}
        self.answers: dict[str, Answer] = {}
        self._works: dict[str, tuple[str, Work, str, str]] = {}  # label -> branch, work, key, writer's name
        self._keyless: set[str] = set()  # labels of what takes no key
        self._said: dict[str, str] = {}  # commit id -> what a look-up said that is final
        self._attempted: list[str] = []
        self._branches = ["main"]
        self._codes = ["A", "B"]
        self._count = 0
        self._nested = 0
        self._began(init_core(place.root, SCHEMA, store=self.witness, clock=self._clock))
        first = self._writer(0)
        more = range(1, self._draw.randint(2, 4))
        self.writers = [first, *(Writer(n, first.way, first.core) if served else self._writer(n) for n in more)]

    def _writer(self, number: int) -> Writer:
        way = self._place.way(self.witness, self._clock)
        core = open_core(self._place.root, store=way.store, clock=self._clock, owner=self.served)
        # with connections of its own: what is kept of the others must not spare it a request
        core.tables = TableStore(core.store, session=new_session(), local_sync="off", clock=self._clock)
        return Writer(number, way, by_itself(core))

    def _began(self, core: GraphCore) -> None:
        graph = Graph(Context(by_itself(core), actor="maker"))
        text = 'query m() { insert Port { code: "A" } insert Port { code: "B" } }'
        graph.mutate(text, message="beginning")
        self.deeds["beginning"] = also(put("Port", code="A"), put("Port", code="B"))
        self.answers["beginning"] = Done(graph.head.graph_commit_id)

    # --- steps

    def run(self, steps: int) -> None:
        for _ in range(steps):
            writer = self._draw.choice(self.writers)
            self._maybe_fault(writer)
            self._step(writer, self._draw.choice(self._kinds))
            writer.way.heal()
            if self._happens(0.2):
                self._clock.advance(self._draw.choice(self._place.jumps))
        for writer in self.writers:
            writer.way.heal()
            writer.way.release()

    def _happens(self, share: float) -> bool:
        return happens(self._draw, share)

    def _maybe_fault(self, writer: Writer) -> None:
        writer.way.disturb(self._draw)
        if self._happens(0.3):
            self._maybe_meanwhile(writer)

    def _maybe_meanwhile(self, writer: Writer) -> None:
        """Another writer's whole step in the middle of a request of this one, or this one is interrupted there."""
        first = self._happens(0.6)
        if self._happens(0.15):
            work: Callable[[], None] = _interrupted
        elif self.served:
            return  # a thread can't wait for another in the middle of its own publication
        else:
            other = self._draw.choice([each for each in self.writers if each is not writer])
            kind = self._draw.choice(_NESTED)
            work = lambda: self._nest(other, kind)  # noqa: E731
        writer.way.interpose(self._draw, work if first else None, None if first else work)

    def _nest(self, writer: Writer, kind: str) -> None:
        if self._nested:
            return
        self._nested += 1
        try:
            self._step(writer, kind)
        finally:
            self._nested -= 1

    def _step(self, writer: Writer, kind: str) -> None:
        self._count += 1
        label = f"{writer.name}-{self._count}"
        branch = self._draw.choice(self._branches) if self._happens(0.4) else "main"
        match kind:
            case "crowd":
                self._crowd(writer)
            case "repeat":
                self._repeat(writer)
            case "look":
                self._look(writer)
            case "read":
                self._read(writer, branch)
            case "fork":
                self._fork(writer, f"b{self._count}")
            case "remove":
                self._remove(writer)
            case _:
                branch, deed, work = self._write(kind, label, branch, writer)
                self._ask(writer, label, branch, deed, work)

    def _ask(self, writer: Writer, label: str, branch: str, deed: Deed, work: Work) -> None:
        key = f"k-{label}"
        self.deeds[label] = deed
        self._works[label] = branch, work, key, writer.name
        self._take(label, told(lambda: work(writer.graph, key)))

    def _take(self, label: str, answer: Answer) -> None:
        before = self.answers.get(label)
        self.steps.append(f"{'    ' * self._nested}{label} on '{self._works[label][0]}': {shown(answer)}")
        if isinstance(answer, Doubt) and answer.commit is not None:
            self._attempted.append(answer.commit)
        if isinstance(answer, Done) and answer.commit is not None:
            self._attempted.append(answer.commit)
        kept = isinstance(before, Done) and not isinstance(answer, Done)
        # a repeat that was refused takes nothing from an earlier doubt
        kept |= isinstance(before, Doubt | Stopped) and isinstance(answer, Definite)
        if not kept:
            self.answers[label] = answer

    # --- kinds of write

    def _write(self, kind: str, label: str, branch: str, writer: Writer) -> tuple[str, Deed, Work]:
        match kind:
            case "port":
                self._codes.append(label)
                text = "query m($m: String) { insert Port { code: $m, mark: $m } }"
                return branch, put("Port", code=label, mark=label), _mutation(text, label, branch)
            case "note":
                text = "query m($m: String) { insert Note { text: $m } }"
                return branch, put("Note", text=label), _mutation(text, label, branch)
            case "ferry" | "leg":
                name = kind.capitalize()
                text = f'query m($m: String) {{ insert {name} {{ from: "A", to: "B", mark: $m }} }}'
                return branch, put(name, **{"from": "A", "to": "B", "mark": label}), _mutation(text, label, branch)
            case "update":
                text = 'query m($m: String) { update Port set { mark: $m } where code = "A" insert Note { text: $m } }'
                return branch, also(marked("A", label), put("Note", text=label)), _mutation(text, label, branch)
            case "delete":
                code = self._draw.choice(self._codes[2:]) if len(self._codes) > 2 else "none"
                return (
                    branch,
                    gone(code),
                    _mutation(f'query m() {{ delete Port where code = "{code}" }}', label, branch),
                )
            case "schema":
                self._keyless.add(label)
                return branch, *_schema(label, branch, writer)
            case "optimize":
                self._keyless.add(label)
                return branch, nothing, lambda graph, key: optimized(graph, label, branch)
            case "merge":
                source = self._draw.choice(self._branches)
                delete = self._happens(0.5)
                return (
                    "main",
                    nothing,
                    lambda graph, key: graph.branches.merge(
                        source, "main", delete_branch=delete, message=label, idempotency_key=key
                    ),
                )
            case "fork-load":
                name = self._draw.choice([f"b{self._count}", *self._branches[1:]])
                if name not in self._branches:
                    self._branches.append(name)
                return name, *self._load(label, name, "append", from_="main")
            case "load":
                return branch, *self._load(label, branch, "append")
            case "merge-rows":
                return branch, *self._load(label, branch, "merge")
            case "overwrite":
                rows = [{"type": "Note", "data": {"text": label}}]
                return branch, only("Note", {"text": label}), _loaded(rows, "overwrite", label, branch)
            case _:
                raise AssertionError(kind)

    def _load(self, label: str, branch: str, mode: str, from_: str | None = None) -> tuple[Deed, Work]:
        self._codes.append(label)
        rows: list[dict[str, Any]] = [
            {"type": "Port", "data": {"code": label, "mark": label}},
            {"edge": "Ferry", "from": label, "to": "A", "data": {"mark": label}},
        ]
        deed = also(put("Port", code=label, mark=label), put("Ferry", **{"from": label, "to": "A", "mark": label}))
        if mode == "merge":
            rows.append({"type": "Port", "data": {"code": "B", "mark": label}})
            deed = also(deed, put("Port", code="B", mark=label))
        return deed, _loaded(rows, mode, label, branch, from_)

    # --- steps of other kinds

    def _crowd(self, writer: Writer) -> None:
        """Several threads of one engine, of which all but the first wait for its publication."""
        works: list[Callable[[], Any]] = []
        labels: list[str] = []
        for _ in range(self._draw.randint(2, 4)):
            self._count += 1
            label = f"{writer.name}-{self._count}"
            branch, deed, work = self._write(self._draw.choice(_IN_A_CROWD), label, "main", writer)
            self.deeds[label] = deed
            self._works[label] = branch, work, f"k-{label}", writer.name
            works.append(lambda work=work, label=label: work(writer.graph, f"k-{label}"))
            labels.append(label)
        done = Together(writer, lambda: told(works[0]), works[1:])
        self.steps.append(f"{'    ' * self._nested}together:")
        self._take(labels[0], done.first)
        for label, result in zip(labels[1:], done.results, strict=True):
            self._take(label, answer_of(result))

    def _repeat(self, writer: Writer) -> None:
        """The same request under the same key, through another engine, by the same client. Not a schema, nor an optimize:
        they take no key, and ask for a state, which others may have changed since.
        """
        keyed = [label for label in self._works if label not in self._keyless]
        unsettled = [label for label in keyed if not isinstance(self.answers.get(label), Done)]
        label = self._draw.choice(unsettled or keyed or [""])
        if not label or label not in self.answers:
            return
        _, work, key, name = self._works[label]
        before = self.answers[label]
        handle = Graph(Context(writer.core, actor=name))
        answer = told(lambda: work(handle, key))
        self.steps.append(f"{'    ' * self._nested}{writer.name} repeats {label}:")
        if isinstance(before, Done) and isinstance(answer, Done) and before.commit and answer.commit:
            same_life = self._life_of(before.commit) == self._life_of(answer.commit)
            require(
                answer.commit == before.commit or not same_life,
                f"{label} was {before.commit} and is answered {answer.commit} under its key",
            )
        self._take(label, answer)

    def _life_of(self, commit_id: str) -> tuple[str, int]:
        parsed = CommitId.parse(commit_id)
        chain = held(self.witness).chains[parsed.branch]
        return parsed.branch, chain[parsed.version - 1].manifest.life

    def _look(self, writer: Writer) -> None:
        if not self._attempted:
            return
        commit = self._draw.choice(self._attempted[-6:])
        answer = told(lambda: writer.graph.commits.outcome(commit), reads=True)
        if not isinstance(answer, Done):
            return
        said = answer.value.outcome
        there = held(self.witness).named(commit) is not None
        self.steps.append(f"{'    ' * self._nested}{writer.name} looks {commit} up: {said}")
        require(said != "published" or there, f"{commit} is called published and is in no chain")
        require(said != "superseded" or not there, f"{commit} is called superseded and is in the chain")
        if said != "undetermined":
            require(self._said.setdefault(commit, said) == said, f"{commit} is {said} and was {self._said[commit]}")

    def _read(self, writer: Writer, branch: str) -> None:
        answer = told(lambda: rows_read(writer.graph, branch), reads=True)
        if isinstance(answer, Done):
            found = held(self.witness)
            states = States(found, self.deeds, {}).of_chain(found.chains.get(branch, []))
            allowed = [shown_types(model) for model in states[-4:]]  # others may have written between its three queries
            self.steps.append(f"{'    ' * self._nested}{writer.name} reads '{branch}'")
            for name in ("Port", "Note", "Ferry"):
                seen = answer.value.get(name, ())
                require(any(seen == each.get(name, ()) for each in allowed), f"'{branch}': {name} is read as {seen}")

    def _fork(self, writer: Writer, name: str) -> None:
        source = self._draw.choice(self._branches)
        answer = told(lambda: writer.graph.branches.create(name, from_=source, idempotency_key=f"k-{name}"))
        self._branches.append(name)
        self.steps.append(f"{'    ' * self._nested}{writer.name} makes '{name}' from '{source}': {shown(answer)}")
        made = held(self.witness).head(name) is not None
        if isinstance(answer, Done):
            require(made, f"'{name}' was made and is not there")

    def _remove(self, writer: Writer) -> None:
        if len(self._branches) == 1:
            return
        name = self._draw.choice(self._branches[1:])
        answer = told(lambda: writer.graph.branches.delete(name))
        self.steps.append(f"{'    ' * self._nested}{writer.name} deletes '{name}': {shown(answer)}")
        head = held(self.witness).head(name)
        if isinstance(answer, Done) and not self._nested:
            require(head is not None, f"'{name}' was deleted and never was")

    # --- what must hold

    def judge(self) -> None:
        """Raises AssertionError if an invariant is broken."""
        found = held(self.witness)
        check_parents(found)
        contents = Contents(self.witness, TableStore(self.witness))
        judge(found, States(found, self.deeds, {}), contents)
        lives = _lives(found)
        for label, answer in self.answers.items():
            times = {life: n for (name, life), n in lives.items() if name == label}
            require(max(times.values(), default=0) <= 1, f"{label} is there twice in one life of a branch")
            match answer:
                case Done(commit):
                    require(commit is None or found.named(commit) is not None, f"{label}: {commit} is in no chain")
                case Definite():
                    require(not times, f"{label} was refused and is there")
                case Doubt() | Stopped():
                    pass
        for commit, said in self._said.items():
            there = found.named(commit) is not None
            require(there == (said == "published"), f"{commit} was called {said}")

    def go_on(self) -> None:
        """After the faults: what is in doubt is settled under its key, and every writer's next write succeeds, without
        anything being restarted.
        """
        for label, answer in list(self.answers.items()):
            if isinstance(answer, Doubt | Stopped) and label in self._works and label not in self._keyless:
                branch, work, key, name = self._works[label]
                if branch == "main":
                    handle = Graph(Context(self._draw.choice(self.writers).core, actor=name))
                    self._take(label, told(lambda work=work, handle=handle, key=key: work(handle, key)))
        for place, writer in enumerate(self.writers):
            label = f"after-{place}"
            self.deeds[label] = put("Buoy", code=label, mark=label)
            text = "query m($m: String) { insert Buoy { code: $m, mark: $m } }"
            try:
                done = writer.graph.mutate(text, m=label, message=label)
            except OmnigraphError as error:
                raise Violation(f"the next write of {writer.name} fails: {error.code} ({error})") from error
            assert done.commit is not None
            self.answers[label] = Done(done.commit.graph_commit_id)
        self.judge()

    def shown(self) -> str:
        """The steps, and what the store holds."""
        lines = ["steps:", *(f"  {step}" for step in self.steps), "the store held:"]
        try:
            lines.append(held(self.witness).shown())
        except Violation as violation:
            lines.append(f"  no chain: {violation}")
        return "\n".join(lines)


def _lives(found: Held) -> Counter[tuple[str, tuple[str, int]]]:
    """How often each label is in each life of each branch."""
    return Counter(
        (label_of(commit), (branch, version.manifest.life))
        for branch, chain in found.chains.items()
        for version in chain
        for commit in version.manifest.commits
    )


def _mutation(text: str, label: str, branch: str) -> Work:
    params = {"m": label} if "$m" in text else {}
    return lambda graph, key: graph.mutate(text, params, branch=branch, message=label, idempotency_key=key)


def _loaded(rows: list[dict[str, Any]], mode: Any, label: str, branch: str, from_: str | None = None) -> Work:
    return lambda graph, key: graph.load(
        rows, mode=mode, branch=branch, from_=from_, message=label, idempotency_key=key, progress=False
    )


def _schema(label: str, branch: str, writer: Writer) -> tuple[Deed, Work]:
    """One more type, on top of the text as the writer sees it."""
    try:
        before = writer.graph.on(branch).schema.source
    except (OmnigraphError, Interrupted):
        before = SCHEMA
    text = before + f"node {'T' + label.replace('-', '_')} {{ code: String @key }}\n"
    work: Work = lambda graph, key: graph.on(branch).schema.apply(text, allow_data_loss=True, message=label)  # noqa: E731
    return accepted(text), work


def _interrupted() -> None:
    raise Interrupted


def run_seed(place: Place, seed: int, steps: int) -> History:
    """The history of a seed; in every fourth the writers are threads of one owner."""
    try:
        return judged(History(place, random.Random(seed), served=seed % 4 == 3), place.names.format(seed), steps)
    finally:
        place.close()


def judged(history: History, name: str, steps: int) -> History:
    """Run it, and judge it before and after writing went on. Raises Violation with the story."""
    try:
        history.run(steps)
        history.judge()
        history.go_on()
    except Exception as wrong:  # an error that nobody expected is a violation too
        what = str(wrong) if isinstance(wrong, AssertionError) else f"{type(wrong).__name__}: {wrong}"
        raise Violation(f"{name}: {what}\n{history.shown()}") from wrong
    return history


__all__ = ["History", "Writer", "judged", "run_seed"]
