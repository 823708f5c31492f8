"""`omnigraph mutate`: one commit or nothing."""

from __future__ import annotations

from pathlib import Path

from support.command_line import Run

RENAME = "query rename($imo: U32, $to: String) { update Vessel set { title: $to } where imo = $imo }"
TITLES = "query t() { match { $v: Vessel } return { $v.title } order { $v.title } }"


def test_a_mutation_says_what_it_did_and_where(run: Run, harbour: Path) -> None:
    done = run("mutate", "--store", harbour, "-e", RENAME, "-p", "imo=1", "-p", "to=Alma II", "-m", "new name")
    assert done.code == 0
    assert done.out.startswith("rename: 1 node, 0 edges; commit main@3-")
    assert done.err == f"→ {harbour}\n"
    newest = run("commit", "list", "--store", harbour).lines[0]
    assert (newest["message"], newest["graph_commit_id"]) == ("new name", done.out.split()[-1])


def test_json_is_the_receipt_and_nothing_else(run: Run, harbour: Path) -> None:
    receipt = run("mutate", "--store", harbour, "-e", RENAME, "-p", "imo=1", "-p", "to=X", "--json", "--quiet").json
    assert (receipt["query_name"], receipt["affected_nodes"]) == ("rename", 1)
    assert receipt["commit"]["counts"] == {"node:Vessel": {"inserted": 0, "updated": 1, "deleted": 0}}


def test_a_mutation_that_matches_nothing_is_done_without_a_commit(run: Run, harbour: Path) -> None:
    done = run("mutate", "--store", harbour, "-e", RENAME, "-p", "imo=9", "-p", "to=X")
    assert (done.code, done.out) == (0, "rename: 0 nodes, 0 edges; nothing to commit\n")


def test_the_actor_is_the_flag_or_the_operator(run: Run, harbour: Path, home: Path) -> None:
    words = ("mutate", "--store", str(harbour), "-e", RENAME, "-p", "imo=1", "--json")
    assert run(*words, "-p", "to=A").json["actor_id"] is None
    (home / "config.yaml").write_text("operator: {actor: anna}\n")
    assert run(*words, "-p", "to=B").json["actor_id"] == "anna"
    assert run(*words, "-p", "to=C", "--as", "bob").json["actor_id"] == "bob"


def test_the_same_key_gives_the_same_receipt(run: Run, harbour: Path) -> None:
    words = ("mutate", "--store", str(harbour), "-e", RENAME, "-p", "imo=1", "--idempotency-key", "k1", "--json")
    first, again = run(*words, "-p", "to=A").json, run(*words, "-p", "to=A").json
    assert again == {**first, "idempotent_replay": True}
    other = run(*words, "-p", "to=B")
    assert (other.code, other.json["code"]) == (1, "idempotency_key_reused")


def test_a_condition_that_does_not_hold_ends_with_its_own_code(run: Run, harbour: Path) -> None:
    head = run("snapshot", harbour, "--json").json["graph_commit_id"]
    words = ("mutate", "--store", str(harbour), "-e", RENAME, "-p", "imo=1", "--if-commit", head)
    assert run(*words, "-p", "to=A").code == 0
    refused = run(*words, "-p", "to=B", "--json")
    assert refused.code == 4
    assert refused.json["precondition_failure"]["expected"] == head
    assert refused.json["command_outcome"] == {"execution": "finished", "effects": "none", "action": "refresh"}
    assert {row["v.title"] for row in run("query", "--store", harbour, "-e", TITLES).lines} == {"A", "Brig"}


def test_a_refused_mutation_tells_its_outcome_and_key(run: Run, harbour: Path) -> None:
    refused = run("mutate", "--store", harbour, "-e", "query q() { insert Vessel { imo: 5 } }", "--json")
    body = refused.json
    assert (refused.code, body["code"], body["effects"]) == (1, "invalid_query", "none")
    assert body["command_outcome"] == {"execution": "finished", "effects": "none", "action": "fix"}
    assert len(body["idempotency_key"]) == 26  # made up by the command


def test_a_read_is_the_wrong_verb(run: Run, harbour: Path) -> None:
    refused = run("mutate", "--store", harbour, "-e", TITLES, "--json")
    assert (refused.code, refused.json["code"]) == (1, "wrong_verb")
    assert (
        run("query", "--store", harbour, "-e", RENAME, "-p", "imo=1", "-p", "to=x", "--json").json["code"]
        == "wrong_verb"
    )


def test_another_branch_is_written_alone(run: Run, harbour: Path) -> None:
    run("branch", "create", "draft", "--store", harbour)
    run("mutate", "--store", harbour, "-e", RENAME, "-p", "imo=1", "-p", "to=D", "--branch", "draft")
    assert len(run("query", "--store", harbour, "-e", TITLES, "--branch", "draft").lines) == 2
    assert run("query", "--store", harbour, "-e", TITLES).lines[0] == {"v.title": "Alma"}


def test_a_broken_constraint_is_shown_by_its_own_code(run: Run, harbour: Path) -> None:
    words = ("mutate", "--store", str(harbour), "-e")
    negative = run(*words, "query m() { update Vessel set { tonnage: -1.0 } where imo = 1 }")
    assert (negative.code, negative.out) == (1, "")
    assert negative.err.splitlines()[1].startswith("error[W003]: Vessel.tonnage of ")
    missing = run(*words, 'query m() { insert CallsAt { from: "1", to: "nowhere" } }')
    assert missing.err.splitlines()[1].startswith("error[W006]: ")


def test_what_no_mutation_can_have_is_refused_as_over_http(run: Run, harbour: Path) -> None:
    words = ("mutate", "--store", str(harbour), "-e", RENAME, "-p", "imo=1", "-p", "to=A", "--json")
    for given, code in (
        (("--if-commit", "zzz"), "condition_misplaced"),
        (("--set", "speed=1"), "invalid_setting"),
    ):
        refused = run(*words, *given)
        assert (refused.code, refused.json["code"], refused.json["retry"]) == (1, code, "fix")
        assert refused.json["effects"] == "none"
