"""The README's first command: `make demo CHECK=1` on this environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SERVER = Path(sys.executable).with_name("omnigraph-server")


@pytest.mark.timeout(300)
@pytest.mark.skipif(not SERVER.exists(), reason="the package's programs are not installed in this environment")
def test_the_demo_serves_a_graph_that_answers_right_and_stops_in_order() -> None:
    command = [sys.executable, "-m", "examples.demo", "--check"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "35 of 35 answers are right" in done.stdout
    assert "ok    kinds of dogs" in done.stdout
    assert done.stderr == ""
