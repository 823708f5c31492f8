"""Under which names the server answers, and to whose web pages (security.md 2), on every route."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute

from omnigraph.server.app import routed
from server.asgi import refused, sound
from server.conftest import Serve, Served

PAGE = "https://console.example"
TARGETS = sorted(
    {
        route.path_format.format(g="atlas", branch="b", c="main@1-0011223344556677")
        for route in routed().router.routes
        if isinstance(route, APIRoute)
    }
)


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("localhost", True),
        ("LOCALHOST:9999", True),
        ("127.0.0.1", True),
        ("127.0.0.2:80", True),
        ("[::1]:8080", True),
        ("graph.example", True),
        ("Graph.Example:443", True),
        ("10.0.0.7", True),
        ("10.0.0.8", False),
        ("192.168.1.1", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("evil.localhost", False),
        ("localhost.", False),
        ("user@localhost", False),
        ("localhost/x", False),
        ("localhost:x", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_the_host_is_a_loopback_name_the_address_reached_or_a_public_host(
    serve: Serve, host: str, answered: bool
) -> None:
    served = serve(hosts=["graph.example"], load=False)
    reply = served.run(served.sending("GET", "/healthz", headers=[("host", host)], server=("10.0.0.7", 8080)))
    assert sound(reply).status == (200 if answered else 403)
    if not answered:
        refused(reply, 403, "host_refused")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("header", "code"),
    [
        (("host", "evil.example"), "host_refused"),
        (("origin", "https://evil.example"), "origin_refused"),
        (("origin", "null"), "origin_refused"),
        (("sec-fetch-site", "cross-site"), "origin_refused"),
    ],
)
def test_every_route_refuses_foreign_names_and_pages(
    served: Served, target: str, header: tuple[str, str], code: str
) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        reply = served.send(method, target, headers=[header, ("content-type", "text/plain")], body=b"{}")
        assert sound(reply).headers["omnigraph-error-code"] == code
        assert "access-control-allow-origin" not in reply.headers
    assert served.head().startswith("main@1-")


def test_an_allowed_page_may_ask_and_read(serve: Serve) -> None:
    served = serve(origins=[PAGE])
    preflight = sound(
        served.send(
            "OPTIONS",
            "/graphs/atlas/query",
            headers=[("origin", PAGE), ("access-control-request-method", "POST"), ("sec-fetch-site", "cross-site")],
        )
    )
    assert (preflight.status, preflight.body) == (204, b"")
    assert preflight.headers["access-control-allow-origin"] == PAGE
    assert "POST" in preflight.headers["access-control-allow-methods"]
    for name in ("Authorization", "Content-Type", "Idempotency-Key", "Omnigraph-If-Graph-Commit"):
        assert name in preflight.headers["access-control-allow-headers"]
    reply = sound(served.get("/healthz", origin=PAGE, sec_fetch_site="cross-site"))
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == PAGE
    for name in ("Omnigraph-Graph-Commit", "X-Request-Id", "Omnigraph-Error-Code", "Retry-After"):
        assert name in reply.headers["access-control-expose-headers"]
    refusal = served.get("/nothing", origin=PAGE)
    refused(refusal, 404, "route_not_found")
    assert refusal.headers["access-control-allow-origin"] == PAGE
    refused(served.get("/healthz", origin=f"{PAGE}:8443"), 403, "origin_refused")
    assert served.get("/healthz").headers["vary"] == "Origin"


def test_without_allowed_pages_nothing_is_said_of_origins(served: Served) -> None:
    reply = served.send("OPTIONS", "/healthz", headers=[("access-control-request-method", "GET")])
    refused(reply, 405, "method_not_allowed")
    assert not [name for name in served.get("/healthz").headers if name.startswith("access-control")]
