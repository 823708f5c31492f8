"""A case of the language in plain text: what is done to a graph, and what must come of it.

    ## 8.4 a ring is no distance
    match { $a follows{1,3} $a } return { $a.title }
    = rows
    {"a.title":"Corvo"}

A file begins with `graph NAME`, which names `tests/data/NAME.pg` and `NAME.jsonl`; each case starts from that state, or from
that of another graph if its own first line says so. A case is one step or several. A step is the text of a query, mutation, statement or load and, below it, the line that begins with
`=` and what it asks for:

    = rows            exactly these rows, one JSON object to a line, in any order
    = ordered         these rows in this order
    = some N          N rows, each one of these and none twice
    = among           these rows, in this order, others before, between and behind them
    = json            the rows as they are spelled in JSON, in this order
    = columns         the names of the columns, a JSON array
    = receipt         fields that the receipt has, a JSON object
    = code T41        refused with this code; below it perhaps `at` and the text at fault, `fix` and the text of the fix

A text without `query`, `branch`, `set`, `show` or `explain` in front is the body of a read. `params {…}` above a text gives
its parameters; a step that begins with `load MODE` holds records. `on BRANCH` above all that names another branch than the
case's own. Lines that begin with `#` are remarks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from support.cases import read_cases

Wanted = Literal["rows", "ordered", "some", "among", "json", "columns", "receipt", "code"]

_WANTED = re.compile(r"= (rows|ordered|some \d+|among|json|columns|receipt|code \S+)")
_WHOLE = re.compile(r"(query|branch|set|reset|show|explain)\b")
_WRITES = re.compile(r"\{\s*(insert|update|delete)\b|^branch (create|delete|merge)\b")


@dataclass(frozen=True)
class Step:
    """`mode` is that of a load, whose records are `text`; `branch` is None for the case's own."""

    text: str
    wanted: Wanted
    argument: str = ""
    below: tuple[str, ...] = ()
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    mode: str | None = None
    branch: str | None = None

    @property
    def writes(self) -> bool:
        return _WRITES.search(self.text) is not None

    @property
    def rows(self) -> list[str]:
        """The rows that are asked for, in one spelling."""
        return [spelled(json.loads(line)) for line in self.below]


@dataclass(frozen=True)
class LogicCase:
    file: Path
    title: str
    graph: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        return f"{self.file.stem}: {self.title}"


def spelled(row: object) -> str:
    """A row as text: 1 and 1.0 differ, the order of columns does not."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def cases_of(folder: Path) -> Iterator[LogicCase]:
    """The cases of all files, in order."""
    for path in sorted(folder.glob("*.case")):
        head = path.read_text(encoding="utf-8").split("\n## ", 1)[0]
        graph = next(line.removeprefix("graph ") for line in head.splitlines() if line.startswith("graph "))
        for case in read_cases(path):
            lines = [line for line in case.body.split("\n") if not line.startswith("#")]
            own = lines.pop(0).removeprefix("graph ") if lines[0].startswith("graph ") else graph
            yield LogicCase(path, case.title, own, tuple(_steps(lines, f"{path.name}: {case.title}")))


def _steps(lines: list[str], where: str) -> Iterator[Step]:
    text: list[str] = []
    position = 0
    while position < len(lines):
        found = _WANTED.fullmatch(lines[position])
        if found is None:
            assert not lines[position].startswith("= "), f"{where}: {lines[position]}"
            text.append(lines[position])
            position += 1
            continue
        position += 1
        below: list[str] = []
        while position < len(lines) and lines[position].strip():
            below.append(lines[position])
            position += 1
        yield _step(text, found[1], tuple(below))
        text = []
    assert not "".join(text).strip(), f"{where}: nothing is asked of the last step"


def _step(lines: list[str], asked: str, below: tuple[str, ...]) -> Step:
    lines = [line for line in lines if line.strip()]
    params: dict[str, Any] = {}
    mode = branch = None
    if lines[0].startswith("on "):
        branch = lines.pop(0).removeprefix("on ")
    if lines[0].startswith("params "):
        params = json.loads(lines.pop(0).removeprefix("params "))
    if lines[0].startswith("load "):
        mode = lines.pop(0).removeprefix("load ")
    text = "\n".join(lines)
    if mode is None and not _WHOLE.match(text.lstrip("\ufeff \n")):
        text = f"query q() {{ {text} }}"
    wanted, _, argument = asked.partition(" ")
    return Step(text, wanted, argument, below, params, mode, branch)  # type: ignore[arg-type]
