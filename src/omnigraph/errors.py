"""Every error a user can see, in one tree.

    OmnigraphError
    ├── InvalidRequest              400 and every 4xx not below: change the request
    │   ├── InvalidQuery            .diagnostic
    │   ├── InvalidSchema           .diagnostic
    │   ├── InvalidParams           .diagnostic
    │   ├── InvalidData             a load record can't be read or does not fit
    │   ├── NotAvailable            known to the design, not part of this version
    │   └── ConstraintViolation     values, uniqueness, cardinality, endpoints
    ├── Unauthorized, Forbidden
    ├── NotFound
    │   └── GraphNotFound BranchNotFound CommitNotFound EntityNotFound QueryNotFound SnapshotNotFound
    ├── Conflict
    │   └── ReadSetConflict KeyConflict MergeConflict AlreadyExists SchemaChangeRefused GraphReplaced
    ├── Gone
    │   └── HistoryReclaimed
    ├── PreconditionFailed
    ├── LimitExceeded
    │   └── QueryTimeout
    ├── IdempotencyKeyReused
    ├── Busy                        429, 503: nothing started
    ├── OutcomeUnknown              the publication may or may not have landed
    ├── StorageFailure              a storage request failed; nothing was published
    ├── EmbeddingFailed             the embedding provider gave no usable vector
    ├── FullTextRebuildRequired     more rows than a text index is made of for one query
    ├── InternalError, RecoveryRequired, KeyOutcomeUnknown
    └── NotServed, ContractMismatch, ExpectedOne, LockHeld, FormatMismatch   client side or direct

An error answers two questions: did it happen (`effects`), and what may I do now (`retry`).
The words are those of the wire: `fix`, `retry`, `refresh`, `recover`, `reconcile`; effects `none`, `unknown`.
Messages are for people and may change; `code` never does. No message carries a storage path, a URL, a token
or the text of a lower library's error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from omnigraph.error_parts import DiagnosticLike, OutcomeLike, advice
from omnigraph.error_parts import StorageClass as StorageClass
from omnigraph.error_parts import StoragePhase as StoragePhase
from omnigraph.escaping import safe_text

Retry = Literal["fix", "retry", "refresh", "recover", "reconcile"]
Effects = Literal["none", "unknown"]
EmbeddingReason = Literal["no_provider", "model", "unreachable", "refused", "bad_vector"]


class OmnigraphError(Exception):
    """Root of all errors.

    `code` is the stable word of the error, `status` what HTTP says, `retry` what the caller may do, `effects` what
    is known of a write (None for reads), `detail_key` and `details` the one detail object of the error body.
    """

    default_code: ClassVar[str] = "internal"
    default_status: ClassVar[int] = 500
    default_retry: ClassVar[Retry] = "recover"

    def __init_subclass__(
        cls, *, code: str | None = None, status: int | None = None, retry: Retry | None = None, **rest: Any
    ) -> None:
        """What a class says of all its errors: `class Forbidden(OmnigraphError, code="forbidden", status=403)`."""
        super().__init_subclass__(**rest)
        cls.default_code = code or cls.default_code
        cls.default_status = status or cls.default_status
        cls.default_retry = retry or cls.default_retry

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        retry: Retry | None = None,
        effects: Effects | None = None,
        detail_key: str | None = None,
        details: Any = None,
        retry_after: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.status = status or self.default_status
        self.retry: Retry = retry or self.default_retry
        self.effects: Effects | None = effects
        self.detail_key = detail_key
        self.details: Any = details
        self.retry_after = retry_after
        self.request_id = request_id

    def __str__(self) -> str:
        """As people read it, with controls spelled out; `message` is the text as it is on the wire."""
        return safe_text(self.message)

    def _repr_html_(self) -> str:
        import html  # its table of names is large, and a command line needs none of it

        return f"<pre>{html.escape(f'{type(self).__name__} ({self.code}): {self}')}</pre>"

    def of_write(self, *, staged: bool) -> None:
        """Say what is known, if this ended a write without a word on effects. `staged`: the write may have sent something.

        The typed errors of a write are raised before anything could become visible, or say otherwise. A fault of the
        program says nothing by itself: once staging had begun nobody knows which step was the last.
        """
        if self.effects is not None:
            return
        if staged and isinstance(self, (InternalError, RecoveryRequired)):
            self.effects, self.retry = "unknown", "reconcile"
        else:
            self.effects = "none"

    def to_dict(self) -> dict[str, Any]:
        """The error body of the wire, without nulls: `error`, `code`, `status`, `retry`, `effects`, `request_id`, detail."""
        body: dict[str, Any] = {"error": self.message, "code": self.code, "status": self.status, "retry": self.retry}
        if self.effects is not None:
            body["effects"] = self.effects
        if self.request_id is not None:
            body["request_id"] = self.request_id
        if self.detail_key is not None:
            body[self.detail_key] = self.details
        return body


class InvalidRequest(OmnigraphError, code="bad_request", status=400, retry="fix"):
    """The same request fails again: change it."""


class _Diagnosed(InvalidRequest):
    """An error that carries a language diagnostic."""

    def __init__(self, diagnostic: DiagnosticLike, **fields: Any) -> None:
        fields.setdefault("detail_key", "diagnostic")
        fields.setdefault("details", diagnostic.to_dict())
        super().__init__(diagnostic.message, **fields)
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        """With place, source line and caret, and the fix."""
        return self.diagnostic.render()


class InvalidQuery(_Diagnosed, code="invalid_query"):
    """Query text refused by the parser or the type checker."""


class InvalidSchema(_Diagnosed, code="invalid_schema"):
    """Schema text refused."""


class InvalidParams(_Diagnosed, code="invalid_params"):
    """Query parameters missing, surplus or of the wrong type."""


class NotAvailable(InvalidRequest, code="not_available"):
    """What was asked for is no part of this version of the program. `line_number`: of the record that asks for it."""

    def __init__(self, message: str, *, line_number: int | None = None, **fields: Any) -> None:
        fields.setdefault("effects", "none")
        super().__init__(message, **fields)
        self.line_number = line_number


class InvalidData(InvalidRequest, code="invalid_data"):
    """A load record can't be read or does not fit the schema; `details` is the `data_error` object."""

    def __init__(
        self,
        message: str,
        *,
        data_code: str,
        line_number: int | None = None,
        type_name: str | None = None,
        property_name: str | None = None,
        **fields: Any,
    ) -> None:
        details = _without_nulls(
            {
                "code": data_code,
                "line_number": line_number,
                "type_name": type_name,
                "property": property_name,
                "message": message,
            }
        )
        super().__init__(message, detail_key="data_error", details=details, effects="none", **fields)
        self.line_number = line_number


