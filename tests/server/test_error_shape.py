"""Every route, method and malformed request is answered with the contract, a request id and, from 400 up, the one body."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

import omnigraph
from omnigraph.server.app import routed
from server.asgi import JSON, NDJSON, Reply, refused, sound
from server.conftest import SCHEMA, Served

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
PLACES = {"g": "atlas", "branch": "main", "c": "main@1-0011223344556677"}
ROUTES = sorted({(route.path_format) for route in routed().router.routes if isinstance(route, APIRoute)})
TARGETS = [path.format(**PLACES) for path in ROUTES]

BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no object": b"[]",
    "bytes after the value": b"{} {}",
    "a repeated key": b'{"query": "x", "query": "y"}',
    "an unknown key": b'{"actor_id": "root"}',
    "NaN": b'{"params": {"a": NaN}}',
    "a number beyond floats": b'{"params": {"a": 1e999}}',
    "a number of too many digits": b'{"params": {"a": ' + b"9" * 5_000 + b"}}",
    "no UTF-8": b'{"query": "\xff"}',
    "half a surrogate pair": b'{"query": "\\ud800"}',
    "too deep": b'{"params": ' + b"[" * 70 + b"]" * 70 + b"}",
    "far too deep": b'{"params": ' + b"[" * 100_000,
    "ill-typed fields": b'{"query": 1, "name": [], "source": {}, "types": 3, "data": null, "mode": "x"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
}
HEADERS: dict[str, list[tuple[str, str]]] = {
    "another contract": [("Omnigraph-Http-Api", "2")],
    "a list of contracts": [("Omnigraph-Http-Api", "1, 2")],
    "the contract twice": [("Omnigraph-Http-Api", "1"), ("Omnigraph-Http-Api", "1")],
    "a foreign host": [("Host", "evil.example")],
    "a host with user info": [("Host", "localhost@evil.example")],
    "an empty host": [("Host", "")],
    "two hosts": [("Host", "localhost"), ("Host", "localhost")],
    "a foreign origin": [("Origin", "https://evil.example")],
    "an opaque origin": [("Origin", "null")],
    "another site's page": [("Sec-Fetch-Site", "cross-site")],
    "a condition that is none": [("Omnigraph-If-Graph-Commit", "*")],
    "two keys": [("Idempotency-Key", "a"), ("Idempotency-Key", "b")],
    "a key with blanks": [("Idempotency-Key", "a b")],
    "a huge header": [("X-Anything", "x" * 70_000)],
    "an encoded body": [("Content-Encoding", "gzip")],
    "no content type": [],
    "another content type": [("Content-Type", "text/plain")],
    "another character set": [("Content-Type", f"{JSON}; charset=latin-1")],
    "a body that is announced too large": [("Content-Type", JSON), ("Content-Length", "99999999999")],
    "a length of many digits": [("Content-Type", JSON), ("Content-Length", "9" * 5_000)],
}
QUERIES = ["nothing=1", "branch=", "limit=0", "limit=a", "limit=1&limit=1", "a=%zz", "a=%ff", "x" * 17_000, "since=-1"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("cluster")
    for name in ("atlas", "broken"):
        omnigraph.init(root / "graphs" / f"{name}.omni", schema=SCHEMA)
    [manifest] = (root / "graphs" / "broken.omni" / "__manifest" / "main").glob("*.json")
    manifest.write_bytes(b"{")
    served = Served(root)
    yield served
    served.operations.finish()
    assert served.head().startswith("main@1-"), "nothing of all this was carried out"
    served.close()


def judged(reply: Reply, method: str, root: Path) -> Reply:
    sound(reply, head=method == "HEAD")
    assert reply.headers.get("omnigraph-error-code") != "internal", reply.body
    assert reply.status < 400 or str(root) not in reply.body.decode(), "no storage path in a refusal"
    return reply


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", METHODS)
def test_whatever_comes_is_answered_in_shape(served: Served, target: str, method: str) -> None:
    for case, headers in HEADERS.items():
        judged(served.send(method, target, headers=headers, body=b"{}"), method, served.root)
        assert case
    for body in BODIES.values():
        for content_type in (JSON, NDJSON):
            reply = served.send(method, target, headers=[("Content-Type", content_type)], body=body)
            judged(reply, method, served.root)
    for query in QUERIES:
        reply = judged(served.send(method, f"{target}?{query}"), method, served.root)
        assert reply.status >= 400


@pytest.mark.parametrize("target", TARGETS)
def test_a_method_that_a_path_does_not_take_is_405_and_names_those_it_does(served: Served, target: str) -> None:
    for method in METHODS:
        reply = served.send(method, target)
        if reply.status == 405:
            assert reply.headers["omnigraph-error-code"] == "method_not_allowed"
            allowed = reply.headers["allow"].split(", ")
            assert allowed
            assert method not in allowed
            assert all(served.send(each, target).status != 405 for each in allowed)
    assert served.send("BREW", target).status == 405


@pytest.mark.parametrize("target", [t for t in TARGETS if t.startswith("/graphs/atlas")])
def test_a_graph_that_is_not_there_or_not_served_is_told_before_the_body_is_looked_at(
    served: Served, target: str
) -> None:
    for method in ("GET", "POST", "DELETE"):
        headers = [("Content-Type", "text/plain")] if method == "POST" else []
        for name, status, code in (("nothing", 404, "graph_not_found"), ("broken", 503, "graph_unavailable")):
            path = target.replace("/atlas", f"/{name}", 1)
            conditional = [("Omnigraph-If-Graph-Commit", "main@1-0011223344556677")] if "/if-" in path else []
            asked = f"{path}?mode=append" if path.endswith("ndjson") else path
            reply = served.send(method, asked, headers=[*headers, *conditional])
            if reply.status != 405:
                writes = method == "DELETE" or (method == "POST" and not path.endswith(("/query", "/export")))
                error = refused(reply, status, code, effects="none" if writes else None)
                if status == 503:
                    assert error["retry"] == "recover"
                    assert error["graph_unavailable"] == {
                        "graph_id": "broken",
                        "state": "blocked",
                        "action": "restart_after_correction",
                    }


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "//",
        "/graphs/",
        "/graphs//query",
        "/graphs/atlas/",
        "/graphs/atlas/read",
        "/graphs/atlas/change",
        "/graphs/atlas/ingest",
        "/graphs/atlas/schema/apply",
        "/graphs/atlas/query/",
        "/graphs/atlas/commits/main@1-0011223344556677/changes",
        "/console",
        "/docs",
        "/redoc",
        "/metrics",
        "/mcp",
        "/healthz/",
        "*",
    ],
)
def test_paths_that_are_none_are_404_whatever_the_method(served: Served, target: str) -> None:
    for method in METHODS:
        reply = judged(served.send(method, target), method, served.root)
        if "changes" not in target or method == "GET":
            assert reply.headers["omnigraph-error-code"] == "route_not_found", method


def test_the_contract_is_checked_before_anything_else(served: Served) -> None:
    for target in ("/nothing", "/graphs/nothing/query", "/healthz"):
        error = refused(
            served.post(target, {}, omnigraph_http_api="2"),
            400,
            "api_contract_mismatch",
        )
        assert error["api_contract"] == {"required": "1", "received": "2"}
        assert served.get("/healthz", omnigraph_http_api="1").status == 200
    refused(
        served.post("/graphs/atlas/mutate", {}, omnigraph_http_api="2"), 400, "api_contract_mismatch", effects="none"
    )


def test_a_route_is_looked_for_before_its_headers_are_judged(served: Served) -> None:
    refused(served.post("/graphs/atlas/nothing", {}, idempotency_key="k"), 404, "route_not_found")
    refused(served.post("/nothing", {}, omnigraph_if_graph_commit="x"), 404, "route_not_found")


def test_a_request_id_is_echoed_if_it_is_visible_ascii_and_made_otherwise(served: Served) -> None:
    assert served.get("/healthz", x_request_id="mine-1").headers["x-request-id"] == "mine-1"
    for bad in ("", "a b", "x" * 129, "\xe9", "a\tb"):
        made = served.get("/healthz", x_request_id=bad).headers["x-request-id"]
        assert len(made) == 26
    assert refused(served.get("/nothing", x_request_id="mine-2"), 404, "route_not_found")["request_id"] == "mine-2"


def test_a_path_that_is_no_utf8_is_refused(served: Served) -> None:
    for target in ("/graphs/%ff", "/graphs/%zz/query", "/graphs/atlas/branches/%C3"):
        refused(served.get(target), 400, "bad_request")


def test_fields_that_are_wrong_are_all_named(served: Served) -> None:
    error = refused(
        served.post("/graphs/atlas/query", {"query": 1, "a/b": 2, "as_of": [], "branch": ""}), 400, "bad_request"
    )
    assert {field["path"] for field in error["invalid_fields"]} == {"/a~1b", "/as_of", "/branch", "/query"}
    error = refused(served.get("/graphs/atlas/commits?limit=2000"), 400, "bad_request")
    assert [field["path"] for field in error["invalid_fields"]] == ["/limit"]
    error = refused(served.get("/readyz?verbose=1"), 400, "bad_request")
    assert [field["path"] for field in error["invalid_fields"]] == ["verbose"]
