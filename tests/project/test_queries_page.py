"""docs/queries.md: every command runs on the excerpt of WordNet and prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.command_line import run_program

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "queries.md"
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_OF_THIS_RUN = re.compile(r'(?<=main@[23]-)[0-9a-f]{16}|(?<=")\d{15,}(?=\\")|[\d.,]+ (?=ms)')
"""What no two graphs have alike, nonces of commits and versions of tables; and times."""
_BOTH = "2>&1"


def commands(body: str) -> list[list[str]]:
    """The words of each command of a block; a quoted text may span lines."""
    found: list[list[str]] = []
    for word in shlex.split(body):
        if word == "omnigraph":
            found.append([])
        else:
            found[-1].append(str(CHECKOUT / word) if word.startswith("examples/") else word)
    return found


def test_every_command_of_the_page_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, shown = "", 0
    for block in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["kind"] == "sh":
            for words in commands(block["body"]):
                ran = run_program(*(word for word in words if word != _BOTH))
                assert ran.code == 0, (words, ran.err)
                printed = ran.out + (ran.err if _BOTH in words else "")
        elif block["kind"] == "text":
            assert _OF_THIS_RUN.sub("…", printed) == _OF_THIS_RUN.sub("…", block["body"])
            shown += 1
    assert shown == PAGE.read_text(encoding="utf-8").count("```text")
