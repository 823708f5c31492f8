"""Deliberate bugs, each a wrong belief planted in the text of one module, and the schedule that catches it.

A planted bug replaces the code of the functions that stand, so that whoever holds one meets it; what was there comes back
at the end. A piece of text that no longer stands exactly once is a failure: then the bug has to be planted anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType, ModuleType

from faults.kinds import BY_NUMBER as KINDS_BY_NUMBER
from faults.operations import BY_NUMBER as OPERATIONS_BY_NUMBER
from faults.schedules import Schedule, trace


@dataclass(frozen=True)
class Catcher:
    """A schedule in words that stay true when an operation sends other requests: `at` begins the request that is met."""

    operation: int
    kind: int
    second: int = 0
    owner: bool = False
    after: int = 0
    at: str = "create __manifest/"
    aim: int = 0

    def schedule(self, folder: str) -> Schedule:
        operation = OPERATIONS_BY_NUMBER[self.operation]
        sent = [f"{each.verb} {each.key}" for each in trace(operation, self.owner, folder)]
        request = next(number for number, each in enumerate(sent, start=1) if each.startswith(self.at))
        second = KINDS_BY_NUMBER[self.second] if self.second else None
        return Schedule(operation, self.owner, request, KINDS_BY_NUMBER[self.kind], second, self.after, self.aim)


@dataclass(frozen=True)
class Bug:
    """`changes`: pieces of the module's text with what stands in their place. `caught_by`: a schedule that fails."""

    belief: str
    module: str
    changes: tuple[tuple[str, str], ...]
    caught_by: Catcher


PUBLISH = "omnigraph.manifest.publish"
GROUPS = "omnigraph.engine.writing.groups"
HEADS = "omnigraph.engine.heads"

_SENDING = "outcome: CreateOutcome = yield Create(publication.key, publication.data)"
_FRESH_ID = f"""from dataclasses import replace
        from omnigraph.manifest.codec import to_bytes
        attempt._manifest = replace(publication.manifest, nonce=f"{{number:032x}}")
        {_SENDING.replace("publication.data", "to_bytes(attempt._manifest)")}"""
_BEFORE_CREATE = "        self._sent = built, head, group\n"
_ACKNOWLEDGED = """        for entry, commit in zip(group, built.manifest.commits, strict=True):
            entry.settle(Written(commit, built.manifest, entry.plan))
"""
_UNPUBLISHED = "        if isinstance(result, Attempted):\n"
_TIDIED = """            import os
            for each in committed:
                for name in each.committed.written:
                    os.unlink(os.path.join(core.store.local_path, name))
"""
_STALE_CREATED = """            return (yield from self._resolved())
        return self._published(KnownHead(self._manifest"""
_STALE_BEFORE_READ = """        if not self._fresh_at(asked_at):
            return (yield from self._resolved())
        found:"""
_STALE_AFTER_READ = "if not (yield from self._fresh()) or found.manifest.base != self._manifest.base:"
_OF_BASE = "found.sha256, self._base_known_at, found.stored_at, found.etag, seen_at"
_ONLY_RISES = """            if known is not None and known.version > head.version:
                return known
"""
_OTHER_LIFE = """            if first is not None and head.life != first.life:
                raise self._other_life(first)
"""

