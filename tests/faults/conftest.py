"""A place for roots, in memory where there is one, and settings that a throw-away root wants."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def folder() -> Iterator[str]:
    """For all roots of a worker; gone at the end."""
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="faults-", dir=place, ignore_cleanup_errors=True) as name:
        yield name


@pytest.fixture(autouse=True)
def throw_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_SYNC", "off")
