"""A serving process is killed again and again while eight clients write; each repeats what was not answered, under its key.

    python -m faults.kills ROUNDS [SEED]
    python -m faults --first kills:SEED     the rounds on one root, as a failure names them

Every write leaves a mark of its own: a row, or a branch of that name, perhaps with a merge on it. After each kill everything
that was acknowledged by then is there once, while the next process serves and is written to; at the end everything that was
ever asked for, since all of it was repeated until it was answered.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

import omnigraph
from faults.truth import Violation, held
from omnigraph.store.open import open_store

SCHEMA = """
node Port { code: String @key  mark: String? }
node Note { text: String }
edge Ferry: Port -> Port { mark: String? }
"""
CLIENTS = 8
ROUNDS_OF_A_ROOT = 25
"""Every commit adds a fragment to its table: after so many rounds a fresh root is begun."""

_PATIENCE_SECONDS = 120.0
_PORT = "query m($m: String) { insert Port { code: $m, mark: $m } }"
_NOTE = "query m($m: String) { insert Note { text: $m } }"
_FERRY = 'query m($m: String) { insert Ferry { from: "A", to: "B", mark: $m } }'
_UPDATE = 'query m($m: String) { update Port set { mark: $m } where code = "A" insert Note { text: $m } }'


class Nursery:
    """Starts servers as forks of one process (see `nursery`)."""

    def __init__(self, root: Path) -> None:
        self.log = root / "server.log"
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nursery.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMNIGRAPH_LOCAL_SYNC": "off", "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def start(self, arguments: list[str]) -> int:
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
    """Writes until it is told to stop, then until its last write is answered."""

    def __init__(
        self, number: int, base: str, told: Told, guard: threading.Lock, stop: threading.Event, seed: int
    ) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._number = number
        self._base = base
        self._told = told
        self._guard = guard
        self._stop_asked = stop
        self._draw = random.Random(seed * 100 + number)
        self.failed: str | None = None

    def run(self) -> None:
        count = 0
        try:
            with httpx.Client(base_url=self._base, timeout=10.0) as client:
                while not self._stop_asked.is_set():
                    self._write(client, f"c{self._number}-{count}")
                    count += 1
        except Exception as error:  # a thread's end: the round looks at it
            self.failed = f"{type(error).__name__}: {error}"

    def _write(self, client: httpx.Client, mark: str) -> None:
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
                answer = send(client, mark)
            except httpx.TransportError:
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
class Counts:
    """What a run saw."""

    rounds: int = 0
    acknowledged: int = 0
    branches: int = 0
    replayed: int = 0
    unanswered: int = 0
    unknown: int = 0
    refused: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        return (
            f"{self.rounds} kills, {self.acknowledged} acknowledged (lost 0, doubled 0; {self.branches} of them"
            f" branches), {self.replayed} answered by a"
            f" repeat under the key, {self.unanswered} requests without an answer, {self.unknown} unknown,"
            f" {self.refused} refused, {self.seconds:.0f} s"
        )


def kill_rounds(folder: Path, rounds: int, seed: int, report: Callable[[str], object] = lambda _: None) -> Counts:
    """Raises AssertionError if anything that was acknowledged is lost or doubled, or if a server does not come back."""
    counts = Counts()
    began = time.monotonic()
    while counts.rounds < rounds:
        root = folder / f"root-{counts.rounds}"
        with explained(root, seed + counts.rounds):
            told = _one_root(root, min(ROUNDS_OF_A_ROOT, rounds - counts.rounds), seed + counts.rounds)
        counts.rounds += min(ROUNDS_OF_A_ROOT, rounds - counts.rounds)
        counts.acknowledged += len(told.done)
        counts.branches += len(told.branches & set(told.done))
        counts.replayed += told.replayed
        counts.unanswered += told.unanswered
        counts.unknown += told.unknown
        counts.refused += len(told.refused)
        counts.seconds = time.monotonic() - began
        report(counts.line())
    return counts


@contextmanager
def explained(root: Path, seed: int) -> Iterator[None]:
    """What goes wrong is told with the seed, which draws the same writes and moments again, and what the store held."""
    try:
        yield
    except Exception as wrong:  # an error that nobody expected is a violation too
        what = str(wrong) if isinstance(wrong, AssertionError) else f"{type(wrong).__name__}: {wrong}"
        try:
            shown = held(open_store(str(root / "graphs" / "g.omni"))).shown()
        except Exception as unreadable:  # what it held is then that
            shown = f"  no chain: {unreadable}"
        raise Violation(f"kills:{seed}: {what}\nthe store held:\n{shown}") from wrong


def _one_root(root: Path, rounds: int, seed: int) -> Told:
    draw = random.Random(seed)
    graph = omnigraph.init(root / "graphs" / "g.omni", schema=SCHEMA)
    graph.mutate('query m() { insert Port { code: "A" } insert Port { code: "B" } }')
    graph.close()
    told, guard, stop = Told(), threading.Lock(), threading.Event()
    port = _free_port()
    base = f"http://127.0.0.1:{port}"
    clients = [Client(number, base, told, guard, stop, seed) for number in range(CLIENTS)]
    with _nursery(root) as nursery:
        server = _served(nursery, root, port)
        for client in clients:
            client.start()
        for number in range(rounds):
            # some kills meet the start, before anything is served
            time.sleep(draw.uniform(0.0, 0.15) if number % 10 == 9 else _until_ready(base) + draw.uniform(0.02, 0.5))
            nursery.kill(server)
            with guard:
                known = replace(told, done=dict(told.done), refused=dict(told.refused))
            server = _served(nursery, root, port)
            Standing(root).judge(known)
        _until_ready(base)
        stop.set()
        for client in clients:
            client.join(_PATIENCE_SECONDS)
            assert not client.is_alive(), f"{client.name} never ended"
            assert client.failed is None, f"{client.name}: {client.failed}\n{_tail(nursery.log)}"
        nursery.kill(server)
    judge(root, told)
    return told


def judge(root: Path, told: Told) -> None:
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

    def __init__(self, root: Path) -> None:
        graph = omnigraph.open(root / "graphs" / "g.omni")
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


def _served(nursery: Nursery, root: Path, port: int) -> int:
    return nursery.start(
        ["--cluster", str(root), "--unauthenticated", "--bind", f"127.0.0.1:{port}", "--log-format", "json"]
    )


def _until_ready(base: str) -> float:
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


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-20:]) if log.exists() else ""


@contextmanager
def _nursery(root: Path) -> Iterator[Nursery]:
    nursery = Nursery(root)
    try:
        yield nursery
    finally:
        nursery.close()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        first = int(sys.argv[2]) if len(sys.argv) > 2 else 20261130
        kill_rounds(Path(folder), int(sys.argv[1]), first, lambda line: sys.stdout.write(line + "\n"))
