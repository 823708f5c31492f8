"""Publication: the one request that makes a write visible, and what may be said about it afterwards.

The dangerous story, in order:

 1. A writer took version V as its base, staged its rows, and sends `create(V+1)`. The answer is lost. The version may
    be there, may come a minute later, or may never come. Saying "failed" would be a lie if it lands; preparing the
    write anew would do it twice.
 2. So the writer sends the *identical bytes* again, at most four times. A version number is taken once: whichever copy
    lands first is the only one, and the others meet `Exists`.
 3. `Exists` is a question, not an answer: the object may be the writer's own earlier copy. It is read back, and its
    nonce says whose it is. Some stores say "exists" while nothing is there yet (409): then nothing is known.
 4. Between two copies the writer may lose its right to write. Then it stops; the copy under way may still land, so the
    answer is "unknown", never "failed".
 5. A writer may sleep for a day (a laptop, a stopped machine). Meanwhile another one published V+1, V+2, ... and
    clean-up removed V+1, which was superseded long ago. The sleeper's `create(V+1)` now succeeds, and means nothing:
    the object is a stray, linked from nowhere. Its read-back even shows the sleeper's own nonce. So no answer is
    believed that comes more than 10 minutes after the base was known to be the head: the head is looked up by a LIST,
    and its log decides.
 6. And what was staged more than 12 hours ago may be half swept away: it is never sent, not even once more.
 7. The version that is followed may be gone: someone removed the graph and made another one at the same place, or put
    back an older copy. Then `create(V+1)` succeeds too, above a gap, and hides every commit of the graph that stands
    there. So the base is looked at before it is followed.

This module is a generator that does no I/O: it yields what it wants and is sent what came back, so that the real driver
and the tests, which run every order of several writers, run the same text. It knows manifests and nonces; it does not
know what a graph is, why the write is made, or what the caller does next.

`drive` (in `manifest/driver.py`) runs it against a store.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from omnigraph.errors import StorageClass
from omnigraph.manifest.chain import SEEN_SECONDS_MAX, HeadState, KnownHead, NoHead, StoredVersion
from omnigraph.manifest.codec import digest
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import version_key
from omnigraph.manifest.model import Commit, Lineage, Manifest
from omnigraph.store.base import Created, CreateOutcome, Exists, Refused, Unknown

PAUSES_SECONDS = (0.2, 0.4, 0.8, 1.6)
"""Before each re-issue of the identical bytes. Their number is the number of re-issues."""

FRESH_SECONDS_MAX = 600.0
"""An answer that comes longer than this after the base was known to be the head proves nothing."""

STAGED_SECONDS_MAX = 12 * 3600.0
"""What was captured or staged longer ago than this is not sent (history.md 9.1)."""

REISSUE_EVENT = "manifest request outcome unknown; re-issuing the identical conditional request"
UNKNOWN_EVENT = "manifest request outcome unknown after every re-issue"


Look = Literal["never", "after a while", "always"]
"""When the base is looked at before it is followed: where nobody else can touch the graph, it need not be; where a look
costs a request, not if this write has seen it a moment ago; else always."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What is to be published. The bytes never change between attempts."""

    manifest: Manifest
    data: bytes
    base: HeadState  # what the manifest follows, and when that was known to be the head
    staged_at: float  # when the base was captured or the oldest staged file was written, whichever is earlier
    look: Look = "after a while"

    @property
    def key(self) -> str:
        return version_key(self.manifest.branch, self.manifest.version)

    @property
    def commit_ids(self) -> tuple[CommitId, ...]:
        """The ids that these commits will have, and that a caller may ask about if the outcome stays unknown."""
        return tuple(commit.id for commit in self.manifest.commits)


# --- what the generator wants; each is answered by the type named