class ConstraintViolation(InvalidRequest, code="constraint_violation"):
    """The final state of a write would break the schema (codes `W001`–`W009`)."""

    def __init__(
        self,
        message: str,
        *,
        rule_code: str,
        constraint: str,
        entity_kind: str,
        type_name: str,
        entity_id: str | None = None,
        property_name: str | None = None,
        line_number: int | None = None,
        **fields: Any,
    ) -> None:
        details = {
            "code": rule_code,
            **({} if line_number is None else {"line_number": line_number}),
            "entity_kind": entity_kind,
            "type_name": type_name,
            "entity_id": entity_id,
            "property": property_name,
            "constraint": constraint,
            "message": message,
        }
        super().__init__(message, detail_key="constraint_violation", details=details, effects="none", **fields)
        self.line_number = line_number


class Unauthorized(OmnigraphError, code="unauthorized", status=401, retry="fix"): ...


class Forbidden(OmnigraphError, code="forbidden", status=403, retry="fix"): ...


class NotFound(OmnigraphError, code="route_not_found", status=404, retry="fix"):
    """What was named is not there."""


class GraphNotFound(NotFound, code="graph_not_found"): ...


class BranchNotFound(NotFound, code="branch_not_found"): ...


class CommitNotFound(NotFound, code="commit_not_found"): ...


class SnapshotNotFound(NotFound, code="snapshot_not_found"): ...


class EntityNotFound(NotFound, code="entity_not_found"): ...


class QueryNotFound(NotFound, code="query_not_found"): ...


class Conflict(OmnigraphError, code="read_set_conflict", status=409, retry="refresh"):
    """The present state does not allow it; nothing was published."""

    def __init__(self, message: str, **fields: Any) -> None:
        fields.setdefault("effects", "none")
        super().__init__(message, **fields)


class ReadSetConflict(Conflict):
    """Another writer changed an input before anything took effect. `member` says which input."""

    def __init__(self, message: str, *, member: str, expected: str | None = None, actual: str | None = None) -> None:
        details = _without_nulls({"member": member, "expected": expected, "actual": actual})
        super().__init__(message, detail_key="read_set_conflict", details=details)
        self.member = member


