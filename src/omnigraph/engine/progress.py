"""Progress of long work: a bar on a terminal, a callback, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Literal

from omnigraph.engine.load.batch import LoadProgress, ReportProgress

Progress = bool | Literal["auto"] | Callable[[LoadProgress], None]


def reporter(progress: Progress, label: str) -> ReportProgress | None:
    """What is to be called while work goes on. `auto`: a bar if standard error is a terminal."""
    if callable(progress):
        return progress
    if progress is False or (progress == "auto" and not sys.stderr.isatty()):
        return None
    return _Bar(label)


class _Bar:
    """A bar of rich on standard error; it ends when all bytes are read."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn(label),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("bytes, {task.fields[records]:,} records"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(label, total=None, records=0)
        self._bar.start()

    def __call__(self, state: LoadProgress) -> None:
        self._bar.update(self._task, completed=state.bytes_read, total=state.bytes_total, records=state.records)
        if state.bytes_total is not None and state.bytes_read >= state.bytes_total:
            self._bar.stop()
