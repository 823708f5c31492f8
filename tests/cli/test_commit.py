"""`omnigraph commit list`, `show`, `outcome`."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidRequest
from support.command_line import Run


def test_the_log_is_newest_first(run: Run, harbour: Path) -> None:
    kinds = [row["kind"] for row in run("commit", "list", "--store", harbour).lines]
    assert kinds == ["load", "genesis"]
    assert len(run("commit", "list", "--store", harbour, "--limit", "1").lines) == 1
    answer = run("commit", "list", "--store", harbour, "--json").json
    assert (len(answer["commits"]), answer["next_page_token"]) == (2, None)


def test_the_log_may_be_cut_by_time(run: Run, harbour: Path) -> None:
    newest, oldest = run("commit", "list", "--store", harbour).lines
    assert run("commit", "list", "--store", harbour, "--since", str(newest["created_at"])).lines == [newest]
    assert run("commit", "list", "--store", harbour, "--until", str(oldest["created_at"])).lines == [oldest]
    assert run("commit", "list", "--store", harbour, "--until", "1970-01-01T00:00:00Z").out == ""
    assert run("commit", "list", "--store", harbour, "--since", "yesterday").code == 2
    assert "'--since': a time is " in run("commit", "list", "--store", harbour, "--since", "yesterday").err


def test_what_is_no_commit_id_is_the_same_mistake_at_every_door(run: Run, harbour: Path) -> None:
    for words in (("show",), ("outcome",)):
        for text in ("nonsense", "main@1", "zz"):
            refused = run("commit", *words, text, "--store", harbour, "--json")
            assert (refused.code, refused.json["status"], refused.json["code"]) == (1, 400, "bad_request")
    with omnigraph.open(harbour) as graph:
        for call in (graph.commits.get, graph.commits.outcome):
            with pytest.raises(InvalidRequest) as caught:
                call("zz")
            assert caught.value.code == "bad_request"


def test_a_table_of_commits_shows_times_people_read(run: Run, harbour: Path) -> None:
    lines = run("commit", "list", "--store", harbour, "--format", "table").out.splitlines()
    assert lines[0].split() == ["graph_commit_id", "kind", "actor_id", "created_at", "message"]
    assert lines[2].rstrip("∅ ").endswith("Z")


def test_one_commit_is_its_receipt(run: Run, harbour: Path) -> None:
    newest = run("commit", "list", "--store", harbour).lines[0]
    assert run("commit", "show", newest["graph_commit_id"], "--store", harbour, "--json").json == newest
    assert (
        f"graph_commit_id         {newest['graph_commit_id']}\n"
        in run("commit", "show", newest["graph_commit_id"], "--store", harbour).out
    )
    assert (
        run("commit", "show", "main@9-0123456789abcdef", "--store", harbour, "--json").json["code"]
        == "commit_not_found"
    )


def test_an_outcome_is_final_or_undetermined(run: Run, harbour: Path) -> None:
    head = run("snapshot", harbour, "--json").json["graph_commit_id"]
    words = ("--store", str(harbour), "--json")
    assert run("commit", "outcome", head, *words).json["outcome"] == "published"
    assert run("commit", "outcome", "main@2-0123456789abcdef", *words).json["outcome"] == "superseded"
    still = run("commit", "outcome", "main@3-0123456789abcdef", *words)
    assert (still.code, still.json["outcome"], still.json["reason"]) == (0, "undetermined", "version_absent")


def test_waiting_for_an_outcome_ends_at_once_if_it_is_final(run: Run, harbour: Path) -> None:
    head = run("snapshot", harbour, "--json").json["graph_commit_id"]
    assert run("commit", "outcome", head, "--wait", "--store", harbour).code == 0


def test_a_wait_that_runs_out_has_its_own_exit_code(run: Run, harbour: Path) -> None:
    over = run(
        "commit", "outcome", "main@3-0123456789abcdef", "--wait", "--timeout", "0s", "--store", harbour, "--json"
    )
    assert (over.code, over.json["outcome"]) == (5, "pending")
    assert over.json["answer"]["reason"] == "version_absent"
