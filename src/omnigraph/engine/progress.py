"""Progress of long work: a bar on a terminal, a callback, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from omnigraph.engine.logs import notes


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far reading has come: bytes taken from the source, their total if known, records read."""

    bytes_read: int
    bytes_total: int | None
    records: int


ReportProgress = Callable[[LoadProgress], None]
Progress = bool | Literal["auto"] | Callable[[LoadProgress], None]


@contextmanager
def reporting(progress: Progress, label: str) -> Generator[ReportProgress | None]:
    """What is to be called while the work inside goes on; a bar ends with it, however it ends.

    `auto`: a bar if standard error is a terminal.
    """
    if callable(progress):
        yield progress
        return
    if progress is False or (progress == "auto" and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("bytes, {task.fields[records]:,} records"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True, file=notes())) as bar:
        task = bar.add_task(label, total=None, records=0)

        def report(state: LoadProgress) -> None:
            bar.update(task, completed=state.bytes_read, total=state.bytes_total, records=state.records)

        yield report
