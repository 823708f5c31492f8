"""A table store over a fresh root: a folder, or each kind of storage in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.store.open import open_store
from omnigraph.tables.store import TableStore


@pytest.fixture
def tables(tmp_path: Path) -> TableStore:
    return TableStore(open_store(tmp_path / "root"))


@pytest.fixture
def any_tables(any_root: str) -> TableStore:
    return TableStore(open_store(any_root))
