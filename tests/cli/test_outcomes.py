"""How a command ends: exit codes, `command_outcome`, and the line to run next (interfaces.md 12.6)."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph.cluster.apply
import omnigraph.engine.opening
from omnigraph.ambient import SystemClock
from omnigraph.cli.errors import (
    EXIT_MEANINGS,
    ConsentRequired,
    Declined,
    Exit,
    Interrupted,
    Progressed,
    UsageRefused,
    WaitOver,
    exit_code,
    failure_body,
)
from omnigraph.engine.evidence import staging_begins
from omnigraph.engine.graph import Graph
from omnigraph.errors import (
    BranchNotFound,
    Busy,
    FormatMismatch,
    InternalError,
    InvalidRequest,
    LockHeld,
    NotAvailable,
    OmnigraphError,
    OutcomeUnknown,
    PreconditionFailed,
    ReadSetConflict,
    StorageClass,
    StorageFailure,
    StoragePhase,
)
from omnigraph.store.faults import FaultStore, LoseAfter, LoseBefore, Meanwhile, Refuse, Rule, Throttle
from omnigraph.store.open import open_store
from support.command_line import Run

SENT = Progressed(writes=True, sent=True, idempotency_key="k")
STAGED = Progressed(writes=True, sent=True, idempotency_key="k", staged=True)
NOT_SENT = Progressed(writes=True)
READ = Progressed(writes=False)
RENAME = 'query rename() { update Vessel set { title: "Changed" } where imo = 1 }'
NEVER = 1_000_000


def storage(cls: StorageClass) -> StorageFailure:
    return StorageFailure("x", cls=cls, phase=StoragePhase.STAGE)


UNKNOWN = OutcomeUnknown("x", kind="commit", branch="main", base_commit_id="main@1-a", graph_commit_id="main@2-b")

TABLE: list[tuple[OmnigraphError, Progressed, int, tuple[str, str, str]]] = [
    (UsageRefused("x"), NOT_SENT, 2, ("not_started", "none", "fix")),
    (ConsentRequired("x"), NOT_SENT, 2, ("not_started", "none", "fix")),
    (Declined(), NOT_SENT, 1, ("not_started", "none", "fix")),
    (BranchNotFound("x"), NOT_SENT, 1, ("not_started", "none", "fix")),
    (LockHeld("x"), NOT_SENT, 1, ("not_started", "none", "recover")),
    (FormatMismatch("x"), NOT_SENT, 1, ("not_started", "none", "fix")),
    (storage(StorageClass.TIMEOUT), NOT_SENT, 75, ("not_started", "none", "retry")),
    (InvalidRequest("x"), SENT, 1, ("finished", "none", "fix")),
    (NotAvailable("x"), SENT, 1, ("finished", "none", "fix")),
    (ReadSetConflict("x", member="branch_head"), SENT, 1, ("finished", "none", "refresh")),
    (PreconditionFailed("x", expected="a", actual="b"), SENT, 4, ("finished", "none", "refresh")),
    (storage(StorageClass.THROTTLED), SENT, 75, ("not_started", "none", "retry")),
    (storage(StorageClass.DENIED), SENT, 1, ("not_started", "none", "recover")),
    (storage(StorageClass.THROTTLED), STAGED, 75, ("finished", "none", "retry")),
    (storage(StorageClass.DENIED), STAGED, 1, ("finished", "none", "recover")),
    (Busy("x", effects="none", retry_after=1), SENT, 75, ("not_started", "none", "retry")),
    (UNKNOWN, SENT, 1, ("unknown", "unknown", "reconcile")),
    (InternalError("x", effects="unknown", retry="reconcile"), SENT, 1, ("unknown", "unknown", "reconcile")),
    (Interrupted(staged=True), SENT, 130, ("unknown", "unknown", "reconcile")),
    (Interrupted(staged=False), NOT_SENT, 130, ("not_started", "none", "retry")),
]


@pytest.mark.parametrize(("error", "at", "code", "outcome"), TABLE, ids=lambda v: type(v).__name__)
def test_every_end_of_a_write_has_its_code_and_outcome(
    error: OmnigraphError, at: Progressed, code: int, outcome: tuple[str, str, str]
) -> None:
    assert exit_code(error, at) == code
    body = failure_body(error, at)
    assert body["command_outcome"] == dict(zip(("execution", "effects", "action"), outcome, strict=True))
    assert body["effects"] == outcome[1]
    assert (body["error"], body["code"], body["status"]) == (error.message, error.code, error.status)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidRequest("x"), 1),
        (storage(StorageClass.CONNECTION), 75),
        (storage(StorageClass.CORRUPT), 1),
        (InternalError("x"), 1),
        (WaitOver("x", {}), 5),
        (UsageRefused("x"), 2),
    ],
    ids=lambda v: str(v),
)
def test_every_end_of_a_read_has_its_code(error: OmnigraphError, code: int) -> None:
    assert exit_code(error, READ) == code
    assert "command_outcome" not in failure_body(error, READ)


def test_a_later_try_is_told_when() -> None:
    assert failure_body(storage(StorageClass.TIMEOUT), SENT)["retry_after"] == 1
    assert "retry_after" not in failure_body(storage(StorageClass.DENIED), SENT)


def test_every_code_is_explained() -> None:
    assert set(EXIT_MEANINGS) == set(Exit)
    assert sorted(Exit) == [0, 1, 2, 4, 5, 75, 130]


# --- through the program, under a store that answers badly


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Wrap the graph's store in a script of faults; nobody sleeps."""
    monkeypatch.setattr(SystemClock, "sleep", lambda self, seconds: None)

    def script(*rules: Rule) -> None:
        monkeypatch.setattr(
            omnigraph.engine.opening,
            "open_store",
            lambda uri, **options: FaultStore(open_store(uri, **options), rules),
        )

    return script


