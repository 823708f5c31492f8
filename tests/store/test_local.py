"""A local folder as a store: what survives a power cut, and what each failing system call may be called."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import StorageClass
from omnigraph.store.base import Changed, Created, Exists, Refused, Replaced, StoreError, Unknown
from omnigraph.store.local import LocalStore
from omnigraph.store.settings import StoreSettings
from omnigraph.store.uri import LocalRoot
from support.clocks import SteppingClock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(LocalRoot(str(root)))


class Calls:
    """Watches system calls by name, and lets one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.made: list[tuple[str, str]] = []
        self._names: dict[int, str] = {}

    def watch(self, root: Path) -> None:
        opened, descriptors = os.open, self._names

        def open_(path: Any, flags: int, *rest: Any, **named: Any) -> int:
            descriptor = opened(path, flags, *rest, **named)
            descriptors[descriptor] = os.path.relpath(path, root)
            return descriptor

        self._monkeypatch.setattr(os, "open", open_)
        for name in ("link", "unlink", "rename", "mkdir"):
            self._wrap(name, lambda args: os.path.relpath(args[-1] if len(args) == 2 else args[0], root))
        self._wrap("fsync", lambda args: self._names[args[0]])

    def _wrap(self, name: str, describe: Callable[[tuple[Any, ...]], str]) -> None:
        original = getattr(os, name)

        def call(*args: Any, **named: Any) -> Any:
            self.made.append((name, describe(args)))
            return original(*args, **named)

        self._monkeypatch.setattr(os, name, call)


