"""Random histories of two to four writers under storage faults: a sample. `make faults FIRST=<seed>` runs one alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.histories import run_seed

SEEDS = 16
STEPS = 16


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_every_history_keeps_the_promise_and_goes_on(tmp_path: Path, seed: int) -> None:
    run_seed(str(tmp_path / "g"), seed, STEPS)
