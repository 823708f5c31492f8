"""Serving processes and the clients that write to them: what is acknowledged, and what stands in storage then.

Every write leaves a mark of its own: a row, or a branch of that name, perhaps with a merge on it. What is not answered is
repeated under its key, through another server if there are several.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

import omnigraph
from faults.truth import Violation, held
from omnigraph.store.open import open_store

GRAPH = "graphs/g.omni"
SCHEMA = """
node Port { code: String @key  mark: String? }
node Note { text: String }
edge Ferry: Port -> Port { mark: String? }
"""
_PATIENCE_SECONDS = 120.0
_PORT = "query m($m: String) { insert Port { code: $m, mark: $m } }"
_NOTE = "query m($m: String) { insert Note { text: $m } }"
_FERRY = 'query m($m: String) { insert Ferry { from: "A", to: "B", mark: $m } }'
_UPDATE = 'query m($m: String) { update Port set { mark: $m } where code = "A" insert Note { text: $m } }'


class Nursery:
    """Starts servers as forks of one process (see `nursery`), each of a root and at a port."""

    def __init__(self, log: Path, env: Mapping[str, str]) -> None:
        self.log = log
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nursery.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **env, "OMNIGRAPH_LOCAL_SYNC": "off", "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def serve(self, root: str, port: int) -> int:
        """The id of the process."""
        arguments = ["--cluster", root, "--unauthenticated", "--bind", f"127.0.0.1:{port}", "--log-format", "json"]
        return self._asked({"arguments": arguments, "log": str(self.log)})

    def kill(self, process: int) -> None:
        os.kill(process, signal.SIGKILL)
        self._asked({"ended": process})

    def _asked(self, request: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery is gone"
        return int(answer)

    def close(self) -> None:
        with self._process:  # which closes both pipes, and so ends it
            pass


@dataclass
class Told:
    """What the clients know, by mark: the commit that was acknowledged, empty for a branch that was made and has none of its
    own; and every mark that was ever asked for. `branches`: the marks that are names of branches.
    """

    done: dict[str, str] = field(default_factory=dict[str, str])
    branches: set[str] = field(default_factory=set[str])
    asked: set[str] = field(default_factory=set[str])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    replayed: int = 0
    unanswered: int = 0
    unknown: int = 0


class Client(threading.Thread):
    """Writes until it is told to stop, then until its last write is answered. Who has no answer after so many seconds asks
    the next server.
    """

    def __init__(
        self,
        number: int,
        bases: Sequence[str],
        told: Told,
        guard: threading.Lock,
        stop: threading.Event,
        seed: int,
        patience_seconds: float,
    ) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._number = number
        self._bases = bases
        self._at = number % len(bases)
        self._seconds = patience_seconds
        self._told = told
        self._guard = guard
        self._stop_asked = stop
        self._draw = random.Random(seed * 100 + number)
        self.failed: str | None = None

    def run(self) -> None:
        count = 0
        try:
            with ExitStack() as stack:
                made = [httpx.Client(base_url=base, timeout=self._seconds) for base in self._bases]
                clients = [stack.enter_context(each) for each in made]
                while not self._stop_asked.is_set():
                    self._write(clients, f"c{self._number}-{count}")
                    count += 1
        except Exception as error:  # a thread's end: the round looks at it
            self.failed = f"{type(error).__name__}: {error}"

    def _write(self, clients: Sequence[httpx.Client], mark: str) -> None:
        send = self._draw.choice(
            [self._port, self._port, self._note, self._ferry, self._load, self._update, self._branch, self._merge]
        )
        with self._guard:
            self._told.asked.add(mark)
            if send in (self._branch, self._merge):
                self._told.branches.add(mark)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = send(clients[self._at], mark)
            except httpx.TransportError:
                self._at = (self._at + 1) % len(clients)
                with self._guard:
                    self._told.unanswered += 1
                time.sleep(0.05)
                continue
            if answer.status_code == 200:
                body = answer.json()
                with self._guard:
                    self._told.done[mark] = (body.get("commit") or {"graph_commit_id": ""})["graph_commit_id"]
                    self._told.replayed += bool(body.get("idempotent_replay"))
                return
            body = answer.json()
            if body["code"] == "read_set_conflict" and body["effects"] == "none":
                with self._guard:
                    self._told.refused[mark] = body["code"]
                return
            if body["code"] == "outcome_unknown":
                with self._guard:
                    self._told.unknown += 1
            elif body["retry"] != "retry":
                raise AssertionError(f"{mark}: {answer.status_code} {answer.text[:300]}")
            time.sleep(0.02)
        raise AssertionError(f"{mark} was not answered within {_PATIENCE_SECONDS:.0f} s")

    def _mutated(self, client: httpx.Client, query: str, mark: str) -> httpx.Response:
        body = {"query": query, "params": {"m": mark}}
        return client.post("/graphs/g/mutate", json=body, headers={"Idempotency-Key": mark})

    def _port(self, client: httpx.Client, mark: str) -> httpx.Response:
        return self._mutated(client, _PORT, mark)

    def _note(self, client: httpx.Client, mark: str) -> httpx.Response:
        return self._mutated(client, _NOTE, mark)

    def _ferry(self, client: httpx.Client, mark: str) -> httpx.Response:
        return self._mutated(client, _FERRY, mark)

    def _update(self, client: httpx.Client, mark: str) -> httpx.Response:
        return self._mutated(client, _UPDATE, mark)

    def _branch(self, client: httpx.Client, mark: str) -> httpx.Response:
        return client.post("/graphs/g/branches", json={"name": mark}, headers={"Idempotency-Key": mark})

    def _merge(self, client: httpx.Client, mark: str) -> httpx.Response:
        """A branch of its own takes in what came to `main` since it was made, which may be nothing."""
        made = client.post("/graphs/g/branches", json={"name": mark}, headers={"Idempotency-Key": f"{mark}-made"})
        if made.status_code != 200:
            return made
        wanted = {"source": "main", "target": mark}
        return client.post("/graphs/g/branches/merge", json=wanted, headers={"Idempotency-Key": mark})

    def _load(self, client: httpx.Client, mark: str) -> httpx.Response:
        lines = [
            {"type": "Port", "data": {"code": mark, "mark": mark}},
            {"edge": "Ferry", "from": mark, "to": "A", "data": {"mark": f"with {mark}"}},
        ]
        return client.post(
            "/graphs/g/load/ndjson?mode=append",
            content="".join(json.dumps(line) + "\n" for line in lines),
            headers={"Content-Type": "application/x-ndjson", "Idempotency-Key": mark},
        )


@dataclass
class Tally:
    """What the clients of several roots were told."""

    acknowledged: int = 0
    branches: int = 0
    replayed: int = 0
    unanswered: int = 0
    unknown: int = 0
    refused: int = 0

    def add(self, told: Told) -> None:
        self.acknowledged += len(told.done)
        self.branches += len(told.branches & set(told.done))
        self.replayed += told.replayed
        self.unanswered += told.unanswered
        self.unknown += told.unknown
        self.refused += len(told.refused)

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} acknowledged (lost 0, doubled 0; {self.branches} of them branches), {self.replayed}"
            f" answered by a repeat under the key, {self.unanswered} requests without an answer, {self.unknown} unknown,"
            f" {self.refused} refused"
        )


class Crowd:
    """Clients, and what they know together. `patience_seconds`: how long each waits for an answer."""

    def __init__(self, bases: Sequence[str], count: int, seed: int, patience_seconds: float = 10.0) -> None:
        self.told = Told()
        self._guard = threading.Lock()
        self._stop = threading.Event()
        shared = (bases, self.told, self._guard, self._stop, seed, patience_seconds)
        self._clients = [Client(number, *shared) for number in range(count)]

    def begin(self) -> None:
        for client in self._clients:
            client.start()

    def known(self) -> Told:
        """What was told by now."""
        with self._guard:
            return replace(self.told, done=dict(self.told.done), refused=dict(self.told.refused))

    def end(self, log: Path) -> None:
        """Returns when every write has its answer. Raises AssertionError, with the end of the servers' log."""
        self._stop.set()
        for client in self._clients:
            client.join(_PATIENCE_SECONDS)
            assert not client.is_alive(), f"{client.name} never ended"
            assert client.failed is None, f"{client.name}: {client.failed}\n{_tail(log)}"


