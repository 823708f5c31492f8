"""Real server processes: started on a port of their own, asked over the network, stopped by signals.

with running(root) as server:
server.get("/healthz")
assert server.stopped() == 0
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

CHECKOUT = Path(__file__).resolve().parents[2]
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
PROGRAM = [sys.executable, "-m", "omnigraph.server.main"]


class Running:
    """One process. `log` grows while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self._event("serving")["address"]
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(iter(self.process.stderr.readline, ""))

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in list(self.log) if line.startswith("{")]

    def _event(self, name: str) -> dict[str, Any]:
        """Waits for a line of the log."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            for event in self.events():
                if event["event"] == name:
                    return event
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no '{name}' in the log:\n{''.join(self.log)}")

    def wait_for(self, name: str) -> dict[str, Any]:
        return self._event(name)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=_named(headers))

    def post(self, path: str, value: Any, **headers: str) -> httpx.Response:
        return self.client.post(path, json=value, headers=_named(headers))

    def insert(self, code: str, *, graph: str = "atlas", **given: Any) -> httpx.Response:
        headers = {name: given.pop(name) for name in ("idempotency_key", "omnigraph_if_graph_commit") if name in given}
        query = "query add($c: String) { insert Port { code: $c } }"
        return self.post(f"/graphs/{graph}/mutate", {"query": query, "params": {"c": code}, **given}, **headers)

    def codes(self, graph: str = "atlas", **given: Any) -> list[str]:
        query = "query codes() { match { $p: Port } return { $p.code as c } order { c } }"
        answer = self.post(f"/graphs/{graph}/query", {"query": query, **given})
        assert answer.status_code == 200, answer.text
        return [row["c"] for row in answer.json()["rows"]]

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """The exit code, once the process has ended by itself."""
        code = self.process.wait(STOP_SECONDS_MAX)
        self._reader.join(10)
        return code

    def stopped(self) -> int:
        self.signal()
        return self.ended()


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@contextmanager
def running(
    cluster: Path | str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
) -> Iterator[Running]:
    """A server that listens and has opened its graphs."""
    command = [
        *program,
        "--cluster",
        str(cluster),
        "--unauthenticated",
        "--bind",
        "127.0.0.1:0",
        "--log-format",
        "json",
    ]
    process = subprocess.Popen(
        [*command, *arguments], stderr=subprocess.PIPE, text=True, cwd=CHECKOUT, env={**os.environ, **(env or {})}
    )
    with process:
        try:
            server = Running(process)
            server.wait_for("ready")
            with server.client:
                yield server
        finally:
            if process.poll() is None:
                process.kill()


def refused_start(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A process that is expected to end by itself."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        env={**os.environ, **(env or {})},
        timeout=START_SECONDS_MAX,
        check=False,
    )
