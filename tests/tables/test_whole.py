"""A file that lost its end is told from a whole one, whichever file it is and wherever it was cut."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.errors import StorageClass, StorageFailure, StoragePhase
from omnigraph.tables.indexes import build_scalar_index
from omnigraph.tables.stage import Committed
from omnigraph.tables.store import TableStore
from omnigraph.tables.whole import check_data, check_version
from tables.samples import GROWN_PORTS, PORT, at, ports, write


def insert(tables: TableStore) -> Committed:
    return write(tables, write(tables, None, ports("ro")).pin, ports("le"))


def update(tables: TableStore) -> Committed:
    return write(tables, write(tables, None, ports("ro", "le")).pin, ports("le", depth=2), remove=at(1))


def index(tables: TableStore) -> Committed:
    return build_scalar_index(tables, insert(tables).pin, "__id", label="main@4")


def insert_after_an_index(tables: TableStore) -> Committed:
    return write(tables, index(tables).pin, ports("he"))


def wider_insert(tables: TableStore) -> Committed:
    return write(tables, insert(tables).pin, ports("he"), schema=GROWN_PORTS)


COMMITS = [insert, update, index, insert_after_an_index, wider_insert]


def paths(tables: TableStore, done: Committed, kind: str) -> list[Path]:
    return [Path(tables.location.local_path or "", each) for each in done.written if f"/{kind}/" in each]


@pytest.mark.parametrize("commit", COMMITS, ids=lambda commit: commit.__name__)
def test_a_version_or_transaction_that_is_cut_anywhere_or_goes_on_is_not_whole(
    tables: TableStore, commit: Callable[[TableStore], Committed]
) -> None:
    done = commit(tables)
    folder = os.path.join(tables.location.local_path or "", done.pin.path)
    files = [paths(tables, done, kind)[-1] for kind in ("_transactions", "_versions")]
    names = [os.path.relpath(file, folder) for file in files]
    check_version(folder, *names)
    for file in files:
        whole = file.read_bytes()
        for damaged in (
            *(whole[:length] for length in {*range(0, len(whole), 13), len(whole) - 1}),
            whole + b"x",
            bytes(len(whole)),
        ):
            if file is files[0] and len(damaged) == len(whole):
                continue  # a transaction has no mark of its own: its size is what is known of it
            file.write_bytes(damaged)
            with pytest.raises(StorageFailure) as failed:
                check_version(folder, *names)
            assert (failed.value.cls, failed.value.phase) == (StorageClass.LOCAL_IO, StoragePhase.STAGE)
            assert failed.value.effects == "none"
        file.write_bytes(whole)
    check_version(folder, *names)


def test_a_data_file_that_is_shorter_or_longer_than_its_fragment_says_is_not_whole(tables: TableStore) -> None:
    done = insert(tables)
    folder = os.path.join(tables.location.local_path or "", done.pin.path)
    fragments = tables.open(done.pin).fragments()
    check_data(folder, fragments)
    (file,) = paths(tables, done, "data")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole + b"x"):
        file.write_bytes(damaged)
        with pytest.raises(StorageFailure):
            check_data(folder, fragments)
    os.unlink(file)
    with pytest.raises(FileNotFoundError):
        check_data(folder, fragments)


def test_a_short_file_of_an_index_or_of_a_new_folder_is_met_at_once(
    tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = insert(tables)
    sizes = os.stat
    short: list[str] = []

    def cut(path: str, **rest: object) -> os.stat_result:
        found = sizes(path, **rest)  # type: ignore[arg-type]
        if any(each in os.fspath(path) for each in short):
            return os.stat_result([*found[:6], found.st_size - 1, *found[7:10]])
        return found

    monkeypatch.setattr(os, "stat", cut)
    for short[:] in (["page_data"], [".txn"]):
        with pytest.raises(StorageFailure):
            build_scalar_index(tables, done.pin, "__id", label="main@4")
    with pytest.raises(StorageFailure):
        tables.create_folder("node", PORT.id, GROWN_PORTS)
    short.clear()
    build_scalar_index(tables, done.pin, "__id", label="main@4")
