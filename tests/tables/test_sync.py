"""On a local root, what a commit wrote survives a power cut before a manifest names it (storage.md 2, trials SF-06)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.errors import StorageClass, StorageFailure, StoragePhase
from omnigraph.store.open import open_store
from omnigraph.tables.indexes import build_scalar_index
from omnigraph.tables.store import TableStore
from omnigraph.tables.sync import folders_to_sync, sync
from tables.samples import ports, write


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files and folders that were fsynced, as they happen."""
    paths: list[str] = []
    real = os.fsync

    def recorded(descriptor: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    return paths


def relative(tables: TableStore, paths: list[str]) -> set[str]:
    return {os.path.relpath(path, tables.location.local_path) for path in paths}


def files(tables: TableStore) -> set[str]:
    root = tables.location.local_path or ""
    return {os.path.relpath(os.path.join(at, name), root) for at, _, names in os.walk(root) for name in names}


def test_every_file_of_a_first_commit_and_every_folder_down_to_it_is_synced(
    tables: TableStore, synced: list[str]
) -> None:
    done = write(tables, None, ports("ro"))
    synced.clear()
    sync(tables, [done])
    folder = done.pin.path
    assert files(tables) <= relative(tables, synced)
    assert {".", "nodes", folder} <= relative(tables, synced)
    assert {f"{folder}/{name}" for name in ("data", "_transactions", "_versions")} <= relative(tables, synced)


def test_data_deletions_transaction_and_version_of_an_update_are_synced_with_their_folders(
    tables: TableStore, synced: list[str]
) -> None:
    first = write(tables, None, ports("ro", "le"))
    sync(tables, [first])
    before = files(tables)
    second = write(tables, first.pin, ports("le", depth=2), remove=[1])
    synced.clear()
    sync(tables, [second])
    new = files(tables) - before
    assert {name.removeprefix(f"{first.pin.path}/").split("/")[0] for name in new} == {
        "data", "_deletions", "_transactions", "_versions",
    }  # fmt: skip
    assert new <= relative(tables, synced)
    assert {os.path.dirname(name) for name in new} <= relative(tables, synced)
    assert first.pin.path in relative(tables, synced), "the folder of deletions is new in it"


def test_an_ordinary_insert_syncs_three_files_and_three_folders(tables: TableStore, synced: list[str]) -> None:
    first = write(tables, None, ports("ro"))
    sync(tables, [first])
    second = write(tables, first.pin, ports("le"))
    synced.clear()
    sync(tables, [second])
    assert relative(tables, synced) == {*second.written, *(os.path.dirname(name) for name in second.written)}
    assert len(synced) == 6


def test_files_of_an_index_are_synced(tables: TableStore, synced: list[str]) -> None:
    first = write(tables, None, ports("ro"))
    sync(tables, [first])
    before = files(tables)
    indexed = build_scalar_index(tables, first.pin, "__id", label="main@3")
    synced.clear()
    sync(tables, [indexed])
    assert files(tables) - before <= relative(tables, synced)
    assert f"{first.pin.path}/_indices" in relative(tables, synced)


def test_a_folder_whose_first_write_was_not_published_is_synced_by_the_next(
    tables: TableStore, synced: list[str]
) -> None:
    write(tables, None, ports("lost"))
    done = write(tables, None, ports("ro"))
    synced.clear()
    sync(tables, [done])
    versions = {name for name in files(tables) if "_versions/" in name and "/d" not in name}
    assert versions
    assert versions <= relative(tables, synced)


def test_several_types_are_synced_together(tables: TableStore, synced: list[str]) -> None:
    done = [write(tables, None, ports("ro"), line=line) for line in ("a#1", "b#1")]
    synced.clear()
    sync(tables, done)
    assert files(tables) <= relative(tables, synced)


def test_nothing_is_synced_when_it_is_switched_off(tmp_path: Path, synced: list[str]) -> None:
    tables = TableStore(open_store(tmp_path / "root"), local_sync="off")
    sync(tables, [write(tables, None, ports("ro"))])
    assert synced == []


def test_nothing_is_synced_on_object_storage(s3_root: str, synced: list[str]) -> None:
    tables = TableStore(open_store(s3_root))
    sync(tables, [write(tables, None, ports("ro"))])
    assert synced == []


def test_a_disk_that_fails_is_a_definite_failure_of_staging(
    tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = write(tables, None, ports("ro"))

    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageFailure) as failed:
        sync(tables, [done])
    assert (failed.value.cls, failed.value.phase) == (StorageClass.LOCAL_IO, StoragePhase.STAGE)
    assert failed.value.effects == "none"
    monkeypatch.undo()
    sync(tables, [done])


def test_folders_above_are_synced_until_one_that_is_known() -> None:
    assert set(folders_to_sync(["a/b/c/f"], set())) == {"a/b/c", "a/b", "a", ""}
    assert set(folders_to_sync(["a/b/c/f"], {"a/b"})) == {"a/b/c", "a/b"}
    assert set(folders_to_sync(["a/b/c/f", "a/b/d/g"], {"", "a", "a/b", "a/b/c"})) == {"a/b/c", "a/b/d", "a/b"}
