"""Which store an address opens, and what opening loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from omnigraph.store.local import LocalStore
from omnigraph.store.open import open_store


def test_a_path_opens_a_local_store_that_knows_its_folder(tmp_path: Path):
    store = open_store(tmp_path / "x")
    assert isinstance(store, LocalStore)
    assert store.local_path == str(tmp_path / "x")
    assert store.uri == store.local_path
    assert store.lance_uri("nodes/a b%20") == str(tmp_path / "x/nodes/a b%20")
    assert store.lance_storage_options() == {}


def test_an_s3_root_opens_a_cloud_store_without_a_folder(s3_root: str):
    store = open_store(s3_root + "/a b%2520#x".replace("#", "%23"))
    assert store.local_path is None
    assert store.uri == s3_root + "/a%20b%2520%23x"
    assert store.lance_uri("nodes/é") == s3_root + "/a%20b%2520%23x/nodes/%C3%A9"


def test_a_local_store_is_opened_without_loading_a_storage_client(tmp_path: Path):
    program = (
        "import sys; from omnigraph.store.open import open_store; "
        f"open_store({str(tmp_path)!r}); "
        "print([name for name in ('obstore', 'pyarrow', 'lance', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