class KeyConflict(Conflict, code="key_conflict", retry="fix"):
    """A load met an existing or repeated id."""

    def __init__(
        self,
        message: str,
        *,
        entity_kind: str,
        type_name: str,
        entity_id: str | None,
        line_number: int | None = None,
    ) -> None:
        details: dict[str, Any] = {"entity_kind": entity_kind, "type_name": type_name, "entity_id": entity_id}
        if line_number is not None:
            details["line_number"] = line_number
        super().__init__(message, detail_key="key_conflict", details=details)
        self.line_number = line_number


class MergeConflict(Conflict, code="merge_conflict"):
    """The branches disagree; `conflicts` lists where."""

    def __init__(self, message: str, conflicts: list[dict[str, Any]]) -> None:
        super().__init__(message, detail_key="merge_conflicts", details=conflicts)
        self.conflicts = conflicts


class AlreadyExists(Conflict, code="branch_exists", retry="fix"):
    """The name is taken (`branch_exists`, `already_initialized`)."""


class SchemaChangeRefused(Conflict, code="schema_change_refused", retry="fix"):
    """A migration has a refused step, or drops values without consent; `details` is the list of steps."""

    def __init__(self, message: str, steps: list[dict[str, Any]]) -> None:
        super().__init__(message, detail_key="migration", details=steps)
        self.steps = steps


class GraphReplaced(Conflict, code="graph_replaced", retry="recover"):
    """What was opened is no longer there: the graph was removed, made anew or put back from an older copy."""


class Gone(OmnigraphError, code="history_reclaimed", status=410, retry="fix"): ...


class HistoryReclaimed(Gone):
    """The commit is known, its data is gone."""


class PreconditionFailed(OmnigraphError, code="commit_precondition_failed", status=412, retry="refresh"):
    """The branch head is not the commit that the caller named."""

    def __init__(self, message: str, *, expected: str, actual: str | None) -> None:
        super().__init__(
            message,
            effects="none",
            detail_key="precondition_failure",
            details={"expected": expected, "actual": actual},
        )
        self.expected = expected
        self.actual = actual


class LimitExceeded(OmnigraphError, code="resource_limit", status=413, retry="fix"):
    """A named limit was passed; nothing was published."""

    def __init__(self, message: str, *, resource: str, limit: int, actual: int, **fields: Any) -> None:
        details = {"resource": resource, "limit": limit, "actual": actual}
        super().__init__(message, detail_key="resource_limit", details=details, **fields)
        self.resource = resource
        self.limit = limit
        self.actual = actual


class QueryTimeout(LimitExceeded, code="query_timeout", status=504): ...


class IdempotencyKeyReused(OmnigraphError, code="idempotency_key_reused", status=422, retry="fix"): ...


class Busy(OmnigraphError, code="too_many_requests", status=429, retry="retry"):
    """Nothing started: ask again after `retry_after` seconds."""


