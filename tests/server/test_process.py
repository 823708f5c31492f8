"""The process: what it boots from, when it refuses to, how it ends, and that it owns its root meanwhile."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.cluster.apply import apply
from omnigraph.cluster.ownership import acquire
from omnigraph.errors import LockHeld
from server.conftest import SCHEMA
from server.processes import CHECKOUT, PROGRAM, refused_start, running
from support.proxy import Exchange, S3Proxy
from support.seaweed import S3Server

OPEN = ("--unauthenticated", "--bind", "127.0.0.1:0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration folder with one graph, applied."""
    place = tmp_path / "config"
    place.mkdir()
    (place / "atlas.pg").write_text(SCHEMA)
    (place / "cluster.yaml").write_text("version: 1\ngraphs:\n  atlas: { schema: atlas.pg }\n")
    apply(place)
    return place


def damage(folder: Path, graph: str) -> None:
    [manifest] = (folder / "graphs" / f"{graph}.omni" / "__manifest" / "main").glob("*.json")
    manifest.write_bytes(b"{")


# --- boots


def test_a_server_owns_its_root_from_boot_to_end_and_stops_in_good_order(folder: Path) -> None:
    graph = omnigraph.open(folder / "graphs" / "atlas.omni")
    with running(folder) as server:
        assert server.get("/readyz").json()["status"] == "serving"
        [entry] = server.get("/graphs").json()["graphs"]
        assert (entry["graph_id"], entry["state"]) == ("atlas", "ready")
        assert server.insert("A").status_code == 200
        with pytest.raises(LockHeld, match=f"process {server.process.pid}") as refused:
            graph.mutate('query add() { insert Port { code: "B" } }')
        assert refused.value.effects == "none"
        assert graph.query("query q() { match { $p: Port } return { $p.code } }").scalars() == ["A"]
        second = refused_start("--cluster", str(folder), *OPEN)
        assert (second.returncode, "state_lock_held" in second.stderr) == (1, True)
        assert server.stopped() == 0
    graph.mutate('query add() { insert Port { code: "B" } }')
    with acquire(str(folder)):
        pass
    assert {event["event"] for event in server.events()} >= {"graph ready", "ready", "shutdown started", "stopped"}
    requests = [event for event in server.events() if event["event"] == "request"]
    assert [(r["method"], r["route"], r["status"]) for r in requests][-1] == ("POST", "/graphs/{g}/mutate", 200)
    assert all(line.startswith("{") for line in server.log), "one line is one object"


