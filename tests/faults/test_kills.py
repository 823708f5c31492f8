"""A serving process that is killed loses nothing that was acknowledged and doubles nothing: a few rounds of the 300."""

from __future__ import annotations

import os
from pathlib import Path

from faults.kills import kill_rounds

ROUNDS = 4
SEED = int(os.environ.get("OMNIGRAPH_TEST_SEED", "20261130"))


def test_kills_of_a_serving_process_lose_and_double_nothing(tmp_path: Path) -> None:
    counts = kill_rounds(tmp_path, ROUNDS, SEED)
    assert counts.rounds == ROUNDS
    assert counts.acknowledged > ROUNDS, "hardly anything was acknowledged: this showed nothing"
    assert counts.unanswered > 0, "no kill met a request: this showed nothing"
