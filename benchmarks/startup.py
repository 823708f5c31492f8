"""How long `omnigraph --help` takes, beside a Python that does nothing."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.report import Row, Section, judged
from benchmarks.timing import Times, in_turns, shown

SECONDS_MAX = 0.250
_HELP = "import sys; sys.argv = ['omnigraph', '--help']; from omnigraph.cli.main import main; main()"


@dataclass(frozen=True, slots=True)
class Starts:
    """By program: seconds from start to end, and of processor time."""

    times: dict[str, Times]
    processor: dict[str, Times]


def run(program: str) -> float:
    """Seconds of processor time. Raises CalledProcessError if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_help(*, rounds: int) -> Starts:
    run(_HELP)  # writes the byte code of whatever is new
    processor: dict[str, list[float]] = {"help": [], "nothing": []}
    times = in_turns(
        {
            "help": lambda: processor["help"].append(run(_HELP)),
            "nothing": lambda: processor["nothing"].append(run("pass")),
        },
        rounds=rounds,
    )
    return Starts(times, {name: Times(tuple(seconds)) for name, seconds in processor.items()})


def startup_section(starts: Starts) -> Section:
    def row(command: str, name: str, most: float | None) -> Row:
        times = starts.times[name]
        cells = (command, shown(times.least), shown(times.median), shown(starts.processor[name].least))
        if most is None:
            return Row((*cells, ""))
        return Row((*cells, shown(most)), judged(times.least < most))

    return Section(
        "Starting the command",
        f"The whole process, {len(starts.times['help'].seconds)} times in turns with a Python that does nothing. A time and "
        "no ratio, so the least one is judged: what else the machine does can only add to it. Beside it the least "
        "processor time, which is what a free processor would need.",
        ("command", "least", "median", "processor", "under"),
        (row("python -c pass", "nothing", None), row("omnigraph --help", "help", SECONDS_MAX)),
    )