@dataclass(frozen=True, slots=True)
class Create:
    """Put-if-absent, one attempt. Answer: CreateOutcome."""

    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Read one version. Answer: StoredVersion, Absent or Unreadable."""

    branch: str
    version: int


@dataclass(frozen=True, slots=True)
class CheckBase:
    """Whether the version that is followed still stands. Answer: Stands, Absent or Unreadable."""

    base: KnownHead


@dataclass(frozen=True, slots=True)
class ResolveHead:
    """Find the head by a LIST, from no earlier knowledge. Answer: KnownHead, NoHead or Unreadable."""

    branch: str


@dataclass(frozen=True, slots=True)
class SearchLog:
    """Whether a log holds this very commit. Answer: bool or Unreadable."""

    lineage: Lineage
    commit: Commit


@dataclass(frozen=True, slots=True)
class CheckFence:
    """Whether this process may still write. Answer: FenceOpen or FenceClosed."""


@dataclass(frozen=True, slots=True)
class ReadClock:
    """Seconds on a clock that counts suspension. Answer: float."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait. Answer: None."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Log:
    """A line for operators. Answer: None."""

    level: Literal["warning", "error"]
    event: str
    fields: tuple[tuple[str, str | int], ...]


Request = Create | ReadBack | CheckBase | ResolveHead | SearchLog | CheckFence | ReadClock | Pause | Log


# --- answers that are no outcomes of the store


@dataclass(frozen=True, slots=True)
class Stands:
    """The very object is there."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Storage does not hold it at this moment. A request under way may still bring it."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """It could not be read, which proves nothing."""

    cls: StorageClass


@dataclass(frozen=True, slots=True)
class FenceOpen:
    """This process may write. `vouched_at`: for the owner of a leased lock, the time at which it was still the owner,
    so that the base is known to be the head at that time; None if this fence vouches for no branch.
    """

    vouched_at: float | None = None


@dataclass(frozen=True, slots=True)
class FenceClosed:
    """This process may not write any more (it lost the lock, or shutdown has passed its cut-off)."""


FenceState = FenceOpen | FenceClosed


# --- the result


@dataclass(frozen=True, slots=True)
class Published:
    """The version is in the chain for ever. `head` is what may be adopted as the branch's head: this version, or the
    newer one that was found while its fate was looked up.
    """

    manifest: Manifest
    sha256: str
    head: KnownHead


@dataclass(frozen=True, slots=True)
class NotPublished:
    """Definite: nothing was published and nothing can land.

    `refused` by the store; `not_sent`, no connection, or the base could not be looked at; `fence_closed` before anything
    was sent; `too_old`, staged more than 12 hours ago; `base_gone`, what is to be followed does not stand any more.
    """

    reason: Literal["refused", "not_sent", "fence_closed", "too_old", "base_gone"]
    cls: StorageClass | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Definite: another version follows the base. `actual` may serve as the new base; it carries the time at which its
    being the head was known, which is that of the old base if a mere read-back showed it.
    """

    actual: KnownHead


_Unknown = Literal["unanswered", "fence_closed", "too_old", "other_life", "base_gone"]


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """The version may be in the chain, now or later, at most once.

    `unanswered`: no re-issue settled it. `fence_closed`: the right to write was lost with a request under way.
    `too_old`: a re-issue would have sent what was staged more than 12 hours ago. `other_life`: the branch was deleted
    and made anew meanwhile. `base_gone`: the graph was, with a request under way.
    """

    base: HeadState
    attempted: Manifest
    reason: _Unknown
    cls: StorageClass | None = None


