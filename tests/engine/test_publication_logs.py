"""What operators read of a publication in doubt: fixed texts, fields, and no word of a lower layer (storage.md 4)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

import omnigraph
from omnigraph.engine.writing.branches import delete_branch
from omnigraph.errors import OutcomeUnknown, StorageClass
from omnigraph.store.faults import FailCondition, LoseAfter, LoseBefore, Refuse, Rule, Throttle
from support.faulty import Faulty

SCHEMA = "node Port { code: String @key }"
INSERT = "query m($c: String) { insert Port { code: $c } }"
REISSUED = "manifest request outcome unknown; re-issuing the identical conditional request"
UNKNOWN = "manifest request outcome unknown after every re-issue"


@pytest.fixture(autouse=True)
def nobody_configured_a_pipe() -> Iterator[None]:
    """As a program starts; what other tests of this process have configured comes back afterwards."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    if before is not None:
        structlog.configure(**before)


@pytest.fixture
def faulty(tmp_path: Path) -> Faulty:
    omnigraph.init(tmp_path / "g", schema=SCHEMA)
    return Faulty(str(tmp_path / "g"))


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Level, event and fields of each line of ours, where nobody has configured a pipe."""
    found: list[dict[str, Any]] = []
    for record in caplog.records:
        if record.name == "omnigraph.heads":  # the clock of these tests is another than the disk's
            continue
        fields = record.__dict__["omnigraph"]
        event = str(record.args[0])  # type: ignore[index]
        assert record.getMessage() == " ".join([event, *(f"{name}={value}" for name, value in fields.items())])
        found.append({"level": record.levelname, "event": event, **fields})
    return found


def test_each_reissue_and_the_end_of_them_are_told_with_these_texts_and_fields(
    faulty: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.publish_with(LoseBefore(StorageClass.CONNECTION), times=5)
    with pytest.raises(OutcomeUnknown):
        faulty.graph.mutate(INSERT, c="A")
    where = {"graph": faulty.core.graph_id, "branch": "main", "version": 2, "phase": "publish"}
    assert logged(caplog) == [
        *(
            {
                "level": "WARNING",
                "event": REISSUED,
                **where,
                "class": "connection",
                "attempt": attempt,
                "pause_ms": pause,
            }
            for attempt, pause in ((1, 200), (2, 400), (3, 800), (4, 1600))
        ),
        {"level": "ERROR", "event": UNKNOWN, **where, "class": "connection", "attempts": 5},
    ]


@pytest.mark.parametrize(
    ("fault", "cls"), [(LoseAfter(), "connection"), (Throttle(), "throttled"), (FailCondition(), "unknown")]
)
def test_a_doubt_that_is_settled_is_told_once(
    faulty: Faulty, caplog: pytest.LogCaptureFixture, fault: Any, cls: str
) -> None:
    faulty.publish_with(fault)
    faulty.graph.mutate(INSERT, c="A")
    assert [(line["event"], line["class"], line["attempt"]) for line in logged(caplog)] == [(REISSUED, cls, 1)]


@pytest.mark.parametrize("fault", [Refuse(), Refuse(StorageClass.CONNECTION, sent=False)])
def test_a_definite_refusal_and_an_undisturbed_write_are_told_by_their_answers_alone(
    faulty: Faulty, caplog: pytest.LogCaptureFixture, fault: Refuse
) -> None:
    faulty.publish_with(fault)
    with pytest.raises(omnigraph.errors.StorageFailure):
        faulty.graph.mutate(INSERT, c="A")
    faulty.graph.mutate(INSERT, c="A")
    assert logged(caplog) == []


def test_a_program_s_own_pipe_gets_the_same_fields(faulty: Faulty) -> None:
    faulty.publish_with(LoseBefore(), times=1)
    with capture_logs() as lines:
        faulty.graph.mutate(INSERT, c="A")
    [line] = lines
    assert line.pop("log_level") == "warning"
    assert line == {
        "event": REISSUED,
        "graph": faulty.core.graph_id,
        "branch": "main",
        "version": 2,
        "phase": "publish",
        "class": "timeout",
        "attempt": 1,
        "pause_ms": 200,
    }
    json.dumps(line)


def test_a_marker_that_could_not_be_written_is_told_by_class_and_phase(
    faulty: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.graph.branches.create("b")
    faulty.store.add(Rule(Refuse(StorageClass.DENIED), verb="put_fresh", key=".deleted", times=9))
    delete_branch(faulty.core, "b")
    assert logged(caplog) == [
        {
            "level": "WARNING",
            "event": "deleted-branch marker not written",
            "graph": faulty.core.graph_id,
            "branch": "b",
            "class": "denied",
            "phase": "publish",
        }
    ]


class Full:
    """A pipe that takes nothing, in both of its forms."""

    def msg(self, *given: Any, **fields: Any) -> None:
        raise OSError("full")

    debug = info = warning = error = critical = msg


class FullHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("pipe", ["a program's own", "of the standard library"])
def test_a_write_in_doubt_is_settled_where_no_line_can_be_written(faulty: Faulty, pipe: str) -> None:
    handler = FullHandler()
    if pipe == "a program's own":
        structlog.configure(logger_factory=lambda *_: Full())
    else:
        logging.getLogger("omnigraph").addHandler(handler)
    try:
        faulty.publish_with(LoseAfter())
        assert faulty.graph.mutate(INSERT, c="A").commit is not None
        faulty.publish_with(LoseBefore(), times=5)
        with pytest.raises(OutcomeUnknown):
            faulty.graph.mutate(INSERT, c="B")
        assert faulty.graph.mutate(INSERT, c="C").commit is not None
    finally:
        logging.getLogger("omnigraph").removeHandler(handler)
