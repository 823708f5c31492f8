"""The README's first command: `make demo CHECK=1` on this environment."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo
from omnigraph.cluster.ownership import acquire

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
    assert "another terminal" not in done.stdout  # its folder is gone when the reader could
    assert done.stderr == ""


def test_a_second_demo_says_in_one_line_that_the_first_is_running(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "CHECKOUT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process keeps its own
    with acquire(str(tmp_path / "demo")):
        assert demo.main() == 1
    told = capsys.readouterr().err
    assert told.startswith("demo: ")
    assert told.count("\n") == 1
