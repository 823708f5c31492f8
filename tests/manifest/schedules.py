"""Every schedule of a few writers: requests that are lost, late, doubled, refused, crashes, sleeps, in every order.

One thread, no real time. A run asks `Choices` at every fork of the way (who goes next, what happens to this request);
`every_schedule` walks through all answers. A schedule's number is the list of its choices, so any one can be run alone.

The world knows the truth: which objects lie in the chain, and which are strays that were created under a number that
had been used and cleaned up. Writers know only what they are answered.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

from manifest.samples import first_version, follow, fork, head
from omnigraph.errors import StorageClass
from omnigraph.manifest.builder import Built, deletion
from omnigraph.manifest.chain import HeadState, KnownHead, StoredVersion
from omnigraph.manifest.codec import digest, from_bytes, to_bytes
from omnigraph.manifest.keys import parse_version_key
from omnigraph.manifest.model import Manifest
from omnigraph.manifest.publish import (
    Absent,
    CheckBase,
    CheckFence,
    Conflict,
    Create,
    FenceClosed,
    FenceOpen,
    Log,
    NotPublished,
    OutcomeUnknown,
    Pause,
    Publication,
    Published,
    ReadBack,
    ReadClock,
    ResolveHead,
    SearchLog,
    Stands,
    Unreadable,
)
from omnigraph.store.base import Created, Exists, Refused, Unknown

BRANCH = "review"
OTHERS = 99
MINUTE, HOUR = 60.0, 3600.0
Publish = Callable[[Publication], Generator[Any, Any, Any]]


class Violation(AssertionError):
    """An invariant of the storage chapter does not hold."""


class Choices:
    """Answers given by the schedule's number, then the first answer everywhere; remembers what could have been said."""

    def __init__(self, number: tuple[int, ...] = ()) -> None:
        self._number = number
        self.taken: list[int] = []
        self._widths: list[int] = []

    def pick(self, width: int) -> int:
        if width == 1:
            return 0
        place = len(self.taken)
        choice = self._number[place] if place < len(self._number) else 0
        self.taken.append(choice)
        self._widths.append(width)
        return choice

    def following(self) -> tuple[int, ...] | None:
        """The next number; None after the last."""
        for place in range(len(self.taken) - 1, -1, -1):
            if self.taken[place] + 1 < self._widths[place]:
                return (*self.taken[:place], self.taken[place] + 1)
        return None


@dataclass(frozen=True)
class Setting:
    """What a suite of schedules allows."""

    name: str
    writers: int
    faults_max: int
    rebases_max: int = 1
    sleeps: tuple[tuple[str, float, int], ...] = ()  # what happens meanwhile, seconds, versions others publish
    fence: bool = False
    crash: bool = True
    create_faults: tuple[str, ...] = ("late", "answered twice", "refused", "not sent", "busy")
    act: Literal["commit", "delete", "create"] = "commit"


ASLEEP = (
    ("a minute passes, others publish twice", MINUTE, 2),
    ("11 minutes pass", 11 * MINUTE, 0),
    ("11 minutes pass, another publishes", 11 * MINUTE, 1),
    ("11 minutes pass, a new life begins", 11 * MINUTE, 2),
    ("13 hours pass", 13 * HOUR, 0),
    ("25 hours pass, others publish twice and clean up", 25 * HOUR, 2),
    ("25 hours pass, others publish three times and clean up", 25 * HOUR, 3),
    ("25 hours pass, a new life begins, and clean-up", 25 * HOUR, 2),
)
UNANSWERED = ("late",)
ODD = ("late", "busy")

SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("one-writer", writers=1, faults_max=3, fence=True),
        Setting("unanswered", writers=1, faults_max=6, crash=False, create_faults=UNANSWERED),
        Setting("two-writers", writers=2, faults_max=2, crash=False),
        Setting("two-that-crash", writers=2, faults_max=2, fence=True, create_faults=ODD),
        Setting("three-writers", writers=3, faults_max=1, rebases_max=0, create_faults=ODD),
        Setting("asleep", writers=1, faults_max=2, sleeps=ASLEEP, crash=False, create_faults=ODD),
        Setting("asleep-deleting", writers=1, faults_max=1, sleeps=ASLEEP, crash=False, act="delete"),
        Setting("asleep-creating", writers=1, faults_max=1, sleeps=ASLEEP, crash=False, act="create"),
        Setting("two-that-delete", writers=2, faults_max=2, act="delete"),
        Setting("two-that-create", writers=2, faults_max=2, act="create"),
    )
}
DEEPER = {
    setting.name: setting
    for setting in (
        Setting("three-writers-deeper", writers=3, faults_max=2, rebases_max=0, crash=False, create_faults=ODD),
    )
}
DEEPEST = {
    setting.name: setting
    for setting in (
        Setting("asleep-deeper", writers=1, faults_max=3, sleeps=ASLEEP, crash=False, create_faults=ODD),
        Setting("two-writers-deeper", writers=2, faults_max=3, fence=True),
    )
}
EVERY_SETTING = {**SETTINGS, **DEEPER, **DEEPEST}


