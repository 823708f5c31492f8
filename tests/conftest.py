"""Fixtures for every room: a real S3 server, and a fresh root on each kind of storage."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from support.seaweed import S3Server, shared_server

# Processes that a test starts find the program and the tests' own rooms as this one does, wherever the suite is started
# from.
os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """Who captures lines leaves the library configured, and then its lines go to standard output."""
    before = structlog.is_configured()
    yield
    if not before and structlog.is_configured():
        structlog.reset_defaults()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> S3Server:
    """A SeaweedFS server with a bucket, the same one for all workers of this test run."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return shared_server(base / "s3-server", os.getpid())
    return shared_server(base.parent / "s3-server", os.getppid())


@pytest.fixture
def s3_root(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An S3 address that nothing was ever written under; the environment leads there."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3_server.bucket}/{os.urandom(8).hex()}"


@pytest.fixture(params=["local", "s3"])
def any_root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh root: a folder that does not exist yet, then an S3 prefix."""
    return request.getfixturevalue("s3_root") if request.param == "s3" else str(tmp_path / "root")
