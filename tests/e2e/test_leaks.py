"""Nothing that a lower layer says reaches an answer, an error or a log line.

Every line of the package that calls the storage client, the table library, the operating system, Arrow or DuckDB is made
to fail with a message that holds addresses, paths and secrets, in Python, on the command line and over HTTP. Then a real
server is made to say such things, where no patch of ours stands between. In Python alone, what Arrow says of a fault of
this package passes as it is.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import OmnigraphError, OutcomeUnknown
from server.asgi import sound
from server.conftest import Served
from support.command_line import Ran, run_program
from support.doors import CODES, GRAPH, INSERT, SCHEMA, WRITES, line, prepared
from support.hostile import SECRET, TEXT, Boundary, Place
from support.proxy import Exchange, Fault, S3Proxy
from support.seaweed import S3Server
from support.wire import response

EVERY = int(os.environ.get("OMNIGRAPH_LEAKS_EVERY", "0"))
"""Every so many places are tried; 0 leaves it to each test."""

GROUPED = """query grouped() {
  match { $p: Port  not { $p ferry $q } }
  return { $p.name as name, count($p) as n, max($p.code) as last } order { n desc, name } limit 5
}"""
HOPS = "query hops() { match { $p: Port  $p ferry $q } return { $p.code as a, $q.code as b } order { a, b } }"
OWN_FILE = ("error[bad_request]: --data ", "error[bad_request]: --schema ")
"""A file that the caller named, and that could not be read, is called as the caller called it."""
SCHEMA_GROWN = SCHEMA + " node Quay { code: String @key }"


FERRY = 'query f() { insert Ferry { from: "0", to: "0", line: "L" } }'


def optimized(root: Path) -> None:
    """The error of a type that could not be done is in the answer; here it is raised."""
    for each in omnigraph.open(root / GRAPH).maintenance.optimize(full=True).types:
        if each.error is not None:
            raise each.error


PYTHON: dict[str, Callable[[Path], object]] = {
    "init": lambda root: omnigraph.init(root / "new.omni", schema=SCHEMA),
    "open and list": lambda root: [
        omnigraph.open(root / GRAPH).branches.list(),
        list(omnigraph.open(root / GRAPH).commits.list()),
        omnigraph.open(root / GRAPH).info(),
        omnigraph.open(root / GRAPH).summary(),
    ],
    "query": lambda root: omnigraph.open(root / GRAPH).query(GROUPED).arrow(),
    "hops": lambda root: omnigraph.open(root / GRAPH).query(HOPS).arrow(),
    "read the past": lambda root: omnigraph.open(root / GRAPH).query(
        CODES, snapshot=omnigraph.open(root / GRAPH).head.parent_commit_id or ""
    ),
    "export": lambda root: list(omnigraph.open(root / GRAPH).export() or ()),
    "outcome": lambda root: omnigraph.open(root / GRAPH).commits.outcome("main@9-0011223344556677"),
    **{write.name: (lambda root, write=write: write.python(omnigraph.open(root / GRAPH), "k")) for write in WRITES},
    "edge": lambda root: omnigraph.open(root / GRAPH).mutate(FERRY),
    "update": lambda root: omnigraph.open(root / GRAPH).mutate(
        'query u() { update Port set { name: "N" } where code = "0" }'
    ),
    "delete": lambda root: (
        omnigraph.open(root / GRAPH).on("side").mutate('query d() { delete Port where code = "side" }')
    ),
    "overwrite": lambda root: omnigraph.open(root / GRAPH).load(
        line("0") + line("Z"), mode="overwrite", progress=False
    ),
    "branch delete": lambda root: omnigraph.open(root / GRAPH).branches.delete("side"),
    "schema plan": lambda root: omnigraph.open(root / GRAPH).schema.plan(SCHEMA_GROWN),
    "schema apply": lambda root: omnigraph.open(root / GRAPH).schema.apply(SCHEMA_GROWN),
    "optimize": lambda root: optimized(root),
}

HTTP: dict[str, tuple[str, str, str, bytes]] = {
    "query": ("POST", "/query", "application/json", json.dumps({"query": GROUPED}).encode()),
    "hops": ("POST", "/query", "application/json", json.dumps({"query": HOPS}).encode()),
    "branches": ("GET", "/branches", "", b""),
    "commits": ("GET", "/commits", "", b""),
    "schema": ("GET", "/schema", "", b""),
    "snapshot": ("GET", "/snapshot", "", b""),
    "outcome": ("GET", "/commits/main@9-0011223344556677/outcome", "", b""),
    "export": ("POST", "/export", "application/json", b"{}"),
    **{
        write.name: ("POST", request.path.removeprefix("/graphs/atlas"), request.content_type, request.body)
        for write in WRITES
        for request in (write.request(),)
    },
    "branch delete": ("DELETE", "/branches/side", "", b""),
}

COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "query": lambda root: ["query", "-e", GROUPED, "--store", str(root / GRAPH)],
    "export": lambda root: ["export", str(root / GRAPH)],
    "log": lambda root: ["commit", "list", "--store", str(root / GRAPH)],
    "outcome": lambda root: ["commit", "outcome", "main@9-0011223344556677", "--store", str(root / GRAPH)],
    "snapshot": lambda root: ["snapshot", str(root / GRAPH)],
    **{
        write.name: (lambda root, write=write: [word for word in write.words(root) if word != "--json"])
        for write in WRITES
    },
    "branch delete": lambda root: ["branch", "delete", "side", "--store", str(root / GRAPH)],
    "init": lambda root: ["init", str(root / "new.omni"), "--schema", str(root / "schema.pg")],
    "schema apply": lambda root: ["schema", "apply", str(root / GRAPH), "--schema", str(root / "grown.pg")],
    "optimize": lambda root: ["optimize", str(root / GRAPH)],
}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "full")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    prepared(root, FERRY)
    (root / "schema.pg").write_text(SCHEMA)
    (root / "grown.pg").write_text(SCHEMA_GROWN)
    return root


@pytest.fixture
def fresh(template: Path, tmp_path: Path) -> Callable[[], Path]:
    """Copies of the cluster, the one before removed."""
    root = tmp_path / "root"

    def copied() -> Path:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(template, root)
        return root

    return copied


@pytest.fixture
def boundary() -> Iterator[Boundary]:
    with Boundary() as boundary:
        yield boundary


def clean(what: str, *texts: str) -> None:
    for text in texts:
        assert SECRET not in text, f"{what} said: {text}"


class Logged(logging.Handler):
    """Lines of the package's own, as a program's logging gets them."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.__dict__.get('omnigraph')} {record.exc_text}")


