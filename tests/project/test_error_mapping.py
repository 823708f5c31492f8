"""One table says what each error is on the wire, and what number ends the command: nothing is left out of it.

Against interfaces.md 4 and 12.6.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from omnigraph import errors
from omnigraph.cli.errors import Exit, Progressed, exit_code, failure_body
from omnigraph.error_parts import ADVICE
from omnigraph.errors import OmnigraphError, OutcomeUnknown, StorageClass, StorageFailure, StoragePhase
from omnigraph.server.answers import error_headers
from server.asgi import CODES


class _Diagnostic:
    code, message = "Q001", "x"

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code}

    def render(self, source: str | None = None, *, caret: bool = True) -> str:
        return self.message


def unknown(kind: str = "commit", **fields: Any) -> OutcomeUnknown:
    given = {"branch": "main", "base_commit_id": "main@1-a", "graph_commit_id": "main@2-b", **fields}
    return OutcomeUnknown("x", kind=kind, **given)


_DIAGNOSTIC = _Diagnostic()
_STORAGE = {"cls": StorageClass.TIMEOUT, "phase": StoragePhase.READ}

# class, what it takes beside a message, code, status, retry, exit code of a write that ends in it
TABLE: list[tuple[str, dict[str, Any], str, int, str, int]] = [
    ("InvalidRequest", {}, "bad_request", 400, "fix", 1),
    ("InvalidQuery", {}, "invalid_query", 400, "fix", 1),
    ("InvalidSchema", {}, "invalid_schema", 400, "fix", 1),
    ("InvalidParams", {}, "invalid_params", 400, "fix", 1),
    ("NotAvailable", {}, "not_available", 400, "fix", 1),
    ("InvalidData", {"data_code": "W010"}, "invalid_data", 400, "fix", 1),
    (
        "ConstraintViolation",
        {"rule_code": "W001", "constraint": "required", "entity_kind": "node", "type_name": "T"},
        "constraint_violation",
        400,
        "fix",
        1,
    ),
    ("Unauthorized", {}, "unauthorized", 401, "fix", 1),
    ("Forbidden", {}, "forbidden", 403, "fix", 1),
    ("NotFound", {}, "route_not_found", 404, "fix", 1),
    ("GraphNotFound", {}, "graph_not_found", 404, "fix", 1),
    ("BranchNotFound", {}, "branch_not_found", 404, "fix", 1),
    ("CommitNotFound", {}, "commit_not_found", 404, "fix", 1),
    ("SnapshotNotFound", {}, "snapshot_not_found", 404, "fix", 1),
    ("EntityNotFound", {}, "entity_not_found", 404, "fix", 1),
    ("QueryNotFound", {}, "query_not_found", 404, "fix", 1),
    ("Conflict", {}, "read_set_conflict", 409, "refresh", 1),
    ("ReadSetConflict", {"member": "schema"}, "read_set_conflict", 409, "refresh", 1),
    (
        "KeyConflict",
        {"entity_kind": "node", "type_name": "T", "entity_id": "a"},
        "key_conflict",
        409,
        "fix",
        1,
    ),
    ("MergeConflict", {"conflicts": []}, "merge_conflict", 409, "refresh", 1),
    ("GraphReplaced", {}, "graph_replaced", 409, "recover", 1),
    ("AlreadyExists", {}, "branch_exists", 409, "fix", 1),
    ("SchemaChangeRefused", {"steps": []}, "schema_change_refused", 409, "fix", 1),
    ("Gone", {}, "history_reclaimed", 410, "fix", 1),
    ("HistoryReclaimed", {}, "history_reclaimed", 410, "fix", 1),
    ("PreconditionFailed", {"expected": "a", "actual": "b"}, "commit_precondition_failed", 412, "refresh", 4),
    ("LimitExceeded", {"resource": "r", "limit": 1, "actual": 2}, "resource_limit", 413, "fix", 1),
    ("QueryTimeout", {"resource": "r", "limit": 1, "actual": 2}, "query_timeout", 504, "fix", 1),
    ("IdempotencyKeyReused", {}, "idempotency_key_reused", 422, "fix", 1),
    ("Busy", {"retry_after": 1}, "too_many_requests", 429, "retry", 75),
    (
        "OutcomeUnknown",
        {"kind": "commit", "branch": "b", "base_commit_id": None, "graph_commit_id": None},
        "outcome_unknown",
        500,
        "reconcile",
        1,
    ),
    ("StorageFailure", _STORAGE, "storage_failure", 503, "retry", 75),
    ("EmbeddingFailed", {"reason": "unreachable"}, "embedding_failed", 424, "recover", 1),
    ("FullTextRebuildRequired", {}, "full_text_rebuild_required", 409, "recover", 1),
    ("InternalError", {}, "internal", 500, "recover", 1),
    ("RecoveryRequired", {}, "recovery_required", 503, "recover", 1),
    ("KeyOutcomeUnknown", {}, "key_outcome_unknown", 503, "recover", 1),
    ("NotServed", {}, "not_served", 400, "fix", 1),
    ("ContractMismatch", {}, "api_contract_mismatch", 400, "fix", 1),
    ("ExpectedOne", {}, "expected_one", 400, "fix", 1),
    ("LockHeld", {}, "state_lock_held", 409, "recover", 1),
    ("FormatMismatch", {}, "format_mismatch", 409, "fix", 1),
]


def made(name: str, given: dict[str, Any]) -> OmnigraphError:
    kind = getattr(errors, name)
    return kind(_DIAGNOSTIC if name in ("InvalidQuery", "InvalidSchema", "InvalidParams") else "x", **given)


@pytest.mark.parametrize(("name", "given", "code", "status", "retry", "number"), TABLE, ids=[row[0] for row in TABLE])
def test_an_error_has_one_code_status_action_and_exit(
    name: str, given: dict[str, Any], code: str, status: int, retry: str, number: int
) -> None:
    error = made(name, given)
    error.of_write(staged=False)
    assert (error.code, error.status, error.retry) == (code, status, retry)
    body = error.to_dict()
    assert (body["code"], body["status"], body["retry"]) == (code, status, retry)
    assert body["effects"] == ("unknown" if name == "OutcomeUnknown" else "none")
    assert None not in body.values()
    assert error_headers(error)["Omnigraph-Error-Code"] == code
    at = Progressed(writes=True, sent=True)
    assert exit_code(error, at) == number
    command = failure_body(error, at)["command_outcome"]
    assert command["effects"] == body["effects"]
    assert command["action"] == retry


def test_no_error_is_left_out() -> None:
    public = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, OmnigraphError) and not name.startswith("_")
    }
    assert public - {"OmnigraphError"} == {row[0] for row in TABLE}


PASSING = {StorageClass.THROTTLED, StorageClass.TIMEOUT, StorageClass.CONNECTION, StorageClass.SERVER_ERROR}
NEEDING = {StorageClass.DENIED, StorageClass.CORRUPT, StorageClass.UNSUPPORTED}


@pytest.mark.parametrize(("cls", "phase"), list(itertools.product(StorageClass, StoragePhase)), ids=str)
def test_a_storage_failure_says_class_phase_and_what_then(cls: StorageClass, phase: StoragePhase) -> None:
    error = StorageFailure("x", cls=cls, phase=phase, effects="none")
    body = error.to_dict()
    assert body["storage_failure"] == {"class": cls.value, "phase": phase.value}
    assert body["status"] == (503 if cls in PASSING else 500)
    assert body["retry"] == ("recover" if cls in NEEDING else "retry")
    assert ("Retry-After" in error_headers(error)) == (cls in PASSING)
    assert exit_code(error, Progressed(writes=True, sent=True)) == (Exit.FAILED if cls in NEEDING else Exit.RETRY)


def test_an_unknown_outcome_names_branch_base_and_attempt() -> None:
    body = unknown(graph_id="g", idempotency_key="k", cls=StorageClass.THROTTLED).to_dict()
    assert (body["effects"], body["retry"]) == ("unknown", "reconcile")
    assert body["outcome_unknown"] == {
        "kind": "commit",
        "graph_id": "g",
        "branch": "main",
        "base_commit_id": "main@1-a",
        "graph_commit_id": "main@2-b",
        "lookup": None,
        "server_stopping": False,
        "class": "throttled",
        "phase": "publish",
        "advice": ADVICE,
        "idempotency_key": "k",
    }
    assert unknown().to_dict()["outcome_unknown"]["class"] is None, "no request failed, and yet nothing is known"
    assert unknown("init").code == "initialization_unknown"
    assert exit_code(unknown(), Progressed(writes=True, sent=True)) == Exit.FAILED


@pytest.mark.parametrize(
    ("kind", "key", "commit"),
    [
        ("commit", "k", "main@2-b"),
        ("commit", None, "main@2-b"),
        ("branch_create", "k", None),
        ("branch_create", None, None),
        ("branch_delete", None, None),
        ("init", None, None),
        ("init", None, "main@1-b"),
    ],
)
def test_the_advice_names_no_key_and_no_commit_where_there_is_none(
    kind: str, key: str | None, commit: str | None
) -> None:
    """A creation or a deletion of a branch attempts no commit; a deletion and `init` take no key."""
    error = unknown(kind, idempotency_key=key, graph_commit_id=commit)
    advice = error.details["advice"]
    assert ("with this idempotency_key" in advice) == (key is not None)
    assert ("graph_commit_id" in advice) == (kind == "commit")
    assert ("list of branches" in advice) == kind.startswith("branch_")
    assert error.takes_key == (kind in ("commit", "branch_create"))


OUTCOMES = Path(__file__).resolve().parents[2] / "docs" / "outcomes.md"


@pytest.mark.parametrize("retry", ["fix", "refresh", "retry", "recover", "reconcile"])
def test_the_page_for_clients_names_every_status_and_exit_of_an_action(retry: str) -> None:
    [row] = [line.split("|") for line in OUTCOMES.read_text().splitlines() if f"`retry: {retry}`" in line]
    told, exits = (set(re.findall(r"\w+", column)) for column in row[3:5])
    given = {str(status) for each in CODES.values() for status, words in each.items() if retry in words}
    given |= {str(status) for _, _, _, status, word, _ in TABLE if word == retry}
    if "4xx" in told:
        given = {status for status in given if not status.startswith("4")} | {"4xx"}
    if retry == "reconcile":  # a fault of the program after a write began to store something
        for name in ("InternalError", "RecoveryRequired"):
            error = made(name, {})
            error.of_write(staged=True)
            assert (error.retry, error.effects) == ("reconcile", "unknown")
            given.add(str(error.status))
    assert told == given
    assert exits == {str(number) for _, _, _, _, word, number in TABLE if word == retry}
