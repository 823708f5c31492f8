"""Which names this server answers to, and which web pages may ask it (security.md 2; CORS as interfaces.md 2.1).

A page in an operator's browser reaches a server on loopback. It can't choose the Host that its own name resolves under,
nor leave out its Origin; so both are checked on every route.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from omnigraph.errors import Forbidden

_REQUEST_HEADERS = (
    "Authorization, Content-Type, Accept, Prefer, Omnigraph-Http-Api, Omnigraph-If-Graph-Commit, Idempotency-Key, "
    "X-Request-Id, traceparent, tracestate"
)
_RESPONSE_HEADERS = (
    "Omnigraph-Http-Api, X-Request-Id, Omnigraph-Graph-Commit, Omnigraph-Query-Name, Omnigraph-Error-Code, "
    "Idempotency-Replayed, Retry-After, Allow"
)
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_PREFLIGHT_SECONDS = 600


class Origins:
    """`hosts`: names a caller may use besides loopback names and the address it reached. `origins`: allowed pages."""

    def __init__(self, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = {host.lower() for host in hosts}
        self._origins = set(origins)

    def refusal(self, scope: Scope, headers: Headers) -> Forbidden | None:
        given = headers.getlist("host")
        if len(given) != 1 or not self._answers_to(given[0], scope):
            return Forbidden("This server does not answer under that host name.", code="host_refused")
        origins = headers.getlist("origin")
        if any(origin not in self._origins for origin in origins) or (
            not origins and headers.get("sec-fetch-site", "").lower() == "cross-site"
        ):
            return Forbidden("Requests from that origin are not answered.", code="origin_refused")
        return None

    def _answers_to(self, host: str, scope: Scope) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name = (parts.hostname or "").lower()
            plain = host.lower() in (name, f"{name}:{parts.port}", f"[{name}]", f"[{name}]:{parts.port}")
        except ValueError:
            return False
        if not plain:  # user info, a path, anything that two readers could understand differently
            return False
        if name == "localhost" or name in self._hosts:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or address == _reached(scope)

    def shown(self, headers: Headers) -> dict[str, str]:
        """Headers that let an allowed page read the answer."""
        origin = headers.get("origin")
        if not self._origins:
            return {}
        if origin not in self._origins:
            return {"Vary": "Origin"}
        return {
            "Access-Control-Allow-Origin": str(origin),
            "Access-Control-Expose-Headers": _RESPONSE_HEADERS,
            "Vary": "Origin",
        }

    def preflight(self, method: str, headers: Headers) -> Response | None:
        """The answer to a browser that asks whether it may ask; None for any other request."""
        if method != "OPTIONS" or "access-control-request-method" not in headers:
            return None
        if headers.get("origin") not in self._origins:
            return None
        return Response(
            status_code=204,
            headers={
                "Access-Control-Allow-Methods": _METHODS,
                "Access-Control-Allow-Headers": _REQUEST_HEADERS,
                "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
            },
        )


def _reached(scope: Scope) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address of this host at which the connection came in."""
    server = scope.get("server")
    try:
        address = ipaddress.ip_address(server[0]) if server else None
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