@pytest.fixture
def logged() -> Iterator[Logged]:
    handler = Logged()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def failure(what: str, call: Callable[[], object]) -> OmnigraphError | None:
    """The typed error that this ends in, none of whose words is from below. Others pass."""
    try:
        call()
    except OmnigraphError as error:
        clean(what, "".join(traceback.format_exception(error)), json.dumps(error.to_dict()))
        return error
    return None


@contextlib.contextmanager
def booted(root: Path | str) -> Iterator[Served | None]:
    """A server; None for one whose start is refused, in words of its own."""
    try:
        served = Served(root)
    except OmnigraphError as error:
        clean("a refused start", "".join(traceback.format_exception(error)), json.dumps(error.to_dict()))
        yield None
        return
    try:
        yield served
    finally:
        served.operations.finish()
        served.close()


def chosen(found: Sequence[tuple[str, Place]], every: int) -> Sequence[tuple[str, Place]]:
    return found[:: EVERY or every]


def first_to_reach(
    boundary: Boundary, fresh: Callable[[], Path], run: Callable[[str, Path], object], names: Sequence[str]
) -> list[tuple[str, Place]]:
    """Each place with the first of the operations that comes by."""
    found: dict[Place, str] = {}
    for name in names:
        root = fresh()
        boundary.reached()
        run(name, root)
        for place in boundary.reached():
            found.setdefault(place, name)
    return [(name, place) for place, name in found.items()]


