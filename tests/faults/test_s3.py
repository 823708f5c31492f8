"""The same on a real S3 server, Lance's own requests included: a sample. `make faults` runs more."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from faults import s3
from faults.operations import BY_NUMBER
from support.seaweed import S3Server

SCHEDULES_OF_EACH = 2
SOME = (10, 12, 15, 19, 25, 27)


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server, folder: str) -> Iterator[s3.Bucket]:
    with s3.bucket(s3_server, f"{folder}/s3") as bucket:
        yield bucket


@pytest.mark.xdist_group("s3-faults")
@pytest.mark.parametrize("number", SOME, ids=lambda number: BY_NUMBER[number].name)
def test_an_operation_on_s3_under_faults_keeps_the_promise(bucket: s3.Bucket, number: int) -> None:
    every = list(bucket.schedules((BY_NUMBER[number],)))
    for schedule in random.Random(number).sample(every, SCHEDULES_OF_EACH):
        bucket.run(schedule)


@pytest.mark.xdist_group("s3-faults")
def test_faults_on_s3_meet_what_lance_sends_too(bucket: s3.Bucket) -> None:
    requests = bucket.requests(BY_NUMBER[14], owner=False)
    sent = {(each.verb, each.room) for each in requests}
    assert {("PUT", "/data/"), ("PUT", "_transactions"), ("PUT", "_versions"), ("PUT", "__manifest")} <= sent
    assert ("GET", "/data/") in sent
