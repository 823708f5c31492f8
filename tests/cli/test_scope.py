"""Where a command acts: precedence, exclusion, refusals with the spelling that works (interfaces.md 12.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.operator_config import OperatorConfig, Place
from omnigraph.cli.scope import Addressing, ClusterTarget, ScopeClass, StoreTarget, Target, locate, resolve
from support.command_line import HARBOUR, Run

CONFIG = OperatorConfig(
    Path("config.yaml"),
    defaults=Place(store="from-defaults", branch="d"),
    profiles={
        "store": Place(store="from-profile"),
        "sea": Place(cluster="fleet", default_graph="atlas"),
        "other": Place(store="from-environment"),
        "far": Place(server="https://graph.example.org"),
    },
    clusters={"fleet": "/srv/fleet"},
)
IN_ENVIRONMENT = {"OMNIGRAPH_PROFILE": "other"}


@pytest.mark.parametrize(
    ("given", "environ", "target"),
    [
        (Addressing(uri="u"), IN_ENVIRONMENT, StoreTarget("u")),
        (Addressing(store="s"), IN_ENVIRONMENT, StoreTarget("s")),
        (Addressing(profile="store"), IN_ENVIRONMENT, StoreTarget("from-profile")),
        (Addressing(), IN_ENVIRONMENT, StoreTarget("from-environment")),
        (Addressing(), {}, StoreTarget("from-defaults", "d")),
        (Addressing(cluster="fleet"), {}, ClusterTarget("/srv/fleet", None)),
        (Addressing(cluster="folder", graph="g"), {}, ClusterTarget("folder", "g")),
        (Addressing(profile="sea"), {}, ClusterTarget("/srv/fleet", "atlas")),
        (Addressing(profile="sea", graph="north"), {}, ClusterTarget("/srv/fleet", "north")),
    ],
)
def test_flag_then_profile_then_environment_then_defaults(
    given: Addressing, environ: dict[str, str], target: Target
) -> None:
    assert resolve(given, CONFIG, environ, "any") == target


@pytest.mark.parametrize(
    ("given", "takes"),
    [
        (Addressing(uri="u", store="s"), "any"),
        (Addressing(store="s", cluster="c"), "any"),
        (Addressing(store="s", profile="store"), "any"),
        (Addressing(server="x", cluster="c"), "any"),
        (Addressing(store="s", graph="g"), "any"),
        (Addressing(graph="g"), "any"),  # the defaults name a store
        (Addressing(profile="none"), "any"),
        (Addressing(server="https://graph.example.org"), "any"),
        (Addressing(profile="far"), "any"),
        (Addressing(cluster="c", graph="g"), "store"),
        (Addressing(store="s"), "cluster"),
        (Addressing(store="s"), "local"),
        (Addressing(graph="g"), "local"),
    ],
)
def test_what_contradicts_or_does_not_fit_is_refused(given: Addressing, takes: ScopeClass) -> None:
    with pytest.raises(UsageRefused):
        resolve(given, CONFIG, {}, takes)


def test_without_any_address_the_refusal_says_what_works() -> None:
    with pytest.raises(UsageRefused, match=r"--store URI, or --cluster DIR --graph ID, --profile NAME"):
        resolve(Addressing(), OperatorConfig(Path("x")), {}, "any")


@pytest.mark.parametrize(
    ("uri", "local"), [("g", True), ("/srv/g", True), ("file:///srv/g", True), ("s3://bucket/g", False)]
)
def test_only_a_folder_of_this_host_is_local(uri: str, local: bool) -> None:
    assert locate(StoreTarget(uri)).local is local


def test_global_options_stand_before_or_after_the_command(run: Run, harbour: Path) -> None:
    ways = [
        ("--store", harbour, "--json", "branch", "list"),
        ("branch", "--store", harbour, "--json", "list"),
        ("branch", "list", "--store", harbour, "--json"),
        ("--json", "branch", "list", "--store", harbour),
        ("--store", "elsewhere", "branch", "list", "--store", harbour, "--json"),  # the nearer one counts
    ]
    answers = [run(*words) for words in ways]
    assert {answer.code for answer in answers} == {0}
    assert len({answer.out for answer in answers}) == 1


def test_a_served_scope_is_refused_before_anything_is_opened(run: Run) -> None:
    refused = run("query", "--server", "https://x", "--graph", "g", "-e", "query", "--json")
    assert (refused.code, refused.json["code"]) == (2, "not_available")
    assert "--store URI" in refused.json["error"]


def test_writers_say_where_they_write_unless_told_to_be_quiet(run: Run, tmp_path: Path) -> None:
    made = run("init", tmp_path / "g", "--schema", HARBOUR, "--quiet")
    assert (made.code, made.err) == (0, "")
    assert run("branch", "create", "a", "--store", tmp_path / "g").err == f"→ {tmp_path / 'g'}\n"
    assert run("branch", "list", "--store", tmp_path / "g").err == ""


@pytest.mark.parametrize("word", ["read", "change", "ingest", "check", "quer", "nonsense"])
def test_there_is_no_such_command(run: Run, word: str) -> None:
    refused = run(word)
    assert refused.code == 2
    assert f"No such command '{word}'" in refused.err


def test_with_json_a_mistake_of_usage_is_an_object_too(run: Run, harbour: Path) -> None:
    refused = run("mutate", "--store", harbour, "--nonsense", "--json")
    assert (refused.code, refused.err) == (2, "")
    assert refused.json["command_outcome"] == {"execution": "not_started", "effects": "none", "action": "fix"}


@pytest.mark.parametrize(
    "words",
    [
        ("branch", "delete", "a"),
        ("branch", "merge", "a", "--delete-branch"),
        ("load", "--data", "-", "--mode", "overwrite"),
    ],
)
def test_harm_to_a_bucket_needs_consent_before_anything_is_sent(run: Run, words: tuple[str, ...]) -> None:
    refused = run(*words, "--store", "s3://bucket/graph", "--json")
    assert (refused.code, refused.json["code"]) == (2, "consent_required")