@pytest.mark.timeout(600)
def test_python_is_told_nothing_of_what_a_lower_layer_said(
    fresh: Callable[[], Path], boundary: Boundary, logged: Logged, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, root: Path) -> object:
        return PYTHON[name](root)

    places = first_to_reach(boundary, fresh, run, list(PYTHON))
    assert {place.library for _, place in places} >= {"os", "lance", "pyarrow"}
    failed = 0
    for number, (name, place) in enumerate(chosen(places, 1)):
        root = fresh()
        what = f"{name} at {place}"
        error = None
        # Arrow refuses what a fault of this package gave it. Storage fails in typed words only.
        untyped = [pa.ArrowException] if place.library == "pyarrow" else []
        with boundary.failing(place, number), contextlib.suppress(*untyped):
            error = failure(what, lambda name=name, root=root: run(name, root))
        if error is not None:
            failed += 1
            assert str(root) not in error.message, f"{what}: {error.message}"
        if (root / GRAPH).exists():
            assert omnigraph.open(root / GRAPH).branches.get("main").name == "main", "and nothing else suffers"
    assert failed > 20
    out, err = capfd.readouterr()
    clean("the log, or what the libraries print", out, err, *logged.lines)


def test_a_start_that_a_lower_layer_spoils_is_refused_in_words_of_its_own(
    fresh: Callable[[], Path], boundary: Boundary, logged: Logged, capfd: pytest.CaptureFixture[str]
) -> None:
    boundary.reached()
    with booted(fresh()) as served:
        assert served is not None
    refused = 0
    for number, place in enumerate(boundary.reached()):
        root = fresh()
        with boundary.failing(place, number), booted(root) as served:
            refused += served is None
    assert refused > 0
    out, err = capfd.readouterr()
    clean("the log", out, err, *logged.lines)


@pytest.mark.timeout(600)
def test_a_caller_over_http_and_the_server_s_log_are_told_nothing_of_it(
    fresh: Callable[[], Path], boundary: Boundary, logged: Logged, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, root: Path) -> tuple[int, list[str]]:
        with booted(root) as served:
            if served is None:
                return 0, []
            method, path, content_type, body = HTTP[name]
            headers = [("content-type", content_type)] if body else []
            reply = sound(served.send(method, f"/graphs/atlas{path}", headers=headers, body=body))
            text = reply.body.decode()
            if reply.status >= 400:
                assert str(root) not in text, text
            return reply.status, [text, str(reply.headers)]

    def undisturbed(name: str, root: Path) -> None:
        status, told = run(name, root)
        assert status == 200, (name, told)

    places = first_to_reach(boundary, fresh, undisturbed, list(HTTP))
    failed = 0
    for number, (name, place) in enumerate(chosen(places, 3)):
        root = fresh()
        with boundary.failing(place, number):
            status, told = run(name, root)
        failed += status >= 500
        clean(f"{name} at {place}", *told)
    assert failed > 5
    out, err = capfd.readouterr()
    clean("the log", out, err, *logged.lines)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["terminal", "--verbose", "--json"])
def test_the_command_line_prints_nothing_of_it(
    fresh: Callable[[], Path], boundary: Boundary, logged: Logged, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    words = [] if form == "terminal" else [form]

    def run(name: str, root: Path) -> Ran:
        more = words if (name, form) != ("export", "--json") else []
        return run_program(*COMMANDS[name](root), *more)

    def undisturbed(name: str, root: Path) -> None:
        ran = run(name, root)
        assert ran.code == 0, (name, ran)

    places = first_to_reach(boundary, fresh, undisturbed, list(COMMANDS))
    failed = 0
    offset = ["terminal", "--verbose", "--json"].index(form)
    for number, (name, place) in enumerate(chosen(places[offset:], 5)):
        root = fresh()
        with boundary.failing(place, number):
            ran = run(name, root)
        failed += ran.code != 0
        clean(f"{name} at {place}", ran.out, ran.err)
        for told in ran.err.splitlines():
            if told.startswith("error[") and not told.startswith(OWN_FILE):
                assert str(root) not in told, told
    assert failed > 3
    out, err = capfd.readouterr()
    clean("the log", out, err, *logged.lines)


def test_in_python_arrow_s_own_words_on_arrow_data_of_the_caller_come_through(fresh: Callable[[], Path]) -> None:
    """As docs/errors.md says; they are about what the caller holds, and nothing is published."""
    graph = omnigraph.open(fresh() / GRAPH)
    head = graph.head

    def batches() -> Any:
        yield pa.record_batch({"code": ["a"]})
        raise pa.ArrowInvalid("index 5 out of bounds")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("code", pa.string())]), batches())
    with pytest.raises(pa.ArrowException, match="out of bounds"):
        graph.load(reader, mode="append", type="Port", progress=False)
    assert graph.head == head


