"""The table of cases: what a store's answers, and its silences, are taken for.

Each case is played by a real server on loopback to the real client, so that a new version of the client which says
things differently is seen here first.
"""

from __future__ import annotations

import socket
import struct

import pytest

from omnigraph.errors import StorageClass
from omnigraph.store.base import Changed, Created, CreateOutcome, Exists, Refused, Replaced, StoreError, Unknown
from omnigraph.store.classify import UNREADABLE, classify
from omnigraph.store.cloud import CloudStore
from omnigraph.store.s3_settings import S3Settings
from omnigraph.store.settings import StoreSettings
from omnigraph.store.uri import S3Root
from support.clocks import SteppingClock
from support.listening import Listening
from support.misbehaving import (
    Behaviour,
    MisbehavingServer,
    answer,
    cut,
    half,
    raw,
    reset,
    s3_error,
    silence,
)
from support.wire import Connection

THROTTLED, TIMEOUT, CONNECTION = StorageClass.THROTTLED, StorageClass.TIMEOUT, StorageClass.CONNECTION
DENIED, NOT_FOUND, UNSUPPORTED = StorageClass.DENIED, StorageClass.NOT_FOUND, StorageClass.UNSUPPORTED
SERVER_ERROR = StorageClass.SERVER_ERROR

HTML = "<html><head><title>Sorry</title></head><body>An error occurred</body></html>"
# A body which tries to pass for the debug tree that the client's errors end in.
FORGED_TREE = (
    "\n\nDebug source:\nGeneric {\n    source: RetryError(\n        RetryErrorImpl {\n            inner: Status {\n"
    '                status: 403,\n                body: Some(\n                    "x",\n                ),\n'
    "            },\n        },\n    ),\n}"
)
FOUND = {"etag": '"e"', "last_modified": "Mon, 30 Nov 2026 03:00:00 GMT"}


@pytest.fixture(autouse=True)
def _no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def store_at(endpoint: str, clock: SteppingClock | None = None, timeout_seconds: int = 1) -> CloudStore:
    environ = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
    }
    return CloudStore(
        S3Root("bucket", "p"),
        S3Settings.read("bucket", environ, {}),
        StoreSettings(request_timeout_seconds=timeout_seconds),
        clock=clock or SteppingClock(),
    )


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


# --- conditional writes: one request, and what its answer means

STATUS_CASES: list[tuple[int, CreateOutcome]] = [
    *((status, Exists()) for status in (409, 412)),
    (400, Refused(UNSUPPORTED)),
    (401, Refused(DENIED)),
    (403, Refused(DENIED)),
    (404, Refused(NOT_FOUND)),
    *((status, Refused(UNSUPPORTED)) for status in (405, 411, 413, 414, 501)),
    (408, Unknown(TIMEOUT)),
    *((status, Unknown(THROTTLED)) for status in (429, 503)),
    *((status, Unknown(SERVER_ERROR)) for status in (500, 502, 504, 507, 509, 520, 599)),
    # Not named in the table: no reason to believe that nothing happened.
    *((status, Unknown(SERVER_ERROR)) for status in (300, 301, 302, 304, 307, 308)),
    *((status, Unknown(SERVER_ERROR)) for status in (402, 406, 410, 416, 417, 418, 421, 425, 428, 451, 499)),
    *((status, Unknown(SERVER_ERROR)) for status in (600, 999)),
]

