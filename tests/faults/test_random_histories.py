"""Random histories of two to four writers under storage faults. Each has a number: OMNIGRAPH_FAULT_FIRST=n, one seed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faults.histories import History, go_on, judge, shown

FIRST = int(os.environ.get("OMNIGRAPH_FAULT_FIRST", "0"))
SEEDS = int(os.environ.get("OMNIGRAPH_FAULT_SEEDS", "12"))
STEPS = 14


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_every_history_keeps_the_promise_and_goes_on(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
    root = str(tmp_path / "g")
    history = History(root, seed)
    history.run(STEPS)
    try:
        judge(root, history.told)
        go_on(history, root)
    except AssertionError as wrong:
        raise AssertionError(f"seed {seed}: {wrong}\n{shown(history, root)}") from wrong
