"""Branch folders, version keys, markers, and the names a branch may have."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from manifest.samples import versions
from omnigraph.errors import InvalidRequest
from omnigraph.manifest import keys
from omnigraph.store.keys import checked_key

any_name = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@given(any_name, any_name)
@example("a", "A")
@example("é", "é")
@example("a" * 201, "a" * 202)
@example("%41", "A")
@example("x" * 200, "x" * 200 + "~")
@example("é" * 80, "É" * 80)
def test_two_names_never_share_a_folder_even_where_case_is_ignored(first: str, second: str) -> None:
    same = keys.branch_folder(first).lower() == keys.branch_folder(second).lower()
    assert same == (first == second)


@given(any_name)
def test_a_folder_name_gives_the_branch_back_unless_it_was_cut(name: str) -> None:
    folder = keys.branch_folder(name)
    assert keys.folder_branch(folder) == (None if "~" in folder else name)
    assert len(folder) <= 233
    assert checked_key(keys.version_key(name, 1)) if name not in (".", "..") else True


def test_a_folder_is_cut_at_200_characters_and_told_apart_by_its_digest() -> None:
    folder = keys.branch_folder("b" * 201)
    assert folder == "b" * 200 + "~19f51486875f748c330c89b33c18650b"
    assert keys.branch_folder("b" * 200) == "b" * 200
    assert keys.shown_folder(folder) == "b" * 200 + "…"
    assert keys.shown_folder(keys.branch_folder("é" * 120)).startswith("éé")


@pytest.mark.parametrize("folder", ["A", "%6", "%61", "%zz", "ü", "%FF", "a~b"])
def test_a_folder_that_no_branch_has_gives_no_branch(folder: str) -> None:
    assert keys.folder_branch(folder) is None


@given(versions, versions)
def test_keys_sort_newest_first(one: int, other: int) -> None:
    first, second = sorted([one, other])
    assert (keys.version_key("main", second) < keys.version_key("main", first)) == (first != second)


@given(any_name.filter(lambda name: "/" not in keys.branch_folder(name)), versions)
def test_a_version_key_reads_back(name: str, version: int) -> None:
    assert keys.parse_version_key(keys.version_key(name, version)) == (keys.branch_folder(name), version)
    assert keys.parse_deleted_marker(keys.deleted_marker_key(name, version)) == (keys.branch_folder(name), version)


def test_version_1_of_main_has_the_key_of_the_storage_chapter() -> None:
    assert keys.version_key("main", 1) == "__manifest/main/9223372036854775806.json"
    assert keys.deleted_marker_key("main", 17) == "__manifest/main/.deleted-17"
    assert keys.segment_key("Main", 0, 127, "ab") == "__lineage/%4Dain/0-127-ab.json"


@pytest.mark.parametrize("version", [0, -1, 2**63 - 1])
def test_a_version_outside_the_chain_has_no_key(version: int) -> None:
    with pytest.raises(ValueError, match="a version lies between"):
        keys.version_key("main", version)
    with pytest.raises(ValueError, match="a version lies between"):
        keys.deleted_marker_key("main", version)


@pytest.mark.parametrize(
    "key",
    [
        "__manifest/main/9223372036854775807.json",
        "__manifest/main/0000000000000000000.json",
        "__manifest/main/922337203685477580.json",
        "__manifest/main/9223372036854775806.json.bak",
        "__manifest/main/x/9223372036854775806.json",
        "__lineage/main/9223372036854775806.json",
        "__manifest/main/.deleted-1",
        "__manifest/9223372036854775806.json",
    ],
)
def test_what_is_no_version_is_not_read_as_one(key: str) -> None:
    assert keys.parse_version_key(key) is None


@pytest.mark.parametrize("name", [".deleted-0", ".deleted-01", ".deleted-", ".deleted-1.json", "deleted-1"])
def test_what_is_no_marker_is_not_read_as_one(name: str) -> None:
    assert keys.parse_deleted_marker(f"__manifest/main/{name}") is None


def test_markers_stand_before_versions_and_both_before_the_end_of_the_folder() -> None:
    in_order = [
        keys.deleted_marker_key("m", 2**63 - 2),
        keys.after_markers("m"),
        keys.version_key("m", 2**63 - 2),
        keys.version_key("m", 1),
        keys.after_folder("m"),
        keys.version_key("m0", 5),
    ]
    assert in_order == sorted(in_order)
    assert keys.deleted_marker_key("m", 9) < keys.after_markers("m")


@pytest.mark.parametrize(
    "name",
    ["main", "review/tides", "a.b", "...", "_x", "-", "feat/ü 1", "a%2Fb", "é" * 100, "日本/語", "x__y", ".a/b."],
)
def test_ordinary_names_are_allowed(name: str) -> None:
    assert keys.check_branch_name(name) == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "empty"),
        ("é" * 101, "202 bytes"),
        ("a\tb", "control character"),
        ("a\x7fb", "control character"),
        ("a\x85b", "control character"),
        ("main@1", "'@'"),
        ("a\\b", "backslash"),
        (" a", "white space"),
        ("a\u2003", "white space"),
        ("__main", "reserved"),
        ("/a", "empty"),
        ("a/", "empty"),
        ("a//b", "empty"),
        (".", "'.' or '..'"),
        ("a/../b", "'.' or '..'"),
        ("a\ud800", "Unicode"),
    ],
)
def test_a_refused_name_is_told_which_rule_it_breaks_and_what_to_do(name: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        keys.check_branch_name(name)
    assert caught.value.code == "bad_request"
    assert caught.value.effects == "none"
    assert said in caught.value.message
    assert caught.value.message.count(". ") >= 1  # a second sentence: the fix
    caught.value.message.encode()  # no control character or half a character gets into the message
    assert caught.value.message.isprintable()


@given(any_name)
def test_a_name_that_is_allowed_can_be_stored_and_parsed_in_a_commit_id(name: str) -> None:
    try:
        keys.check_branch_name(name)
    except InvalidRequest:
        return
    assert keys.folder_branch(keys.branch_folder(name)) in (name, None)
    checked_key(keys.version_key(name, 3))
    checked_key(keys.deleted_marker_key(name, 3))


@pytest.mark.parametrize(("one", "other"), [("Main", "MAIN"), ("é", "é"), ("STRASSE", "straße"), ("ﬁ", "FI")])
def test_names_that_people_confuse_look_alike(one: str, other: str) -> None:
    assert keys.lookalike(one) == keys.lookalike(other)
    assert keys.lookalike("main") != keys.lookalike("mair")
