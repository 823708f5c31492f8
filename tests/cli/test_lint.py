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


PROMOTE = """query busy($least: I64) {
  match { $p: Port  count { $v callsAt $p } >= $least }
  return { $p.title }
}
query promote() { update Sailor set { rank: 4 } where name = "Otto" }
"""


def test_the_report_of_the_chapter(run: Run, queries: Path) -> None:
    queries.write_text(PROMOTE)
    done = run("lint", "--schema", HARBOUR, "--query", queries, "--json")
    assert done.code == 0
    report = done.json
    operations = [result.pop("operation") for result in report["results"]]
    assert [len(operation["result"]) for operation in operations] == [1, 0]
    assert report == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": str(HARBOUR)},
        "query_path": str(queries),
        "queries_processed": 2,
        "errors": 0,
        "warnings": 2,
        "infos": 0,
        "results": [
            {"name": "busy", "kind": "read", "status": "ok", "warnings": []},
            {"name": "promote", "kind": "mutation", "status": "ok", "warnings": ["L203"]},
        ],
        "findings": [
            {
                "severity": "warning",
                "code": "L203",
                "message": "promote takes no parameters: its values are fixed",
                "query_names": ["promote"],
            },
            {
                "severity": "warning",
                "code": "L201",
                "message": "Sailor.joined is never set by an update in this file",
                "type_name": "Sailor",
                "property": "joined",
                "query_names": ["promote"],
            },
        ],
    }


def test_warnings_are_told_in_words_and_change_no_exit_code(run: Run, queries: Path, tmp_path: Path) -> None:
    schema = tmp_path / "s.pg"
    schema.write_text("node A { a: String }\nedge E: A -> A { @unique(src, dst) }\n")
    queries.write_text('query q() { match { $a: A  $a.a contains "x" } return { $a.a } limit 1 }\n')
    done = run("lint", "--schema", schema, "--query", queries)
    assert (done.code, done.out) == (0, f"{queries}: 1 query, 0 at fault, 3 warnings, 1 info\n")
    assert done.err.splitlines() == [
        'warning[L202]: `contains` between its operands is an old spelling: contains($a.a, "x")',
        f"  --> {queries}:1:28",
        '  fix: contains($a.a, "x")',
        "info[L207]: q has a limit and no order: which rows come is open",
        f"  --> {queries}:1:70",
        "warning[L204]: an end of E is written @dst, not dst",
        f"  --> {schema}:2:31",
        "  fix: @dst",
        "warning[L204]: an end of E is written @src, not src",
        f"  --> {schema}:2:26",
        "  fix: @src",
    ]


def test_what_the_schema_is_warned_of_is_in_the_report_of_every_file(run: Run, queries: Path, tmp_path: Path) -> None:
    schema = tmp_path / "s.pg"
    schema.write_text("node A { in: String? }\nedge A: A -> A { @index(@src, dst) }\n")
    queries.write_text("query q() { match { $a: A } return { $a } }\n")
    reports = run("lint", "--schema", schema, "--query", queries, "--query", queries, "--json").json["files"]
    for report in reports:
        assert [found["code"] for found in report["findings"]] == ["L204", "L209", "L208"]
        assert (report["warnings"], report["infos"], report["results"][0]["warnings"]) == (2, 1, [])
    assert reports[0]["findings"][0]["source"] == "schema"
    shown = run("lint", "--schema", schema, "--query", queries, "--query", queries).err
    assert shown.count("L204") == 1


def test_a_query_at_fault_is_warned_of_nothing_else(run: Run, queries: Path) -> None:
    queries.write_text("query q($a: String) { match { $v: Vessel  $v.nope contains $v.title } return { $v } limit 3 }")
    report = run("lint", "--schema", HARBOUR, "--query", queries, "--json").json
    assert (report["errors"], report["findings"], report["results"][0]["warnings"]) == (1, [], [])


def test_places_and_edits_are_those_of_the_file_with_its_byte_order_mark(run: Run, queries: Path) -> None:
    text = '\ufeffquery q() { match { $v: Vessel  $v.title contains "x" } return { $v } }'
    queries.write_bytes(text.encode())
    (found,) = run("lint", "--schema", HARBOUR, "--query", queries, "--json").json["findings"]
    (edit,) = found["suggestion"]["edits"]
    assert text.encode()[edit["start"] : edit["end"]] == b'$v.title contains "x"'


def test_the_schema_of_a_graph_is_looked_at_too(run: Run, tmp_path: Path, queries: Path) -> None:
    schema = tmp_path / "s.pg"
    schema.write_text("node A { }\nedge E: A -> A { @unique(src, dst) }\n")
    assert run("init", tmp_path / "g", "--schema", schema).code == 0
    queries.write_text("query q() { match { $a: A } return { $a } }\n")
    report = run("lint", "--store", tmp_path / "g", "--query", queries, "--json").json
    assert [found["code"] for found in report["findings"]] == ["L204", "L204"]


def test_a_query_that_is_to_be_explained_is_looked_at_like_any_other(run: Run, queries: Path) -> None:
    queries.write_text("explain query q($a: String) { match { $v: Vessel } return { $v } limit 3 }")
    report = run("lint", "--schema", HARBOUR, "--query", queries, "--json").json
    assert (report["queries_processed"], report["results"][0]["name"]) == (1, "q")
    assert [found["code"] for found in report["findings"]] == ["L206", "L207"]
    queries.write_text("explain query q() { match { $v: Vessel } return { $v.nope } }")
    report = run("lint", "--schema", HARBOUR, "--query", queries, "--json").json
    assert (report["errors"], report["results"][0]["status"]) == (1, "error")
