"""`omnigraph lint`: query files against a schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import HARBOUR, Run

GOOD = "query a() { match { $v: Vessel } return { $v.title } }\n"
BAD = "query b() { match { $v: Vessel } return { $v.titel } }\n"


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    place = tmp_path / "harbour.gq"
    place.write_text(GOOD + BAD)
    return place


def test_each_query_is_judged_for_itself(run: Run, queries: Path) -> None:
    done = run("lint", "--schema", HARBOUR, "--query", queries)
    assert (done.code, done.out) == (1, f"{queries}: 2 queries, 1 at fault\n")
    assert done.err.startswith("error[T6]: type `Vessel` has no property `titel`")
    assert f"\n  --> {queries}:2:43\n" in done.err


def test_json_has_the_diagnostic_and_what_a_good_query_reads(run: Run, queries: Path) -> None:
    report = run("lint", "--schema", HARBOUR, "--query", queries, "--json").json
    assert (report["status"], report["queries_processed"], report["errors"]) == ("error", 2, 1)
    assert report["schema_source"] == {"kind": "file", "path": str(HARBOUR)}
    good, bad = report["results"]
    assert good["operation"]["reads"] == [{"kind": "node", "type_name": "Vessel"}]
    assert (bad["error"]["code"], "operation" in bad) == ("T6", False)


def test_a_file_that_does_not_parse_is_one_finding(run: Run, queries: Path) -> None:
    queries.write_text("query busy { match { $v: Vessel } return { $v } }")
    report = run("lint", "--schema", HARBOUR, "--query", queries, "--json").json
    assert (report["results"], report["findings"][0]["code"]) == ([], "Q000")
    assert report["findings"][0]["error"]["code"] == "Q002"


def test_a_fault_between_queries_is_a_finding_of_the_file(run: Run, queries: Path) -> None:
    queries.write_text(GOOD + GOOD)
    report = run("lint", "--schema", HARBOUR, "--query", queries, "--json").json
    assert ([r["status"] for r in report["results"]], report["findings"][0]["code"]) == (["ok", "ok"], "Q005")


def test_several_files_are_one_object(run: Run, queries: Path, tmp_path: Path) -> None:
    (tmp_path / "good.gq").write_text(GOOD)
    done = run("lint", "--schema", HARBOUR, "--query", queries, "--query", tmp_path / "good.gq", "--json")
    assert [report["status"] for report in done.json["files"]] == ["error", "ok"]


def test_a_graphs_own_schema_may_count(run: Run, harbour: Path, queries: Path) -> None:
    queries.write_text(GOOD)
    for words in (["--schema", harbour], ["--store", harbour]):
        done = run("lint", *words, "--query", queries, "--json")
        assert (done.code, done.json["schema_source"]["kind"]) == (0, "graph")
    assert run("lint", "--schema", HARBOUR, "--store", harbour, "--query", queries).code == 2


def test_lint_with_a_schema_file_loads_no_engine(queries: Path) -> None:
    import subprocess
    import sys

    words = ["lint", "--schema", str(HARBOUR), "--query", str(queries), "--json"]
    script = (
        "import sys\nfrom omnigraph.cli.main import cli\n"
        f"try:\n    cli.main({words!r})\nexcept SystemExit:\n    pass\n"
        "print(sorted({'lance', 'pyarrow', 'duckdb', 'graphblas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    report, loaded = done.stdout.splitlines()
    assert json.loads(report)["status"] == "error"
    assert loaded == "[]"