def manifest(fault: Any, times: int = NEVER) -> Rule:
    return Rule(fault, verb="create", key="__manifest/", times=times)


def test_a_write_without_an_answer_says_how_to_find_out(run: Run, harbour: Path, scripted: Callable[..., None]) -> None:
    scripted(manifest(LoseBefore()))
    failed = run("mutate", "--store", harbour, "-e", RENAME)
    assert (failed.code, failed.out) == (1, "")
    *_, head, line = failed.err.splitlines()
    assert head == "  run next:"
    words = shlex.split(line)
    assert words[:4] == ["omnigraph", "commit", "outcome", words[3]]
    scripted()
    assert run(*words[1:], "--json").json["reason"] == "version_absent"


def test_with_json_it_gives_the_key_under_which_the_repeat_is_safe(
    run: Run, harbour: Path, scripted: Callable[..., None]
) -> None:
    words = ("mutate", "--store", str(harbour), "-e", RENAME, "--json")
    scripted(manifest(LoseBefore()))
    failed = run(*words)
    body = failed.json
    assert (failed.code, body["code"]) == (1, "outcome_unknown")
    assert body["command_outcome"] == {"execution": "unknown", "effects": "unknown", "action": "reconcile"}
    assert body["outcome_unknown"]["idempotency_key"] == body["idempotency_key"]
    scripted()
    repeated = run(*words, "--idempotency-key", body["idempotency_key"])
    assert repeated.json["commit"]["graph_commit_id"].startswith("main@3-")
    assert run(*words, "--idempotency-key", body["idempotency_key"]).json["idempotent_replay"] is True


def test_an_answer_that_was_lost_once_is_no_failure(run: Run, harbour: Path, scripted: Callable[..., None]) -> None:
    scripted(manifest(LoseAfter(), times=1))
    assert run("mutate", "--store", harbour, "-e", RENAME).code == 0


def test_a_definite_refusal_may_be_repeated_or_not(run: Run, harbour: Path, scripted: Callable[..., None]) -> None:
    words = ("mutate", "--store", str(harbour), "-e", RENAME, "--json")
    scripted(manifest(Refuse(StorageClass.CONNECTION, sent=False)))
    passing = run(*words)
    assert (passing.code, passing.json["command_outcome"]["action"]) == (75, "retry")
    scripted(manifest(Refuse(StorageClass.DENIED)))
    lasting = run(*words)
    assert (lasting.code, lasting.json["command_outcome"]["action"]) == (1, "recover")
    assert lasting.json["storage_failure"]["class"] == "denied"


def test_a_graph_that_cannot_be_read_was_not_started_on(run: Run, harbour: Path, scripted: Callable[..., None]) -> None:
    scripted(Rule(Throttle(), verb="list", times=NEVER), Rule(Throttle(), verb="list_first", times=NEVER))
    failed = run("mutate", "--store", harbour, "-e", RENAME, "--json")
    assert (failed.code, failed.json["command_outcome"]["execution"]) == (75, "not_started")