def test_an_empty_cluster_is_served(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("version: 1\nstorage: data\n")
    with running(tmp_path, "--bind", "localhost:0") as server:
        assert server.get("/readyz").json()["status"] == "serving"
        assert server.get("/graphs").json() == {"graphs": []}
        assert server.get("/graphs/atlas").status_code == 404
        assert server.stopped() == 0


def test_a_graph_that_is_damaged_blocks_itself_alone(folder: Path) -> None:
    omnigraph.init(folder / "graphs" / "tides.omni", schema=SCHEMA)
    damage(folder, "tides")
    (folder / "atlas.pg").write_text("what is served comes from storage")
    with running(folder) as server:
        assert server.get("/readyz").json()["status"] == "degraded"
        states = {entry["graph_id"]: entry for entry in server.get("/graphs").json()["graphs"]}
        assert (states["tides"]["state"], states["tides"]["failure"]) == ("blocked", "open_failed")
        assert server.insert("A", graph="tides").json()["code"] == "graph_unavailable"
        assert server.insert("A").status_code == 200
        assert server.stopped() == 0
    [blocked] = [event for event in server.events() if event["event"] == "graph blocked"]
    assert (blocked["failure"], blocked["detail"]["class"]) == ("storage_failure", "corrupt")
    assert str(folder) not in str(blocked)


REFUSALS: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "tokens are wanted": (lambda place: ["--cluster", str(place), "--bind", "127.0.0.1:0"], "--unauthenticated"),
    "everybody could reach it": (
        lambda place: ["--cluster", str(place), "--unauthenticated", "--bind", "0.0.0.0:0"],
        "loopback",
    ),
    "a flag is not understood": (lambda place: ["--cluster", str(place), *OPEN, "--frobnicate"], "unrecognized"),
    "there is no folder": (lambda place: ["--cluster", f"{place}/nothing", *OPEN], "cluster_root_unresolved"),
    "a folder that is no cluster": (
        lambda place: ["--cluster", f"{place}/graphs/atlas.omni", *OPEN],
        "cluster_state_missing",
    ),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_a_refused_start_ends_with_1_and_says_why(folder: Path, reason: str) -> None:
    arguments, says = REFUSALS[reason]
    done = refused_start(*arguments(folder))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("omnigraph-server: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    with acquire(str(folder)):
        pass


@pytest.mark.parametrize("variable", ["OMNIGRAPH_MAX_RESULT_ROWS", "OMNIGRAPH_WRITE_BYTES", "OMNIGRAPH_CACHE_BYTES"])
def test_a_bad_value_of_a_variable_refuses_the_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "many")
    done = refused_start("--cluster", str(folder), *OPEN)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"invalid_setting: {variable}" in done.stderr


def test_a_folder_that_was_never_applied_or_is_damaged_refuses(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("version: 1\nstorage: data\ngraphs: { atlas: { schema: x.pg } }\n")
    done = refused_start("--cluster", str(tmp_path), *OPEN)
    assert (done.returncode, "cluster_state_missing" in done.stderr) == (1, True)
    assert not (tmp_path / "data").exists(), "nothing is made by a refusal"
    (folder / "cluster.yaml").write_text("version: 1\ngraphs: {")
    done = refused_start("--cluster", str(folder), *OPEN)
    assert (done.returncode, "invalid_configuration" in done.stderr) == (1, True)


def test_a_port_that_is_taken_refuses_and_owns_nothing(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = refused_start("--cluster", str(folder), "--unauthenticated", "--bind", place)
    assert (done.returncode, place in done.stderr) == (1, True)


def test_no_healthy_graph_or_any_blocked_one_where_all_are_demanded_refuses(folder: Path) -> None:
    damage(folder, "atlas")
    check = refused_start("--cluster", str(folder), "--check")
    assert (check.returncode, check.stdout) == (1, "1 graphs\natlas: blocked\n")
    done = refused_start("--cluster", str(folder), *OPEN)
    assert (done.returncode, "cluster_no_healthy_graphs" in done.stderr) == (1, True)
    omnigraph.init(folder / "graphs" / "tides.omni", schema=SCHEMA)
    done = refused_start("--cluster", str(folder), *OPEN, "--require-all-graphs")
    assert (done.returncode, "graphs can't be opened: atlas" in done.stderr) == (1, True)


def test_a_check_takes_no_lock(folder: Path) -> None:
    with acquire(str(folder)):
        check = refused_start("--cluster", str(folder), "--check")
    assert (check.returncode, check.stdout) == (0, "1 graphs\natlas: ready\n")


def test_help_needs_no_engine() -> None:
    script = "import sys\nfrom omnigraph.server.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\nassert not {'lance', 'pyarrow', 'duckdb', 'fastapi'} & set(sys.modules)"
    subprocess.run([PROGRAM[0], "-c", script], cwd=CHECKOUT, check=True, capture_output=True)


# --- ends, with a write under way


class Gate:
    """A fault that holds a request until it is opened, then passes it on."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, exchange: Exchange) -> bytes | None:
        self.reached.set()
        self.opened.wait(60)
        answer = exchange.forward()
        return answer.head + answer.body


class Behind:
    """A cluster in a bucket, whose requests a test can hold."""

    def __init__(self, proxy: S3Proxy, s3: S3Server, root: str) -> None:
        self.proxy = proxy
        self.root = root
        self.env = {**s3.env, "AWS_ENDPOINT_URL": proxy.endpoint}

    def hold_publication(self) -> Gate:
        gate = Gate()
        self.proxy.break_next(gate, method="PUT", key="__manifest/")
        return gate

    def codes(self) -> list[str]:
        query = "query q() { match { $p: Port } return { $p.code as c } order { c } }"
        return omnigraph.open(f"{self.root}/graphs/atlas.omni").query(query).scalars()


@pytest.fixture
def behind(s3_server: S3Server, s3_root: str) -> Iterator[Behind]:
    omnigraph.init(f"{s3_root}/graphs/atlas.omni", schema=SCHEMA)
    with S3Proxy(s3_server.endpoint) as proxy:
        yield Behind(proxy, s3_server, s3_root)


def test_a_write_that_was_admitted_is_finished_after_the_stop_signal(behind: Behind) -> None:
    with running(behind.root, env=behind.env) as server, ThreadPoolExecutor() as pool:
        gate = behind.hold_publication()
        writing = pool.submit(server.insert, "A")
        assert gate.reached.wait(60)
        server.signal()
        server.wait_for("shutdown started")
        gate.opened.set()
        answer = writing.result(60)
        assert answer.status_code == 200
        assert server.ended() == 0
    assert behind.codes() == ["A"]


def test_a_caller_that_gave_up_cancels_nothing_and_its_key_finds_the_receipt_after_a_restart(behind: Behind) -> None:
    with running(behind.root, env=behind.env) as server:
        gate = behind.hold_publication()
        body = {"query": 'query add() { insert Port { code: "A" } }'}
        with httpx.Client(base_url=server.url, timeout=1) as impatient, pytest.raises(httpx.ReadTimeout):
            impatient.post("/graphs/atlas/mutate", json=body, headers={"idempotency-key": "k"})
        again = server.post("/graphs/atlas/mutate", body, idempotency_key="k")
        assert (again.status_code, again.json()["code"]) == (409, "idempotency_in_flight")
        gate.opened.set()
        assert server.stopped() == 0
    with running(behind.root, env=behind.env) as server:
        answer = server.post("/graphs/atlas/mutate", body, idempotency_key="k")
        assert answer.json()["idempotent_replay"] is True
        commit = answer.json()["commit"]["graph_commit_id"]
        assert server.get(f"/graphs/atlas/commits/{commit}/outcome").json()["outcome"] == "published"
        assert server.codes() == ["A"]


@pytest.mark.parametrize("cut", ["second signal", "grace"])
def test_what_does_not_end_in_time_is_cut_off_with_2(behind: Behind, cut: str) -> None:
    grace = "1" if cut == "grace" else "60"
    with (
        running(behind.root, "--shutdown-grace-seconds", grace, env=behind.env) as server,
        ThreadPoolExecutor() as pool,
    ):
        gate = behind.hold_publication()
        writing = pool.submit(server.insert, "A")
        assert gate.reached.wait(60)
        server.signal()
        server.wait_for("shutdown started")
        if cut == "second signal":
            server.signal(signal.SIGINT)
        assert server.ended() == 2
        with pytest.raises(httpx.TransportError):
            writing.result(60)
        gate.opened.set()
    cutoff = server.wait_for("shutdown cutoff")
    assert [each["kind"] for each in cutoff["unfinished"]] == ["write"]
    assert behind.codes() in ([], ["A"]), "either, and nothing between"


def test_a_caller_that_leaves_in_the_middle_of_its_load_cancels_nothing(behind: Behind) -> None:
    lines = b"".join(b'{"type": "Port", "data": {"code": "%02d"}}\n' % n for n in range(50))
    head = (
        b"POST /graphs/atlas/load/ndjson?mode=append HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % len(lines)
    )
    with running(behind.root, env=behind.env) as server:
        with server.connect() as half:  # one leaves before its body is whole
            half.sendall(head + lines[:-9])
        gate = behind.hold_publication()
        with server.connect() as connection:
            connection.sendall(head + lines)
            assert gate.reached.wait(60)
        gate.opened.set()
        assert server.stopped() == 0
    assert behind.codes() == [f"{n:02}" for n in range(50)]
    graph = omnigraph.open(f"{behind.root}/graphs/atlas.omni")
    assert [commit.kind for commit in graph.commits.list()] == ["load", "genesis"]
