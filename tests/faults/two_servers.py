"""Two serving processes on one bucket, both written to, while now one and now the other is stopped for seconds or killed.

    python -m faults --first servers:SEED

Neither knows of the other but by what it finds in storage. A process that is stopped (SIGSTOP) in the middle of a write
wakes when the other has published many more, and its clients have long repeated what it was asked for, under their keys,
through the other. Real processes and a real store: what a schedule does on one thread, here several do at their own pace.
"""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from faults.serving import Crowd, Standing, Tally, begun, explained, free_port, judge, nursery, until_ready
from support.seaweed import S3Server

CLIENTS = 6
ROUNDS_OF_A_ROOT = 10
_PATIENCE_SECONDS = 1.5
"""How long a client waits before it turns to the other server."""


@dataclass
class Counts:
    """What a run saw."""

    stops: int = 0
    kills: int = 0
    clients: Tally = field(default_factory=Tally)
    seconds: float = 0.0

    @property
    def rounds(self) -> int:
        return self.stops + self.kills

    def line(self) -> str:
        return (
            f"two servers on one bucket: {self.stops} stops, {self.kills} kills, {self.clients}, {self.seconds:.0f} s"
        )


def rounds(folder: Path, server: S3Server, count: int, seed: int) -> Counts:
    """So many stops and kills; the environment leads to the server. Raises Violation if anything that was acknowledged is
    lost or doubled, or if a process does not serve on.
    """
    counts = Counts()
    began = time.monotonic()
    while counts.rounds < count:
        root = f"s3://{server.bucket}/{os.urandom(8).hex()}"
        with explained(f"servers:{seed + counts.rounds}", root):
            _one_root(folder, root, min(ROUNDS_OF_A_ROOT, count - counts.rounds), seed + counts.rounds, counts)
    counts.seconds = time.monotonic() - began
    return counts


def _one_root(folder: Path, root: str, count: int, seed: int, counts: Counts) -> None:
    draw = random.Random(seed)
    begun(root)
    ports = [free_port(), free_port()]
    bases = [f"http://127.0.0.1:{port}" for port in ports]
    crowd = Crowd(bases, CLIENTS, seed, _PATIENCE_SECONDS)
    with nursery(folder / "servers.log") as servers:
        processes = [servers.serve(root, port) for port in ports]
        for base in bases:
            until_ready(base)
        crowd.begin()
        for number in range(count):
            time.sleep(draw.uniform(0.2, 1.0))
            which = draw.randrange(2)
            if number % 4 == 3:
                servers.kill(processes[which])
                processes[which] = servers.serve(root, ports[which])
                counts.kills += 1
            else:
                os.kill(processes[which], signal.SIGSTOP)
                time.sleep(draw.uniform(0.3, 2.0 * _PATIENCE_SECONDS))
                os.kill(processes[which], signal.SIGCONT)
                counts.stops += 1
            known = crowd.known()
            Standing(root).judge(known)
        for base in bases:
            until_ready(base)
        crowd.end(servers.log)
        for process in processes:
            servers.kill(process)
    judge(root, crowd.told)
    counts.clients.add(crowd.told)
