"""The program as a process: what it loads, signals, pipes, a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.controls import shown_pieces
from support.command_line import HARBOUR, Run

PROGRAM = [sys.executable, "-c", "from omnigraph.cli.main import main; main()"]
HEAVY = {"lance", "pyarrow", "duckdb", "graphblas", "numpy", "lark", "rich", "yaml", "structlog", "obstore"}


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["query", "--help"], ["branch", "--help"], ["version"]])
def test_what_asks_nothing_of_a_graph_loads_no_engine(words: list[str], home: Path) -> None:
    script = (
        "import sys\nfrom omnigraph.cli.main import cli\n"
        f"try:\n    cli.main({words!r})\nexcept SystemExit as end:\n    assert not end.code\n"
        "engine = [m for m in sys.modules if m.startswith(('omnigraph.engine', 'omnigraph.query', 'omnigraph.tables'))]\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)), engine)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[] []"


def test_nothing_at_all_shows_the_help_and_is_a_mistake_of_usage(run: Run) -> None:
    told = run()
    assert (told.code, told.out) == (2, "")
    assert "Commands:" in told.err


def test_a_reader_that_goes_away_is_no_reason_to_complain(harbour: Path) -> None:
    words = [*PROGRAM, "export", str(harbour)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.wait(timeout=60)
        assert process.stderr.read().decode() == ""
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("redirection", "reason"),
    [
        (">&-", "Standard output is closed."),
        (">/dev/full", "Standard output can't be written: No space left on device."),
    ],
)
def test_an_answer_that_cannot_be_written_is_one_line_and_a_failure(
    harbour: Path, redirection: str, reason: str
) -> None:
    for words in (
        ["export", str(harbour), "--quiet"],
        ["branch", "list", "--store", str(harbour), "--json"],
        ["--help"],
        ["query", "--help"],
        ["--version"],
        ["version"],
        ["completion", "bash"],
    ):
        if redirection == ">&-" and words[-1] in ("--help", "--version"):
            continue  # click prints nothing then, and finds nothing wrong with that
        line = shlex.join([*PROGRAM, *words])
        done = subprocess.run(["sh", "-c", f"{line} {redirection}"], stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, f"error[output_failed]: {reason}\n")


def test_a_failure_that_finds_no_room_on_stdout_is_told_in_words(harbour: Path) -> None:
    for words, code, told in (
        (["query", "--store", str(harbour), "-e", "nonsense", "--json"], 1, "error[Q001]: "),
        (["query", "--store", str(harbour), "--json"], 2, "error[bad_request]: "),
        (["mutate", "--json", "--nonsense"], 2, "error[bad_request]: No such option"),
    ):
        line = shlex.join([*PROGRAM, *words])
        done = subprocess.run(["sh", "-c", f"{line} >/dev/full"], stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == code
        assert told in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_a_write_whose_notes_nobody_can_read_is_done_all_the_same(harbour: Path, redirection: str) -> None:
    words = ["branch", "create", "a", "--store", str(harbour), "--json", "--progress", "json"]
    line = shlex.join([*PROGRAM, *words])
    done = subprocess.run(["sh", "-c", f"{line} {redirection}"], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["name"]) == (0, "a")
    failed = shlex.join([*PROGRAM, "branch", "delete", "nothing", "--store", str(harbour)])
    assert subprocess.run(["sh", "-c", f"{failed} {redirection}"], check=False).returncode == 1


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_a_load_whose_bar_nobody_can_see_is_done_all_the_same(harbour: Path, tmp_path: Path, redirection: str) -> None:
    data = tmp_path / "more.ndjson"
    data.write_text('{"type":"Sailor","data":{"name":"Ada"}}\n')
    words = ["load", str(harbour), "--data", str(data), "--mode", "append", "--json", "--progress", "always"]
    line = shlex.join([*PROGRAM, *words])
    done = subprocess.run(["sh", "-c", f"{line} {redirection}"], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["total_entities"]) == (0, 1)


def test_a_write_whose_receipt_is_lost_is_not_said_to_have_failed(harbour: Path) -> None:
    line = shlex.join([*PROGRAM, "branch", "create", "a", "--store", str(harbour)])
    done = subprocess.run(["sh", "-c", f"{line} >/dev/full"], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "--idempotency-key" in done.stderr.splitlines()[-1]


def test_ctrl_c_ends_with_130_and_no_traceback(harbour: Path) -> None:
    words = [*PROGRAM, "load", str(harbour), "--data", "-", "--mode", "append"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        first = process.stderr.readline()  # the target: from here on it reads its input
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read().decode()
    assert first.decode() == f"→ {harbour}\n"
    assert (process.returncode, "Traceback" in rest) == (130, False)
    assert "error[interrupted]: " in rest


def in_terminal(words: list[str], answer: bytes = b"", env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the program on a terminal of 60 columns, typing `answer` when it asks; exit code and what was shown."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *words],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "COLUMNS": "60", "TERM": "xterm", **(env or {})},
        start_new_session=True,
    )
    os.close(follower)
    shown = b""
    try:
        while select.select([leader], [], [], 60)[0]:
            try:
                piece = os.read(leader, 4_096)
            except OSError:  # how Linux says that the other side has gone
                break
            if not piece:
                break
            shown += piece
            if answer and shown.rstrip().endswith(b"[y/N]"):
                os.write(leader, answer)
                answer = b""
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.wait(timeout=60)
        os.close(leader)
    return process.returncode, shown.decode().replace("\r\n", "\n")


QUERY = 'query q() { match { $v: Vessel } return { $v.title, $v.tonnage, "a text that is far too long for the terminal" as long } }'


def test_a_terminal_gets_a_table_that_fits_it(harbour: Path, home: Path) -> None:
    code, shown = in_terminal(
        ["query", "--store", str(harbour), "-e", QUERY, "--color", "never", "--progress", "never"]
    )
    assert code == 0
    assert "v.title" in shown
    assert "…" in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_colour_is_for_terminals_and_can_be_declined(harbour: Path, home: Path) -> None:
    words = ["query", "--store", str(harbour), "-e", QUERY, "--progress", "never"]
    assert "\x1b[" in in_terminal(words)[1]
    assert "\x1b[" not in in_terminal(words, env={"NO_COLOR": "1"})[1]


WICKED = "\x1b]0;owned\x07 \x9b2J \u202eabc\u2066 \x7f \r\nforged,\t1"
TITLE = "query t() { match { $v: Vessel { imo: 1 } } return { $v.title } }"


@pytest.fixture
def wicked(harbour: Path) -> Path:
    """The harbour with a title that would steer a terminal."""
    with omnigraph.open(harbour) as graph:
        graph.mutate("query w($t: String) { update Vessel set { title: $t } where imo = 1 }", t=WICKED, message=WICKED)
    return harbour


def controls(text: str) -> set[str]:
    return {c for c in text if c != "\n" and (unicodedata.category(c) == "Cc" or c in "\u061c\u200e\u200f\u202e\u2066")}


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json_on_a_terminal_spells_controls_out_and_is_the_same_value(wicked: Path, home: Path, form: str) -> None:
    code, shown = in_terminal(["query", "--store", str(wicked), "-e", TITLE, "--format", form, "--progress", "never"])
    assert (code, controls(shown)) == (0, set())
    assert "\\u202eabc" in shown
    answer = json.loads(shown)
    assert (answer["rows"][0] if form == "json" else answer) == {"v.title": WICKED}


def test_csv_on_a_terminal_spells_controls_out_and_keeps_its_lines(wicked: Path, home: Path) -> None:
    code, shown = in_terminal(["query", "--store", str(wicked), "-e", TITLE, "--format", "csv", "--progress", "never"])
    assert code == 0
    head, row, rest = shown.split("\r\n")  # the terminal had made each line end of CSV one character longer
    assert (head, controls(row), rest) == ("v.title", set(), "")
    assert row == '"\\x1b]0;owned\\x07 \\x9b2J \\u202eabc\\u2066 \\x7f \\r\\nforged,\\t1"'


@pytest.mark.parametrize(
    "words",
    [
        ["export"],
        ["commit", "list", "--format", "jsonl", "--store"],
        ["commit", "list", "--format", "table", "--color", "never", "--store"],
        ["commit", "list", "--format", "kv", "--store"],
        ["schema", "show"],
        ["commit", "list", "--json", "--store"],
    ],
    ids=" ".join,
)
def test_no_other_output_steers_a_terminal_either(wicked: Path, home: Path, words: list[str]) -> None:
    with omnigraph.open(wicked) as graph:
        graph.schema.apply(graph.schema.source + "// \x1b[2J \u202e\n")
    code, shown = in_terminal([*words, str(wicked), "--progress", "never"])
    assert (code, controls(shown)) == (0, set())


def test_a_pipe_and_a_file_get_the_exact_bytes(wicked: Path, home: Path, tmp_path: Path) -> None:
    words = ["query", "--store", str(wicked), "-e", TITLE, "--progress", "never"]
    quoted = '"' + WICKED + '"'
    piped = subprocess.run([*PROGRAM, *words, "--format", "csv"], capture_output=True, check=True)
    assert piped.stdout.decode() == f"v.title\r\n{quoted}\r\n"
    assert in_terminal([*words, "--format", "csv", "--out", str(tmp_path / "rows.csv")])[0] == 0
    assert (tmp_path / "rows.csv").read_bytes() == piped.stdout
    lines = subprocess.run([*PROGRAM, *words, "--format", "jsonl"], capture_output=True, check=True)
    assert "\u202eabc" in lines.stdout.decode()


def test_a_character_cut_by_two_pieces_is_still_seen() -> None:
    text = '{"a":"\u202e\x9b"}\n'.encode()
    cut = [text[place : place + 1] for place in range(len(text))]
    assert b"".join(shown_pieces(cut, "json")) == b'{"a":"\\u202e\\u009b"}\n'


def test_arrow_is_refused_on_a_terminal(harbour: Path, home: Path) -> None:
    code, shown = in_terminal(["query", "--store", str(harbour), "-e", QUERY, "--format", "arrow"])
    assert code == 2
    assert "--out PATH" in shown


def test_a_person_is_asked_before_harm_and_may_decline(cluster: Path) -> None:
    place = ["--cluster", str(cluster), "--graph", "atlas"]
    assert in_terminal(["branch", "create", "a", *place])[0] == 0
    code, shown = in_terminal(["branch", "delete", "a", *place], answer=b"n\n")
    assert code == 1
    assert "This deletes branch a. Go ahead? [y/N]" in shown
    assert "Not confirmed; nothing was done." in shown
    code, shown = in_terminal(["branch", "delete", "a", *place, "--json"])
    assert (code, "consent_required" in shown) == (2, True)
    assert in_terminal(["branch", "delete", "a", *place], answer=b"y\n")[0] == 0


def test_who_is_asked_about_a_loss_is_told_of_which_graph_and_of_what(harbour: Path, tmp_path: Path) -> None:
    (tmp_path / "narrower.pg").write_text(HARBOUR.read_text().replace("berth: String?  ", ""))
    words = ["schema", "apply", str(harbour), "--schema", str(tmp_path / "narrower.pg"), "--allow-data-loss"]
    code, shown = in_terminal(words, answer=b"n\n")
    assert code == 1
    assert (
        f"This applies the schema to {harbour} and may drop rows or values that exist: edge:CallsAt.berth. Go ahead?"
        in shown
    )
