"""Schedules: an operation, the request of it that goes wrong, how, and what happens afterwards. Each has a number.

    number   = 1 OO w RR FF SS h     OO operation, w 1 if the writer owns the graph, RR the request, FF its fault,
                                     SS the fault of a later request (00 none), h what follows (see AFTER), and three
                                     more for each step in which later request it is (see AIMS)

A run is judged twice: when the writer has its answer, and when the faults have ended and writing has gone on. Numbers stay
what they are when operations or kinds are added; those of requests move if an operation sends other requests.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from faults.kinds import BY_NUMBER as KINDS_BY_NUMBER
from faults.kinds import KINDS, Kind, later_target
from faults.lab import HOUR, Answer, Definite, Done, Doubt, Lab, Stopped, explained
from faults.operations import BY_NUMBER as OPERATIONS_BY_NUMBER
from faults.operations import DELETION, KEY, LABEL, OPERATIONS, Operation
from faults.oracle import put
from faults.reading import check_branches, check_handle, check_value
from faults.truth import Held, label_of, require
from faults.worlds import LATER_US, NOTE, copied, world
from omnigraph.engine.maintenance.receipts import OptimizeResult
from omnigraph.errors import BranchNotFound, HistoryReclaimed, InvalidQuery, ReadSetConflict
from omnigraph.manifest.ids import CommitId
from omnigraph.store.base import Refused, Unknown
from omnigraph.store.faults import Recorded
from support.faulty import MANIFEST

REQUESTS_MAX = 99
"""Two digits."""
AIMS = ("right after it", "when it is next sent to be published", "at the next read-back")
"""Which request the second of two faults meets."""
AFTER = ("late requests land, then it is repeated", "it is repeated, then late requests land", "another writes first")


@dataclass(frozen=True)
class Schedule:
    operation: Operation
    owner: bool
    request: int  # of the undisturbed operation, from 1
    kind: Kind
    second: Kind | None = None
    after: int = 0
    aim: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.request <= REQUESTS_MAX:
            raise ValueError(f"request {self.request} of {self.operation.name} has no number of two digits")

    @property
    def number(self) -> int:
        second = 0 if self.second is None else self.second.number
        last = self.after + len(AFTER) * self.aim
        return int(
            f"1{self.operation.number:02}{int(self.owner)}{self.request:02}{self.kind.number:02}{second:02}{last}"
        )

    @property
    def name(self) -> str:
        second = "" if self.second is None else f", then {AIMS[self.aim]}: {self.second.name}"
        return (
            f"schedule {self.number}: {self.operation.name}, {'owner' if self.owner else 'no owner'},"
            f" request {self.request}: {self.kind.name}{second}; {AFTER[self.after]}"
        )


def of_number(number: int) -> Schedule:
    """The schedule of a number. Raises KeyError, ValueError for what is none."""
    text = str(number)
    if len(text) != 11 or text[0] != "1":
        raise ValueError(f"{number} is no number of a schedule")
    second = int(text[8:10])
    aim, after = divmod(int(text[10]), len(AFTER))
    return Schedule(
        OPERATIONS_BY_NUMBER[int(text[1:3])],
        text[3] == "1",
        int(text[4:6]),
        KINDS_BY_NUMBER[int(text[6:8])],
        KINDS_BY_NUMBER[second] if second else None,
        after,
        aim,
    )


# --- all of them


@cache
def trace(operation: Operation, owner: bool, folder: str) -> tuple[Recorded, ...]:
    """The requests of the operation when nothing goes wrong."""
    lab = begun(operation, owner, folder, "trace")
    try:
        answers = operation.act(lab, KEY)
        for label, answer in answers.items():
            require(isinstance(answer, Done), f"{operation.name}: {label} fails without a fault: {answer}")
        return tuple(lab.store.requests[lab.first :])
    finally:
        shutil.rmtree(lab.root)


def singles(folder: str, operations: Sequence[Operation] = OPERATIONS) -> Iterator[Schedule]:
    """Every operation, request and kind."""
    for operation in operations:
        for owner in (False, True):
            for request, recorded in enumerate(trace(operation, owner, folder), start=1):
                for kind in KINDS:
                    if kind.applies(operation, recorded.verb, recorded.key):
                        for after in range(len(AFTER) if kind.doubtful and not operation.reads else 1):
                            yield Schedule(operation, owner, request, kind, None, after)


def firsts(folder: str, operations: Sequence[Operation] = OPERATIONS) -> Iterator[Schedule]:
    """The faults of a request that publishes which another may follow."""
    for operation in operations:
        for owner in (False, True):
            for request, recorded in enumerate(trace(operation, owner, folder), start=1):
                if _publishes(recorded):
                    for kind in KINDS:
                        once = kind.times == 1 and not kind.then_silence
                        if once and kind.applies(operation, recorded.verb, recorded.key):
                            yield Schedule(operation, owner, request, kind)


@lru_cache(1)
def following(first: Schedule, folder: str) -> tuple[Recorded, ...]:
    """The requests that come after a fault, when nothing else goes wrong."""
    lab = begun(first.operation, first.owner, folder, "following")
    ordinal = lab.first + first.request
    before = sum(map(_publishes, trace(first.operation, first.owner, folder)[: first.request - 1]))
    try:
        lab.store.add(*first.kind.rules(lab, first.operation, ordinal, before))
        first.operation.act(lab, KEY if first.operation.keyed else None)
        lab.joined()
        return tuple(lab.store.requests[ordinal:])
    finally:
        shutil.rmtree(lab.root)


def seconds(first: Schedule, folder: str) -> Iterator[Schedule]:
    """Each fault that can meet a request after this one. A trial says which those are: most faults leave none."""
    sent = following(first, folder)
    met: set[int] = set()
    for aim in range(len(AIMS)):
        target = later_target(sent, aim)
        if target is None or target.ordinal in met:
            continue
        met.add(target.ordinal)
        for second in KINDS:
            if second.needs == "own" or (aim and second.then_silence):
                continue  # a thread can't wait for its own publication; silence begins right after the first fault
            if second.applies(first.operation, target.verb, target.key):
                for after in range(len(AFTER) if second.doubtful or first.kind.doubtful else 1):
                    yield Schedule(first.operation, first.owner, first.request, first.kind, second, after, aim)


def pairs(folder: str, operations: Sequence[Operation] = OPERATIONS) -> Iterator[Schedule]:
    """Two faults: of a request that publishes, and of a later one."""
    for first in firsts(folder, operations):
        yield from seconds(first, folder)


# --- one of them

_runs = iter(range(1_000_000_000))


def begun(operation: Operation, owner: bool, folder: str, name: str) -> Lab:
    made = world(operation.world, folder)
    root = copied(made.root, f"{made.root}-{name}-{next(_runs)}")
    lab = Lab(root, made, owner=owner, cold=operation.cold)
    lab.deeds.update(operation.deeds)
    return lab


def run(schedule: Schedule, folder: str) -> bool:
    """Run it on a copy of its world; whether each of its faults met a request. Raises Violation with the story."""
    lab = begun(schedule.operation, schedule.owner, folder, str(schedule.number))
    answers: dict[str, Answer] = {}
    try:
        with explained(lab, schedule.name, answers):
            run = Run(lab, schedule, answers)
            run.run()
            return run.met_all()
    finally:
        shutil.rmtree(lab.root)


class Judged:
    """The course of every run: the operation under faults, safety, then the faults end and writing goes on."""

    def __init__(
        self, lab: Lab, operation: Operation, answers: dict[str, Answer], *, after: int = 0, interrupts: bool = False
    ) -> None:
        self._operation = operation
        self._lab = lab
        self._answers = answers
        self._after = after
        self._interrupts = interrupts
        self._key = KEY if operation.keyed else None
        self._began = {branch: chain[-1] for branch, chain in lab.held().chains.items()}

    def run(self) -> None:
        lab = self._lab
        self._disturb()
        self._answers.update(self._operation.act(lab, self._key))
        lab.joined()
        lab.answered_at = len(lab.store.requests)
        self._heal_faults()
        met = self._met()
        for label, answer in {**self._answers, **lab.own}.items():
            self._check_reason(label, answer, met)
            self._check_absorbed(label, answer)
        if self._operation.reads:
            self._check_read()
        else:
            self._check_written(self._answers, "when the writer has its answer")
        self._heal()

    # what a kind of run fills in

    def _disturb(self) -> None:
        """Arrange the faults."""
        raise NotImplementedError

    def _heal_faults(self) -> None:
        """No more faults."""
        raise NotImplementedError

    def _met(self) -> bool:
        """Whether any fault met a request."""
        raise NotImplementedError

    def _late(self) -> int:
        """Let the requests land that were held back; how many there were."""
        raise NotImplementedError

    def _check_absorbed(self, label: str, answer: Answer) -> None:
        """What re-issues and repeats within their bounds settle is settled."""

    # answers

    def _check_reason(self, label: str, answer: Answer, met: bool) -> None:
        """A refusal has its reason in what happened."""
        lab = self._lab
        if isinstance(answer, Definite) and not lab.rivals and not (self._interrupts and label != LABEL):
            allowed = answer.of_storage or answer.error.code == "server_draining"
            require(allowed and met, f"{label} is refused ({answer.error.code}: {answer.error}) without a reason")
        if isinstance(answer, Stopped):
            require(self._interrupts, f"{label} was interrupted by nobody")
        if isinstance(answer, Done) and isinstance(answer.value, OptimizeResult):
            slept = lab.clock.now_us() - LATER_US > 12 * HOUR * 1e6
            reason = answer.commit is not None or lab.rivals > 0 or slept
            require(reason, f"{label} indexed nothing, and nobody stood in its way")

    # what must hold

    def _check_written(self, answers: dict[str, Answer], when: str) -> None:
        if self._operation.reads:
            answers = {}
        found = self._lab.held()
        labels = found.labels()
        for label, answer in {**answers, **self._lab.own}.items():
            if label in self._operation.bare:
                times = self._bare(found, *self._operation.bare[label])
                if label == DELETION and isinstance(
                    answer, Done
                ):  # it asks for a state: another may have ended the life
                    times = max(times, int(self._ended_by_another(found)))
                self._check_times(label, answer, times, when)
                continue
            if label not in self._lab.deeds:
                continue
            times = labels[label]
            if self._anew(found):
                times = self._times_in_a_life(found, label, answer)
            self._check_times(label, answer, times, when)
            if isinstance(answer, Done) and answer.commit is not None:
                require(found.named(answer.commit) is not None, f"{label}: {answer.commit} is in no chain ({when})")
                if answers is self._answers:
                    self._check_life(found, answer.commit)

    def _check_times(self, label: str, answer: Answer, times: int, when: str) -> None:
        lab = self._lab
        twin = isinstance(lab.twin, Done) and not self._is_nothing(label, lab.twin) and label == LABEL
        match answer:
            case Done():
                expected = 0 if self._is_nothing(label, answer) else 1
                as_often = times == expected or self._undone_between(label)
                require(as_often, f"{label} was acknowledged and is there {times} times ({when})")
            case Definite():
                require(times == int(twin), f"{label} was refused and is there {times} times ({when})")
            case Doubt() | Stopped():
                require(int(twin) <= times <= 1, f"{label} is unknown and is there {times} times ({when})")

    def _undone_between(self, label: str) -> bool:
        """Whether others changed what this one makes after each time but the last: it takes no key and asks for a state (a
        schema, or tables with their indexes), so that a repeat has that made again.
        """
        commits = list(self._lab.held().commits())
        own = [each for each in commits if label_of(each) == label]
        if len(own) < 2 or own[0].kind not in ("schema", "optimize"):
            return False
        if own[0].kind == "schema":
            series = [[each for each in commits if each.kind == "schema"]]
        else:
            series = [[each for each in commits if type_id in each.touched] for one in own for type_id in one.touched]
        return not any(label_of(a) == label_of(b) == label for changes in series for a, b in pairwise(changes))

    def _anew(self, found: Held) -> bool:
        began, now = self._began.get(self._operation.branch), found.head(self._operation.branch)
        return began is not None and now is not None and began.manifest.life != now.manifest.life

    def _times_in_a_life(self, found: Held, label: str, answer: Answer) -> int:
        """A key is good for one life of its branch: a repeat in the next one is another write."""
        lives = Counter(
            v.manifest.life
            for v in found.chains[self._operation.branch]
            for commit in v.manifest.commits
            if label_of(commit) == label
        )
        require(max(lives.values(), default=0) <= 1, f"{label} is there twice in one life of its branch")
        commit = found.named(answer.commit) if isinstance(answer, Done) else None
        if commit is None or commit.id.branch != self._operation.branch:
            return max(lives.values(), default=0)
        return lives[found.chains[commit.id.branch][commit.id.version - 1].manifest.life]

    def _is_nothing(self, label: str, answer: Done) -> bool:
        """Nothing was to be published: a schema that is the accepted one."""
        return label not in self._operation.bare and answer.commit is None

    def _bare(self, found: Held, branch: str, state: str) -> int:
        """How many versions without commits came that nobody else made."""
        known = self._lab.foreign | self._lab.world_heads()
        return sum(
            v.manifest.branch == branch and v.manifest.state == state and (branch, v.manifest.version) not in known
            for v in found.bare()
        )

    def _ended_by_another(self, found: Held) -> bool:
        """Whether the life of the source that was merged ended, by whomever, at the commit that was merged."""
        chain = found.chains["side"]
        ended = next((place for place, v in enumerate(chain) if v.manifest.state == "deleted"), 0)
        return ended > 0 and ("side", ended + 1) in self._lab.foreign and bool(chain[ended - 1].manifest.commits)

    def _check_life(self, found: Held, commit_id: str) -> None:
        """A write that began in one life of its branch is never published in another."""
        commit = found.named(commit_id)
        began = self._began.get(self._operation.branch)
        if commit is None or began is None or began.manifest.state != "active" or not self._lab.sent_in_life:
            return
        if commit.id.branch != self._operation.branch:
            return
        version = found.chains[commit.id.branch][commit.id.version - 1]
        require(
            version.manifest.life == began.manifest.life,
            f"{commit_id} stands in life {version.manifest.life}, and its write began in life {began.manifest.life}",
        )

    def _check_fence(self) -> None:
        """Closed by the time of the answer, and a request was sent that may have landed: then nothing definite may be said."""
        lab = self._lab
        if lab.fence_open or self._operation.name == "grouped inserts":
            return  # of a group, some may have had their answer before
        doubtful = {
            each.key.split("/")[1]
            for each in lab.store.requests
            if each.verb == "create"
            and MANIFEST in each.key
            and (
                isinstance(each.outcome, Unknown)
                or (each.ordinal == lab.closed_at and not isinstance(each.outcome, Refused))
            )
        }
        for label, answer in self._answers.items():
            require(
                self._operation.publishes_on(label) not in doubtful or isinstance(answer, Doubt | Stopped),
                f"{label} is told {type(answer).__name__} with the fence closed and a request under way",
            )

    # reads

    def _check_read(self) -> None:
        lab = self._lab
        for label, answer in self._answers.items():
            if isinstance(answer, Definite):
                missing = isinstance(answer.error, BranchNotFound | InvalidQuery) and lab.rivals > 0
                reclaimed = isinstance(answer.error, HistoryReclaimed) and bool(lab.witness.removed)
                require(answer.of_storage or missing or reclaimed, f"{label} is refused: {answer.error.code}")
        check_value(lab, self._operation, self._answers)

    # afterwards

    def _heal(self) -> None:
        lab = self._lab
        self._check_fence()
        lab.fence_open = True
        doubtful = {
            label: answer.commit
            for label, answer in self._answers.items()
            if isinstance(answer, Doubt) and answer.commit is not None
        }
        first_look = self._look_up(doubtful)
        in_doubt = any(isinstance(answer, Doubt | Stopped) for answer in self._answers.values())
        if in_doubt:
            self._read_back()
        if self._after == 0:
            self._released()
            self._check_written(self._answers, "after late requests landed")
            if in_doubt or lab.rivals:
                self._read_back()
        elif self._after == 2:
            self._bystanders()
        repeated = self._repeat()
        self._write_on()
        self._released()
        self._check_written({**self._answers, **repeated}, "in the end")
        found = lab.held_anew()
        self._settled(found, doubtful, first_look)
        lab.judge(found, {self._operation.branch, "main"})
        self._read_back(exact=self._lives())

    def _released(self) -> None:
        count = self._late()
        if count:
            self._lab.note(f"{count} late requests land")

    def _look_up(self, doubtful: dict[str, str]) -> dict[str, str]:
        said: dict[str, str] = {}
        if not self._lab.held().chains:
            return dict.fromkeys(doubtful, "undetermined")  # the graph itself is in doubt: there is nobody to ask
        for label, commit in doubtful.items():
            outcome = self._lab.graph.commits.outcome(commit)
            said[label] = outcome.outcome
            there = self._lab.held().named(commit) is not None
            self._lab.note(f"the look-up says that {label} ({commit}) is {outcome.outcome}")
            require(outcome.outcome != "published" or there, f"{commit} is called published and is in no chain")
            require(outcome.outcome != "superseded" or not there, f"{commit} is called superseded and is in the chain")
        return said

    def _settled(self, found: Held, doubtful: dict[str, str], first_look: dict[str, str]) -> None:
        """What a look-up said stays so, and now it says something final."""
        last_look = self._look_up(doubtful)
        for label, commit in doubtful.items():
            there = found.named(commit) is not None
            if first_look[label] in ("published", "superseded"):
                require((first_look[label] == "published") == there, f"{commit} was called {first_look[label]}")
            final = ["published" if there else "superseded"]
            if self._anew(found):
                final.append("undetermined")  # the log of a new life says nothing of a version that came 12 hours late
            require(last_look[label] in final, f"{commit} is {last_look[label]}")

    def _bystanders(self) -> None:
        lab = self._lab
        branch = self._operation.branch
        head = lab.held().head(branch)
        target = branch if head is not None and head.manifest.state == "active" else "main"
        lab.rival(
            f"a note on '{target}'",
            put("Note", text=f"rival-{lab.rivals + 1}"),
            lambda graph, label: graph.mutate(NOTE, m=label, message=label, branch=target),
        )

    def _repeat(self) -> dict[str, Answer]:
        """What a client does next: the same request again, under its key."""
        lab, operation = self._lab, self._operation
        if operation.reads:
            return {}
        unsettled = [label for label, answer in self._answers.items() if not isinstance(answer, Done)]
        keyless = not operation.keyed and any(isinstance(self._answers[label], Doubt | Stopped) for label in unsettled)
        if not (unsettled or operation.keyed) or (keyless and not operation.again):
            return {}
        repeated = operation.act(lab, self._key)
        if lab.witness.removed and operation.bare and any(isinstance(each, Doubt) for each in repeated.values()):
            # a version without commits leaves no record: once those after its base are gone, the first try of an owner
            # that slept through it all can't be judged. It looks again after that, so the next one is.
            repeated = operation.act(lab, self._key)
        for label, answer in repeated.items():
            lab.note(f"{label} is repeated: {type(answer).__name__} {getattr(answer, 'commit', '') or ''}")
            first = self._answers.get(label)
            if isinstance(answer, Done):
                self._check_repeat(label, first, answer)
                continue
            require(isinstance(answer, Definite), f"{label}, repeated without faults, is {type(answer).__name__}")
            assert isinstance(answer, Definite)
            reasons = lab.rivals > 0 or keyless or (label in operation.bare and first is not None)
            require(not answer.of_storage and reasons, f"{label}, repeated without faults, is refused: {answer.error}")
        return {
            label: answer
            for label, answer in repeated.items()
            if isinstance(answer, Done) and not self._is_nothing(label, answer)
        }

    def _check_repeat(self, label: str, first: Answer | None, again: Done) -> None:
        if self._anew(self._lab.held()):
            return
        if isinstance(first, Done) and self._operation.keyed and first.commit is not None:
            require(
                again.commit == first.commit, f"{label} is answered {again.commit} under its key, first {first.commit}"
            )
        if isinstance(first, Doubt) and again.replayed and first.commit is not None and self._lab.twin is None:
            require(again.commit == first.commit, f"{label} is replayed as {again.commit}, attempted {first.commit}")

    def _lives(self) -> bool:
        """Whether the operation's branch is there to be written to."""
        head = self._lab.held().head(self._operation.branch)
        return head is not None and head.manifest.state == "active"

    def _write_on(self) -> None:
        """The next write succeeds, on the same handle; and on `main`, whatever became of the branch."""
        lab = self._lab
        branch = self._operation.branch
        head = lab.held().head(branch)
        for number, target in enumerate(dict.fromkeys([branch if self._lives() else "main", "main"])):
            label = f"next-{number}"
            lab.deeds[label] = put("Buoy", code=label, mark=label)
            text = "query m($m: String) { insert Buoy { code: $m, mark: $m } }"
            try:
                done = lab.graph.mutate(text, m=label, message=label, branch=target)
            except ReadSetConflict as error:
                # an owner that others made a branch anew behind its back learns it so, once
                require(
                    lab.owner and error.member == "branch_life", f"the next write on '{target}' is refused: {error}"
                )
                done = lab.graph.mutate(text, m=label, message=label, branch=target)
            except BranchNotFound:
                # nor does it know of a branch that they made behind its back, until an outcome shows it a newer version
                require(
                    lab.owner and lab.rivals > 0 and head is not None, f"'{target}' is live and can't be written to"
                )
                assert head is not None
                lab.graph.commits.outcome(str(CommitId(target, head.manifest.version, "0" * 16)))
                done = lab.graph.mutate(text, m=label, message=label, branch=target)
            require(done.commit is not None, "the next write publishes nothing")

    def _read_back(self, *, exact: bool = False) -> None:
        """What the handle reads is a state that the branch had, no older than what it was told, and never half of one; and
        the branches that it lists are those that live. Either may settle what is in doubt, so each is asked first in some.
        """
        if self._after:
            check_branches(self._lab, self._operation, self._answers)
        check_handle(self._lab, self._operation, self._answers, exact=exact)
        if not self._after:
            check_branches(self._lab, self._operation, self._answers)


