"""How often a failing request is sent: counted at a proxy before a real server, for our requests and for Lance's own.

Reads and fresh files: three client retries, and three more rounds while the store throttles, sixteen requests at most.
Lance asks four times for what it reads, with sixteen requests each. A conditional write: exactly one, whatever becomes
of it (storage.md 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph.errors import StorageClass, StorageFailure
from omnigraph.store.base import Created, Store, StoreError, Unknown
from omnigraph.store.cloud import CloudStore
from omnigraph.store.open import open_store
from omnigraph.tables.index_build import build_indexes
from omnigraph.tables.index_plans import Wanted
from omnigraph.tables.stage import Committed
from omnigraph.tables.store import TableStore
from support.clocks import SteppingClock
from support.proxy import Fault, S3Proxy, answer_after, land_late, lose_after, lose_before, refuse, truncate
from support.seaweed import S3Server
from tables.samples import ports, write

ATTEMPTS_MAX = 16
CLIENT_ATTEMPTS = 4
LANCE_READS_MAX = 4
"""How often Lance's reader asks its client for the same bytes."""
FOR_EVER = 10_000
SETTING = "OBJECT_STORE_CLIENT_MAX_RETRIES"


@pytest.fixture
def proxy(s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    monkeypatch.delenv(SETTING, raising=False)
    with S3Proxy(s3_server.endpoint) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.endpoint)
        yield running


@pytest.fixture
def store(proxy: S3Proxy, s3_root: str) -> Store:
    store = open_store(s3_root)
    assert isinstance(store, CloudStore)
    store._clock = SteppingClock()  # pauses between rounds are not what is shown here
    return store


# --- ours

REPEATED: dict[str, tuple[str, Callable[[Store], object]]] = {
    "read": ("GET", lambda store: store.read("f/a")),
    "head": ("HEAD", lambda store: store.head("f/a")),
    "list": ("LIST", lambda store: list(store.list("f"))),
    "list_first": ("LIST", lambda store: store.list_first("f")),
    "list_folders": ("LIST", lambda store: store.list_folders("f")),
    "put_fresh": ("PUT", lambda store: store.put_fresh("f/b", b"1")),
    "delete": ("POST", lambda store: store.delete(["f/a"])),
}


@pytest.mark.parametrize(
    ("fault", "cls", "attempts"),
    [
        (refuse(503, "SlowDown"), StorageClass.THROTTLED, ATTEMPTS_MAX),
        (refuse(500, "InternalError"), StorageClass.SERVER_ERROR, CLIENT_ATTEMPTS),
        (refuse(403, "AccessDenied"), StorageClass.DENIED, 1),
    ],
    ids=["503", "500", "403"],
)
@pytest.mark.parametrize("verb", REPEATED)
def test_what_may_be_repeated_is_sent_sixteen_times_at_most(
    proxy: S3Proxy, store: Store, verb: str, fault: Fault, cls: StorageClass, attempts: int
) -> None:
    method, ask = REPEATED[verb]
    proxy.break_next(fault, times=FOR_EVER)
    with pytest.raises(StoreError) as caught:
        ask(store)
    assert caught.value.cls is cls
    assert [seen.verb for seen in proxy.requests] == [method] * attempts


ONE_ATTEMPT: list[tuple[str, Fault]] = [
    ("503", refuse(503, "SlowDown")),
    ("500", refuse(500, "InternalError")),
    ("429", refuse(429, "TooManyRequests")),
    ("408", refuse(408, "RequestTimeout")),
    ("403", refuse(403, "AccessDenied")),
    ("409", refuse(409, "ConditionalRequestConflict")),
    ("lost before", lose_before()),
    ("lost after", lose_after()),
    ("answered otherwise", answer_after(502)),
    ("answered by half", truncate()),
    ("under way", land_late()),
]


@pytest.mark.parametrize("fault", [fault for _, fault in ONE_ATTEMPT], ids=[name for name, _ in ONE_ATTEMPT])
@pytest.mark.parametrize("verb", ["create", "replace"])
def test_a_conditional_write_is_sent_once_whatever_is_answered(
    proxy: S3Proxy, store: Store, verb: str, fault: Fault
) -> None:
    made = store.create("k", b"0")
    assert isinstance(made, Created)
    assert made.etag is not None
    proxy.forget()
    proxy.break_next(fault, conditional=True, times=FOR_EVER)
    if verb == "create":
        store.create("new", b"1")
    else:
        store.replace("k", b"1", etag=made.etag)
    assert [seen.verb for seen in proxy.requests] == ["PUT"]


def test_a_conditional_write_is_sent_once_on_a_connection_that_died_too(proxy: S3Proxy, store: Store) -> None:
    """A client that sends again on a fresh connection would send twice behind our back."""
    for number in range(5):
        assert isinstance(store.create(f"k{number}", b"0"), Created)
        proxy.break_next(lose_before(), conditional=True)
        assert isinstance(store.create(f"lost{number}", b"0"), Unknown)
        assert proxy.count("PUT", key=f"lost{number}") == 1


# --- Lance's


def rows(tables: TableStore) -> Committed:
    return write(tables, None, ports(*(f"p{n}" for n in range(50))))