def test_a_store_that_cannot_be_reached_was_not_started_on_by_any_write(
    run: Run, harbour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "OMNIGRAPH_STORAGE_REQUEST_TIMEOUT_SECONDS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    schema = tmp_path / "s.pg"
    schema.write_text("node Port { code: String @key }")
    away = ("--store", "s3://nowhere/g", "--json")
    for words in (
        ("init", "--schema", schema),
        ("mutate", "-e", RENAME),
        ("branch", "create", "a"),
        ("schema", "apply", "--schema", schema),
    ):
        failed = run(*words, *away)
        assert (failed.code, failed.json["code"]) == (75, "storage_failure"), words
        assert failed.json["command_outcome"] == {"execution": "not_started", "effects": "none", "action": "retry"}


@pytest.mark.parametrize(
    ("words", "next_line"),
    [
        (("branch", "create", "a"), "omnigraph branch create a --store {} --idempotency-key"),
        (("branch", "delete", "a"), "omnigraph branch list --store {}"),
        (("mutate", "-e", "branch create a"), "omnigraph mutate -e 'branch create a' --store {} --idempotency-key"),
        (("mutate", "-e", "branch delete a"), "omnigraph branch list --store {}"),
    ],
)
def test_a_branch_whose_fate_is_unknown_has_its_line_too(
    run: Run, harbour: Path, scripted: Callable[..., None], words: tuple[str, ...], next_line: str
) -> None:
    if "delete" in " ".join(words):
        run("branch", "create", "a", "--store", harbour)
    scripted(manifest(LoseBefore()))
    failed = run(*words, "--store", harbour)
    assert failed.code == 1
    assert failed.err.splitlines()[-1].strip().startswith(next_line.format(harbour))


def interrupt() -> None:
    raise KeyboardInterrupt


def fault() -> None:
    raise ZeroDivisionError("a secret value")


def test_ctrl_c_once_a_write_has_begun_to_stage_is_no_proof_of_anything(
    run: Run, harbour: Path, scripted: Callable[..., None]
) -> None:
    scripted(manifest(Meanwhile(before=interrupt)))
    ended = run("mutate", "--store", harbour, "-e", RENAME)
    assert ended.code == 130
    assert "--idempotency-key" in ended.err.splitlines()[-1]
    as_json = run("mutate", "--store", harbour, "-e", RENAME, "--json")
    assert as_json.json["command_outcome"] == {"execution": "unknown", "effects": "unknown", "action": "reconcile"}


def test_ctrl_c_before_a_write_has_begun_to_stage_changed_nothing(
    run: Run, harbour: Path, scripted: Callable[..., None]
) -> None:
    scripted(Rule(Meanwhile(after=interrupt), verb="read", key="__manifest/", times=NEVER))
    ended = run("mutate", "--store", harbour, "-e", RENAME, "--json")
    assert ended.code == 130
    assert (ended.json["effects"], ended.json["retry"]) == ("none", "retry")


def test_an_apply_of_a_cluster_may_simply_be_repeated(run: Run, cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **options: Any) -> Any:
        staging_begins()
        raise KeyboardInterrupt

    monkeypatch.setattr(omnigraph.cluster.apply, "apply", interrupted)
    ended = run("cluster", "apply", "--config", cluster)
    assert ended.code == 130
    assert ended.err.splitlines()[-1] == f"    omnigraph cluster apply --config {cluster}"


def test_a_fault_of_the_program_is_one_line_and_frames_on_demand(
    run: Run, harbour: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise ZeroDivisionError("a secret value")

    monkeypatch.setattr(Graph, "query", broken)
    words = ("query", "--store", str(harbour), "-e", "query q() { match { $v: Vessel } return { $v } }")
    short = run(*words)
    assert (short.code, len(short.err.splitlines())) == (1, 1)
    assert "ZeroDivisionError" in short.err
    long = run(*words, "--verbose")
    assert "test_outcomes.py" in long.err
    assert "a secret value" not in short.err + long.err


def test_an_unexpected_fault_of_a_write_proves_nothing_once_it_has_begun_to_stage(
    run: Run, harbour: Path, scripted: Callable[..., None]
) -> None:
    scripted(manifest(Meanwhile(after=fault)))
    body = run("mutate", "--store", harbour, "-e", RENAME, "--json").json
    assert body["command_outcome"] == {"execution": "unknown", "effects": "unknown", "action": "reconcile"}
    assert "secret" not in str(body)


def test_an_unexpected_fault_of_a_write_before_that_did_nothing(
    run: Run, harbour: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(Graph, "mutate", broken)
    body = run("mutate", "--store", harbour, "-e", RENAME, "--json").json
    assert body["command_outcome"] == {"execution": "finished", "effects": "none", "action": "recover"}
