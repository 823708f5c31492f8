"""`omnigraph optimize`."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from support.command_line import Run

SCHEMA = "node Memo { slug: String @key  body: String? @index  vec: Vector(2)? @index } node Tag { name: String @key }"


@pytest.fixture
def memos(tmp_path: Path) -> Path:
    graph = omnigraph.init(tmp_path / "memos", schema=SCHEMA)
    rows = [{"type": "Memo", "data": {"slug": f"m{n}", "body": "ships sail"}} for n in range(3)]
    graph.load(rows, mode="append", progress=False)
    return tmp_path / "memos"


def test_a_line_for_each_index_says_what_was_done_and_the_last_one_names_the_commit(run: Run, memos: Path) -> None:
    ran = run("optimize", memos)
    assert ran.code == 0
    *lines, last = ran.out.splitlines()
    assert lines == [
        "Memo.slug: 3 rows indexed, 0 segments before and 1 now",
        "Memo.body: 3 rows indexed, 0 segments before and 1 now",
        "Memo.vec: not needed: without one answers are as quick, and exact",
        "Tag.name: nothing to build: no row has a value",
    ]
    assert last == f"main: commit {omnigraph.open(memos).head}"
    again = run("optimize", memos)
    assert (again.code, again.out.splitlines()[-1]) == (0, "main: nothing to do")


def test_json_is_the_answer_of_the_engine(run: Run, memos: Path) -> None:
    answer = run("optimize", "--store", memos, "--type", "Memo", "--json").json
    assert (answer["branch"], answer["commit"]["kind"]) == ("main", "optimize")
    [told] = answer["types"]
    assert [each["name"] for each in told["indexes"]] == ["slug_terms", "body_terms"]
    assert told["pending"] == [{"property": "vec", "reason": "small"}]
    assert (told["skipped"], told["error"]) == (None, None)
    assert run("optimize", memos, "--json").json["commit"] is None


def test_a_branch_or_all_of_them(run: Run, memos: Path) -> None:
    graph = omnigraph.open(memos)
    graph.branches.create("side")
    assert run("optimize", memos, "--branch", "side").out.splitlines()[-1].startswith("side: commit side@")
    answer = run("optimize", memos, "--all-branches", "--json").json
    assert [(each["branch"], each["commit"] is None) for each in answer["branches"]] == [
        ("main", False),
        ("side", True),
    ]
    ran = run("optimize", memos, "--branch", "side", "--all-branches")
    assert (ran.code, "exclude each other" in ran.err) == (2, True)


def test_full_makes_one_segment_of_many(run: Run, memos: Path) -> None:
    run("optimize", memos)
    omnigraph.open(memos).load([{"type": "Memo", "data": {"slug": "late", "body": "x"}}], mode="append", progress=False)
    assert "Memo.body: 1 row indexed, 1 segment before and 2 now" in run("optimize", memos).out
    assert "Memo.body: 4 rows indexed, 2 segments before and 1 now" in run("optimize", memos, "--full").out


def test_a_type_that_can_not_be_built_is_told_and_ends_with_1(run: Run, memos: Path) -> None:
    [folder] = (memos / "nodes").iterdir()
    (folder / "_indices").write_text("in the way")
    ran = run("optimize", memos)
    assert ran.code == 1
    assert "Memo: failed: a table request failed" in ran.out
    assert ran.out.splitlines()[-1] == "main: nothing was published"
    assert str(memos / "nodes") not in ran.out
    assert run("optimize", memos, "--json").json["types"][0]["error"]["code"] == "storage_failure"


def test_an_unknown_type_or_branch_is_refused(run: Run, memos: Path) -> None:
    ran = run("optimize", memos, "--type", "Memos")
    assert (ran.code, "Did you mean 'Memo'" in ran.err) == (1, True)
    assert run("optimize", memos, "--branch", "nowhere").code == 1


def test_progress_counts_types(run: Run, memos: Path) -> None:
    ran = run("optimize", memos, "--progress", "json", "--quiet")
    assert '"phase": "optimize main", "done": 0, "unit": "types"' in ran.err
    assert '"done": 2, "total": 2, "unit": "types"' in ran.err


def test_a_branch_that_fails_after_another_was_published_is_told_beside_it(run: Run, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    graph.load([{"type": "Memo", "data": {"slug": "a", "body": "x"}}], mode="append", progress=False)
    graph.branches.create("side")
    graph.schema.apply(f"{SCHEMA}\nnode Extra {{ k: String @key }}\n")
    graph.load([{"type": "Extra", "data": {"k": "a"}}], mode="append", progress=False)
    ran = run("optimize", tmp_path / "g", "--all-branches", "--type", "Extra", "--json")
    assert ran.code == 1
    first, second = ran.json["branches"]
    assert (first["branch"], first["commit"]["kind"]) == ("main", "optimize")
    assert (second["branch"], second["error"]["code"]) == ("side", "bad_request")
    assert "nothing was published" not in ran.err.lower()
    ran = run("optimize", tmp_path / "g", "--all-branches", "--type", "Extra")
    assert ran.code == 1, "nothing was published before it: it is the error of the command"