def judge(root: str, told: Told) -> None:
    """Everything acknowledged is there once, nothing refused is, and nothing comes from nowhere."""
    standing = Standing(root)
    standing.judge(told)
    strangers = (set(standing.marks) - {"A", "B"} | set(standing.branches) - {"main"}) - set(told.done)
    assert not strangers, f"nobody was told of {sorted(strangers)}"
    assert set(told.done) | set(told.refused) == told.asked, "a write was never answered"
    of_main = {commit for commit in told.done.values() if commit.startswith("main@")}
    assert len(standing.log) == len(of_main) + 2, "a commit belongs to no write"


class Standing:
    """What the root holds at this moment, whether it is served or not."""

    def __init__(self, root: str) -> None:
        graph = omnigraph.open(f"{root}/{GRAPH}")
        view = graph.at(graph.head.graph_commit_id)
        self.marks: Counter[str] = Counter()
        self.marks.update(view.query("query q() { match { $p: Port } return { $p.code as c } }")["c"])
        self.marks.update(view.query("query q() { match { $n: Note } return { $n.text as t } }")["t"])
        ferries = Counter(view.query("query q() { match { $a $f:ferry $b } return { $f.mark as m } }")["m"])
        self.loaded = Counter(
            {mark.removeprefix("with "): n for mark, n in ferries.items() if mark.startswith("with ")}
        )
        self.marks.update({mark: n for mark, n in ferries.items() if not mark.startswith("with ")})
        self.log = Counter(commit.graph_commit_id for commit in view.commits.list())
        self.branches = {
            each.name: (each.graph_manifest_version, each.head_commit_id) for each in graph.branches.list()
        }
        graph.close()

    def judge(self, told: Told) -> None:
        """Everything that was acknowledged by then is there once, and nothing that was refused."""
        assert max(self.log.values()) == 1, "a commit stands twice in the log"
        for mark, commit in told.done.items():
            if mark in told.branches:
                self._judge_branch(mark, commit)
                continue
            assert self.marks[mark] == 1, f"{mark} was acknowledged as {commit} and is there {self.marks[mark]} times"
            assert self.loaded[mark] in (0, 1), f"half of the load of {mark} is there {self.loaded[mark]} times"
            assert self.log[commit] == 1, f"the commit {commit} of {mark} is not in the log"
        for mark in told.refused:
            assert self.marks[mark] == 0, f"{mark} was refused and is there"

    def _judge_branch(self, name: str, commit: str) -> None:
        assert name in self.branches, f"branch {name} was acknowledged and is not there"
        version, head = self.branches[name]
        assert version == (2 if commit else 1), f"branch {name} was made, or merged into, more than once"
        assert not commit or head == commit, f"the merge {commit} is not the head of its branch"


