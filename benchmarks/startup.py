"""How long `omnigraph --help` takes, beside a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.report import Row, Section, judged
from benchmarks.timing import Times, in_turns, shown

SECONDS_MAX = 0.250
_HELP = "import sys; sys.argv = ['omnigraph', '--help']; from omnigraph.cli.main import main; main()"


def run(program: str) -> None:
    """Raises CalledProcessError if it fails."""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def measure_help(*, rounds: int) -> dict[str, Times]:
    run(_HELP)  # writes the byte code of whatever is new
    return in_turns({"help": lambda: run(_HELP), "nothing": lambda: run("pass")}, rounds=rounds)


def startup_section(times: dict[str, Times]) -> Section:
    rows = [
        Row(("python -c pass", shown(times["nothing"].least), shown(times["nothing"].median), "")),
        Row(
            ("omnigraph --help", shown(times["help"].least), shown(times["help"].median), shown(SECONDS_MAX)),
            judged(times["help"].least < SECONDS_MAX),
        ),
    ]
    return Section(
        "Starting the command",
        f"The whole process, {len(times['help'].seconds)} times in turns with a Python that does nothing. A time and no "
        "ratio, so the least one counts: what else the machine does can only add to it.",
        ("command", "least", "median", "under"),
        tuple(rows),
    )