class Run(Judged):
    """A schedule in which the faults are in front of the store."""

    def __init__(self, lab: Lab, schedule: Schedule, answers: dict[str, Answer]) -> None:
        interrupts = any("interrupted" in kind.name for kind in (schedule.kind, schedule.second) if kind is not None)
        super().__init__(lab, schedule.operation, answers, after=schedule.after, interrupts=interrupts)
        self._schedule = schedule
        self._trace = trace(schedule.operation, schedule.owner, os.path.dirname(lab.world.root))

    def _disturb(self) -> None:
        lab, schedule = self._lab, self._schedule
        ordinal = lab.first + schedule.request
        before = sum(_publishes(each) for each in self._trace[: schedule.request - 1])
        lab.store.add(*schedule.kind.rules(lab, self._operation, ordinal, before))
        if schedule.second is not None:
            lab.store.add(*schedule.second.later_rules(lab, self._operation, ordinal, schedule.aim))

    def met_all(self) -> bool:
        """Whether the request met its fault, and a later one the second, if there is one."""
        lab = self._lab
        place = lab.first + self._schedule.request - 1
        met = [each.fault is not None for each in lab.store.requests[place : lab.answered_at]]
        return any(met[:1]) and (self._schedule.second is None or any(met[1:]))

    def _heal_faults(self) -> None:
        self._lab.store.heal()

    def _met(self) -> bool:
        return any(each.fault is not None for each in self._lab.store.requests)

    def _late(self) -> int:
        return self._lab.store.release()

    def _check_absorbed(self, label: str, answer: Answer) -> None:
        schedule = self._schedule
        if schedule.second is None and schedule.kind.absorbed and _publishes(self._trace[schedule.request - 1]):
            require(isinstance(answer, Done), f"{label} is not done, though identical requests would have settled it")


def _publishes(request: Recorded) -> bool:
    return request.verb == "create" and MANIFEST in request.key