def test_a_bucket_s_client_is_not_quoted_either(
    boundary: Boundary, s3_root: str, logged: Logged, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each in a fresh graph, up to the operation that fails: what a process has opened once, it does not open again."""
    operations: dict[str, Callable[[str], object]] = {
        "init": lambda root: omnigraph.init(root, schema=SCHEMA),
        "insert": lambda root: omnigraph.open(root).mutate(INSERT, c="A"),
        "query": lambda root: omnigraph.open(root).query(CODES).scalars(),
        "create": lambda root: omnigraph.open(root).branches.create("b"),
        "branches": lambda root: omnigraph.open(root).branches.list(),
        "schema": lambda root: omnigraph.open(root).schema.apply(SCHEMA_GROWN),
    }
    found: dict[Place, str] = {}
    for name, operation in operations.items():
        boundary.reached()
        operation(f"{s3_root}/first")
        for place in boundary.reached():
            if place.library in ("obstore", "lance"):
                found.setdefault(place, name)
    assert {place.call for place in found} >= {"get", "put", "list", "delete", "write_dataset", "commit", "scanner"}
    failed = Counter[str]()
    for number, (place, name) in enumerate(found.items()):
        root = f"{s3_root}/{number}"
        for earlier in list(operations)[: list(operations).index(name)]:
            operations[earlier](root)
        with boundary.failing(place, number):
            error = failure(f"{name} at {place}", lambda name=name, root=root: operations[name](root))
        assert boundary.met, f"{name} did not come by {place}"
        assert error is None or s3_root.removeprefix("s3://") not in error.message
        failed[place.library] += error is not None
    assert min(failed.values()) > 2, failed
    out, err = capfd.readouterr()
    clean("the log, or what the libraries print", out, err, *logged.lines)


# --- real answers of a store that says too much


def saying(status: int, code: str) -> Fault:
    """An S3 error whose every field holds a secret, in place of the server's answer."""
    body = (
        f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{TEXT.replace('<', '(').replace('>', ')')}</Message>"
        f"<Key>{SECRET}/key</Key><RequestId>{SECRET}</RequestId><HostId>{SECRET}</HostId></Error>"
    )

    def play(exchange: Exchange) -> bytes:
        return response(status, body.encode(), Content_Type="application/xml", x_amz_request_id=SECRET)

    return play


@pytest.fixture
def proxy(s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.endpoint) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.endpoint)
        yield running


SAID = [(403, "AccessDenied"), (400, "InvalidRequest"), (404, "NoSuchKey"), (409, "ConditionalRequestConflict")]


def said_in_python(root: str, name: str, place: Path) -> tuple[bool, list[str]]:
    operations: dict[str, Callable[[omnigraph.Graph], object]] = {
        "insert": lambda graph: graph.mutate(INSERT, c="A"),
        "query": lambda graph: graph.query(CODES).scalars(),
        "branch": lambda graph: graph.branches.create(f"n{os.urandom(4).hex()}"),
        "load": lambda graph: graph.load(line("L"), mode="merge", progress=False),
    }
    opened: list[omnigraph.Graph] = []

    def operation() -> None:
        opened.append(omnigraph.open(f"{root}/{GRAPH}"))
        operations[name](opened[0])

    error = failure(name, operation)
    if error is None:
        return False, []
    assert error.effects in (("none", "unknown") if opened and name != "query" else (None,))
    assert error.effects != "unknown" or isinstance(error, OutcomeUnknown)
    return True, [error.message]


