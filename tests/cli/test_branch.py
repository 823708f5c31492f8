"""`omnigraph branch create`, `list`, `delete`, `merge`."""

from __future__ import annotations

import shlex
from pathlib import Path

from support.command_line import Run

RENAME = 'query rename() { update Vessel set { title: "Changed" } where imo = 1 }'


def names(run: Run, harbour: Path) -> list[str]:
    return [row["name"] for row in run("branch", "list", "--store", harbour).lines]


def test_a_branch_is_made_of_main_a_branch_or_a_commit(run: Run, harbour: Path) -> None:
    made = run("branch", "create", "a", "--store", harbour)
    assert (made.code, made.err) == (0, f"→ {harbour}\n")
    first = run("commit", "list", "--store", harbour).lines[-1]["graph_commit_id"]
    assert run("branch", "create", "b", "--from", "a", "--store", harbour, "--json").json["from"] == "a"
    assert run("branch", "create", "c", "--from", first, "--store", harbour, "--json").json["base_commit_id"] == first
    assert names(run, harbour) == ["main", "a", "b", "c"]


def test_list_with_json_has_names_and_details(run: Run, harbour: Path) -> None:
    answer = run("branch", "list", "--store", harbour, "--json").json
    assert answer["branches"] == ["main"]
    assert answer["details"][0]["head_commit_id"].startswith("main@2-")


def test_a_taken_name_is_refused(run: Run, harbour: Path) -> None:
    run("branch", "create", "a", "--store", harbour)
    refused = run("branch", "create", "a", "--store", harbour, "--json")
    assert (refused.code, refused.json["code"]) == (1, "branch_exists")
    assert refused.json["command_outcome"]["action"] == "fix"


def test_a_deleted_branch_can_be_brought_back_as_the_answer_says(run: Run, harbour: Path) -> None:
    run("branch", "create", "a", "--store", harbour)
    run("mutate", "--store", harbour, "--branch", "a", "-e", RENAME)
    gone = run("branch", "delete", "a", "--store", harbour)
    assert gone.out.startswith("branch a deleted, 1 commit not in main\n")
    assert names(run, harbour) == ["main"]
    undo = shlex.split(gone.out.splitlines()[1])
    assert undo[:2] == ["undo:", "omnigraph"]
    assert run(*undo[2:]).code == 0
    assert names(run, harbour) == ["main", "a"]


def test_main_stays(run: Run, harbour: Path) -> None:
    assert run("branch", "delete", "main", "--store", harbour).code == 1


def test_a_merge_moves_the_target_and_may_delete_the_source(run: Run, harbour: Path) -> None:
    run("branch", "create", "a", "--store", harbour)
    run("mutate", "--store", harbour, "--branch", "a", "-e", RENAME)
    dry = run("branch", "merge", "a", "--store", harbour, "--dry-run")
    assert dry.out == "a into main would be: fast forward; nothing was done\n"
    done = run("branch", "merge", "a", "--store", harbour, "--delete-branch", "-m", "take it", "--json")
    assert (done.json["outcome"], done.json["branch_deleted"]) == ("fast_forward", True)
    assert done.json["commit"]["message"] == "take it"
    assert names(run, harbour) == ["main"]


def test_a_merge_stands_when_the_deletion_after_it_is_refused(run: Run, harbour: Path) -> None:
    run("branch", "create", "a", "--store", harbour)
    run("mutate", "--store", harbour, "--branch", "a", "-e", RENAME)
    run("branch", "create", "b", "--from", "a", "--store", harbour)
    done = run("branch", "merge", "a", "--store", harbour, "--delete-branch")
    assert done.code == 0
    assert "warning: the merge stands, but the branch was not deleted" in done.err


def test_branches_that_both_changed_are_refused_in_this_version(run: Run, harbour: Path) -> None:
    run("branch", "create", "a", "--store", harbour)
    run("mutate", "--store", harbour, "--branch", "a", "-e", RENAME)
    run("mutate", "--store", harbour, "-e", RENAME.replace("Changed", "Otherwise"))
    refused = run("branch", "merge", "a", "--store", harbour, "--json")
    assert (refused.code, refused.json["code"]) == (1, "not_available")


def test_a_misspelt_branch_is_refused_with_the_name_that_was_meant(run: Run, harbour: Path) -> None:
    for name in ("review", "drafts"):
        assert run("branch", "create", name, "--store", harbour).code == 0
    assert run("branch", "delete", "drafts", "--store", harbour).code == 0
    for words in (
        ("snapshot", harbour, "--branch", "reveiw"),
        ("branch", "delete", "reveiw", "--store", harbour),
        ("branch", "create", "b", "--from", "reveiw", "--store", harbour),
        ("branch", "merge", "reveiw", "--store", harbour),
        ("load", harbour, "--data", "-", "--mode", "append", "--branch", "Review"),
    ):
        refused = run(*words, "--json", stdin="{}")
        assert (refused.code, refused.json["code"]) == (1, "branch_not_found")
        assert refused.json["error"].endswith(" Did you mean 'review'?")
    for name in ("draft", "nothing"):  # deleted, and far from every name
        assert "Did you mean" not in run("snapshot", harbour, "--branch", name).err