BUGS = (
    Bug(
        "'exists' means one's own, without a look at what is there",
        PUBLISH,
        (
            (
                "case Exists():\n                answer = yield from attempt.read_back()",
                "case Exists():\n                answer = yield from attempt.created(now, Created())",
            ),
        ),
        Catcher(operation=10, kind=32),
    ),
    Bug(
        "a time-out is a loss",
        PUBLISH,
        (
            (
                "case Unknown():\n                answer = _Doubt(outcome.cls)",
                'case Unknown():\n                return NotPublished("refused", outcome.cls)',
            ),
        ),
        Catcher(operation=10, kind=27),
    ),
    Bug("each re-issue may have an id of its own", PUBLISH, ((_SENDING, _FRESH_ID),), Catcher(operation=33, kind=4)),
    Bug(
        "a write may be acknowledged before its request is sent",
        GROUPS,
        ((_BEFORE_CREATE, _BEFORE_CREATE + _ACKNOWLEDGED),),
        Catcher(operation=10, kind=1),
    ),
    Bug(
        "what was staged for a write of unknown outcome may be tidied away",
        GROUPS,
        ((_UNPUBLISHED, _UNPUBLISHED + _TIDIED),),
        Catcher(operation=10, kind=27),
    ),
    Bug(
        "'created' is believed after a long sleep",
        PUBLISH,
        ((_STALE_CREATED, "            pass\n        return self._published(KnownHead(self._manifest"),),
        Catcher(operation=10, kind=52),
    ),
    Bug(
        "another's nonce is believed after a long sleep",
        PUBLISH,
        (
            (_STALE_BEFORE_READ, "        found:"),
            (_STALE_AFTER_READ, "if found.manifest.base != self._manifest.base:"),
        ),
        Catcher(operation=33, kind=4, second=53),
    ),
    Bug(
        "a version met by a read-back is the head, after a long sleep too",
        PUBLISH,
        (
            (_STALE_BEFORE_READ, "        found:"),
            (_STALE_AFTER_READ, "if found.manifest.base != self._manifest.base:"),
            (_OF_BASE, "found.sha256, (yield ReadClock()), found.stored_at, found.etag, seen_at"),
        ),
        Catcher(operation=10, kind=65),
    ),
    Bug(
        "a key stands in the newest version or nowhere",
        "omnigraph.manifest.logs",
        (("if record.id == after or", "if record.id.version != head.version or record.id == after or"),),
        Catcher(operation=11, kind=27, after=2),
    ),
    Bug(
        "an answer may be given after the fence has closed",
        PUBLISH,
        (("if isinstance(fence, FenceClosed) and not isinstance(answer, OutcomeUnknown):", "if False:"),),
        Catcher(operation=10, kind=49),
    ),
    Bug(
        "a head that is the base of an unknown publication ends the doubt",
        HEADS,
        (("if base is not None and head.version > base:", "if base is not None and head.version >= base:"),),
        Catcher(operation=10, kind=19, owner=True),
    ),
    Bug(
        "a head in memory may fall",
        HEADS,
        ((_ONLY_RISES, ""),),
        Catcher(operation=43, kind=47, owner=True, at="read __manifest/main/"),
    ),
    Bug(
        "a write may follow a head of another schema as it was prepared",
        "omnigraph.engine.writing.judge",
        (("    if head.schema != base.schema:\n", "    if False:\n"),),
        Catcher(operation=10, kind=66, owner=True, at="read __schema/"),
    ),
    Bug(
        "a key need not be looked up again after a conflict",
        GROUPS,
        (("if replayed is not None:", "if False:"),),
        Catcher(operation=11, kind=44),
    ),
    Bug(
        "a write that is prepared again may end in another life of its branch",
        "omnigraph.engine.writing.write",
        ((_OTHER_LIFE, ""),),
        Catcher(operation=29, kind=32, second=39),
    ),
)


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """The module with the bug in it."""
    module = import_module(bug.module)
    text = inspect.getsource(module)
    for old, new in bug.changes:
        assert text.count(old) == 1, f"{text.count(old)} times in {bug.module}: {old}"
        text = text.replace(old, new)
    found = {code.co_qualname: code for code in _codes(compile(text, module.__file__ or "", "exec", dont_inherit=True))}
    functions = list(_functions(module))
    standing = [function.__code__ for function in functions]
    try:
        for function in functions:
            code = found[function.__code__.co_qualname]
            if code.co_freevars == function.__code__.co_freevars:
                function.__code__ = code
        yield
    finally:
        for function, code in zip(functions, standing, strict=True):
            function.__code__ = code


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods that the module itself defines, what decorators wrap included."""
    for value in vars(module).values():
        members = vars(value).values() if inspect.isclass(value) and value.__module__ == module.__name__ else [value]
        for member in members:
            function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", None) or member)
            if isinstance(function, FunctionType) and function.__code__.co_filename == module.__file__:
                yield function
