"""What can go wrong with one request, each kind with a number that it keeps.

A kind says which fault a request of each verb meets. Some need the laboratory: others who write meanwhile, a fence that
closes, a machine that sleeps while clean-up runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from faults.lab import HOUR, Interrupted, Lab
from faults.operations import KEY, LABEL, Operation, appends_note
from faults.oracle import put
from faults.worlds import NOTE
from omnigraph.errors import StorageClass
from omnigraph.manifest.keys import parse_version_key
from omnigraph.store.faults import (
    Damage,
    Delay,
    FailCondition,
    Fault,
    LandLate,
    LoseAfter,
    LoseBefore,
    Meanwhile,
    Recorded,
    Refuse,
    Rule,
    Throttle,
    Verb,
)
from support.faulty import MANIFEST

WRITES: tuple[Verb, ...] = ("create", "put_fresh", "delete")
READS: tuple[Verb, ...] = ("read", "head", "list", "list_first", "list_folders")
EVERY: tuple[Verb, ...] = (*WRITES, *READS)
NEVER = 1_000_000
"""A request that is held until the schedule lets it go."""

Faults = Mapping[Verb, Fault]


@dataclass(frozen=True, eq=False)
class Kind:
    """`faults` gives what the request meets by verb, in this laboratory and operation; no entry: it does not apply.

    `times`: so many requests of this verb and room from that one on. `absorbed`: met by a publication it changes nothing
    for the caller. `needs`: the rival whose turn it is. `then_silence`: nothing after it is answered either.
    """

    number: int
    name: str
    faults: Callable[[Lab, Operation], Faults] = field(repr=False)
    verbs: tuple[Verb, ...] = EVERY
    times: int = 1
    absorbed: bool = False
    needs: str | None = None
    writes_only: bool = False  # of no interest to an operation that reads
    publication_only: bool = False
    doubtful: bool = False  # may leave the outcome open, so that what happens afterwards matters
    then_silence: bool = False

    def applies(self, operation: Operation, verb: Verb, key: str) -> bool:
        if verb not in self.verbs or (self.writes_only and operation.reads):
            return False
        if self.publication_only and not (verb == "create" and MANIFEST in key):
            return False
        if self.needs == "twin":
            return operation.twin and operation.keyed
        if self.needs == "own":
            return (operation.reads and not operation.cold) or (operation.shares and verb in READS)
        return self.needs is None or self.needs in operation.rivals

    def rules(self, lab: Lab, operation: Operation, ordinal: int, publications_before: int) -> list[Rule]:
        """For the request with this ordinal, whatever its verb turns out to be."""
        faults = self.faults(lab, operation)
        found = [Rule(fault, ordinal=ordinal, verb=verb) for verb, fault in faults.items() if verb in self.verbs]
        if self.times > 1:
            found = [
                Rule(each.fault, verb="create", key=MANIFEST, times=self.times, skip=publications_before)
                for each in found
                if each.verb == "create"
            ]
        if self.then_silence:
            found.append(Rule(LoseBefore(), since=ordinal + 1, times=NEVER))
        return found

    def later_rules(self, lab: Lab, operation: Operation, ordinal: int, aim: int) -> list[Rule]:
        """For a request after the one with this ordinal: the next, or the next that publishes or reads back."""
        if aim == 0 and self.times == 1:
            return self.rules(lab, operation, ordinal + 1, 0)
        verb: Verb = "read" if aim == READ_BACK else "create"
        fault = self.faults(lab, operation)[verb]
        return [Rule(fault, verb=verb, key=MANIFEST, since=ordinal + 1, times=self.times)]


NEXT, PUBLISHED, READ_BACK = range(3)


def later_target(sent: Sequence[Recorded], aim: int) -> Recorded | None:
    """Which of the requests after a fault a second one meets (see `later_rules`)."""
    verb = {NEXT: None, PUBLISHED: "create", READ_BACK: "read"}[aim]
    return next((each for each in sent if verb is None or (each.verb == verb and MANIFEST in each.key)), None)


# --- faults that need nothing


def _always(fault: Fault, verbs: tuple[Verb, ...] = EVERY) -> Callable[[Lab, Operation], Faults]:
    return lambda lab, operation: dict.fromkeys(verbs, fault)


def _plain(number: int, name: str, fault: Fault, **more: object) -> Kind:
    return Kind(number, name, _always(fault), **more)  # type: ignore[arg-type]


_TIMEOUT, _RESET, _SERVER = StorageClass.TIMEOUT, StorageClass.CONNECTION, StorageClass.SERVER_ERROR
_CREATE: tuple[Verb, ...] = ("create",)
_SENT: tuple[Verb, ...] = ("create", "put_fresh")


# --- faults that need the laboratory


def _meanwhile(
    before: Callable[[Lab, Operation], None] | None = None,
    after: Callable[[Lab, Operation], None] | None = None,
    fault: Fault | None = None,
) -> Callable[[Lab, Operation], Faults]:
    def faults(lab: Lab, operation: Operation) -> Faults:
        around = Meanwhile(
            before=None if before is None else partial(before, lab, operation),
            after=None if after is None else partial(after, lab, operation),
            fault=fault,
        )
        return dict.fromkeys(EVERY, around)

    return faults


def _rival(name: str) -> Callable[[Lab, Operation], None]:
    return lambda lab, operation: operation.rivals[name](lab)


def _lost(number: int, name: str, fault: Fault, after: Callable[[Lab, Operation], None], **more: object) -> Kind:
    """A create whose answer is not what happened, and what comes before it is asked about."""
    return Kind(number, name, _meanwhile(after=after, fault=fault), verbs=_CREATE, **more)  # type: ignore[arg-type]


def _lost_to(number: int, name: str, fault: Fault, rival: str) -> Kind:
    return _lost(number, name, fault, _rival(rival), needs=rival)


def _before(number: int, name: str, rival: str, **more: object) -> Kind:
    return Kind(number, name, _meanwhile(before=_rival(rival)), needs=rival, **more)  # type: ignore[arg-type]


def _after_it(number: int, name: str, rival: str, **more: object) -> Kind:
    return Kind(number, name, _meanwhile(after=_rival(rival)), needs=rival, **more)  # type: ignore[arg-type]


def _twin(lab: Lab, operation: Operation) -> None:
    """Another process of the same client sends the same request under the same key."""
    lab.rivals += 1
    lab.twin = operation.act(lab.beside(), KEY)[LABEL]
    lab.note("the same request is made by another process, under the same key")


def _own_write(lab: Lab, operation: Operation) -> None:
    """Another thread of the same process writes, and is told so."""
    lab.rivals += 1
    label = f"own-{lab.rivals}"
    lab.deeds[label] = put("Note", text=label)
    lab.note(f"another thread of the same process writes {label}")
    lab.begin_beside(label, lambda: lab.handle("own").mutate(NOTE, m=label, message=label))


def _close(lab: Lab, operation: Operation) -> None:
    lab.close_fence()


def _interrupt(lab: Lab, operation: Operation) -> None:
    raise Interrupted


def _slept(
    seconds: float, others: int, *, spare_first: bool = False, stray: bool = False, rival: str | None = None
) -> Callable[[Lab, Operation], None]:
    """The machine sleeps in the middle of a request, while others publish and clean up."""

    def pass_(lab: Lab, operation: Operation) -> None:
        found = lab.held().head(operation.branch)
        live = found is not None and found.manifest.state == "active"
        requests = lab.store.requests[lab.first :]
        created = [each for each in requests if each.verb == "create" and MANIFEST in each.key]
        sent = parse_version_key((created or requests)[-1].key)
        number = 0 if sent is None else sent[1]  # the version that is tried, or that the request is about
        for _ in range(others if live else 0):
            (appends_note(operation.branch) if rival is None else operation.rivals[rival])(lab)
        lab.sleep(seconds)
        lab.clean_up(operation.branch, spare=number if spare_first else None)
        if stray and number:
            lab.stray(operation.branch, number)

    return pass_


KINDS: tuple[Kind, ...] = (
    _plain(1, "refused", Refuse()),
    _plain(2, "not sent", Refuse(_RESET, sent=False)),
    _plain(3, "lost before, timed out", LoseBefore(_TIMEOUT), absorbed=True),
    _plain(4, "lost after, reset", LoseAfter(_RESET), absorbed=True),
    _plain(5, "throttled once", Throttle(), absorbed=True),
    _plain(6, "throttled 4 times", Throttle(), verbs=_CREATE, times=4, absorbed=True, publication_only=True),
    _plain(7, "throttled for ever", Throttle(), verbs=_CREATE, times=NEVER, publication_only=True, doubtful=True),
    _plain(8, "never answered", LoseBefore(_TIMEOUT), verbs=_CREATE, times=NEVER, publication_only=True, doubtful=True),
    _plain(9, "lost after, timed out", LoseAfter(_TIMEOUT), absorbed=True),
    _plain(10, "reset", LoseBefore(_RESET), absorbed=True),
    _plain(11, "server error", LoseBefore(_SERVER), absorbed=True),
    _plain(12, "answered late", Delay(40.0), absorbed=True),
    _plain(13, "acted 11 minutes late", Delay(660.0)),
    Kind(14, "answered 11 minutes late", _meanwhile(after=lambda lab, _: lab.sleep(660.0)), doubtful=True),
    Kind(15, "13 hours before it", _meanwhile(before=lambda lab, _: lab.sleep(13 * HOUR)), doubtful=True),
    Kind(16, "13 hours after it", _meanwhile(after=lambda lab, _: lab.sleep(13 * HOUR)), doubtful=True),
    _plain(17, "landed late, after 1 request", LandLate(1), verbs=_SENT, absorbed=True),
    _plain(18, "landed late, after 2 requests", LandLate(2), verbs=_SENT, absorbed=True),
    _plain(19, "all held back", LandLate(NEVER), verbs=_CREATE, times=NEVER, publication_only=True, doubtful=True),
    _plain(20, "one held back", LandLate(NEVER), verbs=_SENT, absorbed=True, doubtful=True),
    _plain(21, "409, nothing stored", FailCondition(), verbs=_CREATE, absorbed=True),
    _plain(22, "409 for ever", FailCondition(), verbs=_CREATE, times=NEVER, publication_only=True, doubtful=True),
    _plain(23, "412 of one's own write", FailCondition(landed=True), verbs=_CREATE, absorbed=True),
    _plain(24, "corrupt on read", Damage("flipped"), verbs=("read",)),
    _plain(25, "half on read", Damage("half"), verbs=("read",)),
    _plain(26, "empty on read", Damage("empty"), verbs=("read",)),
    _plain(
        27, "landed, then silence", LoseAfter(), verbs=_CREATE, publication_only=True, then_silence=True, doubtful=True
    ),
    _plain(
        28, "lost, then silence", LoseBefore(), verbs=_CREATE, publication_only=True, then_silence=True, doubtful=True
    ),
    _plain(
        29,
        "held back, then silence",
        LandLate(NEVER),
        verbs=_CREATE,
        publication_only=True,
        then_silence=True,
        doubtful=True,
    ),
    _before(30, "unrelated write before", "unrelated"),
    _before(31, "related write before", "related"),
    _before(32, "conflicting write before", "conflicting"),
    _after_it(33, "unrelated write after", "unrelated"),
    _after_it(34, "conflicting write after", "conflicting"),
    _before(35, "another schema before", "schema"),
    _before(36, "type dropped before", "drop"),
    _after_it(37, "type dropped after", "drop"),
    _before(38, "branch made anew before", "anew"),
    _after_it(39, "branch made anew after", "anew"),
    _before(40, "branch deleted before", "gone"),
    _after_it(41, "branch deleted after", "gone"),
    _before(42, "name taken before", "taken"),
    _before(43, "name taken and freed before", "comes and goes"),
    Kind(44, "twin before", _meanwhile(before=_twin), needs="twin"),
    Kind(45, "twin after", _meanwhile(after=_twin), needs="twin"),
    Kind(46, "own write before", _meanwhile(before=_own_write), needs="own"),
    Kind(47, "own write after", _meanwhile(after=_own_write), needs="own"),
    Kind(48, "fence closed before", _meanwhile(before=_close), writes_only=True),
    Kind(49, "fence closed after", _meanwhile(after=_close), writes_only=True, doubtful=True),
    Kind(50, "interrupted before", _meanwhile(before=_interrupt), writes_only=True, doubtful=True),
    Kind(51, "interrupted after", _meanwhile(after=_interrupt), writes_only=True, doubtful=True),
    Kind(52, "25 hours before, two follow, clean-up", _meanwhile(before=_slept(25 * HOUR, 2)), doubtful=True),
    Kind(
        53,
        "25 hours before, two follow, clean-up, a stray",
        _meanwhile(before=_slept(25 * HOUR, 2, stray=True)),
        doubtful=True,
    ),
    Kind(
        54,
        "25 hours before, four follow, clean-up half done",
        _meanwhile(before=_slept(25 * HOUR, 4, spare_first=True)),
        doubtful=True,
    ),
    Kind(55, "25 hours after, two follow, clean-up", _meanwhile(after=_slept(25 * HOUR, 2)), doubtful=True),
    Kind(56, "11 minutes before, one follows", _meanwhile(before=_slept(660.0, 1)), doubtful=True),
    _lost(57, "lost after, fence closed", LoseAfter(), _close, doubtful=True),
    _lost(58, "lost before, fence closed", LoseBefore(), _close, doubtful=True),
    _lost(59, "412 of one's own, fence closed", FailCondition(True), _close, doubtful=True),
    _lost_to(60, "lost after, unrelated follows", LoseAfter(), "unrelated"),
    _lost_to(61, "lost after, conflicting follows", LoseAfter(), "conflicting"),
    _lost_to(62, "lost before, conflicting comes", LoseBefore(), "conflicting"),
    _lost_to(63, "lost after, branch made anew", LoseAfter(), "anew"),
    Kind(
        65,
        "25 hours before, four conflicting follow, clean-up half done",
        _meanwhile(before=_slept(25 * HOUR, 4, spare_first=True, rival="conflicting")),
        needs="conflicting",
        doubtful=True,
    ),
    _before(66, "property dropped before", "narrow"),
    _lost(64, "lost before, twin comes", LoseBefore(), _twin, needs="twin"),
)
BY_NUMBER = {kind.number: kind for kind in KINDS}

FAMILIES: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("refused", (1, 2)),
    ("lost", (3, 4, 8, 9, 10, 11, 27, 28)),
    ("throttled", (5, 6, 7)),
    ("late", (12, 13, 14, 17, 18, 19, 20, 29)),
    ("409, 412", (21, 22, 23)),
    ("damaged", (24, 25, 26)),
    ("others", (*range(30, 46), 60, 61, 62, 63, 64, 66)),
    ("own threads", (46, 47)),
    ("fence", (48, 49, 57, 58, 59)),
    ("stopped", (50, 51)),
    ("slept", (15, 16, 52, 53, 54, 55, 56, 65)),
)
"""The kinds in a few words, for a table that fits a page."""


def family(name: str) -> str:
    """The family of a kind, by the kind's name."""
    number = next(kind.number for kind in KINDS if kind.name == name)
    return next(family for family, numbers in FAMILIES if number in numbers)
