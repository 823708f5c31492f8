"""Progress on stderr: a bar for people, one JSON object a line for programs, or nothing (interfaces.md 12.4)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from omnigraph.cli import terminal
from omnigraph.cli.session import Session

if TYPE_CHECKING:
    from omnigraph.engine.load.batch import LoadProgress, ReportProgress


@contextmanager
def progress(session: Session, phase: str, unit: str) -> Iterator[ReportProgress | Literal[False]]:
    """What the engine calls while it works; False for nothing. The bar is taken down however the work ends."""
    if session.progress == "json":
        yield _lines(phase, unit)
    elif _wants_bar(session):
        with _bar(phase) as report:
            yield report
    else:
        yield False


def _wants_bar(session: Session) -> bool:
    if session.progress == "auto":
        return terminal.stderr_is_terminal() and not session.quiet and not session.json
    return session.progress == "always"


def _lines(phase: str, unit: str) -> ReportProgress:
    def report(state: LoadProgress) -> None:
        fields: dict[str, object] = {"phase": phase, "done": state.bytes_read}
        if state.bytes_total is not None:
            fields["total"] = state.bytes_total
        fields["unit"] = unit
        sys.stderr.write(json.dumps({"progress": fields}) + "\n")
        sys.stderr.flush()

    return report


@contextmanager
def _bar(phase: str) -> Iterator[ReportProgress]:
    from rich.console import Console
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
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(phase, total=None, records=0)

        def report(state: LoadProgress) -> None:
            bar.update(task, completed=state.bytes_read, total=state.bytes_total, records=state.records)

        yield report
