"""Making and opening a graph: what is refused, what a crash or a race leaves behind."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import omnigraph
from omnigraph.engine.opening import init_core
from omnigraph.errors import (
    AlreadyExists,
    FormatMismatch,
    GraphNotFound,
    InvalidRequest,
    InvalidSchema,
    OmnigraphError,
    OutcomeUnknown,
    StorageFailure,
)
from omnigraph.manifest.publish import PAUSES_SECONDS
from omnigraph.store.base import StoreError
from omnigraph.store.faults import FailCondition, Fault, FaultStore, LoseAfter, LoseBefore, Refuse, Rule
from omnigraph.store.open import open_store
from support.clocks import SteppingClock
from support.proxy import Exchange, S3Proxy, refuse
from support.seaweed import S3Server
from support.wire import response

SCHEMA = "node Port { code: String @key }"


def test_a_root_that_is_no_graph_says_so(any_root: str) -> None:
    with pytest.raises(GraphNotFound):
        omnigraph.open(any_root)


def test_a_made_graph_opens_under_both_spellings(tmp_path: Path) -> None:
    root = tmp_path / "my data #1"
    made = omnigraph.init(root, schema=SCHEMA)
    assert omnigraph.open(str(root)).id == made.id
    assert omnigraph.open(f"file://{str(root).replace(' ', '%20').replace('#', '%23')}").id == made.id


def test_a_graph_is_made_once(any_root: str) -> None:
    made = omnigraph.init(any_root, schema=SCHEMA)
    with pytest.raises(AlreadyExists) as caught:
        omnigraph.init(any_root, schema=SCHEMA)
    assert caught.value.code == "already_initialized"
    same = omnigraph.init(any_root, schema=f"// the same\n{SCHEMA}\n", exist_ok=True)
    assert same.id == made.id
    assert same.schema.source == SCHEMA


def test_a_graph_of_another_schema_is_not_taken_for_the_one_that_was_to_be_made(any_root: str) -> None:
    made = omnigraph.init(any_root, schema=SCHEMA)
    for schema in ("node Other { k: String @key }", f"{SCHEMA} node Other {{ k: String @key }}"):
        with pytest.raises(AlreadyExists, match="with another schema") as caught:
            omnigraph.init(any_root, schema=schema, exist_ok=True)
        assert caught.value.code == "already_initialized"
    made.schema.apply(f"{SCHEMA} node Other {{ k: String @key }}")
    with pytest.raises(AlreadyExists):
        omnigraph.init(any_root, schema=SCHEMA, exist_ok=True)
    assert omnigraph.init(any_root, schema=made.schema.source, exist_ok=True).id == made.id


def test_a_bad_schema_or_address_is_refused_before_anything_exists(tmp_path: Path) -> None:
    with pytest.raises(InvalidSchema):
        omnigraph.init(tmp_path / "g", schema="node")
    assert not (tmp_path / "g").exists()
    with pytest.raises(InvalidRequest):
        omnigraph.init("s3://user:secret@bucket/x", schema=SCHEMA)
    (tmp_path / "s.pg").write_text(SCHEMA)
    with pytest.raises(InvalidRequest) as caught:
        omnigraph.init(tmp_path / "g", schema=str(tmp_path / "s.pg"))
    assert "Path(" in caught.value.message
    assert omnigraph.init(tmp_path / "g", schema=tmp_path / "s.pg").schema.source == SCHEMA


def test_a_graph_of_a_newer_format_names_the_version_that_is_needed(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", schema=SCHEMA)
    (manifest,) = (tmp_path / "g" / "__manifest" / "main").iterdir()
    written = json.loads(manifest.read_bytes())
    manifest.chmod(0o644)
    manifest.write_bytes(json.dumps({**written, "format": 9, "min_reader": 9}).encode())
    with pytest.raises(FormatMismatch) as caught:
        omnigraph.open(tmp_path / "g")
    assert "9" in caught.value.message


def test_an_identity_of_a_newer_format_is_refused_too(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", schema=SCHEMA)
    identity = tmp_path / "g" / "__graph.json"
    written = json.loads(identity.read_bytes())
    identity.chmod(0o644)
    identity.write_bytes(json.dumps({**written, "format": 99}).encode())
    with pytest.raises(FormatMismatch, match="99"):
        omnigraph.open(tmp_path / "g")


@pytest.mark.parametrize(
    "damaged",
    [lambda whole: b"", lambda whole: whole[: len(whole) // 2], lambda whole: bytes(len(whole))],
    ids=["empty", "half", "zeros"],
)
def test_a_damaged_newest_manifest_is_named_and_the_older_state_stays_readable(
    tmp_path: Path, damaged: Callable[[bytes], bytes]
) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    first = graph.mutate('query m() { insert Port { code: "A" } }').commit
    graph.mutate('query m() { insert Port { code: "B" } }')
    newest = min((tmp_path / "g" / "__manifest" / "main").iterdir())
    whole = newest.read_bytes()
    newest.chmod(0o644)
    newest.write_bytes(damaged(whole))
    query = "query q() { match { $p: Port } return { $p.code as c } }"
    again = omnigraph.open(tmp_path / "g")
    with pytest.raises(StorageFailure) as caught:
        again.query(query)
    assert (caught.value.cls, caught.value.retry) == ("corrupt", "recover")
    assert "Version 3 of branch 'main'" in caught.value.message
    assert str(tmp_path) not in caught.value.message
    assert first is not None
    assert again.at(first.graph_commit_id).query(query).scalars() == ["A"]
    again.branches.create("rescued", from_=first.graph_commit_id)
    assert again.on("rescued").query(query).scalars() == ["A"]
    with pytest.raises(StorageFailure):
        again.mutate('query m() { insert Port { code: "C" } }')


def test_a_filesystem_without_hard_links_is_refused_and_nothing_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    omnigraph.init(tmp_path / "made", schema=SCHEMA)

    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no")

    monkeypatch.setattr(os, "link", no_links)
    for attempt in (
        lambda: omnigraph.init(tmp_path / "g", schema=SCHEMA),
        lambda: omnigraph.open(tmp_path / "made"),
    ):
        with pytest.raises(StorageFailure) as caught:
            attempt()
        assert caught.value.cls == "unsupported"
        assert "hard links" in caught.value.message
    assert not (tmp_path / "g").exists()
    assert omnigraph.open(tmp_path / "made", mode="r").read_only


def ignores_conditions(exchange: Exchange) -> bytes | None:
    """As a store that knows no If-None-Match and stores whatever comes."""
    message = exchange.forward()
    if message.head.split(b" ", 2)[1] == b"412":
        return response(200, ETag='"0"')
    return message.head + message.body


def keeps_deleted_names_taken() -> Callable[[Exchange], bytes | None]:
    """As a bucket that takes the mark of a deletion for an object."""
    used: set[str] = set()

    def play(exchange: Exchange) -> bytes | None:
        if exchange.asked.key in used:
            return response(412)
        used.add(exchange.asked.key)
        message = exchange.forward()
        return message.head + message.body

    return play


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (lambda: ignores_conditions, "If-None-Match"),
        (lambda: refuse(501, "NotImplemented"), "conditional"),
        (keeps_deleted_names_taken, "deleted"),
    ],
    ids=["ignores them", "answers 501", "remembers what was deleted"],
)
def test_a_bucket_without_conditional_writes_is_refused_before_any_file_of_a_graph_remains(
    s3_root: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, fault: Callable[[], object], reason: str
) -> None:
    with S3Proxy(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        proxy.break_next(fault(), method="PUT", conditional=True, times=1_000)  # type: ignore[arg-type]
        with pytest.raises(StorageFailure) as caught:
            omnigraph.init(s3_root, schema=SCHEMA)
        assert (caught.value.cls, caught.value.effects) == ("unsupported", "none")
        assert reason in caught.value.message
        assert not proxy.count("PUT", key="__manifest/")
        assert list(open_store(s3_root).list("")) == []


def test_a_folder_without_permission_is_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def denied(path: str, flags: int, *rest: object, **more: object) -> int:
        if flags & os.O_CREAT and str(tmp_path) in os.fsdecode(path):
            raise PermissionError(errno.EACCES, "no")
        return real(path, flags, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(StorageFailure) as caught:
        omnigraph.init(tmp_path / "g", schema=SCHEMA)
    assert caught.value.cls == "denied"


def test_a_bucket_without_permission_is_its_own_error(s3_root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    omnigraph.init(s3_root, schema=SCHEMA)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    for attempt in (lambda: omnigraph.open(s3_root), lambda: omnigraph.init(f"{s3_root}-2", schema=SCHEMA)):
        with pytest.raises(StorageFailure) as caught:
            attempt()
        assert (caught.value.cls, caught.value.retry) == ("denied", "recover")
        assert "wrong" not in caught.value.message


@pytest.mark.parametrize("fault", [LoseBefore(), LoseAfter(), Refuse()])
def test_an_init_that_fails_at_any_request_is_simply_repeated(tmp_path: Path, fault: object) -> None:
    for ordinal in range(1, 12):
        root = tmp_path / f"g{ordinal}"
        store = FaultStore(open_store(root), [Rule(fault, ordinal=ordinal)])  # type: ignore[arg-type]
        failed = _fails(lambda store=store: init_core("", SCHEMA, store=store))
        if not any(request.fault for request in store.requests):
            assert not failed
            break
        omnigraph.init(root, schema=SCHEMA, exist_ok=True)
        assert omnigraph.open(root).schema.source == SCHEMA
        assert len(list((root / "__manifest" / "main").iterdir())) == 1
    else:
        pytest.fail("init never ran without meeting the fault")


def _fails(attempt: object) -> bool:
    try:
        attempt()  # type: ignore[operator]
    except (OmnigraphError, StoreError):
        return True
    return False


def test_several_who_make_one_graph_at_once_leave_one(any_root: str) -> None:
    made: list[str] = []
    refused: list[str] = []
    barrier = threading.Barrier(5)

    def make() -> None:
        barrier.wait()
        try:
            made.append(omnigraph.init(any_root, schema=SCHEMA).id)
        except AlreadyExists as error:
            refused.append(error.code)

    threads = [threading.Thread(target=make) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), refused) == (1, ["already_initialized"] * 4)
    graph = omnigraph.open(any_root)
    assert graph.id == made[0]
    assert [commit.kind for commit in graph.commits.list()] == ["genesis"]


IDENTITY = "__graph.json"


@pytest.mark.parametrize(
    ("fault", "times"), [(LoseBefore(), 4), (LoseAfter(), 1), (FailCondition(), 3), (FailCondition(landed=True), 1)]
)
def test_an_unanswered_identity_is_sent_again_until_it_is_settled(tmp_path: Path, fault: Fault, times: int) -> None:
    store = FaultStore(open_store(tmp_path / "g"), [Rule(fault, verb="create", key=IDENTITY, times=times)])
    clock = SteppingClock()
    made = init_core(tmp_path / "g", SCHEMA, store=store, clock=clock)
    assert omnigraph.open(tmp_path / "g").id == made.graph_id
    assert clock.slept == list(PAUSES_SECONDS[:times] if isinstance(fault, LoseBefore) or times == 3 else clock.slept)


def test_an_identity_that_stays_unanswered_is_unknown_and_init_may_be_repeated(tmp_path: Path) -> None:
    lost = Rule(LoseBefore(), verb="create", key=IDENTITY, times=5)
    store = FaultStore(open_store(tmp_path / "g"), [lost])
    with pytest.raises(OutcomeUnknown) as caught, capture_logs() as lines:
        init_core(tmp_path / "g", SCHEMA, store=store, clock=SteppingClock())
    assert (caught.value.code, caught.value.details["kind"]) == ("initialization_unknown", "init")
    assert [(line["event"], line["attempt"], line["class"]) for line in lines] == [
        ("identity request outcome unknown; re-issuing the identical conditional request", attempt, "timeout")
        for attempt in range(1, 5)
    ]
    assert [each.verb for each in store.requests if each.key == IDENTITY] == ["create"] * 5 + ["read"]
    init_core(tmp_path / "g", SCHEMA, store=store)


def test_a_refusal_after_a_doubt_is_no_proof(tmp_path: Path) -> None:
    rules = [
        Rule(LoseAfter(), verb="create", key=IDENTITY),
        Rule(Refuse(), verb="create", key=IDENTITY, skip=1),
    ]
    store = FaultStore(open_store(tmp_path / "g"), rules)
    made = init_core(tmp_path / "g", SCHEMA, store=store, clock=SteppingClock())
    assert omnigraph.open(tmp_path / "g").id == made.graph_id
