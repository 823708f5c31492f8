"""`omnigraph query`: run a read, in every form."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from support.command_line import Run

TITLES = "query titles() { match { $v: Vessel } return { $v.imo, $v.title, $v.tonnage } order { $v.imo } }"
BY_IMO = "query one($imo: U32) { match { $v: Vessel { imo: $imo } } return { $v.title } }"


def test_rows_are_json_lines_when_no_person_looks(run: Run, harbour: Path) -> None:
    done = run("query", "--store", harbour, "-e", TITLES)
    assert done.code == 0
    assert done.out == '{"v.imo":1,"v.title":"Alma","v.tonnage":500.0}\n{"v.imo":2,"v.title":"Brig"}\n'
    assert done.err == ""


def test_json_is_one_object_with_the_commit_it_shows(run: Run, harbour: Path) -> None:
    answer = run("query", "--store", harbour, "-e", TITLES, "--json").json
    assert answer["query_name"] == "titles"
    assert answer["target"] == {"branch": "main", "snapshot": None}
    assert answer["row_count"] == 2
    assert answer["rows"][1] == {"v.imo": 2, "v.title": "Brig"}


def test_a_table_shows_types_and_a_sign_for_null(run: Run, harbour: Path) -> None:
    lines = run("query", "--store", harbour, "-e", TITLES, "--format", "table").out.splitlines()
    assert lines[0].split() == ["v.imo", "v.title", "v.tonnage"]
    assert lines[1].split() == ["U32", "String", "F64?"]
    assert lines[4].split() == ["2", "Brig", "∅"]
    assert lines[5].startswith("2 rows at main@2-")


def test_kv_gives_a_block_for_each_row(run: Run, harbour: Path) -> None:
    out = run("query", "--store", harbour, "-e", TITLES, "--format", "kv").out
    assert out == "v.imo:     1\nv.title:   Alma\nv.tonnage: 500.0\n\nv.imo:     2\nv.title:   Brig\nv.tonnage: ∅\n"


def test_csv_has_a_header_and_crlf(run: Run, harbour: Path, tmp_path: Path) -> None:
    run("query", "--store", harbour, "-e", TITLES, "--format", "csv", "--out", tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_bytes() == b"v.imo,v.title,v.tonnage\r\n1,Alma,500.0\r\n2,Brig,\r\n"


def test_csv_can_be_made_inert_for_spreadsheets(run: Run, harbour: Path) -> None:
    run("mutate", "--store", harbour, "-e", 'query e() { update Vessel set { title: "=1+1" } where imo = 2 }')
    words = ("query", "--store", str(harbour), "-e", TITLES, "--format", "csv")
    assert "2,=1+1," in run(*words).out
    assert "2,'=1+1," in run(*words, "--neutralize-formulas").out


def test_arrow_is_a_stream_with_the_commit_in_its_metadata(run: Run, harbour: Path, tmp_path: Path) -> None:
    done = run("query", "--store", harbour, "-e", TITLES, "--format", "arrow", "--out", tmp_path / "rows.arrow")
    assert (done.code, done.out) == (0, "")
    table = pa.ipc.open_stream(io.BytesIO((tmp_path / "rows.arrow").read_bytes())).read_all()
    assert table.column("v.title").to_pylist() == ["Alma", "Brig"]
    assert table.schema.metadata[b"omnigraph.query_name"] == b"titles"


def test_meta_puts_an_object_about_the_rows_first(run: Run, harbour: Path) -> None:
    head, *rows = run("query", "--store", harbour, "-e", TITLES, "--meta").lines
    assert (head["row_count"], len(rows)) == (2, 2)


def test_out_leaves_no_half_written_file(run: Run, harbour: Path, tmp_path: Path) -> None:
    place = tmp_path / "rows"
    place.mkdir()
    failed = run("query", "--store", harbour, "-e", "query q() { nonsense }", "--out", place / "rows.jsonl")
    assert failed.code == 1
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [
        ("-p", "imo=1"),
        ("--params", '{"imo": 1}'),
        ("--params", '{"imo": 2}', "-p", "imo=1"),
        ("--params-file", "FILE"),
        ("--params-file", "FILE", "--params", '{"imo": 1}'),
    ],
)
def test_a_parameter_may_come_in_any_way(run: Run, harbour: Path, tmp_path: Path, given: tuple[str, ...]) -> None:
    (tmp_path / "params.json").write_text('{"imo": 1}')
    words = [str(tmp_path / "params.json") if word == "FILE" else word for word in given]
    assert run("query", "--store", harbour, "-e", BY_IMO, *words).lines == [{"v.title": "Alma"}]


def test_a_parameter_that_does_not_fit_is_the_engines_to_refuse(run: Run, harbour: Path) -> None:
    refused = run("query", "--store", harbour, "-e", BY_IMO, "-p", "imo=many")
    assert refused.code == 1
    assert refused.err.startswith("error[P003]: ")


def test_a_parameter_given_twice_is_a_mistake_of_usage(run: Run, harbour: Path) -> None:
    assert run("query", "--store", harbour, "-e", BY_IMO, "-p", "imo=1", "-p", "imo=2").code == 2
    assert run("query", "--store", harbour, "-e", BY_IMO, "-p", "imo").code == 2
    assert run("query", "--store", harbour, "-e", BY_IMO, "--params", '{"imo": 1, "imo": 2}').code == 2


def test_a_name_chooses_among_several_queries(run: Run, harbour: Path, tmp_path: Path) -> None:
    (tmp_path / "two.gq").write_text(f"{TITLES}\n{BY_IMO}\n")
    assert run("query", "one", "--store", harbour, "--query", tmp_path / "two.gq", "-p", "imo=2").lines == [
        {"v.title": "Brig"}
    ]
    refused = run("query", "--store", harbour, "--query", tmp_path / "two.gq")
    assert refused.code == 1
    assert "P006" in refused.err


def test_a_fault_in_the_source_is_shown_with_its_place(run: Run, harbour: Path, tmp_path: Path) -> None:
    (tmp_path / "harbour.gq").write_text("query busy { match { $v: Vessel } return { $v.title } }")
    refused = run("query", "--store", harbour, "--query", tmp_path / "harbour.gq")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "error[Q002]: a query declares its parameters, even none: expected `(`\n"
        f"  --> {tmp_path}/harbour.gq:1:11\n"
        "  fix: query busy()\n"
    )


def test_with_json_the_diagnostic_is_an_object_on_stdout(run: Run, harbour: Path) -> None:
    refused = run("query", "--store", harbour, "-e", "query busy { match { $v: Vessel } return { $v } }", "--json")
    assert (refused.code, refused.err) == (1, "")
    assert refused.json["code"] == "invalid_query"
    assert refused.json["diagnostic"]["code"] == "Q002"
    assert "command_outcome" not in refused.json  # a read has none


def test_the_source_may_come_from_stdin(run: Run, harbour: Path) -> None:
    assert len(run("query", "--store", harbour, "--query", "-", stdin=TITLES).lines) == 2


def test_an_older_state_is_read_by_commit_and_by_time(run: Run, harbour: Path) -> None:
    words = ("query", "--store", str(harbour), "-e", TITLES)
    first = run("commit", "list", "--store", harbour).lines[-1]
    assert run(*words, "--snapshot", first["graph_commit_id"]).out == ""
    assert run(*words, "--as-of", str(first["created_at"])).out == ""
    for beside in (("--branch", "main"), ("--as-of", "1")):
        refused = run(*words, "--snapshot", first["graph_commit_id"], *beside)
        assert (refused.code, f"--snapshot and {beside[0]} exclude each other." in refused.err) == (2, True)


@pytest.mark.parametrize("time", ["yesterday", "2026-11-30T12:00:00", "1.5", "", "9" * 30, "4102444800000000"])
def test_a_time_that_cannot_be_read_is_a_mistake_in_as_of(run: Run, harbour: Path, time: str) -> None:
    for words in (["query", "-e", TITLES, "--store"], ["export"], ["snapshot"], ["schema", "show"]):
        refused = run(*words, harbour, "--as-of", time)
        assert refused.code == 2
        assert "--as-of" in refused.err
        assert "as_of" not in refused.err


def test_a_setting_is_checked_and_heeded(run: Run, harbour: Path) -> None:
    count = "query n() { match { $v: Vessel } return { count($v) as n } }"
    words = ("query", "--store", str(harbour), "-e", count)
    assert run(*words, "--set", "int64_json=string").out == '{"n":"2"}\n'
    assert run(*words, "--set", "max_result_rows=many").code == 1
    assert run(*words, "--set", "speed").code == 2


def test_a_setting_of_the_environment_is_heeded_unless_the_command_says_otherwise(
    run: Run, harbour: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("query", "--store", str(harbour), "-e", "query n() { match { $v: Vessel } return { count($v) as n } }")
    monkeypatch.setenv("OMNIGRAPH_INT64_JSON", "string")
    assert run(*words).out == '{"n":"2"}\n'
    assert run(*words, "--set", "int64_json=number").out == '{"n":2}\n'
    monkeypatch.setenv("OMNIGRAPH_INT64_JSON", "text")
    refused = run(*words, "--json")
    assert (refused.code, refused.json["code"]) == (1, "invalid_setting")
    assert "OMNIGRAPH_INT64_JSON" in refused.json["error"]


def test_a_timeout_that_no_query_can_have_is_a_mistake_of_usage(run: Run, harbour: Path) -> None:
    words = ("query", "--store", str(harbour), "-e", TITLES, "--timeout")
    for time in ("0s", "61m", "1"):
        refused = run(*words, time)
        assert (refused.code, "--timeout" in refused.err) == (2, True)
    assert run(*words, "60m").code == 0


def test_text_from_data_cannot_steer_the_terminal(run: Run, harbour: Path) -> None:
    wicked = json.dumps({"t": "\x1b]0;owned\x07\u202eabc[red]"})
    source = "query w($t: String) { update Vessel set { title: $t } where imo = 1 }"
    assert run("mutate", "--store", harbour, "-e", source, "--params", wicked).code == 0
    for form in ("table", "kv"):
        out = run("query", "--store", harbour, "-e", TITLES, "--format", form).out
        assert not set(out) & {"\x1b", "\x07", "\u202e"}
        assert "[red]" in out  # shown, not interpreted


def test_stored_queries_are_refused_with_what_works(run: Run, harbour: Path) -> None:
    refused = run("query", "top", "--store", harbour)
    assert refused.code == 2
    assert "--query FILE" in refused.err
    assert run("query", "--store", harbour).code == 2
    assert run("query", "--store", harbour, "-e", TITLES, "--query", "f.gq").code == 2


def test_a_profile_is_told_beside_the_rows_or_in_the_one_object(run: Run, harbour: Path) -> None:
    words = ("query", "--store", str(harbour), "-e", TITLES, "--profile-plan")
    done = run(*words)
    assert [json.loads(line)["v.imo"] for line in done.out.splitlines()] == [1, 2]
    told = [re.sub(r"[0-9.,]+ ms", "… ms", line.rstrip()) for line in done.err.splitlines()]
    assert told == [
        "Project              2 rows, … ms",
        "  Sort               2 rows, … ms",
        "    Scan $v: Vessel  2 rows, … ms",
    ]
    answer = run(*words, "--json")
    assert [row["node"] for row in answer.json["profile"] if row["tree"] == "profile"] == ["Project", "Sort", "Scan"]
    assert answer.err == ""
    head = json.loads(run(*words, "--meta").out.splitlines()[0])
    assert {row["tree"] for row in head["profile"]} == {"logical", "physical", "plan", "profile"}


def test_an_explained_query_has_no_profile(run: Run, harbour: Path) -> None:
    done = run("query", "--store", harbour, "-e", f"explain {TITLES}", "--profile-plan")
    assert done.code == 0
    assert done.err == "no profile: nothing was run.\n"


def test_explain_answers_what_an_explain_statement_does_in_every_form(run: Run, harbour: Path) -> None:
    words = ("query", "--store", str(harbour))
    for form in (["--json"], ["--format", "table"], ["--format", "csv"], ["--meta"], []):
        done = run(*words, "-e", TITLES, "--explain", *form)
        stated = run(*words, "-e", f"explain {TITLES}", *form)
        assert (done.code, done.err) == (0, "")
        assert done == stated == run(*words, "-e", f"explain {TITLES}", "--explain", *form)
    answer = run(*words, "-e", TITLES, "--explain", "--json").json
    assert answer["columns"] == ["tree", "depth", "node", "detail"]
    assert [row["node"] for row in answer["rows"] if row["tree"] == "physical"] == ["Project", "Sort", "Scan"]


def test_explain_runs_nothing_and_takes_the_settings_and_the_state_of_the_query(run: Run, harbour: Path) -> None:
    words = ("query", "--store", str(harbour), "-e", f"set traversal = matrix; {TITLES}", "--set", "max_result_rows=1")
    assert "resource_limit" in run(*words, "--json").out
    first = run("commit", "list", "--store", harbour).lines[-1]["graph_commit_id"]
    told = {row["node"]: row["detail"] for row in run(*words, "--explain", "--snapshot", first).lines}
    assert (told["snapshot"], told["settings"]) == (first, '{"traversal":"matrix"}')
    assert told["statistics"] == '{"node:Vessel":0}'


def test_explain_judges_the_parameters_that_are_given_and_needs_none(run: Run, harbour: Path) -> None:
    words = ("query", "--store", str(harbour), "-e", BY_IMO, "--explain")
    assert run(*words).code == run(*words, "-p", "imo=1").code == 0
    assert "error[P003]: " in run(*words, "-p", "imo=many").err
    assert "error[P004]: " in run(*words, "-p", "imo=1", "-p", "im=2").err


def test_explain_takes_the_named_query_of_a_file_and_refuses_what_has_no_plan(
    run: Run, harbour: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mixed.gq"
    file.write_text(f"{TITLES}\nquery sink() {{ delete Vessel where imo = 1 }}\n{BY_IMO}\n")
    words = ("--store", str(harbour), "--query", str(file), "--explain")
    told = {row["node"]: row["detail"] for row in run("query", "one", *words).lines}
    assert (told["operation"], told["parameters"]) == ("one", '["imo"]')
    assert "P006" in run("query", *words).err
    refused = run("query", "sink", *words)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "error[Q004]: `explain` shows the plan of a read, and this query is a mutation: expected `match`\n"
        f"  --> {file}:2:16\n"
    )
    assert run("query", "--store", harbour, "--explain", "-e", "set traversal = matrix;\nshow all;").err == (
        "error[Q004]: `explain` shows the plan of a read, and this is a statement: expected `query`\n  --> <-e>:2:1\n"
    )


def test_what_is_explained_is_not_profiled(run: Run, harbour: Path) -> None:
    refused = run("query", "--store", harbour, "-e", TITLES, "--explain", "--profile-plan")
    assert (refused.code, refused.out) == (2, "")
    assert "--explain and --profile-plan exclude each other" in refused.err


def test_a_parameter_of_an_explained_query_is_read_by_its_type(run: Run, harbour: Path) -> None:
    text = "explain query one($titles: [String], $imo: U32) { match { $v: Vessel { imo: $imo } } return { $v.title } }"
    assert run("query", "--store", harbour, "-e", text, "-p", "imo=1", "-p", 'titles=["Alma"]').code == 0
    assert "P003" in run("query", "--store", harbour, "-e", text, "-p", "imo=one").err
