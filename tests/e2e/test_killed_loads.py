"""A loading process that is killed leaves the branch at a commit it acknowledged, or at the one in flight, whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 50
SEED = int(os.environ.get("OMNIGRAPH_TEST_SEED", "20261130"))


@pytest.mark.timeout(900)
def test_fifty_kills_at_random_moments_never_leave_half_a_load(tmp_path: Path) -> None:
    script = Path(__file__).with_name("killed_loads.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "graph"), str(ROUNDS), str(SEED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"seed {SEED}\n{done.stdout}\n{done.stderr}"
    summary = re.search(r"(\d+) kills, (\d+) acknowledged", done.stdout)
    assert summary is not None
    assert int(summary[1]) == ROUNDS
    assert int(summary[2]) > 0, "no load was ever acknowledged before its kill: this showed nothing"
