"""An S3 root against a real server: how many requests a verb costs, and that Lance reads the same addresses."""

from __future__ import annotations

from collections.abc import Iterator

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import StorageClass
from omnigraph.store.base import Changed, Created, Exists, Replaced, Store, StoreError, Unknown
from omnigraph.store.open import open_store
from omnigraph.store.probe import Capable, probe
from support.proxy import S3Proxy, answer_after, land_late, lose_after, lose_before, refuse, truncate
from support.seaweed import S3Server

ODD_NAMES = ["my data", "a%20b", "100%", "a+b", "h#1", "q?x=1", "é", "e\u0301", "$x", "[1]", "~t", "a&b", "a=b;c,d@e:f"]


@pytest.fixture
def proxy(s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def store(proxy: S3Proxy, s3_root: str) -> Store:
    return open_store(s3_root)


# --- what a verb costs


def test_opening_a_store_sends_nothing(proxy: S3Proxy, store: Store):
    assert store.uri.startswith("s3://")
    assert proxy.requests == []


def test_each_verb_costs_one_request(proxy: S3Proxy, store: Store):
    first = store.create("f/a", b"1")
    assert isinstance(first, Created)
    assert first.etag is not None
    store.create("f/a", b"2")
    store.replace("f/a", b"2", etag=first.etag)
    store.replace("f/a", b"3", etag=first.etag)
    store.put_fresh("f/b", b"1")
    assert [seen.verb for seen in proxy.requests] == ["PUT"] * 5
    proxy.forget()
    store.read("f/a")
    store.head("f/a")
    list(store.list("f"))
    store.list_first("f")
    store.list_folders("")
    store.delete(["f/a", "f/b"])
    assert [seen.verb for seen in proxy.requests] == ["GET", "HEAD", "LIST", "LIST", "LIST", "POST"]


def test_a_listing_is_fetched_a_page_at_a_time_and_no_sooner_than_needed(proxy: S3Proxy, store: Store):
    for number in range(1_001):
        store.put_fresh(f"f/{number:04}", b"")
    proxy.forget()
    first = store.list_first("f")
    assert first is not None
    assert first.key == "f/0000"
    assert proxy.count("LIST") == 1
    listing = store.list("f")
    for _ in range(1_000):
        next(listing)
    assert proxy.count("LIST") == 2
    assert [info.key for info in listing] == ["f/1000"]
    assert proxy.count("LIST") == 3


def test_a_listing_that_is_throttled_midway_neither_skips_nor_repeats(proxy: S3Proxy, store: Store):
    names = [f"f/{number:04}" for number in range(1_001)]
    for name in names:
        store.put_fresh(name, b"")
    proxy.break_next(refuse(503), method="LIST", skip=1, times=5)
    assert [info.key for info in store.list("f")] == names


# --- faults between us and a real server


def test_a_create_whose_answer_is_lost_is_unknown_and_stands(proxy: S3Proxy, store: Store):
    for fault in (lose_after(), answer_after(500), answer_after(502), answer_after(200, b"")):
        key = f"k{len(proxy.requests)}"
        proxy.break_next(fault, conditional=True)
        assert isinstance(store.create(key, b"mine"), Unknown)
        assert proxy.count("PUT", key=key) == 1
        assert store.read(key).data == b"mine"
        assert store.create(key, b"mine") == Exists()


def test_a_create_that_is_lost_on_the_way_is_unknown_and_may_land_late(proxy: S3Proxy, store: Store):
    proxy.break_next(lose_before(), conditional=True)
    assert isinstance(store.create("a", b"mine"), Unknown)
    proxy.break_next(land_late(), conditional=True)
    assert isinstance(store.create("a", b"mine"), Unknown)
    with pytest.raises(StoreError) as caught:
        store.read("a")
    assert caught.value.cls is StorageClass.NOT_FOUND
    assert isinstance(store.create("a", b"another's"), Created)
    assert proxy.release() == [412]
    assert store.read("a").data == b"another's"


def test_409_while_nothing_is_stored_is_told_from_an_object_that_exists_by_a_look(proxy: S3Proxy, store: Store):
    proxy.break_next(refuse(409, "ConditionalRequestConflict"), conditional=True)
    assert store.create("a", b"1") == Exists()
    with pytest.raises(StoreError) as caught:
        store.read("a")
    assert caught.value.cls is StorageClass.NOT_FOUND
    created = store.create("a", b"1")
    assert isinstance(created, Created)
    assert created.etag is not None
    proxy.break_next(refuse(409, "ConditionalRequestConflict"), conditional=True)
    assert store.replace("a", b"2", etag=created.etag) == Changed()
    assert isinstance(store.replace("a", b"2", etag=created.etag), Replaced)


def test_a_read_whose_answer_breaks_off_is_completed(proxy: S3Proxy, store: Store):
    data = bytes(range(256)) * 64
    store.put_fresh("a", data)
    proxy.break_next(truncate(), method="GET")
    assert store.read("a").data == data


def test_a_missing_bucket_is_not_a_missing_object(proxy: S3Proxy):
    store = open_store("s3://no-such-bucket/x")
    for ask in (lambda: store.read("a"), lambda: list(store.list("a")), lambda: store.put_fresh("a", b"")):
        with pytest.raises(StoreError) as caught:
            ask()
        assert caught.value.cls is StorageClass.DENIED


def test_wrong_credentials_are_denied(store: Store, s3_root: str):
    other = open_store(s3_root, storage_options={"access_key_id": "nobody", "secret_access_key": "x"})
    with pytest.raises(StoreError) as caught:
        other.read("a")
    assert caught.value.cls is StorageClass.DENIED


def test_the_probe_passes_on_a_real_server_with_six_requests_and_leaves_nothing(proxy: S3Proxy, store: Store):
    assert probe(store, "__probe") == Capable()
    assert len(proxy.requests) == 6
    assert list(store.list("")) == []


# --- the same addresses for Lance


@pytest.mark.parametrize("name", ODD_NAMES)
def test_lance_finds_what_we_find_under_an_odd_prefix(proxy: S3Proxy, s3_root: str, name: str):
    from omnigraph.store.uri import encoded

    store = open_store(f"{s3_root}/{encoded(name)}")
    other = open_store(f"{s3_root}/{encoded('other ' + name)}")
    options = store.lance_storage_options()
    lance.write_dataset(pa.table({"a": [1, 2]}), store.lance_uri("nodes/t-1"), storage_options=options)
    keys = [info.key for info in store.list("nodes/t-1")]
    assert any(key.startswith("nodes/t-1/data/") for key in keys)
    assert lance.dataset(store.lance_uri("nodes/t-1"), storage_options=options).count_rows() == 2
    assert list(other.list("")) == []
    # Exactly one folder of exactly this name lies under the root.
    assert open_store(s3_root).list_folders("") == [name]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_lance_finds_what_we_find_in_a_local_folder_of_an_odd_name(tmp_path_factory: pytest.TempPathFactory, name: str):
    parent = tmp_path_factory.mktemp("odd")
    store = open_store(parent / name)
    lance.write_dataset(pa.table({"a": [1, 2]}), store.lance_uri("nodes/t-1"))
    assert any(info.key.startswith("nodes/t-1/data/") for info in store.list("nodes"))
    assert lance.dataset(store.lance_uri("nodes/t-1")).count_rows() == 2
    assert [path.name for path in parent.iterdir()] == [name]


def test_lances_own_requests_pass_the_counting_proxy(proxy: S3Proxy, store: Store):
    options = store.lance_storage_options()
    lance.write_dataset(pa.table({"a": [1, 2]}), store.lance_uri("nodes/t-1"), storage_options=options)
    with proxy.recording() as requests:
        lance.dataset(store.lance_uri("nodes/t-1"), storage_options=options).to_table()
    assert requests
    assert {seen.status for seen in requests} <= {200, 206}
    assert all("nodes/t-1" in seen.key for seen in requests)
