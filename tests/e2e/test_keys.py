"""A write under a key is done once, whichever door repeats it, after a restart and after a kill (interfaces.md 5.4).

The record of a key is the commit itself, so it is there exactly when the commit is.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph
from omnigraph.errors import IdempotencyKeyReused
from server.asgi import done, refused
from server.conftest import Served
from server.processes import running
from support.command_line import run_program
from support.doors import CODES, GRAPH, WRITES, Write, prepared

EACH = pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
DOORS = ("python", "command line", "http")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    prepared(tmp_path)
    return tmp_path


def sent(door: str, root: Path, write: Write, key: str) -> dict[str, Any]:
    """The answer of a write at a door, by a process that knows nothing of the graph yet."""
    match door:
        case "python":
            return write.python(omnigraph.open(root / GRAPH), key).to_dict()
        case "command line":
            ran = run_program(*write.words(root, key))
            assert ran.code == 0, ran
            return ran.json
        case _:
            served = Served(root)
            try:
                request = write.request(key)
                reply = served.send(request.method, request.path, headers=request.headers.items(), body=request.body)
                answer = done(reply)
                assert (reply.headers.get("idempotency-replayed") == "true") == ("idempotent_replay" in answer)
                return answer
            finally:
                served.operations.finish()
                served.close()


def standing(root: Path, write: Write) -> list[str]:
    return omnigraph.open(root / GRAPH).on(write.branch).query(CODES).scalars()


@EACH
@pytest.mark.parametrize("door", DOORS)
def test_a_repeat_at_any_door_gives_the_first_receipt(root: Path, write: Write, door: str) -> None:
    first = sent(door, root, write, "k")
    assert "idempotent_replay" not in first
    for again in DOORS:
        assert sent(again, root, write, "k") == {**first, "idempotent_replay": True}, again
    assert standing(root, write) == list(write.codes)


@EACH
def test_a_key_that_was_used_for_another_request_is_refused_at_every_door(root: Path, write: Write) -> None:
    graph = omnigraph.open(root / GRAPH)
    write.python(graph, "k")
    with pytest.raises(IdempotencyKeyReused) as caught:
        write.python(graph, "k", changed=True)
    assert (caught.value.effects, caught.value.retry) == ("none", "fix")
    ran = run_program(*write.words(root, "k", changed=True))
    assert (ran.code, ran.json["code"]) == (1, "idempotency_key_reused")
    assert ran.json["command_outcome"] == {"execution": "finished", "effects": "none", "action": "fix"}
    served = Served(root)
    request = write.request("k", changed=True)
    reply = served.send(request.method, request.path, headers=request.headers.items(), body=request.body)
    refused(reply, 422, "idempotency_key_reused", effects="none")
    served.close()
    assert standing(root, write) == list(write.codes)


@EACH
def test_another_actor_s_equal_key_is_another_key(root: Path, write: Write) -> None:
    write.python(omnigraph.open(root / GRAPH, actor="ann"), "k")
    try:
        again = write.python(omnigraph.open(root / GRAPH, actor="bob"), "k")
    except omnigraph.errors.Conflict:
        return  # it was done a second time, and the name or the id is taken
    assert not again.replayed


# --- a process that is killed when its publication has landed and before it has answered

KILLED = """
import os, signal, sys
from omnigraph.store.local import LocalStore
really = LocalStore.create
def create(self, key, data):
    outcome = really(self, key, data)
    if key.startswith("__manifest/"):
        os.kill(os.getpid(), signal.SIGKILL)
    return outcome
LocalStore.create = create
"""
PROGRAMS = {
    "python": KILLED
    + """
import omnigraph
from support.doors import WRITES
WRITES[int(sys.argv[1])].python(omnigraph.open(sys.argv[2]), "k")
""",
    "command line": KILLED + "from omnigraph.cli.main import main\nmain()",
    "http": KILLED + "from omnigraph.server.main import main\nsys.exit(main())",
}


KILLS = [
    *(("python", write) for write in WRITES),
    *(("command line", write) for write in WRITES if write.name in ("load that forks", "merge")),
    *(("http", write) for write in WRITES if write.name in ("mutate", "branch create")),
]


@pytest.mark.parametrize(("door", "write"), KILLS, ids=[f"{door}: {write.name}" for door, write in KILLS])
def test_a_kill_between_publication_and_answer_loses_nothing_and_doubles_nothing(
    root: Path, write: Write, door: str
) -> None:
    program = [sys.executable, "-c", PROGRAMS[door]]
    if door == "http":
        request = write.request("k")
        with running(root, program=program) as server:
            with pytest.raises(httpx.TransportError):
                server.client.request(request.method, request.path, content=request.body, headers=request.headers)
            assert server.ended() == -signal.SIGKILL
    else:
        words = write.words(root, "k") if door != "python" else [str(WRITES.index(write)), str(root / GRAPH)]
        ended = subprocess.run([*program, *words], capture_output=True, check=False, timeout=60)
        assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b""), ended.stderr.decode()
    assert standing(root, write) == list(write.codes), "it had landed"
    answers = [sent(again, root, write, "k") for again in DOORS]
    assert answers[0]["idempotent_replay"] is True
    assert answers[1:] == answers[:1] * 2
    assert standing(root, write) == list(write.codes)