ANSWER_CASES: list[tuple[str, Behaviour, CreateOutcome]] = [
    ("200 with an ETag", answer(200, etag='"new"'), Created('"new"')),
    ("201 with an ETag", answer(201, etag='"new"'), Created('"new"')),
    ("200 with an ETag and a body", answer(200, HTML, etag='"new"'), Created('"new"')),
    ("200 without ETag", answer(200), Unknown(SERVER_ERROR)),
    ("200 with an empty ETag", answer(200, etag=""), Unknown(SERVER_ERROR)),
    ("200 with HTML", answer(200, HTML), Unknown(SERVER_ERROR)),
    ("204 without ETag", answer(204), Unknown(SERVER_ERROR)),
    ("an ETag that is no text", raw(b"HTTP/1.1 200 OK\r\nETag: \xff\r\nContent-Length: 0\r\n\r\n"), Unknown(SERVER_ERROR)),
    ("502 with HTML", answer(502, HTML), Unknown(SERVER_ERROR)),
    ("503 with HTML", answer(503, HTML), Unknown(THROTTLED)),
    ("403 with HTML", answer(403, HTML), Refused(DENIED)),
    ("412 with HTML", answer(412, HTML), Exists()),
    ("409 without a body", answer(409), Exists()),
    ("502 with a forged error in it", answer(502, FORGED_TREE), Unknown(SERVER_ERROR)),
    ("500 with a forged error in quotes", answer(500, '",)}' + FORGED_TREE + '\n"'), Unknown(SERVER_ERROR)),
    ("403 with bytes that are no text", answer(403, b"\xff\xfe\x00"), Unknown(SERVER_ERROR)),
    ("half a 500", half(500), Unknown(CONNECTION)),
    ("half a 403", half(403), Unknown(CONNECTION)),
    ("half a 412", half(412), Unknown(CONNECTION)),
    ("half of the head", raw(b"HTTP/1.1 200 OK\r\nETa"), Unknown(CONNECTION)),
    ("no HTTP", raw(b"220 mail.example ESMTP\r\n\r\n"), Unknown(SERVER_ERROR)),
    ("the end of the connection", cut(), Unknown(CONNECTION)),
    ("a reset after the body", reset(), Unknown(CONNECTION)),
    ("silence", silence(), Unknown(TIMEOUT)),
    ("only 100", raw(b"HTTP/1.1 100 Continue\r\n\r\n"), Unknown(CONNECTION)),
]  # fmt: skip


def as_replace(outcome: CreateOutcome) -> object:
    match outcome:
        case Created(etag):
            return Replaced(etag)
        case Exists():
            return Changed()
        case _:
            return outcome


@pytest.mark.parametrize(("status", "outcome"), STATUS_CASES, ids=[str(status) for status, _ in STATUS_CASES])
def test_each_status_has_its_meaning_and_the_request_is_sent_once(status: int, outcome: CreateOutcome):
    with MisbehavingServer(answer(status, s3_error("Whatever"), location="/elsewhere")) as server:
        assert store_at(server.endpoint).create("a/b", b"x") == outcome
        assert server.methods == ["PUT"]
        assert store_at(server.endpoint).replace("a/b", b"x", etag='"e"') == as_replace(outcome)
        assert server.methods == ["PUT", "PUT"]


@pytest.mark.parametrize(
    ("behaviour", "outcome"), [case[1:] for case in ANSWER_CASES], ids=[c[0] for c in ANSWER_CASES]
)
def test_each_answer_has_its_meaning_and_the_request_is_sent_once(behaviour: Behaviour, outcome: CreateOutcome):
    with MisbehavingServer(behaviour) as server:
        assert store_at(server.endpoint).create("a/b", b"x") == outcome
        assert server.methods == ["PUT"]
        assert store_at(server.endpoint).replace("a/b", b"x", etag='"e"') == as_replace(outcome)
        assert server.methods == ["PUT", "PUT"]


def test_a_refused_connection_was_not_sent():
    store = store_at(f"http://127.0.0.1:{unused_port()}")
    assert store.create("a", b"x") == Refused(CONNECTION, sent=False)
    assert store.replace("a", b"x", etag='"e"') == Refused(CONNECTION, sent=False)


def test_to_a_name_that_is_not_resolved_nothing_was_sent():
    assert store_at("http://no-such-host.invalid").create("a", b"x") == Refused(CONNECTION, sent=False)


class NoTls(Listening):
    def serve(self, connection: Connection) -> None:
        connection.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def test_a_failed_handshake_was_not_sent():
    with NoTls() as server:
        assert store_at(f"https://127.0.0.1:{server.port}").create("a", b"x") == Refused(CONNECTION, sent=False)


