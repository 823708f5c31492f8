"""Proof that the schedules catch what they should: wrong beliefs are planted in the text of `publish`, one at a time.

Each bug names the suite of schedules that has to notice it. A planted bug that goes unnoticed, or whose place in the
text is gone, is a failure here.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import ModuleType

import pytest

from manifest.schedules import SETTINGS, Publish, Violation, every_schedule
from omnigraph.manifest import publish as real


@dataclass(frozen=True)
class Bug:
    """A wrong belief, the suite that must notice it, and pieces of text with what stands in their place."""

    belief: str
    noticed_by: str
    changes: tuple[tuple[str, str], ...]


def mutated(*changes: tuple[str, str]) -> Publish:
    """`publish` with pieces of its text replaced. Each piece must stand there exactly once."""
    text = inspect.getsource(real)
    for old, new in changes:
        assert text.count(old) == 1, f"{text.count(old)} times in the text: {old}"
        text = text.replace(old, new)
    module = ModuleType("mutated")
    module.__dict__.update(vars(real))
    exec(compile(text, "mutated", "exec", dont_inherit=True), module.__dict__)
    for name, value in vars(real).items():  # what it yields and returns are the real classes, which the world knows
        if inspect.isclass(value) and not name.startswith("_"):
            module.__dict__[name] = value
    publish: Publish = module.__dict__["publish"]
    return publish


EXISTS = """case Exists():
                answer = yield from attempt.read_back()"""
UNANSWERED = """case Unknown():
                answer = _Doubt(outcome.cls)"""
SENDING = "outcome: CreateOutcome = yield Create(publication.key, publication.data)"
LAST_LOOK = """answer = yield from self.read_back()
        if isinstance(answer, _Gone):
            return self.gone(doubt)
        if not isinstance(answer, _Doubt):
            return (yield from self.confirmed(answer))
        if reason"""
REFUSED_FIRST = """if doubt is None:
                    return NotPublished("refused\""""
FENCE_CLOSED = """if isinstance(fence, FenceClosed):
            return NotPublished("fence_closed") if doubt is None else attempt.unknown("fence_closed", doubt)
        attempt.vouched(fence)"""
STALE_CREATED = """return (yield from self._resolved())
        return self._published(KnownHead"""
STALE_BEFORE_READ = """if not self._fresh_at(asked_at):
            return (yield from self._resolved())
        found:"""
STALE_AFTER_READ = "if not (yield from self._fresh()) or found.manifest.base != self._manifest.base:"
NOT_THERE = "return _Doubt(found.cls if isinstance(found, Unreadable) else None)"
NO_LIST = """if isinstance(head, Unreadable):
            return _Doubt(head.cls)"""
SEARCH = """found: bool | Unreadable = yield SearchLog(head.manifest.lineage, self._manifest.commits[-1])
            return found"""
FRESH_NONCE = f"""from dataclasses import replace
        from omnigraph.manifest.codec import to_bytes
        attempt._manifest = replace(publication.manifest, nonce=f"try {{number}}")
        {SENDING.replace("publication.data", "to_bytes(attempt._manifest)")}"""

BUGS = (
    Bug(
        "'exists' means another's",
        "one-writer",
        ((EXISTS, "case Exists():\n                return Conflict(attempt._base)"),),
    ),
    Bug(
        "'exists' means one's own",
        "two-writers",
        ((EXISTS, "case Exists():\n                answer = yield from attempt.created(now, Created())"),),
    ),
    Bug(
        "a timeout is a loss",
        "one-writer",
        ((UNANSWERED, "case Unknown():\n                return NotPublished('refused', outcome.cls)"),),
    ),
    Bug("no last look is needed before giving up", "unanswered", ((LAST_LOOK, "if reason"),)),
    Bug("a re-issue may have a fresh nonce", "one-writer", ((SENDING, FRESH_NONCE),)),
    Bug(
        "an answer is good however old its base is",
        "asleep",
        (("return now - self._base_known_at <= FRESH_SECONDS_MAX", "return True"),),
    ),
    Bug(
        "'created' is good however old its base is",
        "asleep",
        ((STALE_CREATED, "pass\n        return self._published(KnownHead"),),
    ),
    Bug(
        "one's own nonce is proof after 10 minutes too",
        "asleep",
        (
            (STALE_BEFORE_READ, "found:"),
            (STALE_AFTER_READ, "if found.manifest.nonce != self._manifest.nonce and not (yield from self._fresh()):"),
        ),
    ),
    Bug(
        "a read-back may take 10 minutes",
        "asleep",
        ((STALE_AFTER_READ, "if found.manifest.base != self._manifest.base:"),),
    ),
    Bug(
        "a refusal is definite after an unanswered send too",
        "one-writer",
        ((REFUSED_FIRST, REFUSED_FIRST.replace("doubt is None", "True")),),
    ),
    Bug(
        "what is absent stays absent",
        "one-writer",
        ((NOT_THERE, "return _Doubt(found.cls) if isinstance(found, Unreadable) else Conflict(self._base)"),),
    ),
    Bug(
        "what can't be read is another's",
        "one-writer",
        ((NOT_THERE, "return Conflict(self._base) if isinstance(found, Unreadable) else _Doubt(None)"),),
    ),
    Bug(
        "the fence need not be asked before a re-issue",
        "one-writer",
        (
            (
                FENCE_CLOSED,
                'if doubt is None and isinstance(fence, FenceClosed):\n            return NotPublished("fence_closed")',
            ),
        ),
    ),
    Bug(
        "a closed fence makes an unanswered send definite",
        "one-writer",
        ((FENCE_CLOSED, 'if isinstance(fence, FenceClosed):\n            return NotPublished("fence_closed")'),),
    ),
    Bug(
        "the fence need not be asked before the answer",
        "one-writer",
        (("if isinstance(fence, FenceClosed) and not isinstance(answer, OutcomeUnknown):", "if False:"),),
    ),
    Bug(
        "staged files keep for ever",
        "asleep",
        (("if now - publication.staged_at > STAGED_SECONDS_MAX:", "if False:"),),
    ),
    Bug(
        "old staging makes an unanswered send definite",
        "asleep",
        (('return (yield from attempt.last_look("too_old", doubt))', 'return NotPublished("too_old")'),),
    ),
    Bug(
        "a version met by a read-back is the head of this moment",
        "asleep",
        (("found.sha256, self._base_known_at, found", "found.sha256, (yield ReadClock()), found"),),
    ),
    Bug(
        "a created version is the head when the answer comes",
        "asleep",
        (("self._sha256, sent_at, None", "self._sha256, (yield ReadClock()), None"),),
    ),
    Bug("the log of another life decides too", "asleep", (("if head.life != self._manifest.life:", "if False:"),)),
    Bug(
        "one's own version is the head though a LIST shows a newer one",
        "asleep",
        (
            (
                "            return self._published(head)\n",
                "            return self._published(KnownHead(self._manifest, self._sha256, head.known_at))\n",
            ),
        ),
    ),
    Bug("the log need not be asked", "asleep", ((SEARCH, "return False"),)),
    Bug(
        "a version without commits counts only while it is the head",
        "asleep-creating",
        (("return named is not None and named.sha256 == self._sha256", "return False"),),
    ),
    Bug(
        "a version without commits counts whatever follows it",
        "asleep-creating",
        (("return named is not None and named.sha256 == self._sha256", "return True"),),
    ),
    Bug(
        "a head that can't be listed means conflict",
        "asleep",
        ((NO_LIST, NO_LIST.replace("_Doubt(head.cls)", "Conflict(self._base)")),),
    ),
)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.belief)
def test_the_schedules_catch_a_planted_bug(bug: Bug) -> None:
    with pytest.raises(Violation) as caught:
        for _ in every_schedule(SETTINGS[bug.noticed_by], mutated(*bug.changes)):
            pass
    assert "the store held:" in str(caught.value)
    assert f"schedule {bug.noticed_by}:" in str(caught.value)


def test_the_text_without_a_bug_passes_when_it_is_run_the_same_way() -> None:
    assert sum(1 for _ in every_schedule(SETTINGS["one-writer"], mutated())) > 100
