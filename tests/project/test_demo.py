"""The README's first command: `make demo CHECK=1` on this environment."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo
from omnigraph.cluster.config import read_config
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
    for question in demo.QUESTIONS:
        assert f"ok    {question.title}" in done.stdout
    shown, _, commands = done.stdout.partition("is served at")
    assert [f"\n{question.title}\n" in shown for question in demo.QUESTIONS] == [True] * 3, "the answers stand there"
    assert commands.count("  curl -s http://127.0.0.1:") == (3 if shutil.which("curl") else 0)
    assert "another terminal" not in done.stdout  # its folder is gone when the reader could
    assert done.stderr == ""


def test_the_demo_is_a_cluster_that_can_be_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        demo.prepare(tmp_path / "demo")
        told = capsys.readouterr().out
        for question in demo.QUESTIONS:
            assert question.holds in told.partition(question.title)[2]
    assert read_config(tmp_path / "demo").graphs


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
