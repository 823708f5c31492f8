"""Two servers on one bucket lose nothing that was acknowledged and double nothing, whichever is stopped or killed: a sample."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faults import two_servers
from support.seaweed import S3Server

ROUNDS = 4
SEED = int(os.environ.get("OMNIGRAPH_TEST_SEED", "20261130"))


@pytest.mark.xdist_group("s3-faults")
@pytest.mark.usefixtures("s3_root")
def test_a_server_that_sleeps_while_another_writes_loses_and_doubles_nothing(
    s3_server: S3Server, tmp_path: Path
) -> None:
    counts = two_servers.rounds(tmp_path, s3_server, ROUNDS, SEED)
    assert (counts.stops, counts.kills) == (3, 1)
    assert counts.clients.acknowledged > ROUNDS, "hardly anything was acknowledged: this showed nothing"
    assert counts.clients.unanswered > 0, "no stop met a request: this showed nothing"
