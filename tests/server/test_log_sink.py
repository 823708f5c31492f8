"""A log that can't be written concerns the log alone: what it is about is decided first (cluster.md 9.4)."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import httpx
import pytest
import structlog
from structlog.testing import capture_logs

import omnigraph
from omnigraph.ambient import SystemClock
from omnigraph.engine import graph as engine_graph
from omnigraph.engine.evidence import Evidence
from omnigraph.errors import OutcomeUnknown
from omnigraph.server import shutdown
from omnigraph.server.containment import judge
from omnigraph.server.limits import ServerLimits
from omnigraph.server.logs import Lines
from omnigraph.server.operations import Operations
from omnigraph.server.shutdown import Shutdown
from server.asgi import refused
from server.conftest import SCHEMA, Serve
from server.processes import CHECKOUT, PROGRAM
from support.proxy import S3Proxy, lose_after
from support.seaweed import S3Server

INSERT = {"query": 'query add() { insert Port { code: "A" } }'}
START_SECONDS_MAX = 60


class Full:
    """A logger at the end of a pipe that takes nothing."""

    def msg(self, *given: Any, **fields: Any) -> None:
        raise OSError("full")

    debug = info = warning = error = critical = msg


@pytest.fixture
def full() -> Iterator[None]:
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(logger_factory=lambda *_: Full())
    yield
    structlog.reset_defaults()
    if before is not None:
        structlog.configure(**before)


# --- decided first, then told


def test_admission_is_closed_and_the_drain_begun_before_a_line_says_so() -> None:
    operations = Operations(ServerLimits(), SystemClock())
    steps: list[Any] = []
    operations.on_contained = lambda: steps.append("drain")

    def noting(logger: Any, method: str, line: Any) -> Any:
        steps.append((line["event"], operations.contained))
        return line

    evidence = Evidence(None)
    evidence.staged = True
    with capture_logs(processors=[noting]):
        judge(ZeroDivisionError(), evidence, operations, graph_id="atlas", request_id=None)
    assert steps[0] == "drain"
    assert [contained for _, contained in steps[1:]] == ["X1"] * 3


@pytest.mark.usefixtures("full")
def test_a_fault_after_staging_began_closes_admission_where_no_line_can_be_written(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, really = serve(), engine_graph.write

    def breaks(*given: Any) -> Any:
        really(*given)
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(engine_graph, "write", breaks)
        refused(served.post("/graphs/atlas/mutate", INSERT), 500, "internal", effects="unknown")
    assert (served.operations.contained, served.operations.draining) == ("X1", True)
    refused(served.post("/graphs/atlas/mutate", INSERT), 503, "server_draining", effects="none")


@pytest.mark.usefixtures("full")
def test_an_unknown_write_is_told_as_one_where_no_line_can_be_written(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve()

    def lost(*given: Any) -> Any:
        commit = "main@2-0011223344556677"
        raise OutcomeUnknown("x", kind="commit", branch="main", base_commit_id=None, graph_commit_id=commit)

    monkeypatch.setattr(engine_graph, "write", lost)
    refused(served.post("/graphs/atlas/mutate", INSERT), 500, "outcome_unknown", effects="unknown")


@pytest.mark.usefixtures("full")
def test_the_watchdog_keeps_its_deadline_where_no_line_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def leave(code: int) -> None:
        assert code == 2
        ended.set()

    monkeypatch.setattr(shutdown.os, "_exit", leave)
    monkeypatch.setattr(shutdown.signal, "signal", lambda *_: None)
    operations = Operations(ServerLimits(), SystemClock())
    Shutdown(0).watch(operations, lambda: None)
    operations.contain("X1")
    assert ended.wait(30)


# --- the end of the pipe


@contextmanager
def pipe() -> Iterator[tuple[IO[str], IO[str]]]:
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as reader, open(writing, "w", encoding="utf-8") as writer:
        yield reader, writer


def test_lines_arrive_whole_whatever_stands_in_them() -> None:
    with pipe() as (reader, writer):
        Lines(writer).msg("fjord \udce5 " + "x" * 10_000)
        writer.close()
        assert reader.read() == "fjord \\udce5 " + "x" * 10_000 + "\n"


def test_a_reader_that_takes_nothing_is_not_waited_for_and_gets_whole_lines_again() -> None:
    with pipe() as (reader, writer):
        lines = Lines(writer)
        for number in range(2_000):  # more than a pipe holds
            lines.msg(f"{number:04}" + "x" * 96)
        taken = os.read(reader.fileno(), 1 << 20).decode()
        lines.msg("and on")
        writer.close()
        taken += reader.read()
    *told, last = taken.splitlines()
    assert last == "and on"
    assert 0 < len(told) < 2_000
    assert all(len(line) <= 100 and line[:4] == f"{number:04}" for number, line in enumerate(told))


@pytest.mark.parametrize("stream", ["closed pipe", "closed", "none", "without descriptor"])
def test_a_stream_that_takes_no_line_raises_nothing(stream: str) -> None:
    with pipe() as (reader, writer):
        reader.close()
        if stream == "closed":
            writer.close()
        taken: Any = {"none": None, "without descriptor": object()}.get(stream, writer)
        Lines(taken).msg("a line")
        assert Lines(taken).on_terminal is False


# --- a process


@contextmanager
def unheard(root: str, env: dict[str, str], stderr: str) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """A server whose stderr is a pipe without a reader, a full device, or closed from the start."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        place = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [*PROGRAM, "--cluster", root, "--unauthenticated", "--bind", place]
    if stderr == "closed pipe":
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.Popen(command, stderr=writing, cwd=CHECKOUT, env={**os.environ, **env})
        os.close(writing)
    else:
        words = ["sh", "-c", f'exec "$@" 2>{"/dev/full" if stderr == "full" else "&-"}', "sh", *command]
        process = subprocess.Popen(words, cwd=CHECKOUT, env={**os.environ, **env})
    with process, httpx.Client(base_url=f"http://{place}", timeout=60) as client:
        try:
            deadline = time.monotonic() + START_SECONDS_MAX
            while not _serves(client):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield process, client
        finally:
            if process.poll() is None:
                process.kill()


def _serves(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("stderr", ["closed pipe", "full", "closed"])
def test_a_server_that_nobody_hears_settles_a_write_in_doubt_and_stops_in_good_order(
    s3_server: S3Server, s3_root: str, stderr: str
) -> None:
    omnigraph.init(f"{s3_root}/graphs/atlas.omni", schema=SCHEMA)
    with S3Proxy(s3_server.endpoint) as proxy:
        env = {**s3_server.env, "AWS_ENDPOINT_URL": proxy.endpoint}
        with unheard(s3_root, env, stderr) as (process, client):
            proxy.break_next(lose_after(), method="PUT", key="__manifest/")
            answer = client.post("/graphs/atlas/mutate", json=INSERT)
            assert (answer.status_code, answer.json()["affected_nodes"]) == (200, 1)
            process.terminate()
            assert process.wait(60) == 0
