"""Tests as text: cases of a language in files that are read without Python.

A case begins with `## title` or `## title: CODE`. In a text of its own kind, a line of `^` under a line marks the
place at fault and is no part of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """`file`: where it stands."""

    file: Path
    title: str
    body: str


@dataclass(frozen=True)
class Refusal:
    """A text that is refused. `start` and `end` are code-point offsets of the place at fault."""

    code: str
    text: str
    start: int
    end: int
    expected: str | None
    fix: str | None
    no_fix: bool  # "fix-none": there must be none


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, in order; titles are unique."""
    parts = re.split(r"^## (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    cases = [Case(path, title, body.strip("\n")) for title, body in zip(parts[1::2], parts[2::2], strict=True)]
    titles = [case.title for case in cases]
    assert len(titles) == len(set(titles)), "two cases of one title"
    return cases


def refusal(case: Case) -> Refusal:
    """What a case of refused text says."""
    code = case.title.rpartition(": ")[2]
    text, expected, fix, no_fix = "", None, None, False
    start = end = -1
    for line in case.body.split("\n"):
        if re.fullmatch(r" *\^+", line):
            line_start = text.rindex("\n", 0, len(text) - 1) + 1 if "\n" in text[:-1] else 0
            start, end = line_start + line.index("^"), line_start + len(line)
        elif line.startswith("expected: "):
            expected = line.removeprefix("expected: ")
        elif line.startswith("fix: "):
            fix = line.removeprefix("fix: ")
        elif line == "fix-none":
            no_fix = True
        else:
            text += line + "\n"
    text = text.removesuffix("\n")
    # A mark behind the last character is the end of the text, which has no width.
    return Refusal(code, text, start, min(end, len(text)), expected, fix, no_fix)