class ResetsBeforeTheBody(Listening):
    """Reads the head of a request and breaks the connection while the body is under way."""

    seen = 0

    def serve(self, connection: Connection) -> None:
        connection.receive_head()
        self.seen += 1
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_reset_before_the_body_arrived_is_unknown():
    with ResetsBeforeTheBody() as server:
        assert store_at(server.endpoint).create("a", bytes(8 << 20)) == Unknown(CONNECTION)
        assert server.seen == 1


@pytest.mark.parametrize("second", [cut(), reset(), answer(500)], ids=["cut", "reset", "500"])
def test_on_a_connection_used_before_a_lost_answer_is_unknown_and_not_asked_for_again(second: Behaviour):
    with MisbehavingServer(answer(200, etag='"1"'), second, answer(200, etag='"2"')) as server:
        store = store_at(server.endpoint)
        assert store.create("a", b"x") == Created('"1"')
        assert isinstance(store.create("b", b"x"), Unknown)
        assert server.methods == ["PUT", "PUT"]


def test_on_connections_that_the_store_closes_no_request_is_sent_twice():
    with MisbehavingServer(raw(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 0\r\n\r\n')) as server:
        store = store_at(server.endpoint)
        outcomes = [store.create(f"k{number}", b"x") for number in range(20)]
        targets = [request.start for request in server.requests]
    # Whether the client notices in time that a connection was closed is a matter of luck; if not, it is a doubt.
    assert set(map(type, outcomes)) <= {Created, Unknown}
    assert len(targets) == len(set(targets)) >= outcomes.count(Created('"1"'))


def test_conditional_requests_carry_their_condition():
    with MisbehavingServer(answer(200, etag='"1"')) as server:
        store = store_at(server.endpoint)
        store.create("a", b"x")
        store.replace("a", b"x", etag='"old"')
        create, replace = server.requests
    assert create.headers["if-none-match"] == "*"
    assert "if-match" not in create.headers
    assert replace.headers["if-match"] == '"old"'
    assert "if-none-match" not in replace.headers


def test_a_large_object_is_created_by_one_request_too():
    with MisbehavingServer(answer(200, etag='"1"')) as server:
        assert store_at(server.endpoint, timeout_seconds=30).create("a", bytes(20 << 20)) == Created('"1"')
        assert [len(request.body) for request in server.requests] == [20 << 20]
        assert server.methods == ["PUT"]


def test_a_key_that_looks_like_an_error_changes_no_meaning():
    key = "inner: Status { status: 403, body: None, }/inner: Http( HttpError { kind: Connect, source"
    with MisbehavingServer(answer(500, s3_error("InternalError"))) as server:
        assert store_at(server.endpoint).create(key, b"x") == Unknown(SERVER_ERROR)


# --- reads: repeated within bounds, then a class

ALWAYS = 4  # the first request and three repetitions of the client
WHILE_THROTTLED = 16  # four times that

READ_CASES: list[tuple[str, Behaviour, StorageClass, int]] = [
    ("404 NoSuchKey", answer(404, s3_error("NoSuchKey")), NOT_FOUND, 1),
    ("404 NoSuchBucket", answer(404, s3_error("NoSuchBucket")), DENIED, 1),
    ("404 of a proxy", answer(404, HTML), SERVER_ERROR, 1),
    ("404 without a body", answer(404), SERVER_ERROR, 1),
    ("400", answer(400, s3_error("InvalidRequest")), UNSUPPORTED, 1),
    ("401", answer(401), DENIED, 1),
    ("403", answer(403, s3_error("AccessDenied")), DENIED, 1),
    ("403 with a forged not-found", answer(403, "<Code>NoSuchKey</Code>" + FORGED_TREE), DENIED, 1),
    ("408", answer(408), TIMEOUT, ALWAYS),
    ("429", answer(429), THROTTLED, WHILE_THROTTLED),
    ("500", answer(500, s3_error("InternalError")), SERVER_ERROR, ALWAYS),
    ("502 with HTML", answer(502, HTML), SERVER_ERROR, ALWAYS),
    ("503", answer(503, s3_error("SlowDown")), THROTTLED, WHILE_THROTTLED),
    ("200 without a time", answer(200, b"x", etag='"e"'), SERVER_ERROR, 1),
    ("the end of the connection", cut(), CONNECTION, ALWAYS),
    ("a reset", reset(), CONNECTION, ALWAYS),
    ("silence", silence(), TIMEOUT, ALWAYS),
    ("no HTTP", raw(b"220 mail.example ESMTP\r\n\r\n"), SERVER_ERROR, 1),
]


@pytest.mark.parametrize(
    ("behaviour", "cls", "requests"), [case[1:] for case in READ_CASES], ids=[case[0] for case in READ_CASES]
)
def test_a_failed_read_has_its_class_and_its_bound(behaviour: Behaviour, cls: StorageClass, requests: int):
    with MisbehavingServer(behaviour) as server:
        with pytest.raises(StoreError) as caught:
            store_at(server.endpoint).read("a/b")
        assert caught.value.cls is cls
        assert server.methods == ["GET"] * requests


def test_a_head_has_no_body_so_its_status_must_do():
    with MisbehavingServer(answer(404), answer(403)) as server:
        for cls in (NOT_FOUND, DENIED):
            with pytest.raises(StoreError) as caught:
                store_at(server.endpoint).head("a")
            assert caught.value.cls is cls


@pytest.mark.parametrize(
    "trouble", [answer(503), answer(500), reset(), silence()], ids=["503", "500", "reset", "silence"]
)
def test_a_read_goes_on_after_trouble_that_passes(trouble: Behaviour):
    with MisbehavingServer(trouble, trouble, answer(200, b"data", **FOUND)) as server:
        assert store_at(server.endpoint).read("a").data == b"data"
        assert server.methods == ["GET"] * 3


def test_pauses_between_throttled_repetitions_grow_and_differ():
    clock = SteppingClock()
    with MisbehavingServer(answer(503)) as server:
        store = store_at(server.endpoint, clock)
        for _ in range(2):
            with pytest.raises(StoreError):
                store.read("a")
    first, second = clock.slept[:3], clock.slept[3:]
    assert len(second) == 3
    for pauses in (first, second):
        for pause, most in zip(pauses, (0.4, 0.8, 1.6), strict=True):
            assert most / 2 <= pause <= most
    assert first != second


LISTING = (
    '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/a/1</Key>'
    "<LastModified>2026-11-30T03:00:00.000Z</LastModified><ETag>e</ETag><Size>1</Size></Contents></ListBucketResult>"
)


@pytest.mark.parametrize(
    ("behaviour", "cls", "requests"),
    [
        (answer(503), THROTTLED, WHILE_THROTTLED),
        (answer(500), SERVER_ERROR, ALWAYS),
        (answer(403), DENIED, 1),
        (answer(404, s3_error("NoSuchBucket")), DENIED, 1),
        (answer(200, ""), SERVER_ERROR, 1),
        (answer(200, "hello"), SERVER_ERROR, 1),
        (answer(200, LISTING[:150]), SERVER_ERROR, 1),
        (half(200, LISTING.encode()), CONNECTION, ALWAYS),
        (reset(), CONNECTION, ALWAYS),
    ],
    ids=["503", "500", "403", "no bucket", "empty", "text", "cut XML", "half", "reset"],
)
def test_a_failed_listing_is_an_error_and_never_an_empty_one(behaviour: Behaviour, cls: StorageClass, requests: int):
    for ask in (
        lambda store: list(store.list("a")),
        lambda store: store.list_first("a"),
        lambda store: store.list_folders("a"),
    ):
        with MisbehavingServer(behaviour) as server:
            with pytest.raises(StoreError) as caught:
                ask(store_at(server.endpoint))
            assert caught.value.cls is cls
            assert server.methods == ["GET"] * requests


def test_a_listing_whose_answer_broke_off_is_asked_for_again():
    with MisbehavingServer(half(200, LISTING.encode()), answer(200, LISTING)) as server:
        assert [info.key for info in store_at(server.endpoint).list("a")] == ["a/1"]


# --- fresh puts and deletes


@pytest.mark.parametrize(
    ("behaviour", "cls", "requests"),
    [
        (answer(503), THROTTLED, WHILE_THROTTLED),
        (answer(500), SERVER_ERROR, ALWAYS),
        (answer(403), DENIED, 1),
        (answer(404, s3_error("NoSuchBucket")), DENIED, 1),
        (answer(200), SERVER_ERROR, 1),
    ],
    ids=["503", "500", "403", "no bucket", "no ETag"],
)
def test_a_failed_fresh_put_has_its_class_and_its_bound(behaviour: Behaviour, cls: StorageClass, requests: int):
    with MisbehavingServer(behaviour) as server:
        with pytest.raises(StoreError) as caught:
            store_at(server.endpoint).put_fresh("a", b"x")
        assert caught.value.cls is cls
        assert server.methods == ["PUT"] * requests


@pytest.mark.parametrize("trouble", [answer(503), reset(), silence()], ids=["503", "reset", "silence"])
def test_a_fresh_put_is_repeated_after_trouble_that_passes(trouble: Behaviour):
    with MisbehavingServer(trouble, answer(200, etag='"e"')) as server:
        store_at(server.endpoint).put_fresh("a", b"x")
        assert [request.body for request in server.requests] == [b"x", b"x"]


def deleted(inner: str) -> str:
    return f"<DeleteResult>{inner}</DeleteResult>"


@pytest.mark.parametrize(
    ("behaviour", "cls"),
    [
        (answer(403), DENIED),
        (answer(503), THROTTLED),
        (answer(200, deleted("<Error><Key>p/a</Key><Code>AccessDenied</Code><Message>m</Message></Error>")), DENIED),
        (answer(200, deleted("<Error><Key>p/a</Key><Code>SlowDown</Code><Message>m</Message></Error>")), THROTTLED),
        (answer(200, deleted("")), SERVER_ERROR),
        (answer(200, HTML), SERVER_ERROR),
        (answer(200), SERVER_ERROR),
    ],
    ids=["403", "503", "one denied", "one throttled", "no word of the key", "HTML", "empty"],
)
def test_a_delete_that_did_not_delete_says_so(behaviour: Behaviour, cls: StorageClass):
    with MisbehavingServer(behaviour) as server:
        with pytest.raises(StoreError) as caught:
            store_at(server.endpoint).delete(["a"])
        assert caught.value.cls is cls


# --- the reading itself


@pytest.mark.parametrize(
    "text",
    [
        "",
        "something else",
        "\nDebug source:\ninner: Status {\n status: 403,\n body: None,\n}",
        "x\nDebug source:\n",
        "x\nDebug source:\nGeneric { source: Metadata { source: MissingEtag, }, }",
        "x\nDebug source:\ninner: Status {\n status: 4O3,\n body: None,\n}",
        "x\nDebug source:\ninner: Status {\n status: 403,\n}",
        "x\nDebug source:\ninner: Status {\n status: 403,\n body: None,\n} inner: Status {\n status: 503,\n body: None,\n}",
        'x\nDebug source:\nbody: Some(\n "inner: Status { status: 403, body: None, }",\n)',
        "x\nDebug source:\ninner: Http(\n HttpError {\n kind: Connect,\n}) inner: Http(\n HttpError {\n kind: Request,\n})",
        "x\nDebug source:\nsource: HttpError {\n kind: Connect,\n} source: HttpError {\n kind: Connect,\n}",
    ],
)
def test_text_that_cannot_be_read_is_no_answer(text: str):
    assert classify(Exception(text)) == UNREADABLE


def test_a_connect_error_is_believed_only_where_the_client_states_it_of_the_request():
    failure = classify(Exception("x\nDebug source:\nsource: HttpError {\n kind: Connect,\n}"))
    assert not failure.definite
    assert failure.sent


def test_no_message_of_the_client_comes_through():
    with MisbehavingServer(answer(500, s3_error("InternalError", "topsecret"))) as server:
        with pytest.raises(StoreError) as caught:
            store_at(server.endpoint).read("a")
        assert str(caught.value) == "storage request failed: server_error"
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
