"""Which requests are writes: their errors say what is known of their effects."""

from __future__ import annotations

from fastapi import Request

_READS = ("/query", "/export")


def is_write(request: Request) -> bool:
    path = request.url.path
    return (
        path.startswith("/graphs/")
        and request.method in ("POST", "PUT", "PATCH", "DELETE")
        and not path.endswith(_READS)
    )