def of_name(name: str) -> tuple[Setting, tuple[int, ...]]:
    """The setting and number of a schedule: `two-writers:0.1.3`. Raises KeyError, ValueError for what is none."""
    setting, _, number = name.partition(":")
    return EVERY_SETTING[setting], tuple(int(digit) for digit in number.split(".") if digit not in ("", "-"))


def every_run(setting: Setting, publish: Publish, first: tuple[int, ...] = ()) -> Iterator[World]:
    """Run all of them, in order, from a number on. Raises Violation with the story of the one that fails."""
    number: tuple[int, ...] | None = first
    while number is not None:
        choices = Choices(number)
        yield run(setting, publish, choices)
        number = choices.following()


def every_schedule(setting: Setting, publish: Publish) -> Iterator[tuple[int, ...]]:
    """As `every_run`; what is yielded is their numbers."""
    for world in every_run(setting, publish):
        yield tuple(world.choices.taken)


def run(setting: Setting, publish: Publish, choices: Choices) -> World:
    """One schedule, then the faults end: unknown writes are repeated under their keys, and all invariants must hold."""
    world = World(setting, publish, choices)
    try:
        world.act()
        world.heal()
    except Violation as violation:
        number = ".".join(map(str, choices.taken)) or "-"
        story = "\n  ".join(world.story)
        raise Violation(f"{violation}\nschedule {setting.name}:{number}\n  {story}\n{world.shown()}") from None
    return world


@lru_cache(maxsize=4_096)
def decoded(data: bytes, version: int) -> tuple[Any, str]:
    return from_bytes(data, branch=BRANCH, version=version), digest(data)


@lru_cache(maxsize=8_192)
def prepared(act: str, base_data: bytes, base_version: int, job: int, attempt: int) -> Built:
    """What a write wants to publish on this base."""
    manifest, sha256 = decoded(base_data, base_version)
    base = KnownHead(manifest, sha256, 0.0)
    if act == "delete":
        return deletion(base, nonce=f"write {job}")
    if act == "create":
        return fork(BRANCH, first_version().manifest, target=base, name=f"write {job}")
    return follow(base, job * 100 + attempt)


def job_of(manifest: Manifest) -> int:
    """Which write a version is."""
    if manifest.nonce.startswith("write "):
        return int(manifest.nonce.split()[1])
    return int(manifest.commits[-1].id.nonce, 16) // 100 if manifest.commits else OTHERS


@lru_cache(maxsize=2)
def beginning(act: str) -> Built:
    live = head(follow(head(fork(BRANCH, first_version().manifest)), OTHERS * 100))
    return deletion(live, nonce="others") if act == "create" else Built(live.manifest, to_bytes(live.manifest))


