"""The program `omnigraph` as tests run it, in this process; and a small harbour in load records."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from omnigraph.cli.main import cli

HARBOUR = Path(__file__).parent.parent / "data" / "harbour.pg"
RECORDS = [
    {"type": "Vessel", "data": {"imo": 1, "title": "Alma", "status": "active", "tonnage": 500.0}},
    {"type": "Vessel", "data": {"imo": 2, "title": "Brig", "status": "laid-up"}},
    {"type": "Port", "data": {"country": "NO", "code": "BGO", "title": "Bergen"}},
    {"edge": "CallsAt", "from": "1", "to": '["BGO","NO"]', "id": "c1", "data": {"berth": "A"}},
]


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout; fails if there is anything else."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


def run_program(*words: str | Path, stdin: str | bytes | None = None) -> Ran:
    """Run the program on words; `stdin` is what it may read."""
    result = CliRunner().invoke(cli, [str(word) for word in words], input=stdin, catch_exceptions=False)
    return Ran(result.exit_code, result.stdout, result.stderr)