class OutcomeUnknown(OmnigraphError, code="outcome_unknown", retry="reconcile"):
    """The publication may or may not have landed.

    `branch`, `base_commit_id` and `graph_commit_id` say where to look; `resolve` looks. The answer turns final with the
    branch's next write. `cls` is the class of the last failure, if one was seen, and `phase` the step that sent the
    request; `by_fault` says that a fault of this program ended the attempt, in which a server stops. `commit_kind` is the
    attempted commit's own, which the advice goes by.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        branch: str | None,
        base_commit_id: str | None,
        graph_commit_id: str | None,
        graph_id: str | None = None,
        idempotency_key: str | None = None,
        commit_kind: str | None = None,
        cls: StorageClass | None = None,
        ask: Callable[[float], OutcomeLike] | None = None,
    ) -> None:
        details: dict[str, Any] = {
            "kind": kind,
            "graph_id": graph_id,
            "branch": branch,
            "base_commit_id": base_commit_id,
            "graph_commit_id": graph_commit_id,
            "lookup": None,
            "server_stopping": False,
            "class": None if cls is None else str(cls),
            "phase": str(StoragePhase.PUBLISH),
            "advice": advice(commit_kind or kind, committed=bool(graph_commit_id), keyed=bool(idempotency_key)),
        }
        if idempotency_key is not None:
            details["idempotency_key"] = idempotency_key
        code = "initialization_unknown" if kind == "init" else None
        super().__init__(message, code=code, effects="unknown", detail_key="outcome_unknown", details=details)
        self.branch = branch
        self.base_commit_id = base_commit_id
        self.graph_commit_id = graph_commit_id
        self.cls = cls
        self.phase = StoragePhase.PUBLISH
        self.by_fault = False
        self._ask = ask

    @property
    def takes_key(self) -> bool:
        """Whether a repeat under its idempotency key is this same write: a deletion of a branch and `init` know no keys."""
        return self.details["kind"] not in ("branch_delete", "init")

    def resolve(self, wait: float = 0.0) -> OutcomeLike:
        """What became of the attempted commit: `published`, `superseded`, or `undetermined` after `wait` seconds.

        It asks and writes nothing. Raises InvalidRequest where no commit was attempted (creating or deleting a branch: the
        list of branches tells, after the branch's next write).
        """
        if self._ask is None:
            raise InvalidRequest("No commit was attempted: the list of branches tells what became of this.")
        return self._ask(wait)


_TRANSIENT = {StorageClass.THROTTLED, StorageClass.TIMEOUT, StorageClass.CONNECTION, StorageClass.SERVER_ERROR}
_NEEDS_A_PERSON = {StorageClass.DENIED, StorageClass.CORRUPT, StorageClass.UNSUPPORTED}


class StorageFailure(OmnigraphError, code="storage_failure", retry="retry"):
    """A storage request failed before anything was published, or the store refused the publication outright.

    `cls` is the class of the failure, `phase` the step that sent the request. 503 for classes that pass by themselves,
    500 for the rest.
    """

    def __init__(
        self, message: str, *, cls: StorageClass, phase: StoragePhase, effects: Effects | None = None, **fields: Any
    ) -> None:
        fields.setdefault("status", 503 if cls in _TRANSIENT else 500)
        fields.setdefault("retry", "recover" if cls in _NEEDS_A_PERSON else "retry")
        super().__init__(
            message,
            effects=effects,
            detail_key="storage_failure",
            details={"class": str(cls), "phase": str(phase)},
            retry_after=1 if cls in _TRANSIENT else None,
            **fields,
        )
        self.cls = cls
        self.phase = phase


class EmbeddingFailed(OmnigraphError, code="embedding_failed", status=424, retry="recover"):
    """The embedding provider gave no usable vector; nothing was staged.

    `reason`: `no_provider` there is none, or it lacks its key; `model` it has another model than the schema records;
    `unreachable` no answer after every attempt; `refused` it does not take the request, or may not be asked; `bad_vector`
    its answer is no vector of the right size.
    """

    def __init__(
        self, message: str, *, reason: EmbeddingReason, provider: str | None = None, model: str | None = None
    ) -> None:
        details = _without_nulls({"provider": provider, "model": model, "reason": reason})
        super().__init__(message, detail_key="embedding", details=details)
        self.reason: EmbeddingReason = reason


class FullTextRebuildRequired(OmnigraphError, code="full_text_rebuild_required", status=409, retry="recover"):
    """A text property has no full-text index and too many rows to make one for a query, or one of another tokenizer."""


class InternalError(OmnigraphError):
    """A fault of this program, or stored data that contradicts itself."""


class RecoveryRequired(OmnigraphError, code="recovery_required", status=503):
    """Storage holds a result that this process could not take over."""


class KeyOutcomeUnknown(OmnigraphError, code="key_outcome_unknown", status=503, retry="recover"):
    """An earlier write to the same reused storage key is unsettled: nothing was sent, and nothing will be until a clean
    shutdown of this process. Other keys are not affected.
    """

    def __init__(self, message: str, **fields: Any) -> None:
        fields.setdefault("effects", "none")
        super().__init__(message, **fields)


class NotServed(OmnigraphError, code="not_served", status=400, retry="fix"): ...


class ContractMismatch(OmnigraphError, code="api_contract_mismatch", status=400, retry="fix"): ...


class ExpectedOne(OmnigraphError, code="expected_one", status=400, retry="fix"): ...


class LockHeld(OmnigraphError, code="state_lock_held", status=409, retry="recover"): ...


class FormatMismatch(OmnigraphError, code="format_mismatch", status=409, retry="fix"):
    """Another generation of the program wrote this graph."""


def _without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