class World:
    """The store, the clock, and the truth."""

    def __init__(self, setting: Setting, publish: Publish, choices: Choices) -> None:
        self.setting = setting
        self.choices = choices
        self.boot = 10_000.0
        self.faults_left = setting.faults_max
        self.sleeps_left = 1 if setting.sleeps else 0
        self.faults: list[str] = []  # what went wrong, in the order in which it did
        self.story: list[str] = []
        start = beginning(setting.act)
        self.objects: dict[int, bytes] = {start.manifest.version: start.data}
        self.chain: dict[int, bytes] = dict(self.objects)
        self.created_at: dict[int, float] = {start.manifest.version: 0.0}
        self.late: list[tuple[int, bytes]] = []
        self.writers = [Writer(self, publish, job) for job in range(1, setting.writers + 1)]

    # --- the store

    @property
    def head_version(self) -> int:
        return max(self.chain)

    def stored(self, version: int) -> StoredVersion:
        manifest, sha256 = decoded(self.objects[version], version)
        return StoredVersion(manifest, sha256, round(self.boot * 1e6))

    def listed_head(self) -> KnownHead:
        stored = self.stored(max(self.objects))
        seen_at = self.boot + 0.001  # after it was asked for
        return KnownHead(stored.manifest, stored.sha256, self.boot, stored.stored_at, seen_at=seen_at)

    def land(self, version: int, data: bytes) -> bool:
        """Put-if-absent takes effect."""
        if version in self.objects:
            return False
        self.objects[version] = data
        if version == self.head_version + 1:
            self.chain[version] = data
            self.created_at[version] = self.boot
        else:
            self.story.append(f"    a stray lies at version {version}")
        return True

    def clean_up(self) -> None:
        """Remove every version that was superseded more than 24 hours ago."""
        for version in sorted(self.objects):
            superseded = self.created_at.get(version + 1)
            if version < self.head_version and superseded is not None and self.boot - superseded > 24 * HOUR:
                del self.objects[version]

    # --- the schedule

    def act(self) -> None:
        """Until every writer has its answer or is dead."""
        while busy := [writer for writer in self.writers if writer.result is None]:
            moves: list[tuple[str, Callable[[], None]]] = [(f"writer {writer.job}", writer.step) for writer in busy]
            moves += [
                (f"the late request for {version} lands", lambda late=(version, data): self._land_late(late))
                for version, data in dict.fromkeys(self.late)
            ]
            moves += [(f"writer {w.job}'s fence closes", w.close_fence) for w in busy if w.can_lose_its_fence]
            if self.sleeps_left:
                moves += [(what, lambda s=(what, t, n): self._sleep(*s)) for what, t, n in self.setting.sleeps]
            name, move = moves[self.choices.pick(len(moves))]
            if move not in [writer.step for writer in busy]:
                self.story.append(name)
            move()

    def _land_late(self, late: tuple[int, bytes]) -> None:
        self.late.remove(late)
        if not self.land(*late):
            self.story.append("    and meets a taken version")

    def _sleep(self, what: str, seconds: float, versions: int) -> None:
        """Everyone sleeps but others, who publish at the beginning; clean-up runs at the end."""
        self.sleeps_left -= 1
        self.faults.append(what)
        for number in range(versions):
            top = self.listed_head()
            if not top.live:
                built = fork(BRANCH, first_version().manifest, target=top, name=f"others {top.version}")
            elif "life" in what and number == 0:
                built = deletion(top, nonce=f"others {top.version}")
            else:
                built = prepared("commit", self.objects[top.version], top.version, OTHERS, number)
            self.land(built.manifest.version, built.data)
        self.boot += seconds
        self.clean_up()

    def heal(self) -> None:
        """The faults end. Late requests land, before, between or after the repeats of what ended unknown."""
        self.check("when all writers had their answers")
        later: list[tuple[int, bytes]] = []
        for late in dict.fromkeys(self.late):
            if self.choices.pick(2) == 0:
                self.story.append(f"the late request for {late[0]} lands before the repeats")
                self.land(*late)
            else:
                later.append(late)
        self.check("after late requests")
        for writer in self.writers:
            if isinstance(writer.result, OutcomeUnknown | str) and self.setting.act == "commit":
                writer.repeat_under_the_same_key()
        for late in later:
            if self.land(*late):
                self.story.append(f"the late request for {late[0]} lands after the repeats")
        self.check("in the end", healed=True)

    # --- the truth

    def lives_of_jobs(self) -> dict[int, list[int]]:
        """For each write the branch lives in which the chain holds it, once for each time."""
        found: dict[int, list[int]] = {writer.job: [] for writer in self.writers}
        for version, data in self.chain.items():
            manifest = decoded(data, version)[0]
            found.setdefault(job_of(manifest), []).append(manifest.life)
        return found

    def check(self, when: str, *, healed: bool = False) -> None:
        """The invariants at the end of the storage chapter, as far as they concern the chain."""
        lives = self.lives_of_jobs()
        repeated = healed and self.setting.act == "commit"
        for writer in self.writers:
            found = lives[writer.job]
            match writer.result:
                case Published():
                    self._require(
                        len(found) == 1, f"acknowledged write {writer.job} is in the chain {len(found)} times", when
                    )
                case NotPublished() | Conflict():
                    self._require(not found, f"refused write {writer.job} is in the chain {len(found)} times", when)
                case OutcomeUnknown() | str():
                    # a key is good for one life of the branch: a repeat in the next one is another write
                    self._require(len(found) == len(set(found)), f"unknown write {writer.job} is there twice", when)
                    self._require(
                        bool(found) or not repeated, f"write {writer.job} was repeated and is not there", when
                    )
                case None:
                    pass
        versions = sorted(self.chain)
        for below, above in pairwise(versions):
            base = decoded(self.chain[above], above)[0].base
            linked = above == below + 1 and base is not None and base.sha256 == digest(self.chain[below])
            self._require(linked, f"version {above} does not follow version {below}", when)

    def _require(self, holds: bool, what: str, when: str) -> None:
        if not holds:
            raise Violation(f"{what} ({when})")

    def shown(self) -> str:
        lines = ["the store held:"]
        for version, data in sorted(self.objects.items()):
            manifest = decoded(data, version)[0]
            kind = "chain" if self.chain.get(version) == data else "STRAY"
            job = job_of(manifest)
            whose = "others" if job == OTHERS else f"write {job}"
            lines.append(f"  version {version} ({kind}, life {manifest.life}, {manifest.state}): {whose}")
        removed = sorted(set(self.chain) - set(self.objects))
        lines.append(f"  cleaned up: {removed or 'nothing'}; still under way: {[version for version, _ in self.late]}")
        return "\n".join(lines)


