"""A write that ends without any proof ends the process: admission closes, what was admitted has the grace, exit code 2."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.cluster.ownership import acquire
from omnigraph.errors import (
    BranchNotFound,
    InternalError,
    LimitExceeded,
    OmnigraphError,
    OutcomeUnknown,
    ReadSetConflict,
    RecoveryRequired,
    StorageClass,
    StorageFailure,
    StoragePhase,
)
from omnigraph.server.containment import reason_to_contain
from server.conftest import SCHEMA
from server.processes import Running, running

PATIENCE_SECONDS = 60

MORE = "# more\n"
# A server with a fault: a write with the message "break" meets it once its rows are staged; one with the message "hold"
# waits there until the file is made that the first argument names.
BROKEN = """
import os, sys, time
from omnigraph.engine.writing import groups
flag = sys.argv.pop(1)
really = groups.commit_draft
def commit_draft(request, *more):
    if request.message == "break":
        raise ZeroDivisionError("a secret value")
    while request.message == "hold" and not os.path.exists(flag):
        time.sleep(0.01)
    return really(request, *more)
groups.commit_draft = commit_draft
# more
from omnigraph.server.main import main
sys.exit(main())
"""


def storage_failure(cls: StorageClass) -> StorageFailure:
    return StorageFailure("x", cls=cls, phase=StoragePhase.READ)


@pytest.mark.parametrize(
    ("error", "before", "after"),
    [
        (ZeroDivisionError(), None, "X1"),
        (SystemExit(), None, "X1"),
        (InternalError("x"), None, "X4"),
        (InternalError("x", effects="unknown"), None, "X4"),
        (InternalError("x", effects="none"), None, None),
        (RecoveryRequired("x"), "X3", "X3"),
        (OutcomeUnknown("x", kind="commit", branch="b", base_commit_id=None, graph_commit_id=None), None, None),
        (ReadSetConflict("x", member="schema"), None, None),
        (BranchNotFound("x"), None, None),
        (LimitExceeded("x", resource="r", limit=1, actual=2), None, None),
        *[(storage_failure(cls), None, None) for cls in StorageClass],
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_only_a_failure_without_proof_after_staging_began_stops_the_process(
    error: BaseException, before: str | None, after: str | None
) -> None:
    assert reason_to_contain(error, staged=False) == before
    assert reason_to_contain(error, staged=True) == after
    if isinstance(error, OmnigraphError) and after is None:
        error.of_write(staged=True)
        assert error.effects == ("unknown" if isinstance(error, OutcomeUnknown) else "none")


class Broken:
    """A cluster whose server has the fault above."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.flag = root / "go on"
        self.graph = omnigraph.init(root / "graphs" / "atlas.omni", schema=SCHEMA)
        self.graph.branches.create("aside")
        self._pool = ThreadPoolExecutor(2)

    @contextmanager
    def serving(self, *arguments: str, more: str = "") -> Iterator[Running]:
        program = [sys.executable, "-c", BROKEN.replace(MORE, more), str(self.flag)]
        with running(self.root, *arguments, program=program) as server:
            yield server
        self._pool.shutdown()

    def held(self, server: Running) -> Future[httpx.Response]:
        """A write on another branch that has staged its rows and waits."""
        writing = self._pool.submit(server.insert, "H", branch="aside", message="hold")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not list(self.root.glob("graphs/atlas.omni/nodes/*/data/*")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return writing

    def codes(self, branch: str) -> list[str]:
        return self.graph.on(branch).query("query q() { match { $p: Port } return { $p.code as c } }").scalars()


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    return Broken(tmp_path)


def test_a_fault_after_staging_began_drains_and_ends_with_2(broken: Broken) -> None:
    with broken.serving() as server:
        held = broken.held(server)
        answer = server.insert("A", message="break")
        assert (answer.status_code, answer.json()["code"], answer.json()["effects"]) == (500, "internal", "unknown")
        assert server.wait_for("admission closed")["reason"] == "X1"
        server.wait_for("shutdown started")
        assert server.process.poll() is None, "what was admitted is waited for"
        server.signal(signal.SIGTERM)  # the first signal of an operator extends nothing and cuts nothing
        broken.flag.touch()
        assert held.result(PATIENCE_SECONDS).status_code == 200
        assert server.ended() == 2
    events = [event["event"] for event in server.events()]
    assert "shutdown cutoff" not in events
    assert "stopped" not in events
    [kept] = [event for event in server.events() if event["event"] == "cluster lock retained"]
    assert (kept["reason"], kept["poisoned_keys"]) == ("containment", 0)
    assert "secret" not in "".join(server.log)
    assert (broken.codes("main"), broken.codes("aside")) == ([], ["H"])
    with acquire(str(broken.root)):
        pass


# A server that goes on for a while after its cut-off, as one whose log stalls, and whose held writes go on then.
STALLED = """
import time
from omnigraph.server import shutdown
really_told = shutdown.log_event
def log_event(logger, level, event, **fields):
    really_told(logger, level, event, **fields)
    if event == "shutdown cutoff":
        open(flag, "x").close()
        time.sleep(3)
shutdown.log_event = log_event
"""


def test_from_the_cut_off_on_nothing_is_sent_to_be_published(broken: Broken) -> None:
    with broken.serving(more=STALLED) as server:
        held = broken.held(server)
        server.signal(signal.SIGTERM)
        server.wait_for("shutdown started")
        server.signal(signal.SIGINT)
        refusal = held.result(PATIENCE_SECONDS)
        assert (refusal.status_code, refusal.json()["code"], refusal.json()["effects"]) == (
            503,
            "server_draining",
            "none",
        )
        assert server.ended() == 2
    assert broken.codes("aside") == []


@pytest.mark.parametrize("cut", ["grace", "signals"])
def test_the_drain_of_a_contained_process_is_bounded_like_any_other(broken: Broken, cut: str) -> None:
    with broken.serving("--shutdown-grace-seconds", "1" if cut == "grace" else "600") as server:
        held = broken.held(server)
        assert server.insert("A", message="break").status_code == 500
        server.wait_for("shutdown started")
        if cut == "signals":
            server.signal(signal.SIGTERM)
            server.signal(signal.SIGINT)
        assert server.ended() == 2
        with pytest.raises(httpx.TransportError):
            held.result(PATIENCE_SECONDS)
    assert server.wait_for("shutdown cutoff")["reason"] == (
        "the grace is over" if cut == "grace" else "a second signal"
    )
    assert broken.codes("aside") == []
