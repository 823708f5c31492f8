"""The counting proxy that other tests and the benchmarks rely on counts right and breaks only what it is asked to."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest

from omnigraph.store.base import Created, Exists, StoreError
from omnigraph.store.open import open_store
from support.proxy import S3Proxy, corrupt, delay, refuse
from support.seaweed import ACCESS_KEY, REGION, SECRET_KEY, S3Server


@pytest.fixture
def proxy(s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


def test_signed_requests_of_another_client_pass_too(proxy: S3Proxy, s3_server: S3Server, s3_root: str):
    client = boto3.client(
        "s3",
        endpoint_url=proxy.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
    )
    key = s3_root.rpartition("/")[2] + "/é a"
    body = bytes(3 << 20)
    client.put_object(Bucket=s3_server.bucket, Key=key, Body=body)
    assert client.get_object(Bucket=s3_server.bucket, Key=key)["Body"].read() == body
    client.close()
    assert [(seen.verb, seen.bucket, seen.key) for seen in proxy.requests] == [
        ("PUT", s3_server.bucket, key),
        ("GET", s3_server.bucket, key),
    ]


def test_requests_in_parallel_are_each_counted_once(proxy: S3Proxy, s3_root: str):
    store = open_store(s3_root)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.put_fresh(f"f/{number}", b"x" * number), range(100)))
    assert proxy.count("PUT") == 100
    assert sorted(seen.ordinal for seen in proxy.requests) == list(range(1, 101))
    assert sum(seen.bytes_sent for seen in proxy.requests) == sum(range(100))


def test_a_recording_holds_the_requests_of_its_block(proxy: S3Proxy, s3_root: str):
    store = open_store(s3_root)
    store.put_fresh("a", b"1")
    with proxy.recording() as requests:
        store.read("a")
        store.head("a")
    store.read("a")
    assert [seen.verb for seen in requests] == ["GET", "HEAD"]


def test_a_fault_meets_the_requests_it_names_and_no_other(proxy: S3Proxy, s3_root: str):
    store = open_store(s3_root)
    store.put_fresh("a", b"1")
    store.put_fresh("b", b"2")
    proxy.break_next(refuse(403, "AccessDenied"), method="GET", key="/b", skip=1, times=1)
    assert store.read("b").data == b"2"
    with pytest.raises(StoreError):
        store.read("b")
    assert store.read("b").data == b"2"
    assert store.read("a").data == b"1"
    proxy.break_next(refuse(403, "AccessDenied"), conditional=True, times=9)
    store.put_fresh("c", b"3")
    assert not isinstance(store.create("d", b""), Created | Exists)
    proxy.heal()
    assert isinstance(store.create("d", b""), Created)


def test_a_refused_request_never_reaches_the_server_and_a_delayed_one_does(proxy: S3Proxy, s3_root: str):
    store = open_store(s3_root)
    proxy.break_next(refuse(403, "AccessDenied"), method="PUT")
    store.create("a", b"1")
    proxy.break_next(delay(0.05), method="PUT")
    store.create("a", b"2")
    assert [(seen.status, seen.passed) for seen in proxy.requests] == [(403, False), (200, True)]
    assert store.read("a").data == b"2"


def test_a_corrupted_answer_has_the_right_length_and_other_bytes(proxy: S3Proxy, s3_root: str):
    store = open_store(s3_root)
    store.put_fresh("a", b"\x00\x01")
    proxy.break_next(corrupt(), method="GET")
    assert store.read("a").data == b"\x55\x54"


def test_latency_is_added_to_each_round_trip(proxy: S3Proxy, s3_root: str):
    store = open_store(s3_root)
    store.put_fresh("a", b"1")
    proxy.latency_seconds = 0.05
    with proxy.recording() as requests:
        store.read("a")
        store.read("a")
    assert [seen.seconds >= 0.05 for seen in requests] == [True, True]
