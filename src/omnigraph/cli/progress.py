"""Progress on stderr: a bar for people, one JSON object a line for programs, or nothing (interfaces.md 12.4)."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Protocol

from omnigraph.cli import terminal
from omnigraph.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from omnigraph.engine.progress import LoadProgress, ReportProgress

_QUIET_SECONDS = 1.0


class ReportSteps(Protocol):
    def __call__(self, done: int, total: int | None = None) -> None: ...


@contextmanager
def progress(session: Session, phase: str, unit: str) -> Generator[ReportProgress | Literal[False]]:
    """What the engine calls while it works; False for nothing. The bar is taken down however the work ends."""
    if session.progress == "json":
        yield _lines(phase, unit)
    elif _wants_bar(session):
        with _bar(session, phase) as report:
            yield report
    else:
        yield False


@contextmanager
def waiting(session: Session, what: str) -> Generator[None]:
    """A spinner with seconds for work that takes more than one, where people look on; nothing for programs."""
    if session.progress == "json" or not _wants_bar(session):
        yield
        return
    shown = _Spinner(session, what)
    timer = threading.Timer(_QUIET_SECONDS, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        shown.stop()


@contextmanager
def steps(session: Session, phase: str, unit: str) -> Generator[ReportSteps]:
    """What work in few steps calls with how many are done and how many there are, once it knows: lines for programs; for
    people a spinner as `waiting` has.
    """

    def report(done: int, total: int | None = None) -> None:
        if session.progress == "json":
            _line(phase, unit, done, total)

    with waiting(session, phase):
        yield report


class _Spinner:
    """Started by a timer's thread, stopped by the command's; whichever comes second finds the other's mark."""

    def __init__(self, session: Session, what: str) -> None:
        self._session = session
        self._what = what
        self._lock = threading.Lock()
        self._over = False
        self._bar: Progress | None = None

    def start(self) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            columns = (SpinnerColumn(), TextColumn(self._what), TimeElapsedColumn())
            self._bar = Progress(*columns, console=_console(self._session), transient=True)
            self._bar.add_task(self._what, total=None)
            self._bar.start()

    def stop(self) -> None:
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()


def _console(session: Session) -> Console:
    from rich.console import Console

    from omnigraph.engine.logs import notes

    return Console(stderr=True, file=notes(), no_color=not terminal.wants_color(session.color, sys.stderr))


def _wants_bar(session: Session) -> bool:
    if session.progress == "auto":
        return terminal.stderr_is_terminal() and not session.quiet and not session.json
    return session.progress == "always"


def _lines(phase: str, unit: str) -> ReportProgress:
    def report(state: LoadProgress) -> None:
        _line(phase, unit, state.bytes_read, state.bytes_total)

    return report


def _line(phase: str, unit: str, done: int, total: int | None) -> None:
    fields: dict[str, object] = {"phase": phase, "done": done}
    if total is not None:
        fields["total"] = total
    fields["unit"] = unit
    terminal.say(json.dumps({"progress": fields}))


@contextmanager
def _bar(session: Session, phase: str) -> Generator[ReportProgress]:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn(phase),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[records]:,} entities"),
    )
    with Progress(*columns, console=_console(session), transient=True) as bar:
        task = bar.add_task(phase, total=None, records=0)

        def report(state: LoadProgress) -> None:
            bar.update(task, completed=state.bytes_read, total=state.bytes_total, records=state.records)

        yield report