def fail(monkeypatch: pytest.MonkeyPatch, name: str, number: int, *, at: int = 1, after: bool = False) -> None:
    """The `at`-th call of os.`name` from now on fails with this errno, before or after it took effect."""
    original = getattr(os, name)
    count = 0

    def call(*args: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            if after:
                original(*args, **named)
            raise OSError(number, "injected")
        return original(*args, **named)

    monkeypatch.setattr(os, name, call)


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


# --- durability


def test_a_create_syncs_the_content_then_links_then_syncs_the_folder_then_drops_the_temporary(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    store.create("a/first", b"")
    calls = Calls(monkeypatch)
    calls.watch(root)
    assert isinstance(store.create("a/second", b"x"), Created)
    temporary = calls.made[0][1]
    assert temporary.startswith("a/.tmp-")
    assert calls.made == [("fsync", temporary), ("link", "a/second"), ("fsync", "a"), ("unlink", temporary)]


def test_the_way_down_to_a_new_folder_is_synced_before_its_first_object(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    calls = Calls(monkeypatch)
    calls.watch(root)
    store.create("a/b/c", b"x")
    before_link = calls.made[: [name for name, _ in calls.made].index("link")]
    assert [path for name, path in before_link if name == "mkdir"] == [".", "a", "a/b"]
    assert [path for name, path in before_link if name == "fsync"][:3] == ["..", ".", "a"]


def test_folders_that_another_process_made_are_synced_too(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    (root / "a" / "b").mkdir(parents=True)
    calls = Calls(monkeypatch)
    calls.watch(root)
    store.create("a/b/c", b"x")
    assert [path for name, path in calls.made if name == "fsync"][:2] == [".", "a"]


def test_a_swap_syncs_the_content_then_renames_then_syncs_the_folder(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    first = store.create("a", b"1")
    assert isinstance(first, Created)
    calls = Calls(monkeypatch)
    calls.watch(root)
    assert isinstance(store.replace("a", b"2", etag=first.etag or ""), Replaced)
    temporary = calls.made[0][1]
    assert calls.made[:3] == [("fsync", temporary), ("rename", "a"), ("fsync", ".")]


def test_with_sync_off_nothing_is_synced(root: Path, monkeypatch: pytest.MonkeyPatch):
    store = LocalStore(LocalRoot(str(root)), StoreSettings(local_sync="off"))
    calls = Calls(monkeypatch)
    calls.watch(root)
    first = store.create("a/b", b"1")
    assert isinstance(first, Created)
    assert isinstance(store.replace("a/b", b"2", etag=first.etag or ""), Replaced)
    store.delete(["a/b"])
    assert "fsync" not in [name for name, _ in calls.made]


# --- what a failing call means


@pytest.mark.parametrize(
    ("call", "number", "cls"),
    [
        ("mkdir", errno.EACCES, StorageClass.DENIED),
        ("mkdir", errno.EROFS, StorageClass.DENIED),
        ("open", errno.ENOSPC, StorageClass.LOCAL_IO),
        ("fsync", errno.EIO, StorageClass.LOCAL_IO),
        ("fsync", errno.ENOSPC, StorageClass.LOCAL_IO),
        ("fsync", errno.EDQUOT, StorageClass.LOCAL_IO),
    ],
)
def test_an_error_before_the_link_is_refused_and_leaves_no_file(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, cls: StorageClass
):
    fail(monkeypatch, call, number)
    assert store.create("a/b", b"x") == Refused(cls)
    monkeypatch.undo()
    assert files(root) == []
    assert isinstance(store.create("a/b", b"x"), Created)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EINTR])
def test_an_error_of_the_link_itself_is_unknown(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
):
    fail(monkeypatch, "link", number, after=after)
    assert store.create("a/b", b"x") == Unknown(StorageClass.LOCAL_IO)
    assert files(root) == (["a/b"] if after else [])


def test_a_failing_sync_of_the_folder_after_the_link_is_unknown_and_the_object_may_stand(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    store.create("a/first", b"")
    fail(monkeypatch, "fsync", errno.EIO, at=2)
    assert store.create("a/second", b"x") == Unknown(StorageClass.LOCAL_IO)
    assert files(root) == ["a/first", "a/second"]


def test_exists_is_said_only_once_the_name_is_durable(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    # The object that stands there may be the caller's own, whose folder sync failed a moment ago.
    store.create("a/b", b"x")
    fail(monkeypatch, "fsync", errno.EIO, at=2)
    assert store.create("a/b", b"x") == Unknown(StorageClass.LOCAL_IO)
    assert store.create("a/b", b"x") == Exists()


def test_a_temporary_file_that_cannot_be_removed_is_no_reason_for_doubt(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    fail(monkeypatch, "unlink", errno.EIO)
    assert isinstance(store.create("a/b", b"x"), Created)
    assert len(files(root)) == 2
    assert [info.key for info in store.list("")] == ["a/b"]
    first = store.list_first("a")
    assert first is not None
    assert first.key == "a/b"


def test_an_error_before_the_rename_of_a_swap_is_refused_and_one_after_it_unknown(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    first = store.create("a", b"1")
    assert isinstance(first, Created)
    etag = first.etag or ""
    with monkeypatch.context() as patched:
        fail(patched, "fsync", errno.EIO)
        assert store.replace("a", b"2", etag=etag) == Refused(StorageClass.LOCAL_IO)
    assert store.read("a").data == b"1"
    with monkeypatch.context() as patched:
        fail(patched, "rename", errno.EIO)
        assert store.replace("a", b"2", etag=etag) == Unknown(StorageClass.LOCAL_IO)
    with monkeypatch.context() as patched:
        fail(patched, "fsync", errno.EIO, at=2)
        assert store.replace("a", b"2", etag=etag) == Unknown(StorageClass.LOCAL_IO)
    assert store.read("a").data == b"2"
    assert store.replace("a", b"3", etag=etag) == Changed()


def test_a_fresh_put_that_fails_says_its_class(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    fail(monkeypatch, "fsync", errno.ENOSPC)
    with pytest.raises(StoreError) as caught:
        store.put_fresh("a/b", b"x")
    assert caught.value.cls is StorageClass.LOCAL_IO


def test_an_unreadable_file_is_denied_and_not_absent(store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch):
    store.create("a", b"x")

    def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(errno.EACCES, "injected")

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(StoreError) as caught:
        store.read("a")
    assert caught.value.cls is StorageClass.DENIED


def test_a_folder_that_cannot_be_listed_is_an_error_and_not_empty(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    store.create("a/b", b"x")
    for name in ("scandir", "listdir"):
        fail(monkeypatch, name, errno.EIO)
    for request in (lambda: list(store.list("a")), lambda: store.list_first("a")):
        with pytest.raises(StoreError) as caught:
            request()
        assert caught.value.cls is StorageClass.LOCAL_IO


# --- hard links


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK])
def test_a_file_system_without_hard_links_is_refused_for_writing_before_any_file_exists(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    fail(monkeypatch, "link", number)
    with pytest.raises(StoreError) as caught:
        store.probe_writable()
    assert caught.value.cls is StorageClass.UNSUPPORTED
    assert not root.exists()


def test_a_root_that_cannot_be_made_is_refused_and_no_part_of_its_path_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = LocalStore(LocalRoot(str(tmp_path / "a/b/c")))
    fail(monkeypatch, "mkdir", errno.EACCES, at=3)
    with pytest.raises(StoreError) as caught:
        store.probe_writable()
    assert caught.value.cls is StorageClass.DENIED
    assert list(tmp_path.iterdir()) == []


def test_the_probe_passes_on_a_good_folder_and_leaves_nothing_in_it(store: LocalStore, root: Path):
    store.probe_writable()
    assert list(root.iterdir()) == []
    store.create("a", b"x")
    store.probe_writable()
    assert [path.name for path in root.iterdir()] == ["a"]


def test_opening_and_reading_create_no_folder(store: LocalStore, root: Path):
    assert list(store.list("")) == []
    assert store.list_first("x") is None
    assert store.list_folders("") == []
    assert not root.exists()


# --- listings


def test_the_newest_of_many_names_is_found_without_a_look_at_each_file(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = root / "__manifest" / "main"
    folder.mkdir(parents=True)
    for number in range(2_000):
        (folder / f"{number:019}.json").touch()
    looked = 0
    stat = os.stat

    def counted(*args: Any, **named: Any) -> os.stat_result:
        nonlocal looked
        looked += 1
        return stat(*args, **named)

    monkeypatch.setattr(os, "stat", counted)
    first = store.list_first("__manifest/main")
    assert first is not None
    assert first.key == f"__manifest/main/{0:019}.json"
    assert looked == 1
    taken = store.list("__manifest/main", start_after=f"__manifest/main/{99:019}.json")
    assert next(taken).key == f"__manifest/main/{100:019}.json"
    assert looked == 2


def test_the_first_object_is_right_where_folders_and_files_mix(store: LocalStore):
    for key in ("f/a/1", "f/a-b", "g/a/1", "g/b"):
        store.create(key, b"")
    for folder, first in (("f", "f/a-b"), ("g", "g/a/1")):
        found = store.list_first(folder)
        assert found is not None
        assert found.key == first
        assert next(store.list(folder)).key == first


def test_an_object_removed_during_a_listing_is_passed_over(store: LocalStore):
    for name in "abc":
        store.create(f"x/{name}", b"")
    listing = store.list("x")
    assert next(listing).key == "x/a"
    store.delete(["x/b"])
    assert [info.key for info in listing] == ["x/c"]


def test_emptied_folders_go_with_their_last_object_and_the_root_stays(store: LocalStore, root: Path):
    store.create("a/b/c/d", b"")
    store.create("a/e", b"")
    store.delete(["a/b/c/d"])
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["a", "a/e"]
    store.delete(["a/e"])
    assert list(root.iterdir()) == []
    assert isinstance(store.create("a/b/c/d", b""), Created)


def test_a_folder_that_vanishes_under_a_writer_is_made_again(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
):
    store.create("a/b", b"")
    (root / "a" / "b").unlink()
    (root / "a").rmdir()
    assert isinstance(store.create("a/c", b"x"), Created)
    assert files(root) == ["a/c"]


# --- time


def test_the_time_of_an_object_is_that_of_its_link_and_not_of_its_temporary_file(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    # A process may sleep between the two; its object must not look older than it is.
    link = os.link

    def late(source: str, target: str) -> None:
        os.utime(source, (0, 0))
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    store.create("a", b"x")
    assert store.head("a").last_modified.year > 2000


# --- processes


def _swap_many(path: str, count: int, name: str) -> None:
    store = LocalStore(LocalRoot(path), StoreSettings(local_sync="off"))
    done = 0
    while done < count:
        now = store.read("counter")
        data = b"%d %s" % (int(now.data.split()[0]) + 1, name.encode())
        if isinstance(store.replace("counter", data, etag=now.info.etag or ""), Replaced):
            done += 1


def test_processes_that_swap_one_object_lose_no_step(root: Path):
    LocalStore(LocalRoot(str(root))).create("counter", b"0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_swap_many, args=(str(root), 50, f"p{n}")) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert LocalStore(LocalRoot(str(root))).read("counter").data.split()[0] == b"150"


def test_a_swap_never_overwrites_an_object_that_was_created_after_its_look(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    first = store.create("a", b"1")
    assert isinstance(first, Created)
    rename = os.rename

    def delete_and_create() -> None:
        store.delete(["a"])
        assert isinstance(store.create("a", b"rival"), Created)

    rival = threading.Thread(target=delete_and_create)

    def rename_beside_a_rival(source: str, target: str) -> None:
        rival.start()
        rival.join(0.2)  # long enough for one that does not wait
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_beside_a_rival)
    assert isinstance(store.replace("a", b"2", etag=first.etag or ""), Replaced)
    rival.join()
    assert store.read("a").data == b"rival"


def test_a_swap_does_not_wait_for_ever_behind_a_stopped_process(root: Path):
    store = LocalStore(LocalRoot(str(root)), StoreSettings(request_timeout_seconds=3), clock=SteppingClock())
    first = store.create("a", b"1")
    assert isinstance(first, Created)
    held = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert store.replace("a", b"2", etag=first.etag or "") == Refused(StorageClass.TIMEOUT)
    finally:
        os.close(held)
    assert isinstance(store.replace("a", b"2", etag=first.etag or ""), Replaced)


# --- what others put into a root


def test_what_nobody_may_name_and_links_that_lead_nowhere_are_in_no_listing(store: LocalStore, root: Path):
    store.create("a/b", b"")
    store.create("f/c/d", b"")
    for name in (b"a/\xff", b"a/!\n", b"a\\b/c", b"f/c/\x7f"):
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(b"x")
    for name, to in (("a/!loop", "!loop"), ("loop", "loop"), ("a/up", ".."), ("f/c/here", "."), ("f/gone", "nowhere")):
        os.symlink(to, root / name)
    os.symlink(root / "a", root / "linked")  # a link to a folder beside it is a folder
    assert [info.key for info in store.list("")] == ["a/b", "f/c/d", "linked/b"]
    assert store.list_folders("") == ["a", "f", "linked"]
    for folder, first in (("", "a/b"), ("a", "a/b"), ("f", "f/c/d"), ("f/c", "f/c/d")):
        found = store.list_first(folder)
        assert found is not None
        assert found.key == first