Result = Published | NotPublished | Conflict | OutcomeUnknown


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Nothing is settled; the class of the last failure, if it had one."""

    cls: StorageClass | None


@dataclass(frozen=True, slots=True)
class _Gone:
    """The graph that was written to is not there any more."""


_Settled = Published | Conflict | OutcomeUnknown | _Gone
_Steps = Generator[Request, Any, _Settled | _Doubt]


def publish(publication: Publication) -> Generator[Request, Any, Result]:
    """The steps of a publication; its return value is the result. Answers are sent in as the request types say."""
    attempt = _Attempt(publication)
    doubt: _Doubt | None = None
    for number in range(len(PAUSES_SECONDS) + 1):
        if doubt is not None:
            yield from _announced_pause(doubt, number)
        now, looked = yield from attempt.looked_at_base()
        if now - publication.staged_at > STAGED_SECONDS_MAX:
            if doubt is None:
                return NotPublished("too_old")
            return (yield from attempt.last_look("too_old", doubt))
        fence: FenceState = yield CheckFence()
        if isinstance(fence, FenceClosed):
            return NotPublished("fence_closed") if doubt is None else attempt.unknown("fence_closed", doubt)
        attempt.vouched(fence)
        if isinstance(looked, Absent):
            return attempt.gone(doubt)
        if isinstance(looked, Unreadable):
            if doubt is None:
                return NotPublished("not_sent", looked.cls)
            doubt = _Doubt(looked.cls)
            continue
        outcome: CreateOutcome = yield Create(publication.key, publication.data)
        match outcome:
            case Created():
                answer = yield from attempt.created(now, outcome)
            case Exists():
                answer = yield from attempt.read_back()
            case Refused():
                if doubt is None:
                    return NotPublished("refused" if outcome.sent else "not_sent", outcome.cls)
                answer = yield from attempt.read_back()  # an earlier copy may have landed: only a look settles it
            case Unknown():
                answer = _Doubt(outcome.cls)
            case _:
                assert_never(outcome)
        if isinstance(answer, _Gone):
            return attempt.gone(doubt)
        if not isinstance(answer, _Doubt):
            return (yield from attempt.confirmed(answer))
        doubt = _Doubt(answer.cls or (None if doubt is None else doubt.cls))  # of the last failure that had a class
    assert doubt is not None
    return (yield from attempt.last_look("unanswered", doubt))


class _Attempt:
    """The reading of answers. Holds what changes: when the base was last known to be the head, and when it was seen."""

    def __init__(self, publication: Publication) -> None:
        self._publication = publication
        self._manifest = publication.manifest
        self._base = publication.base
        self._sha256 = digest(publication.data)
        self._base_known_at = publication.base.known_at
        self._base_seen_at = publication.base.seen_at if isinstance(publication.base, KnownHead) else None

    def vouched(self, fence: FenceOpen) -> None:
        if fence.vouched_at is not None:
            self._base_known_at = max(self._base_known_at, fence.vouched_at)

    def looked_at_base(self) -> Generator[Request, Any, tuple[float, Stands | Absent | Unreadable]]:
        """The time, and whether the base stands: asked of storage unless this write has just seen it.

        A look from before the write began proves nothing, since a graph can be removed and made anew in a moment. One
        after 12 hours is not taken, since by then a base may be gone that was superseded and cleaned up.
        """
        publication, base, seen_at = self._publication, self._base, self._base_seen_at
        now: float = yield ReadClock()
        lately = seen_at is not None and seen_at > publication.staged_at and now - seen_at <= SEEN_SECONDS_MAX
        believed = publication.look == "never" or (lately and publication.look == "after a while")
        if believed or isinstance(base, NoHead) or now - publication.staged_at > STAGED_SECONDS_MAX:
            return now, Stands()
        answer: Stands | Absent | Unreadable = yield CheckBase(base)
        if isinstance(answer, Stands):
            self._base_seen_at = now
        now = yield ReadClock()
        return now, answer

    def gone(self, doubt: _Doubt | None) -> NotPublished | OutcomeUnknown:
        return NotPublished("base_gone") if doubt is None else self.unknown("base_gone", doubt)

    def created(self, sent_at: float, outcome: Created) -> _Steps:
        if not (yield from self._fresh()):
            return (yield from self._resolved())
        return self._published(KnownHead(self._manifest, self._sha256, sent_at, None, outcome.etag, sent_at))

    def read_back(self) -> _Steps:
        """Whose is the version that stands in the way? Also asked before giving up."""
        asked_at: float = yield ReadClock()
        if not self._fresh_at(asked_at):
            return (yield from self._resolved())
        found: StoredVersion | Absent | Unreadable = yield ReadBack(self._manifest.branch, self._manifest.version)
        if not isinstance(found, StoredVersion):
            return _Doubt(found.cls if isinstance(found, Unreadable) else None)
        if found.manifest.graph != self._manifest.graph:
            return _Gone()
        # a version met by a read-back is not thereby the head: it keeps the time of the base, and past the 10 minutes
        # it proves nothing, not even with the right nonce
        if not (yield from self._fresh()) or found.manifest.base != self._manifest.base:
            return (yield from self._resolved())
        head = KnownHead(
            found.manifest, found.sha256, self._base_known_at, found.stored_at, found.etag, seen_at=asked_at
        )
        return self._published(head) if found.manifest.nonce == self._manifest.nonce else Conflict(head)

    def last_look(self, reason: Literal["unanswered", "too_old"], doubt: _Doubt) -> Generator[Request, Any, Result]:
        """One last read-back, since asking before giving up is what keeps a landed write from being called unknown."""
        answer = yield from self.read_back()
        if isinstance(answer, _Gone):
            return self.gone(doubt)
        if not isinstance(answer, _Doubt):
            return (yield from self.confirmed(answer))
        if reason == "unanswered":
            fields = (("class", _class_word(doubt)), ("attempts", len(PAUSES_SECONDS) + 1))
            yield Log("error", UNKNOWN_EVENT, fields)
        return self.unknown(reason, doubt)

    def confirmed(self, answer: Published | Conflict | OutcomeUnknown) -> Generator[Request, Any, Result]:
        """The fence is asked once more before anything is said of a request that was sent: what comes back to a process
        that has lost its right to write is not believed, whatever it is.
        """
        fence: FenceState = yield CheckFence()
        if isinstance(fence, FenceClosed) and not isinstance(answer, OutcomeUnknown):
            return self.unknown("fence_closed", _Doubt(None))
        return answer

    def unknown(self, reason: _Unknown, doubt: _Doubt) -> OutcomeUnknown:
        return OutcomeUnknown(self._base, self._manifest, reason, doubt.cls)

    def _fresh(self) -> Generator[Request, Any, bool]:
        now: float = yield ReadClock()
        return self._fresh_at(now)

    def _fresh_at(self, now: float) -> bool:
        return now - self._base_known_at <= FRESH_SECONDS_MAX

    def _resolved(self) -> _Steps:
        """The head by a LIST, and what its log says of this publication."""
        head: HeadState | Unreadable = yield ResolveHead(self._manifest.branch)
        if isinstance(head, Unreadable):
            return _Doubt(head.cls)
        if isinstance(head, KnownHead) and head.manifest.graph != self._manifest.graph:
            return self.unknown("base_gone", _Doubt(None))
        held: bool | Absent | Unreadable = yield from self._held_by(head)
        if held is True:
            assert isinstance(head, KnownHead)
            return self._published(head)
        if not isinstance(held, bool):
            return _Doubt(held.cls if isinstance(held, Unreadable) else None)
        if self._is_base(head):
            self._base_known_at = head.known_at
            return _Doubt(None)
        if isinstance(head, NoHead) or head.version < self._manifest.version:
            return _Doubt(None)  # below the version that was tried: a chain never shrinks, so this can't be judged
        if head.life != self._manifest.life:
            return self.unknown("other_life", _Doubt(None))
        return Conflict(head)

    def _held_by(self, head: HeadState) -> Generator[Request, Any, bool | Absent | Unreadable]:
        if isinstance(head, NoHead) or head.version < self._manifest.version:
            return False
        if head.version == self._manifest.version:
            return head.manifest.nonce == self._manifest.nonce
        if self._manifest.commits:
            found: bool | Unreadable = yield SearchLog(head.manifest.lineage, self._manifest.commits[-1])
            return found
        # a version without commits leaves no record in the log: the version after it names what it follows
        following: StoredVersion | Absent | Unreadable
        if head.version == self._manifest.version + 1:
            following = StoredVersion(head.manifest, head.sha256, 0)
        else:
            following = yield ReadBack(self._manifest.branch, self._manifest.version + 1)
        if not isinstance(following, StoredVersion):
            return following
        named = following.manifest.base
        return named is not None and named.sha256 == self._sha256

    def _is_base(self, head: HeadState) -> bool:
        match self._base:
            case NoHead():
                return isinstance(head, NoHead)
            case KnownHead():
                return isinstance(head, KnownHead) and head.sha256 == self._base.sha256
            case _:
                assert_never(self._base)

    def _published(self, head: KnownHead) -> Published:
        return Published(self._manifest, self._sha256, head)


def _announced_pause(doubt: _Doubt, number: int) -> Generator[Request, Any, None]:
    seconds = PAUSES_SECONDS[number - 1]
    fields = (("class", _class_word(doubt)), ("attempt", number), ("pause_ms", round(seconds * 1000)))
    yield Log("warning", REISSUE_EVENT, fields)
    yield Pause(seconds)


def _class_word(doubt: _Doubt) -> str:
    return "unknown" if doubt.cls is None else str(doubt.cls)
