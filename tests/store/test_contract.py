"""What every store promises. The rooms above may assume nothing else."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import StorageClass
from omnigraph.store.base import Changed, Created, Exists, Refused, Replaced, Store, StoreError
from omnigraph.store.faults import FaultStore
from omnigraph.store.memory import MemoryStore
from omnigraph.store.open import open_store

# Characters that some layer below encodes, decodes or treats as a pattern.
ODD_NAMES = [
    "a b", "a%20b", "100%", "a+b", "h#1", "q?x=1", "é", "e\u0301", "$x", "[1]", "~t", "a&b<c>", "{x}",
    "|*^`\"'", "a=b;c,d", "…", "😀", ".hidden", "a.b", "-", "a:b", "@",
]  # fmt: skip


@pytest.fixture(params=["memory", "local", "s3", "faultless"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    match request.param:
        case "memory":
            return MemoryStore()
        case "faultless":
            return FaultStore(MemoryStore())
        case "local":
            return open_store(tmp_path / "root")
        case _:
            return open_store(request.getfixturevalue("s3_root"))


def created(store: Store, key: str, data: bytes) -> str:
    outcome = store.create(key, data)
    assert isinstance(outcome, Created)
    assert outcome.etag is not None
    return outcome.etag


def keys(store: Store, prefix: str = "", start_after: str | None = None) -> list[str]:
    return [info.key for info in store.list(prefix, start_after=start_after)]


def missing(store: Store, key: str) -> bool:
    with pytest.raises(StoreError) as caught:
        store.read(key)
    return caught.value.cls is StorageClass.NOT_FOUND


# --- create


def test_create_stores_under_an_absent_key_and_read_gives_the_bytes(store: Store):
    assert isinstance(store.create("a/b.json", b"one"), Created)
    assert store.read("a/b.json").data == b"one"


def test_create_of_an_existing_key_answers_exists_and_changes_nothing(store: Store):
    store.create("a", b"one")
    assert store.create("a", b"two") == Exists()
    assert store.create("a", b"one") == Exists()
    assert store.read("a").data == b"one"


def test_a_deleted_name_can_be_created_again(store: Store):
    store.create("a", b"one")
    store.delete(["a"])
    assert isinstance(store.create("a", b"two"), Created)
    assert store.read("a").data == b"two"


def test_of_many_creators_of_one_name_one_wins_and_the_others_see_it(store: Store):
    with ThreadPoolExecutor(16) as pool:
        for race in range(2):
            key = f"races/{race}"
            outcomes = list(pool.map(lambda n, key=key: store.create(key, b"%d" % n), range(8)))
            winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Created)]
            assert len(winners) == 1
            assert store.read(key).data == b"%d" % winners[0]


# --- replace


def test_replace_with_the_present_etag_stores_and_gives_the_next_etag(store: Store):
    first = created(store, "a", b"one")
    outcome = store.replace("a", b"two", etag=first)
    assert isinstance(outcome, Replaced)
    assert store.read("a").data == b"two"
    assert outcome.etag is not None
    assert isinstance(store.replace("a", b"three", etag=outcome.etag), Replaced)


def test_replace_with_an_old_etag_answers_changed_and_changes_nothing(store: Store):
    first = created(store, "a", b"one")
    store.replace("a", b"two", etag=first)
    assert store.replace("a", b"three", etag=first) == Changed()
    assert store.read("a").data == b"two"


def test_the_etag_of_a_read_is_good_for_a_replace(store: Store):
    store.create("a", b"one")
    etag = store.read("a").info.etag
    assert etag is not None
    assert isinstance(store.replace("a", b"two", etag=etag), Replaced)


def test_replace_of_an_absent_object_stores_nothing_and_is_definite(store: Store):
    outcome = store.replace("a/b", b"one", etag='"0123456789abcdef0123456789abcdef"')
    assert outcome in (Changed(), Refused(StorageClass.NOT_FOUND))
    assert missing(store, "a/b")


def test_of_many_swaps_from_one_etag_one_wins(store: Store):
    etag = created(store, "counter", b"0")
    with ThreadPoolExecutor(6) as pool:
        for step in range(2):
            now = etag
            outcomes = list(
                pool.map(lambda n, s=step, e=now: store.replace("counter", b"%d-%d" % (s, n), etag=e), range(6))
            )
            won = [(n, outcome) for n, outcome in enumerate(outcomes) if isinstance(outcome, Replaced)]
            assert len(won) == 1
            assert store.read("counter").data == b"%d-%d" % (step, won[0][0])
            assert won[0][1].etag is not None
            etag = won[0][1].etag


# --- reading


def test_what_is_not_there_is_said_to_be_not_found(store: Store):
    store.put_fresh("folder/a", b"x")
    for key in ("b", "folder", "folder/b", "folder/a/c", "no/such/folder"):
        assert missing(store, key)
        with pytest.raises(StoreError) as caught:
            store.head(key)
        assert caught.value.cls is StorageClass.NOT_FOUND


def test_head_and_listings_tell_size_and_time_and_an_etag_only_if_it_is_the_right_one(store: Store):
    store.put_fresh("a/b", b"12345")
    stored = store.read("a/b")
    assert stored.info.key == "a/b"
    assert stored.info.size == 5
    for info in (store.head("a/b"), *store.list("a"), store.list_first("a")):
        assert info is not None
        assert (info.key, info.size) == ("a/b", 5)
        assert info.etag in (None, stored.info.etag)
        assert info.last_modified.utcoffset() == dt.timedelta(0)
        # S3 listings and answers differ in how many digits of the second they show.
        assert abs(info.last_modified - stored.info.last_modified) < dt.timedelta(seconds=1)


@pytest.mark.parametrize("data", [b"", b"\x00", bytes(range(256)) * 4096], ids=["empty", "zero", "1 MiB"])
def test_bytes_come_back_as_they_were(store: Store, data: bytes):
    assert isinstance(store.create("created", data), Created)
    store.put_fresh("fresh", data)
    assert store.read("created").data == data
    assert store.read("fresh").data == data
    assert store.head("fresh").size == len(data)


# --- fresh puts and deletes


def test_a_repeated_fresh_put_counts_as_stored(store: Store):
    store.put_fresh("a/b", b"same")
    store.put_fresh("a/b", b"same")
    assert store.read("a/b").data == b"same"


def test_deleting_what_is_absent_counts_as_done(store: Store):
    store.put_fresh("a/b", b"x")
    store.put_fresh("a/c", b"x")
    store.delete(["a/b", "a/none", "none/at/all"])
    store.delete([])
    store.delete(iter(["a/b"]))
    assert keys(store) == ["a/c"]


def test_a_folder_without_objects_has_no_listing(store: Store):
    store.put_fresh("a/b/c", b"x")
    store.delete(["a/b/c"])
    assert keys(store) == []
    assert store.list_first("a") is None
    store.put_fresh("a/b/c", b"y")
    assert keys(store) == ["a/b/c"]


# --- listing


def test_objects_of_a_folder_come_in_byte_order(store: Store):
    names = ["b", "a", "B", "_", "-", "10", "9", "é", "z", "~", "a.b", "a-b", "a0", "😀", "\ufffd"]
    for name in names:
        store.put_fresh(f"folder/{name}", b"")
    assert keys(store, "folder") == [f"folder/{name}" for name in sorted(names, key=lambda n: n.encode())]
    assert keys(store, "folder/") == keys(store, "folder")
    first = store.list_first("folder")
    assert first is not None
    assert first.key == "folder/-"


def test_listing_goes_by_whole_path_parts(store: Store):
    for key in ("main/1", "main-2/1", "main.x", "mai/1", "main/sub/2"):
        store.put_fresh(key, b"")
    assert sorted(keys(store, "main")) == ["main/1", "main/sub/2"]
    assert keys(store, "ma") == []
    assert store.list_first("ma") is None
    first = store.list_first("main-2")
    assert first is not None
    assert first.key == "main-2/1"


def test_what_lies_in_an_inner_folder_comes_together(store: Store):
    everything = {"f/a/1", "f/a/2", "f/a/b/3", "f/a-b", "f/a0", "f/a0/x/1", "f/b", "g"} - {"f/a0"}
    for key in everything:
        store.put_fresh(key, b"")
    found = keys(store, "f")
    assert set(found) == everything - {"g"}
    inner = [key for key in found if key.startswith("f/a/")]
    assert inner == sorted(inner)
    assert found[found.index(inner[0]) :][: len(inner)] == inner
    assert set(keys(store)) == everything


def test_a_listing_goes_on_behind_a_key_whether_it_is_there_or_not(store: Store):
    for name in "bdf":
        store.put_fresh(f"x/{name}", b"")
    assert keys(store, "x", "x/b") == ["x/d", "x/f"]
    assert keys(store, "x", "x/c") == ["x/d", "x/f"]
    assert keys(store, "x", "x/a") == ["x/b", "x/d", "x/f"]
    assert keys(store, "x", "x/f") == []


def test_a_listing_longer_than_a_page_is_complete_and_in_order(store: Store):
    names = [f"{n:05}" for n in range(1_234)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.put_fresh(f"many/{name}", b""), names))
    assert keys(store, "many") == [f"many/{name}" for name in names]
    assert keys(store, "many", "many/00999") == [f"many/{name}" for name in names[1_000:]]
    store.delete(f"many/{name}" for name in names)
    assert keys(store, "many") == []


def test_folders_directly_below_are_named_and_files_are_not(store: Store):
    for key in ("a/1", "a/deep/2", "b c/3", "b%20c/4", "é/5", "file", "a-b/6"):
        store.put_fresh(key, b"")
    assert store.list_folders("") == sorted(["a", "a-b", "b c", "b%20c", "é"], key=lambda n: n.encode())
    assert store.list_folders("a") == ["deep"]
    assert store.list_folders("a/deep") == []
    assert store.list_folders("none") == []


# --- keys


def test_odd_names_stay_apart_and_come_back_unchanged(store: Store):
    for number, name in enumerate(ODD_NAMES):
        assert isinstance(store.create(f"{name}/{name}", b"%d" % number), Created)
    for number, name in enumerate(ODD_NAMES):
        assert store.read(f"{name}/{name}").data == b"%d" % number
        assert keys(store, name) == [f"{name}/{name}"]
        assert store.head(f"{name}/{name}").key == f"{name}/{name}"
    assert store.list_folders("") == sorted(ODD_NAMES, key=lambda n: n.encode())
    store.delete([f"{name}/{name}" for name in ODD_NAMES])
    assert keys(store) == []


KEY_PARTS = st.text(
    st.characters(codec="utf-8", exclude_characters="/\\\x7f\ufffe\uffff", exclude_categories=["Cc", "Cs"]),
    min_size=1,
    max_size=20,
).filter(lambda part: part not in (".", "..") and not part.startswith(".tmp-"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=KEY_PARTS)
def test_any_name_can_be_stored_listed_and_removed(store: Store, part: str):
    key = f"any/{part}"
    store.put_fresh(key, part.encode())
    assert store.read(key).data == part.encode()
    assert keys(store, "any") == [key]
    store.delete([key])
    assert keys(store, "any") == []


@pytest.mark.parametrize(
    "key",
    ["", "/a", "a/", "a//b", ".", "a/../b", "../a", "a/./b", "a\x00b", "a\nb", "a\\b", "a\uffff", "\ud800", "x/.tmp-1"],
)
def test_a_malformed_key_is_a_fault_of_the_caller(store: Store, key: str):
    for request in (
        lambda: store.read(key),
        lambda: store.head(key),
        lambda: store.create(key, b""),
        lambda: store.put_fresh(key, b""),
        lambda: store.replace(key, b"", etag="x"),
        lambda: store.delete([key]),
    ):
        with pytest.raises(ValueError):
            request()
    assert keys(store) == []


def test_a_failure_carries_its_class_and_no_address(store: Store):
    with pytest.raises(StoreError) as caught:
        store.read("secret/name")
    assert str(caught.value) == "storage request failed: not_found"
    assert caught.value.__cause__ is None
