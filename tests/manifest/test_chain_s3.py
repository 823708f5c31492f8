"""The chain on a real object store: names in every spelling, listings page by page."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from manifest.samples import first_version, fork, head, put
from omnigraph.manifest import keys
from omnigraph.manifest.builder import Built, deletion
from omnigraph.manifest.chain import KnownHead, list_branches, resolve_head
from omnigraph.manifest.codec import to_bytes
from omnigraph.manifest.markers import mark_deleted
from omnigraph.manifest.model import Manifest
from omnigraph.store.faults import FaultStore
from omnigraph.store.open import open_store
from support.clocks import SteppingClock

NAMES = ["a%2Fb", "a b", "a+b", "Zoo", "zoo2", "é", "feat/ü 1", ".tmp-x", "x" * 190 + "Ä" * 5, "a-b", "a", "[1]", "~t"]


def test_branches_of_any_name_are_found_resolved_and_listed_past_long_chains(s3_root: str) -> None:
    store = FaultStore(open_store(s3_root))
    clock = SteppingClock()
    main = first_version()
    put(store, main)
    for name in NAMES:
        put(store, fork(name, main.manifest))
    gone = fork("gone", main.manifest)
    deleted = deletion(head(gone), nonce="d")
    put(store, gone)
    put(store, deleted)
    assert mark_deleted(store, deleted.manifest) is None
    for name in ("a", "long"):
        grow(store, name, main.manifest)
    counted = FaultStore(store.inner)
    listed = list_branches(counted, clock=clock)
    assert listed.damaged == ()
    assert [found.branch for found in listed.heads] == ["main", *sorted([*NAMES, "long"], key=str.encode)]
    assert counted.count("list") <= 3  # of 2,600 keys and more, those pages that bring only older versions are left out
    for name in NAMES:
        if name != "a":
            found = resolve_head(store, name, clock=clock)
            assert isinstance(found, KnownHead)
            assert (found.branch, found.version) == (name, 1)
    assert resolve_head(store, "long", clock=clock).version == 1_300
    last = resolve_head(store, "gone", clock=clock)
    assert isinstance(last, KnownHead)
    assert not last.live


def grow(store: FaultStore, name: str, main: Manifest) -> None:
    """A chain of 1,300 versions. Nothing reads below its head, so what lies there is of no matter."""
    with ThreadPoolExecutor(16) as pool:
        older = [keys.version_key(name, version) for version in range(2, 1_300)]
        list(pool.map(lambda key: store.put_fresh(key, b"{}"), older))
    manifest = replace(fork(name, main).manifest, version=1_300)
    put(store, Built(manifest, to_bytes(manifest)))
