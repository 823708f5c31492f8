"""A client setting under which conditional writes could be sent twice behind our back is refused at every door."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidRequest
from server.processes import refused_start
from support.command_line import run_program

VARIABLE = "OBJECT_STORE_CLIENT_MAX_RETRIES"
SCHEMA = "node Port { code: String @key }"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    omnigraph.init(tmp_path / "graphs" / "atlas.omni", schema=SCHEMA)
    (tmp_path / "schema.pg").write_text(SCHEMA)
    return tmp_path


@pytest.mark.parametrize("value", ["1", "3", "10", "00", "-1", " 0", "none"])
@pytest.mark.parametrize("place", ["local", "s3"])
def test_the_library_refuses(root: Path, monkeypatch: pytest.MonkeyPatch, value: str, place: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    for target in (root / "graphs" / "atlas.omni", root / "new") if place == "local" else ("s3://bucket/a",):
        for door in (lambda t=target: omnigraph.open(t), lambda t=target: omnigraph.init(t, schema=SCHEMA)):
            with pytest.raises(InvalidRequest, match=VARIABLE) as caught:
                door()
            assert (caught.value.code, caught.value.status) == ("invalid_retry_setting", 400)
    assert not (root / "new").exists()


@pytest.mark.parametrize("option", ["client_max_retries", "max_retries", "retry_timeout", "aws_client_max_retries"])
def test_it_can_not_be_given_as_a_storage_option_either(option: str) -> None:
    with pytest.raises(InvalidRequest, match="storage option"):
        omnigraph.open("s3://bucket/a", storage_options={option: "5"})


@pytest.mark.parametrize(
    "words",
    [
        ("mutate", "-e", 'query m() { insert Port { code: "A" } }', "--store", "ROOT/graphs/atlas.omni"),
        ("query", "-e", "query q() { match { $p: Port } return { $p.code } }", "--store", "ROOT/graphs/atlas.omni"),
        ("branch", "create", "b", "--store", "ROOT/graphs/atlas.omni"),
        ("init", "ROOT/new", "--schema", "ROOT/schema.pg"),
        ("cluster", "status", "--cluster", "ROOT"),
    ],
    ids=lambda words: words[0],
)
def test_the_command_line_refuses_with_1(root: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.setenv(VARIABLE, "5")
    given = [word.replace("ROOT", str(root)) for word in words]
    ran = run_program(*given, "--json")
    assert (ran.code, ran.json["code"]) == (1, "invalid_retry_setting"), ran
    assert VARIABLE in ran.json["error"]
    assert not (root / "new").exists()
    monkeypatch.setenv(VARIABLE, "0")
    assert run_program(*given, "--json").code == 0


@pytest.mark.parametrize("more", [("--unauthenticated", "--bind", "127.0.0.1:0"), ("--check",)], ids=["serve", "check"])
@pytest.mark.parametrize("graphs", ["one", "none"])
def test_the_server_refuses_to_start_with_1(root: Path, tmp_path: Path, more: tuple[str, ...], graphs: str) -> None:
    place = root
    if graphs == "none":
        place = tmp_path / "empty"
        place.mkdir()
        (place / "cluster.yaml").write_text("version: 1\nstorage: data\n")
    done = refused_start("--cluster", str(place), *more, env={VARIABLE: "5"})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("omnigraph-server: invalid_retry_setting: ")
    assert VARIABLE in done.stderr