def said_over_http(root: str, name: str, place: Path) -> tuple[bool, list[str]]:
    """A server that can't even list its graphs says so in its log, and answers nobody."""
    paths = {"insert": "/mutate", "query": "/query", "branch": "/branches", "load": "/load/ndjson?mode=merge"}
    bodies = {
        "insert": json.dumps({"query": INSERT, "params": {"c": "A"}}).encode(),
        "query": json.dumps({"query": CODES}).encode(),
        "branch": json.dumps({"name": f"n{os.urandom(4).hex()}"}).encode(),
        "load": line("L"),
    }
    with booted(root) as served:
        if served is None:
            return True, []
        headers = [("content-type", "application/x-ndjson" if name == "load" else "application/json")]
        reply = sound(served.send("POST", f"/graphs/atlas{paths[name]}", headers=headers, body=bodies[name]))
        return reply.status >= 400, [reply.body.decode(), str(reply.headers)]


def said_on_the_command_line(root: str, name: str, place: Path) -> tuple[bool, list[str]]:
    data = place / "l.jsonl"
    data.write_bytes(line("L"))
    words = {
        "insert": ["mutate", "-e", INSERT, "--params", '{"c": "A"}'],
        "query": ["query", "-e", CODES],
        "branch": ["branch", "create", f"n{os.urandom(4).hex()}"],
        "load": ["load", "--data", str(data), "--mode", "merge"],
    }
    ran = run_program(*words[name], "--store", f"{root}/{GRAPH}", "--verbose")
    said = [each for each in ran.err.splitlines() if not each.startswith("→")]  # where it writes, in the caller's words
    return ran.code != 0, [ran.out, *said]


SAYING: dict[str, Callable[[str, str, Path], tuple[bool, list[str]]]] = {
    "python": said_in_python,
    "http": said_over_http,
    "command line": said_on_the_command_line,
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("door", ["http", "command line"])
def test_a_bucket_s_client_is_not_quoted_at_the_other_doors(
    boundary: Boundary,
    s3_root: str,
    tmp_path: Path,
    logged: Logged,
    capfd: pytest.CaptureFixture[str],
    door: str,
) -> None:
    """Each in a fresh graph: what a process has opened once, it does not open again."""

    def made(root: str) -> str:
        omnigraph.init(f"{root}/{GRAPH}", schema=SCHEMA).mutate(INSERT, c="0")
        return root

    found: dict[Place, str] = {}
    for name in ("insert", "query", "branch", "load"):
        root = made(f"{s3_root}/{name}")
        boundary.reached()
        assert SAYING[door](root, name, tmp_path)[0] is False
        for place in boundary.reached():
            if place.library in ("obstore", "lance"):
                found.setdefault(place, name)
    failed = Counter[str]()
    for number, (place, name) in enumerate(found.items()):
        root = made(f"{s3_root}/{number}")
        with boundary.failing(place, number):
            refused, told = SAYING[door](root, name, tmp_path)
        assert boundary.met, f"{name} did not come by {place}"
        failed[place.library] += refused
        clean(f"{name} at {place}", *told)
    assert min(failed[library] for library in ("obstore", "lance")) > 1, failed
    out, err = capfd.readouterr()
    clean("the log, or what the libraries print", out, err, *logged.lines)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("door", SAYING)
@pytest.mark.parametrize("name", ["insert", "query", "branch", "load"])
def test_whatever_a_real_store_says_at_any_request_is_told_by_its_class_alone(
    proxy: S3Proxy,
    s3_root: str,
    tmp_path: Path,
    logged: Logged,
    capfd: pytest.CaptureFixture[str],
    name: str,
    door: str,
) -> None:
    root = f"{s3_root}/{GRAPH}"
    omnigraph.init(root, schema=SCHEMA).mutate(INSERT, c="0")
    with proxy.recording() as seen:
        assert SAYING[door](s3_root, name, tmp_path)[0] is False
    failed = 0
    for place in range(len(seen)):
        status, code = SAID[place % len(SAID)]
        proxy.break_next(saying(status, code), skip=place, times=9)
        refused, told = SAYING[door](s3_root, name, tmp_path)
        proxy.heal()
        failed += refused
        clean(f"request {place} of {name}, {status}", *told)
        for each in told if refused else ():
            assert s3_root.removeprefix("s3://") not in each, each
    assert failed > 0
    out, err = capfd.readouterr()
    clean("the log, or what the libraries print", out, err, *logged.lines)
    assert "0" in omnigraph.open(root).query(CODES).scalars()
