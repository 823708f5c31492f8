"""Addresses of roots: one canonical value for all spellings, refusals before anything is touched."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidRequest
from omnigraph.store.base import Created
from omnigraph.store.open import open_store
from omnigraph.store.uri import LocalRoot, S3Root, parse_root, redacted

ODD_NAMES = ["my data", "a%20b", "100%", "a+b", "h#1", "q?x=1", "é", "e\u0301", "$x", "[1]", "~t"]


def refusal(text: str | os.PathLike[str]) -> str:
    with pytest.raises(InvalidRequest) as caught:
        parse_root(text)
    assert caught.value.code == "invalid_storage_root"
    return caught.value.message


# --- local


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_bare_path_is_taken_literally(tmp_path: Path, name: str):
    assert parse_root(f"{tmp_path}/{name}") == LocalRoot(f"{tmp_path}/{name}")
    assert parse_root(tmp_path / name) == LocalRoot(f"{tmp_path}/{name}")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_path_and_file_uri_are_two_spellings_of_one_folder(tmp_path: Path, name: str):
    store = open_store(f"{tmp_path}/{name}")
    assert isinstance(store.create("a/b", b"x"), Created)
    assert os.listdir(tmp_path) == [name]
    for spelling in (
        f"file://{tmp_path}/{quote(name)}",
        f"FILE://localhost{tmp_path}/{quote(name)}/",
        f"{tmp_path}//{name}//",
    ):
        assert open_store(spelling).read("a/b").data == b"x"
    assert os.listdir(tmp_path) == [name]


def test_a_local_path_is_made_absolute_and_its_links_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    expected = LocalRoot(f"{tmp_path}/real/graph")
    assert parse_root("link/graph") == expected
    assert parse_root("./real/x/../graph/") == expected
    assert parse_root("link//graph") == expected


def test_a_path_object_is_never_read_as_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert parse_root(Path("s3://bucket")) == LocalRoot(f"{tmp_path}/s3:/bucket")


def test_a_leading_tilde_is_a_name_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert parse_root("~t") == LocalRoot(f"{tmp_path}/~t")


# --- S3


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("s3://bucket", ""),
        ("s3://bucket/", ""),
        ("s3://bucket/a/b/", "a/b"),
        ("S3://bucket//a///b//", "a/b"),
        ("s3://bucket/my data", "my data"),
        ("s3://bucket/my%20data", "my data"),
        ("s3://bucket/a%2520b", "a%20b"),
        ("s3://bucket/100%25", "100%"),
        ("s3://bucket/h%231", "h#1"),
        ("s3://bucket/q%3Fx=1", "q?x=1"),
        ("s3://bucket/é", "é"),
        ("s3://bucket/%C3%A9", "é"),
        ("s3://bucket/a+b", "a+b"),
        ("s3://bucket/a@b:c", "a@b:c"),
    ],
)
def test_an_s3_prefix_is_decoded_exactly_once(text: str, prefix: str):
    assert parse_root(text) == S3Root("bucket", prefix)


def test_a_blank_and_its_escape_written_literally_are_two_graphs():
    assert parse_root("s3://bucket/a%20b") != parse_root("s3://bucket/a%2520b")
    assert parse_root("s3://bucket/é") != parse_root("s3://bucket/e\u0301")


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1),
        max_size=4,
    )
)
def test_the_canonical_form_reads_back_as_the_same_root(parts: list[str]):
    prefix = "/".join(part for part in parts if part not in (".", ".."))
    if any(character in prefix for character in "\x7f\ufffe\uffff") or len(prefix.encode()) > 1000:
        return
    root = S3Root("bucket", prefix)
    assert root.uri.isascii()
    assert parse_root(root.uri) == root
    assert parse_root(root.uri + "/") == root


# --- refusals


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s3://",
        "s3:///prefix",
        "s3://ab/prefix",
        "s3://bu cket/prefix",
        "s3://bucket:9000/prefix",
        "s3://bucket/100%",
        "s3://bucket/a%2",
        "s3://bucket/a%2Fb",
        "s3://bucket/a/../b",
        "s3://bucket/./b",
        "s3://bucket/%2e%2e/b",
        "s3://bucket/a%00b",
        "s3://bucket/a\\b",
        "s3://bucket/a%0Ab",
        "s3://bucket/%FF",
        "s3://bucket/\ud800",
        "s3://bucket/h#1",
        "s3://bucket/q?x=1",
        "s3://bucket/" + "x" * 4096,
        "/" + "x/" * 2100,
        "a\x00b",
        "a\ud800b",
        "s3:bucket/prefix",
        "file:/srv",
        "file://otherhost/srv",
        "memory:",
        "memory://x",
        "gs://bucket/prefix",
        "http://host/path",
        "https://bucket.s3.amazonaws.com/x",
        "file:///srv?x=1",
    ],
)
def test_what_is_not_supported_is_refused(text: str):
    assert refusal(text)


def test_azure_is_recognised_and_said_to_be_no_part_of_this_version():
    for text in ("az://container/prefix", "AZ://c", "abfss://c@account.dfs.core.windows.net/x"):
        assert "Azure storage is not part of this version" in refusal(text)


def test_user_info_is_refused_and_never_repeated():
    for text in ("s3://AKIA:topsecret@bucket/prefix", "file://me:topsecret@localhost/srv", "s3://topsecret@bucket"):
        message = refusal(text)
        assert "user info" in message
        assert "topsecret" not in message


def test_opening_a_refused_address_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for text in ("s3://bucket/q?x=1", "az://c/p", "gs://b/p", "file:x"):
        with pytest.raises(InvalidRequest):
            open_store(text)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://bucket/a b", "s3://bucket/a b"),
        ("/srv/data", "/srv/data"),
        ("s3://k:topsecret@bucket/x", "s3://***"),
        ("s3://k:top/secret@bucket/x", "s3://***"),
        ("s3://k:top#secret@bucket/x", "s3://***"),
        ("az://c/x?sig=topsecret", "az://c/x?***"),
        ("s3://bucket/x#topsecret", "s3://bucket/x#***"),
        ("s3://bucket/\x1b[31mred", "s3://bucket/\ufffd[31mred"),
    ],
)
def test_the_form_for_people_shows_no_secret_and_no_control_character(text: str, shown: str):
    assert redacted(text) == shown
