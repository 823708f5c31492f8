"""A store that is busy for a while: what fails then fails typed, and afterwards everything works without a restart.

Lance's own requests are met too. Pauses pass on a clock of the run's own, but for Lance's.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from faults import s3
from faults.lab import Answer, Definite, Done, Doubt, told
from faults.operations import BY_NUMBER, optimized
from faults.oracle import nothing, put
from faults.reading import rows_read
from faults.worlds import NOTE
from omnigraph.errors import StorageFailure
from support.proxy import Exchange, Fault, refuse
from support.seaweed import S3Server
from support.wire import response, s3_error

WRITES = 3
SOMETIMES = 0.3


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server, folder: str) -> Iterator[s3.Bucket]:
    with s3.bucket(s3_server, f"{folder}/throttled") as bucket:
        yield bucket


def now_and_then(fault: Fault) -> Fault:
    draw = random.Random(9)

    def play(exchange: Exchange) -> bytes | None:
        if draw.random() < SOMETIMES:
            return fault(exchange)
        message = exchange.forward()
        exchange.keep = message.keeps_connection
        return message.head + message.body

    return play


def too_many(exchange: Exchange) -> bytes | None:
    body = s3_error("TooManyRequests").encode()
    return response(429, body, Content_Type="application/xml", Retry_After="1")


def _typed(answer: Answer, *, doubtful: bool) -> None:
    match answer:
        case Done():
            pass
        case Definite(error):
            assert isinstance(error, StorageFailure)
            assert (error.cls, error.retry) == ("throttled", "retry")
        case Doubt(commit):
            assert doubtful
            assert commit is not None
        case _:
            raise AssertionError(answer)


@pytest.mark.xdist_group("s3-faults")
def test_what_a_busy_store_refuses_fails_typed_and_the_handle_works_when_it_is_over(bucket: s3.Bucket) -> None:
    lab = bucket.begun(BY_NUMBER[33], owner=False)
    answers: dict[str, Answer] = {}

    def write(label: str) -> Answer:
        lab.deeds[label] = put("Note", text=label)
        answer = told(lambda: lab.graph.mutate(NOTE, m=label, message=label, idempotency_key=label))
        return answers.setdefault(label, answer)

    def upkeep(label: str) -> Answer:
        lab.deeds[label] = nothing
        return answers.setdefault(label, told(lambda: optimized(lab.graph, label)))

    storms: dict[str, Any] = {"some": now_and_then(refuse(503)), "all": refuse(503), "too-many": too_many}
    for name, storm in storms.items():
        bucket.proxy.break_next(storm, times=1_000_000)
        for number in range(WRITES if name == "some" else 1):
            _typed(write(f"{name}-{number}"), doubtful=True)
            _typed(told(lambda: rows_read(lab.graph), reads=True), doubtful=False)
        _typed(upkeep(f"indexes-{name}"), doubtful=True)
        bucket.proxy.heal()
        assert isinstance(write(f"after-{name}"), Done)
        assert isinstance(told(lambda: rows_read(lab.graph), reads=True), Done)

    assert isinstance(upkeep("indexes-after"), Done)
    found = lab.held_anew()
    labels = Counter(found.labels())
    for label, answer in answers.items():
        if isinstance(answer, Doubt):
            assert answer.commit is not None
            said = lab.graph.commits.outcome(answer.commit).outcome
            assert labels[label] == (said == "published")
        else:
            assert labels[label] == (isinstance(answer, Done) and answer.commit is not None), label
    lab.judge(found, {"main"})
