"""A serving process is killed again and again while eight clients write; each repeats what was not answered, under its key.

    python -m faults.kills ROUNDS [SEED]
    python -m faults --first kills:SEED     the rounds on one root, as a failure names them

After each kill everything that was acknowledged by then is there once, while the next process serves and is written to; at
the end everything that was ever asked for, since all of it was repeated until it was answered.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from faults.serving import Crowd, Standing, Tally, Told, begun, explained, free_port, judge, nursery, until_ready

CLIENTS = 8
ROUNDS_OF_A_ROOT = 25
"""Every commit adds a fragment to its table: after so many rounds a fresh root is begun."""


@dataclass
class Counts:
    """What a run saw."""

    rounds: int = 0
    clients: Tally = field(default_factory=Tally)
    seconds: float = 0.0

    def line(self) -> str:
        return f"{self.rounds} kills, {self.clients}, {self.seconds:.0f} s"


def kill_rounds(folder: Path, rounds: int, seed: int, report: Callable[[str], object] = lambda _: None) -> Counts:
    """Raises AssertionError if anything that was acknowledged is lost or doubled, or if a server does not come back."""
    counts = Counts()
    began = time.monotonic()
    while counts.rounds < rounds:
        root = folder / f"root-{counts.rounds}"
        # the seed draws the same writes and moments again
        with explained(f"kills:{seed + counts.rounds}", str(root)):
            told = _one_root(root, min(ROUNDS_OF_A_ROOT, rounds - counts.rounds), seed + counts.rounds)
        counts.rounds += min(ROUNDS_OF_A_ROOT, rounds - counts.rounds)
        counts.clients.add(told)
        counts.seconds = time.monotonic() - began
        report(counts.line())
    return counts


def _one_root(root: Path, rounds: int, seed: int) -> Told:
    draw = random.Random(seed)
    root.mkdir(parents=True)
    begun(str(root))
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    crowd = Crowd([base], CLIENTS, seed)
    with nursery(root / "server.log") as servers:
        server = servers.serve(str(root), port)
        crowd.begin()
        for number in range(rounds):
            # some kills meet the start, before anything is served
            time.sleep(draw.uniform(0.0, 0.15) if number % 10 == 9 else until_ready(base) + draw.uniform(0.02, 0.5))
            servers.kill(server)
            known = crowd.known()
            server = servers.serve(str(root), port)
            Standing(str(root)).judge(known)
        until_ready(base)
        crowd.end(servers.log)
        servers.kill(server)
    judge(str(root), crowd.told)
    return crowd.told


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        first = int(sys.argv[2]) if len(sys.argv) > 2 else 20261130
        kill_rounds(Path(folder), int(sys.argv[1]), first, lambda line: sys.stdout.write(line + "\n"))