@dataclass
class Writer:
    """One write: publishes, prepares again on a conflict, and ends with a result (`crashed` is one)."""

    world: World
    publish: Publish
    job: int
    result: Published | NotPublished | Conflict | OutcomeUnknown | str | None = None
    _attempt: int = 0
    _wish: Any = None
    _answer: Any = None
    _fence_closed: bool = False
    _allowed: bool = False
    _unknown_sends: int = 0
    _faulty_sends: int = 0
    _faulty_reads: int = 0
    _clock_read: float | None = None
    _steps: Generator[Any, Any, Any] = field(init=False)
    _publication: Publication = field(init=False)

    def __post_init__(self) -> None:
        self._begin(self.world.listed_head())

    def _begin(self, base: KnownHead) -> None:
        act = self.world.setting.act
        built = prepared(act, self.world.objects[base.version], base.version, self.job, self._attempt)
        self._attempt += 1
        self._publication = Publication(built.manifest, built.data, base, staged_at=self.world.boot)
        self._steps = self.publish(self._publication)
        self._wish = self._answer = None
        self._unknown_sends = self._faulty_sends = self._faulty_reads = 0

    def step(self) -> None:
        """Send the request that is wished for, or take in the answer. With sleeps the two are steps apart."""
        if self._wish is None:
            self._resume()
            if self.world.setting.sleeps or self.result is not None or self._wish is None:
                return
        self._execute()
        if not self.world.setting.sleeps and self.result is None:
            self._resume()

    def _resume(self) -> None:
        answer, self._answer = self._answer, None
        while True:
            try:
                wish = self._steps.send(answer)
            except StopIteration as done:
                self._finish(done.value)
                return
            match wish:
                case ReadClock():
                    answer = self._clock_read = self.world.boot
                case Pause(seconds):
                    answer, self.world.boot = None, self.world.boot + seconds
                case Log():
                    answer = None
                case CheckFence():
                    self._allowed = not self._fence_closed
                    answer = FenceOpen() if self._allowed else FenceClosed()
                case _:
                    self._wish = wish
                    return

    def close_fence(self) -> None:
        """The right to write is lost; the writer learns of it when it asks."""
        self.world.faults_left -= 1
        self.world.faults.append("the fence closes")
        self._fence_closed = True

    @property
    def can_lose_its_fence(self) -> bool:
        return self.world.setting.fence and self.world.faults_left > 0 and not self._fence_closed

    def _execute(self) -> None:
        wish, self._wish = self._wish, None
        match wish:
            case Create(key, data):
                parsed = parse_version_key(key)
                assert parsed is not None
                self._answer = self._create(parsed[1], data)
            case ReadBack(_, version):
                held = self._maybe(lambda: self.world.stored(version) if version in self.world.objects else Absent())
                self._told(f"reads version {version} back", held)
            case CheckBase(base):
                held = self._maybe(lambda: Stands() if base.version in self.world.objects else Absent())
                self._told(f"looks at version {base.version}", held)
            case ResolveHead():
                self._told("lists the head", self._maybe(self.world.listed_head))
            case SearchLog(lineage, commit):
                self._told("searches the log", self._maybe(lambda: any(r.id == commit.id for r in lineage.window)))

    def _told(self, what: str, answer: Any) -> None:
        self._answer = answer
        shown = f"version {answer.manifest.version}" if hasattr(answer, "manifest") else answer
        self.world.story.append(f"writer {self.job} {what}: {shown}")

    def _maybe(self, honest: Callable[[], Any]) -> Any:
        if self.world.faults_left and self.world.choices.pick(2):
            self.world.faults_left -= 1
            self.world.faults.append("a read that fails")
            self._faulty_reads += 1
            return Unreadable(StorageClass.SERVER_ERROR)
        return honest()

    def _create(self, version: int, data: bytes) -> Any:
        world = self.world
        self._checks_before_sending(data)
        names = ["answered"]
        if world.faults_left:
            names += [*world.setting.create_faults, *(["crash"] if world.setting.crash else [])]
        what = names[world.choices.pick(len(names))]
        if what != "answered":
            world.faults_left -= 1
            world.faults.append(what)
            self._faulty_sends += 1
        world.story.append(f"writer {self.job} sends version {version}: {what}")
        match what:
            case "answered":
                return Created() if world.land(version, data) else Exists()
            case "answered twice":  # two copies were sent; the answer is that of the second
                world.land(version, data)
                return Exists()
            case "busy":  # 409 while nothing is stored
                return Exists()
            case "refused":
                return Refused(StorageClass.DENIED)
            case "not sent":
                return Refused(StorageClass.CONNECTION, sent=False)
            case "crash":
                world.late.append((version, data))
                self.result = "crashed"
                return None
            case _:
                world.late.append((version, data))
                self._unknown_sends += 1
                return Unknown(StorageClass.TIMEOUT)

    def _checks_before_sending(self, data: bytes) -> None:
        if not self._allowed:
            raise Violation(f"writer {self.job} sends without an open fence")
        if self._clock_read is None or self._clock_read - self._publication.staged_at > 12 * HOUR:
            raise Violation(f"writer {self.job} sends what was staged more than 12 hours ago")
        self._clock_read, self._allowed = None, False

    def _finish(self, result: Any) -> None:
        self.world.story.append(f"writer {self.job} is told: {self._named(result)}")
        self._check_known(result)
        if isinstance(result, OutcomeUnknown):
            self._check_unknown(result)
        definite = not isinstance(result, OutcomeUnknown)
        if definite and self._unknown_sends and self._fence_closed:
            raise Violation(
                f"writer {self.job} says {self._named(result)} with its fence closed and a request under way"
            )
        if isinstance(result, Conflict) and self._may_prepare_again(result.actual):
            self._begin(result.actual)
            return
        self.result = result

    def _may_prepare_again(self, head: KnownHead) -> bool:
        if self._attempt > self.world.setting.rebases_max:
            return False
        if self.world.setting.act == "create":
            return not head.live
        return head.live and head.life == self._publication.manifest.life

    def _check_known(self, result: Any) -> None:
        """A head may only be called known at a time at which nothing had followed it yet."""
        known: HeadState | None = None
        if isinstance(result, Published):
            known = result.head
        elif isinstance(result, Conflict):
            known = result.actual
        if known is None:
            return
        if self.world.chain.get(known.version) is None or known.sha256 != digest(self.world.chain[known.version]):
            raise Violation(f"writer {self.job} takes version {known.version} for the head, which is not in the chain")
        followed = self.world.created_at.get(known.version + 1)
        if followed is not None and followed < known.known_at:
            raise Violation(f"writer {self.job} takes version {known.version} for the head when it no longer was")

    def _check_unknown(self, result: OutcomeUnknown) -> None:
        """Doubt needs a reason: five sends without an answer, and a last look that showed nothing or failed."""
        if result.reason != "unanswered" or self._faulty_reads:
            return
        if self._faulty_sends < 5 and not self.world.setting.sleeps:
            raise Violation(f"writer {self.job} gives up after {self._faulty_sends} sends that went wrong")
        if self._publication.manifest.version in self.world.objects and not self.world.setting.sleeps:
            raise Violation(f"writer {self.job} gives up without a look at the version that is there")

    @staticmethod
    def _named(result: Any) -> str:
        reason = getattr(result, "reason", None)
        return type(result).__name__ + (f" ({reason})" if reason else "")

    def repeat_under_the_same_key(self) -> None:
        """What a client does after an unknown outcome: the same write again, which looks its key up in the log first."""
        top = self.world.listed_head()
        if any(int(record.id.nonce, 16) // 100 == self.job for record in top.manifest.lineage.window):
            return
        built = prepared("commit", self.world.objects[top.version], top.version, self.job, 90)
        if not self.world.land(built.manifest.version, built.data):
            raise Violation("the next write does not get through")
        self.world.story.append(f"write {self.job} is repeated as version {built.manifest.version}")
