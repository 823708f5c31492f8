"""`omnigraph config path`, `show`, and the operator's configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import Run


def test_the_home_variable_moves_the_file(run: Run, home: Path) -> None:
    assert run("config", "path").out == f"{home}/config.yaml\n"
    assert run("config", "path", "--json").json == {"path": f"{home}/config.yaml", "exists": False}


def test_show_fills_in_what_stands_when_nothing_is_said(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("operator: {actor: anna}\ndefaults: {store: /srv/atlas}\n")
    told = run("config", "show", "--json").json
    assert (told["operator"], told["defaults"]) == ({"actor": "anna"}, {"store": "/srv/atlas"})
    assert told["table"] == {"max_column_width": 80, "cell_layout": "truncate", "max_rows": 1000}
    assert "actor: anna" in run("config", "show").out


def test_an_unknown_key_is_a_warning(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("colour: red\n")
    done = run("config", "show")
    assert (done.code, done.err.startswith("warning: config.yaml: the file has an unknown key 'colour'")) == (0, True)
    assert run("config", "show", "--quiet").err == ""


@pytest.mark.parametrize(
    "text",
    [
        "token: abc",
        "servers: {a: {url: https://x, api_key: abc}}",
        "profiles: {a: {store: x, server: y}}",
        "profiles: {a: {}}",
        "clusters: {a: {}}",
        "defaults: {output: pdf}",
        "table: {max_rows: many}",
        "table: {cell_layout: round}",
        "operator: [1]",
        "a: [",
    ],
)
def test_a_file_that_does_not_fit_is_refused_without_repeating_it(run: Run, home: Path, text: str) -> None:
    (home / "config.yaml").write_text(text)
    refused = run("config", "show")
    assert refused.code == 2
    assert refused.err.startswith("error[invalid_configuration]: ")
    assert "abc" not in refused.err


def test_a_default_store_is_used_and_a_flag_beats_it(run: Run, home: Path, harbour: Path, tmp_path: Path) -> None:
    (home / "config.yaml").write_text(f"defaults: {{store: {harbour}, output: json}}\n")
    assert run("snapshot").json["graph_branch"] == "main"
    assert run("snapshot", tmp_path / "none").code == 1
    assert len(run("snapshot", "--format", "jsonl").lines) > 1


def test_table_settings_shape_the_table(run: Run, home: Path, harbour: Path) -> None:
    query = 'query q() { match { $v: Vessel } return { $v.title, "abcdefghijklmnop" as long } order { $v.title } }'
    words = ("query", "--store", str(harbour), "-e", query, "--format", "table")
    (home / "config.yaml").write_text("table: {max_column_width: 8, max_rows: 1}\n")
    out = run(*words).out
    assert "abcdefg…" in out
    assert "1 of 2 rows at main@2-" in out
    (home / "config.yaml").write_text("table: {max_column_width: 8, cell_layout: wrap}\n")
    assert [line.split()[-1] for line in run(*words).out.splitlines()[3:5]] == ["abcdefgh", "ijklmnop"]
