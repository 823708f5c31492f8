"""Runs the steps of `publish` against a store: each wish becomes one call, each answer goes back as it came.

Decides nothing. A read that fails is answered as Unreadable, since a failed look proves nothing; anything unexpected
passes through to the caller, who can't know then whether the publication landed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, assert_never

from omnigraph.ambient import Clock
from omnigraph.errors import FormatMismatch, StorageClass, StorageFailure
from omnigraph.manifest.chain import HeadState, KnownHead, StoredVersion, read_version, resolve_head, seen_again
from omnigraph.manifest.lineage import LogReader
from omnigraph.manifest.publish import (
    Absent,
    CheckBase,
    CheckFence,
    Create,
    FenceState,
    Log,
    Pause,
    ReadBack,
    ReadClock,
    Request,
    ResolveHead,
    Result,
    SearchLog,
    Stands,
    Unreadable,
)
from omnigraph.store.base import Store


def drive(
    steps: Generator[Request, Any, Result],
    *,
    store: Store,
    history: LogReader,
    clock: Clock,
    fence: Callable[[], FenceState],
    log: Callable[[Log], None],
) -> Result:
    """The result of the steps.

    `fence` says whether this process may still write; `log` takes the lines for operators. Raises nothing of its own.
    """
    answer: object = None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as done:
            result: Result = done.value
            return result
        answer = _answered(request, store, history, clock, fence, log)


def _answered(
    request: Request,
    store: Store,
    history: LogReader,
    clock: Clock,
    fence: Callable[[], FenceState],
    log: Callable[[Log], None],
) -> object:
    match request:
        case Create(key, data):
            return store.create(key, data)
        case ReadBack(branch, version):
            return _read_back(store, branch, version)
        case CheckBase(base):
            return _looked_at(store, base, clock)
        case ResolveHead(branch):
            return _resolved(store, branch, clock)
        case SearchLog():
            return _held(history, request)
        case CheckFence():
            return fence()
        case ReadClock():
            return clock.boot_seconds()
        case Pause(seconds):
            return clock.sleep(seconds)
        case Log():
            return log(request)
        case _:
            assert_never(request)


def _read_back(store: Store, branch: str, version: int) -> StoredVersion | Absent | Unreadable:
    try:
        found = read_version(store, branch, version)
    except (StorageFailure, FormatMismatch) as failure:
        return _unreadable(failure)
    return Absent() if found is None else found


def _looked_at(store: Store, base: KnownHead, clock: Clock) -> Stands | Absent | Unreadable:
    try:
        found = seen_again(store, base, clock=clock)
    except (StorageFailure, FormatMismatch) as failure:
        return _unreadable(failure)
    return Absent() if found is None else Stands()


def _resolved(store: Store, branch: str, clock: Clock) -> HeadState | Unreadable:
    try:
        return resolve_head(store, branch, clock=clock)
    except (StorageFailure, FormatMismatch) as failure:
        return _unreadable(failure)


def _held(history: LogReader, request: SearchLog) -> bool | Unreadable:
    try:
        return history.contains(request.lineage, request.commit.id, like=request.commit)
    except (StorageFailure, FormatMismatch) as failure:
        return _unreadable(failure)


def _unreadable(failure: StorageFailure | FormatMismatch) -> Unreadable:
    return Unreadable(failure.cls if isinstance(failure, StorageFailure) else StorageClass.UNSUPPORTED)