def until_ready(base: str) -> float:
    """Waits until the graph is served; always 0.0, to be added to."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with httpx.Client(base_url=base, timeout=5.0) as client:
        while time.monotonic() < deadline:
            try:
                if client.get("/graphs/g/branches").status_code == 200:
                    return 0.0
            except httpx.TransportError:
                pass
            time.sleep(0.01)
    raise AssertionError("the server does not come back")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-20:]) if log.exists() else ""


@contextmanager
def nursery(log: Path, env: Mapping[str, str] | None = None) -> Iterator[Nursery]:
    """The servers are gone when the block ends."""
    made = Nursery(log, env or {})
    try:
        yield made
    finally:
        made.close()


def begun(root: str) -> None:
    """A cluster with the graph that all write to."""
    graph = omnigraph.init(f"{root}/{GRAPH}", schema=SCHEMA)
    graph.mutate('query m() { insert Port { code: "A" } insert Port { code: "B" } }')
    graph.close()


@contextmanager
def explained(name: str, root: str) -> Iterator[None]:
    """What goes wrong is told with its name and with what the store held."""
    try:
        yield
    except Exception as wrong:  # an error that nobody expected is a violation too
        what = str(wrong) if isinstance(wrong, AssertionError) else f"{type(wrong).__name__}: {wrong}"
        try:
            shown = held(open_store(f"{root}/{GRAPH}")).shown()
        except Exception as unreadable:  # what it held is then that
            shown = f"  no chain: {unreadable}"
        raise Violation(f"{name}: {what}\nthe store held:\n{shown}") from wrong