# what Lance sends, how often at most, and how often with the one value that the setting may have
LANCE_WRITES = [
    ("data/", ATTEMPTS_MAX, 4),
    ("_transactions/", ATTEMPTS_MAX, 4),
    ("_versions/", ATTEMPTS_MAX, 4),
    ("_deletions/", ATTEMPTS_MAX, ATTEMPTS_MAX),
]
LANCE_READS = [
    ("HEAD", "_versions/", LANCE_READS_MAX * ATTEMPTS_MAX, 4),
    ("GET", "_versions/", LANCE_READS_MAX * ATTEMPTS_MAX, 16),
    ("GET", "data/", LANCE_READS_MAX * ATTEMPTS_MAX, 16),
]
LANCE_INDEXES = [
    ("PUT", "_indices/", ATTEMPTS_MAX, 4),
    ("LIST", "_indices/", CLIENT_ATTEMPTS, 1),
    ("HEAD", "part_0_", ATTEMPTS_MAX, 1),
    ("GET", "part_0_", LANCE_READS_MAX * ATTEMPTS_MAX, 16),
]
SETTINGS = [None, "", "0"]


def throttled(proxy: S3Proxy, verb: str, file: str, stage: Callable[[], object]) -> list[int]:
    """How often each of these files was asked for or sent, while the store throttles that; nothing can be staged."""
    proxy.forget()
    proxy.break_next(refuse(503, "SlowDown"), method=verb, key=file, times=FOR_EVER)
    with pytest.raises(StorageFailure) as caught:
        stage()
    assert (caught.value.cls, caught.value.phase) == (StorageClass.THROTTLED, "stage")
    sent = Counter(seen.key for seen in proxy.requests if seen.verb == verb and file in seen.key)
    return list(sent.values())


def named(value: object) -> str:
    return f"setting {value!r}" if value in SETTINGS else str(value)


@pytest.mark.parametrize("setting", SETTINGS, ids=named)
@pytest.mark.parametrize(("file", "most", "with_0"), LANCE_WRITES, ids=str)
def test_lance_sends_a_fresh_file_sixteen_times_and_no_setting_makes_it_more(
    proxy: S3Proxy,
    s3_root: str,
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    file: str,
    most: int,
    with_0: int,
) -> None:
    if setting is not None:
        monkeypatch.setenv(SETTING, setting)
    tables = TableStore(open_store(s3_root))
    first = rows(tables)
    sent = throttled(proxy, "PUT", file, lambda: write(tables, first.pin, ports("p1", depth=2), remove=[1]))
    assert sent == [with_0 if setting == "0" else most], "one file, not another name at each try"


@pytest.mark.parametrize("setting", [None, "0"], ids=named)
@pytest.mark.parametrize(("method", "file", "most", "with_0"), LANCE_READS, ids=str)
def test_lance_asks_sixty_four_times_for_what_it_reads_and_no_setting_makes_it_more(
    proxy: S3Proxy,
    s3_root: str,
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    method: str,
    file: str,
    most: int,
    with_0: int,
) -> None:
    if setting is not None:
        monkeypatch.setenv(SETTING, setting)
    pin = rows(TableStore(open_store(s3_root))).pin
    proxy.forget()
    proxy.break_next(refuse(503, "SlowDown"), method=method, key=file, times=FOR_EVER)
    with pytest.raises(StorageFailure) as caught:
        TableStore(open_store(s3_root)).open(pin).read(["__id", "depth"])
    assert (caught.value.cls, caught.value.phase) == (StorageClass.THROTTLED, "read")
    broken = [seen for seen in proxy.requests if seen.verb == method and file in seen.key]
    assert len(broken) == (with_0 if setting == "0" else most)
    others = Counter((seen.verb, seen.key) for seen in proxy.requests if seen not in broken)
    assert max(others.values(), default=1) == 1, "what is answered is asked for once"


@pytest.mark.parametrize("setting", [None, "0"], ids=named)
@pytest.mark.parametrize(("method", "file", "most", "with_0"), LANCE_INDEXES, ids=str)
def test_lance_is_bound_likewise_while_it_makes_an_index(
    proxy: S3Proxy,
    s3_root: str,
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    method: str,
    file: str,
    most: int,
    with_0: int,
) -> None:
    if setting is not None:
        monkeypatch.setenv(SETTING, setting)
    tables = TableStore(open_store(s3_root))
    first = rows(tables)
    sent = throttled(proxy, method, file, lambda: build_indexes(tables, first.pin, [Wanted("__id", "text")]))
    assert max(sent) == (with_0 if setting == "0" else most)


DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "storage.md"


def test_the_document_says_what_may_be_sent_and_what_the_one_setting_must_be() -> None:
    said = " ".join(DOCUMENT.read_text().split())
    rows = [line.split("|")[1:3] for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    assert f"`{SETTING}` must be unset or `0`" in said
    assert [most.strip() for what, most in rows if "Lance reads" in what] == [str(LANCE_READS_MAX * ATTEMPTS_MAX)]
    assert [most.strip() for what, most in rows if "Lance writes" in what] == [str(ATTEMPTS_MAX)]
    assert [most.strip() for what, most in rows if "of ours" in what] == [str(ATTEMPTS_MAX)]
    assert [most.strip() for what, most in rows if "conditional" in what] == ["1"]
