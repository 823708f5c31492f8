"""The S3 server of a run, with the counting proxy in front of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.graphs import environment
from support.proxy import S3Proxy
from support.seaweed import S3Server, shared_server


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """Inside `through_proxy` the environment leads to the proxy; `direct` leads past it."""

    server: S3Server
    proxy: S3Proxy

    @property
    def direct(self) -> dict[str, str]:
        return self.server.env

    def fresh_root(self) -> str:
        """An address that nothing was ever written under."""
        return f"s3://{self.server.bucket}/{os.urandom(8).hex()}"


@contextmanager
def through_proxy(server: S3Server) -> Iterator[ObjectStorage]:
    """Requests of this process go through a proxy while the block runs."""
    with S3Proxy(server.endpoint) as proxy, environment({**server.env, "AWS_ENDPOINT_URL": proxy.endpoint}):
        yield ObjectStorage(server, proxy)


@contextmanager
def object_storage(scratch: Path) -> Iterator[ObjectStorage]:
    """A server of its own for this process, and a proxy."""
    with through_proxy(shared_server(scratch / "s3", os.getpid())) as storage:
        yield storage
