"""Writes over HTTP: receipts, conditions, keys, and what is known when something went wrong."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import omnigraph
from omnigraph.engine import graph as engine_graph
from omnigraph.engine.core import GraphCore
from omnigraph.engine.mutate import MutateOperation
from omnigraph.engine.opening import open_core
from omnigraph.engine.receipts import as_microseconds
from omnigraph.error_parts import advice
from omnigraph.errors import InternalError, OutcomeUnknown, StorageClass
from omnigraph.manifest.chain import KnownHead
from omnigraph.manifest.ids import CommitId
from omnigraph.store.faults import FaultStore, LandLate, LoseBefore, Meanwhile, Refuse, Rule
from omnigraph.store.open import open_store
from server.asgi import Reply, done, refused
from server.conftest import SCHEMA, Serve, Served
from support.clocks import SteppingClock

MUTATE, IF_COMMIT = "/graphs/atlas/mutate", "/graphs/atlas/mutate/if-graph-commit"
NDJSON = "/graphs/atlas/load/ndjson"
INSERT = {"query": 'query add() { insert Port { code: "A" } }'}
CLAIM = {"query": 'query claim() { update Port set { name: "taken" } where code = "A" }'}
LINE = '{"type": "Port", "data": {"code": "A"}}\n'
MANIFEST = "__manifest/"
CODES = "query codes() { match { $p: Port } return { $p.code as c } order { c } }"


# --- refusals, and that nothing was done


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"query": "query q() { insert Prt { code: 1 } }"}, 400, "invalid_query"),
        ({"query": "query q($c: String) { insert Port { code: $c } }"}, 400, "invalid_params"),
        ({"query": "query q() { insert Port { name: null } }"}, 400, None),
        ({**INSERT, "branch": "nothing"}, 404, "branch_not_found"),
        ({**INSERT, "name": "other"}, 400, None),
        ({**INSERT, "snapshot": "main@1-0011223344556677"}, 400, "bad_request"),
        ({**INSERT, "message": "x" * 1_025}, 400, "bad_request"),
        ({**INSERT, "settings": {"merge_lineage": "x"}}, 400, "invalid_setting"),
        ({"query": "query q() { match { $p: Port } return { $p } }"}, 400, "wrong_verb"),
    ],
)
def test_a_mutation_that_is_refused_says_that_nothing_was_done(
    served: Served, body: dict[str, Any], status: int, code: str | None
) -> None:
    head = served.head()
    reply = served.post(MUTATE, body)
    refused(reply, status, code or reply.json()["code"], effects="none")
    assert served.head() == head


@pytest.mark.parametrize(
    ("query", "data", "status", "code"),
    [
        ("mode=append", "{", 400, "invalid_data"),
        ("mode=append", '{"type": "Prt", "data": {}}', 400, "invalid_data"),
        ("mode=append", b"\xff\n", 400, "invalid_data"),
        ("mode=append", b"\x1f\x8b\x08\x00", 400, "invalid_data"),
        ("mode=append", LINE + LINE, 409, "key_conflict"),
        ("mode=append&branch=nothing", LINE, 404, "branch_not_found"),
        ("mode=append&branch=b&from=nothing", LINE, 404, "branch_not_found"),
        ("mode=append", '{"edge": "Ferry", "from": "A", "to": "B", "data": {}}', 400, "constraint_violation"),
        ("mode=upsert", LINE, 400, "bad_request"),
        ("branch=main", LINE, 400, "bad_request"),
    ],
)
def test_a_load_that_is_refused_says_that_nothing_was_done(
    served: Served, query: str, data: str | bytes, status: int, code: str
) -> None:
    head = served.head()
    refused(served.load(f"{NDJSON}?{query}", data), status, code, effects="none")
    assert (served.head(), served.codes()) == (head, [])
    assert done(served.get("/graphs/atlas/branches"))["branches"] == ["main"]


def test_an_empty_load_publishes_nothing(served: Served) -> None:
    assert done(served.load(f"{NDJSON}?mode=append", ""))["commit"] is None


def test_branches_are_refused_by_name_and_by_state(served: Served) -> None:
    make = partial(served.post, "/graphs/atlas/branches")
    for bad in ("", "a@b", "__x", "a//b", "a\x07", " a", "x" * 201):
        refused(make({"name": bad}), 400, "bad_request", effects="none")
    done(make({"name": "b"}))
    refused(make({"name": "b"}), 409, "branch_exists", effects="none")
    refused(make({"name": "B"}), 409, "branch_exists", effects="none")
    refused(make({"name": "c", "from": "nothing"}), 404, "branch_not_found", effects="none")
    refused(make({"name": "c", "from": "main@9-0011223344556677"}), 404, "commit_not_found", effects="none")
    done(make({"name": "c", "from": "b"}))
    delete = served.delete("/graphs/atlas/branches/b")
    assert refused(delete, 409, "branch_has_descendants", effects="none")["descendants"] == ["c"]
    refused(served.delete("/graphs/atlas/branches/main"), 400, "bad_request", effects="none")
    refused(served.delete("/graphs/atlas/branches/nothing"), 404, "branch_not_found", effects="none")
    refused(served.delete("/graphs/atlas/branches/a%00b"), 400, "bad_request", effects="none")


def test_merges_are_refused_or_tell_that_there_is_nothing_to_do(served: Served) -> None:
    merge = partial(served.post, "/graphs/atlas/branches/merge")
    done(served.post("/graphs/atlas/branches", {"name": "b"}))
    assert done(merge({"source": "b"}))["outcome"] == "already_up_to_date"
    refused(merge({"source": "nothing"}), 404, "branch_not_found", effects="none")
    refused(merge({"source": "b", "target": "b"}), 400, "bad_request", effects="none")
    done(served.insert("M"))
    done(served.post(MUTATE, {**INSERT, "branch": "b"}))
    refused(merge({"source": "b"}), 400, "not_available", effects="none")
    refused(merge({"source": "b", "granularity": "property"}), 400, "bad_request", effects="none")


# --- conditions


def test_a_condition_holds_for_the_whole_branch_and_is_never_ignored(served: Served) -> None:
    done(served.insert("A"))
    head = served.head()
    assert done(served.post(IF_COMMIT, CLAIM, omnigraph_if_graph_commit=head))["affected_nodes"] == 1
    error = refused(
        served.post(IF_COMMIT, CLAIM, omnigraph_if_graph_commit=head), 412, "commit_precondition_failed", effects="none"
    )
    assert error["precondition_failure"] == {"expected": head, "actual": served.head()}


@pytest.mark.parametrize(
    "condition",
    [
        "*",
        '"{head}"',
        'W/"{head}"',
        "{head}, {head}",
        "{head},{head}",
        "",
        "main",
        "main@1",
        "{head}x",
        " ",
        "a%40b@1-0011223344556677",
        "a%20@1-0011223344556677",
    ],
)
def test_what_is_no_single_commit_id_is_no_condition(served: Served, condition: str) -> None:
    given = condition.format(head=served.head())
    refused(served.post(IF_COMMIT, INSERT, omnigraph_if_graph_commit=given), 400, "condition_misplaced", effects="none")
    assert served.codes() == []


def test_a_condition_that_is_missing_doubled_or_misplaced_is_refused(served: Served) -> None:
    head = served.head()
    refused(served.post(IF_COMMIT, INSERT), 400, "condition_misplaced", effects="none")
    doubled = [("content-type", "application/json"), *[("omnigraph-if-graph-commit", head)] * 2]
    refused(served.send("POST", IF_COMMIT, headers=doubled, body=b"{}"), 400, "condition_misplaced", effects="none")
    given = {"omnigraph_if_graph_commit": head}
    refused(served.post(MUTATE, INSERT, **given), 400, "condition_misplaced", effects="none")
    refused(served.load(f"{NDJSON}?mode=append", LINE, **given), 400, "condition_misplaced", effects="none")
    refused(served.post("/graphs/atlas/query", INSERT, **given), 400, "condition_misplaced")
    refused(served.get("/healthz", **given), 400, "condition_misplaced")
    assert served.codes() == []


def test_a_commit_of_another_branch_or_of_an_earlier_life_is_not_the_head(served: Served) -> None:
    done(served.insert("A"))
    done(served.post("/graphs/atlas/branches", {"name": "b"}))
    done(served.post(MUTATE, {**CLAIM, "branch": "b"}))
    [old] = done(served.get("/graphs/atlas/commits?branch=b&limit=1"))["commits"]
    done(served.delete("/graphs/atlas/branches/b"))
    done(served.post("/graphs/atlas/branches", {"name": "b"}))
    for condition in (old["graph_commit_id"], "b@99-0011223344556677"):
        reply = served.post(IF_COMMIT, {**CLAIM, "branch": "b"}, omnigraph_if_graph_commit=condition)
        refused(reply, 412, "commit_precondition_failed", effects="none")


def test_of_many_who_claim_on_one_head_exactly_one_wins(served: Served) -> None:
    done(served.insert("A"))
    head = served.head()

    async def race() -> list[Reply]:
        claims = [
            served.sending(
                "POST",
                IF_COMMIT,
                headers=[("content-type", "application/json"), ("omnigraph-if-graph-commit", head)],
                body=b'{"query": "query c($w: String) { update Port set { name: $w } where code = \\"A\\" }",'
                b'"params": {"w": "%d"}}' % number,
            )
            for number in range(12)
        ]
        return list(await asyncio.gather(*claims))

    replies = served.run(race())
    won = [reply for reply in replies if reply.status == 200]
    assert len(won) == 1
    for reply in replies:
        if reply is not won[0]:
            refused(reply, 412, "commit_precondition_failed", effects="none")
    assert served.head() == won[0].json()["commit"]["graph_commit_id"]


# --- keys


def test_a_repeat_under_its_key_gives_the_first_receipt_on_every_route(served: Served) -> None:
    requests = [
        partial(served.post, MUTATE, INSERT),
        partial(served.load, f"{NDJSON}?mode=append", LINE.replace("A", "B")),
        partial(served.post, "/graphs/atlas/load", {"data": LINE.replace("A", "C"), "mode": "append"}),
        partial(served.post, "/graphs/atlas/branches", {"name": "b"}),
    ]
    for number, request in enumerate(requests):
        first = done(request(idempotency_key=f"k{number}"))
        again = request(idempotency_key=f"k{number}")
        assert done(again) == {**first, "idempotent_replay": True}
        assert again.headers["idempotency-replayed"] == "true"
    assert served.codes() == ["A", "B", "C"]


def test_a_repeat_is_known_again_after_its_source_went_with_it(served: Served) -> None:
    done(served.post("/graphs/atlas/branches", {"name": "b"}))
    done(served.post(MUTATE, {**INSERT, "branch": "b"}))
    merge = partial(served.post, "/graphs/atlas/branches/merge", {"source": "b", "delete_branch": True})
    first = done(merge(idempotency_key="k"))
    assert (first["outcome"], first["branch_deleted"]) == ("fast_forward", True)
    assert done(merge(idempotency_key="k")) == {**first, "idempotent_replay": True}


def test_a_key_of_a_load_is_the_same_on_every_door(served: Served, root: Path) -> None:
    graph = omnigraph.open(root / "graphs" / "atlas.omni")
    lines = LINE.replace("\n", "\r\n") + "\n" + LINE.replace("A", "B").rstrip()
    first = done(served.load(f"{NDJSON}?mode=append", lines, idempotency_key="k"))
    asked = {"data": lines, "mode": "append", "branch": "main"}
    again = done(served.post("/graphs/atlas/load", asked, idempotency_key="k"))
    assert again == {**first, "idempotent_replay": True}
    assert graph.load(lines.encode(), mode="append", idempotency_key="k").to_dict() == again


def test_a_load_that_is_packed_is_not_unpacked(served: Served) -> None:
    packed = gzip.compress(LINE.encode() + b"\n" * (64 << 20))
    tracemalloc.start()
    try:
        told = refused(served.load(f"{NDJSON}?mode=append", packed), 400, "invalid_data", effects="none")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert (told["data_error"]["code"], told["data_error"]["line_number"]) == ("W010", 1)
    assert served.codes() == []


def test_a_load_that_forks_and_has_no_records_creates_no_branch(served: Served) -> None:
    empty = done(served.load(f"{NDJSON}?mode=append&branch=b&from=main", "\n"))
    assert (empty["branch_created"], empty["commit"], empty["total_entities"]) == (False, None, 0)
    assert done(served.get("/graphs/atlas/branches"))["branches"] == ["main"]
    forked = done(served.load(f"{NDJSON}?mode=append&branch=b&from=main", LINE, idempotency_key="k"))
    assert forked["branch_created"] is True
    repeated = done(served.load(f"{NDJSON}?mode=append&branch=b&from=main", LINE, idempotency_key="k"))
    assert repeated == {**forked, "idempotent_replay": True}


def test_a_repeat_is_looked_up_before_its_condition(served: Served) -> None:
    done(served.insert("A"))
    given = {"omnigraph_if_graph_commit": served.head(), "idempotency_key": "k"}
    first = done(served.post(IF_COMMIT, CLAIM, **given))
    assert done(served.post(IF_COMMIT, CLAIM, **given)) == {**first, "idempotent_replay": True}


def test_a_key_used_for_another_request_is_refused(served: Served) -> None:
    first = done(served.insert("A", idempotency_key="k"))["commit"]
    told = refused(served.insert("B", idempotency_key="k"), 422, "idempotency_key_reused", effects="none")
    used = {"graph_commit_id": first["graph_commit_id"], "created_at": first["created_at"]}
    assert told["idempotency"] == {"key": "k", **used}
    assert served.codes() == ["A"]


def test_a_key_used_for_another_creation_of_the_branch_is_refused(served: Served) -> None:
    make = partial(served.post, "/graphs/atlas/branches", idempotency_key="k")
    done(make({"name": "b"}))
    created = omnigraph.open(served.root / "graphs" / "atlas.omni").branches.get("b").created_at
    assert created is not None
    expected = {"key": "k", "graph_commit_id": None, "created_at": as_microseconds(created)}
    told = refused(make({"name": "b", "from": served.head()}), 422, "idempotency_key_reused", effects="none")
    assert told["idempotency"] == expected
    told = refused(
        served.post(MUTATE, {**INSERT, "branch": "b"}, idempotency_key="k"),
        422,
        "idempotency_key_reused",
        effects="none",
    )
    assert told["idempotency"] == expected


def test_keys_have_a_place_on_some_routes_only_and_a_form(served: Served) -> None:
    for request in (
        partial(served.delete, "/graphs/atlas/branches/b"),
        partial(served.post, "/graphs/atlas/query", INSERT),
        partial(served.get, "/graphs/atlas/commits"),
    ):
        effects = "none" if request.func == served.delete else None
        refused(request(idempotency_key="k"), 400, "idempotency_key_invalid", effects=effects)
    for bad in ("", "a b", "x" * 129, "\xe9"):
        refused(served.insert("A", idempotency_key=bad), 400, "idempotency_key_invalid", effects="none")


# --- a graph that goes while it is served


def test_a_graph_that_is_made_anew_below_the_server_is_left_alone_and_the_server_goes_on(
    root: Path, serve: Serve
) -> None:
    served = serve()
    for code in ("A", "B", "C"):
        done(served.insert(code))
    folder = root / "graphs" / "atlas.omni"
    shutil.rmtree(folder)
    new = omnigraph.init(folder, schema=SCHEMA)
    for _ in range(2):
        refused(served.insert("stale"), 409, "graph_replaced", effects="none")
    refused(served.post("/graphs/atlas/branches", {"name": "b"}), 409, "graph_replaced", effects="none")
    assert [commit.kind for commit in new.commits.list()] == ["genesis"]
    assert served.get("/healthz").status == 200
    assert serve().codes() == []


# --- faults


class Faulty:
    """An application whose graph sends its own requests through a script."""

    def __init__(self, serve: Serve) -> None:
        self.clock = SteppingClock(now_us=2_000_000_000_000_000)
        self.served = serve(opening=self._open)

    def _open(self, root: str, **given: Any) -> GraphCore:
        self.store = FaultStore(open_store(root))
        return open_core(root, store=self.store, clock=self.clock, **given)

    def publish_with(self, fault: Any, times: int = 1) -> None:
        self.store.add(Rule(fault, verb="create", key=MANIFEST, times=times))


@pytest.fixture
def faulty(serve: Serve) -> Faulty:
    return Faulty(serve)


def test_an_unknown_publication_names_where_to_ask_and_a_key_to_repeat_with(faulty: Faulty) -> None:
    served = faulty.served
    head = served.head()
    faulty.publish_with(LandLate(after=30), times=5)
    error = refused(served.post(MUTATE, INSERT), 500, "outcome_unknown", effects="unknown")
    assert error["retry"] == "reconcile"
    told = error["outcome_unknown"]
    commit = told["graph_commit_id"]
    assert (told["kind"], told["graph_id"], told["branch"], told["base_commit_id"]) == ("commit", "atlas", "main", head)
    assert told["lookup"] == f"/graphs/atlas/commits/{commit}/outcome"
    assert told["server_stopping"] is False
    assert done(served.get(told["lookup"]))["outcome"] == "undetermined"
    faulty.store.release()
    again = done(served.post(MUTATE, INSERT, idempotency_key=told["idempotency_key"]))
    assert (again["commit"]["graph_commit_id"], again["idempotent_replay"]) == (commit, True)
    assert done(served.get(told["lookup"]))["outcome"] == "published"
    assert served.codes() == ["A"]


def test_an_unknown_branch_creation_is_told_as_one(faulty: Faulty) -> None:
    faulty.publish_with(LoseBefore(), times=5)
    reply = faulty.served.post("/graphs/atlas/branches", {"name": "b"}, idempotency_key="mine")
    told = refused(reply, 500, "outcome_unknown", effects="unknown")["outcome_unknown"]
    assert (told["kind"], told["branch"], told["idempotency_key"]) == ("branch_create", "b", "mine")
    assert told["lookup"] is None
    done(faulty.served.post("/graphs/atlas/branches", {"name": "b"}, idempotency_key="mine"))


def test_an_unknown_deletion_of_a_branch_is_told_as_one(faulty: Faulty) -> None:
    served = faulty.served
    done(served.post("/graphs/atlas/branches", {"name": "b"}))
    faulty.publish_with(LoseBefore(), times=5)
    told = refused(served.delete("/graphs/atlas/branches/b"), 500, "outcome_unknown", effects="unknown")
    assert told["retry"] == "reconcile"
    assert told["outcome_unknown"] == {
        "kind": "branch_delete",
        "graph_id": "atlas",
        "branch": "b",
        "base_commit_id": served.head(),
        "graph_commit_id": None,
        "lookup": None,
        "server_stopping": False,
        "class": "timeout",
        "phase": "publish",
        "advice": advice("branch_delete", committed=False, keyed=False),
    }
    done(served.delete("/graphs/atlas/branches/b"))


def test_an_unknown_load_into_a_new_branch_is_an_unknown_commit(faulty: Faulty) -> None:
    faulty.publish_with(LoseBefore(), times=5)
    reply = faulty.served.load(f"{NDJSON}?mode=append&branch=b&from=main", LINE)
    told = refused(reply, 500, "outcome_unknown", effects="unknown")["outcome_unknown"]
    commit = told["graph_commit_id"]
    assert (told["kind"], told["branch"], commit.startswith("b@1-")) == ("commit", "b", True)
    assert told["lookup"] == f"/graphs/atlas/commits/{commit}/outcome"


def test_an_unknown_deletion_after_a_merge_is_told_and_logged_like_any_unknown_write(faulty: Faulty) -> None:
    served = faulty.served
    done(served.post("/graphs/atlas/branches", {"name": "b"}))
    done(served.post(MUTATE, {**INSERT, "branch": "b"}))
    merge = partial(served.post, "/graphs/atlas/branches/merge", {"source": "b", "delete_branch": True})
    faulty.store.add(Rule(LoseBefore(), verb="create", key="__manifest/b/", times=5))
    with capture_logs() as logs:
        merged = done(merge(idempotency_key="k", x_request_id="mine"))
    assert (merged["outcome"], merged["branch_deleted"]) == ("fast_forward", False)
    error = merged["branch_delete_error_details"]
    assert (error["code"], error["retry"], error["effects"], error["request_id"]) == (
        "outcome_unknown",
        "reconcile",
        "unknown",
        "mine",
    )
    told = error["outcome_unknown"]
    assert (told["kind"], told["graph_id"], told["branch"]) == ("branch_delete", "atlas", "b")
    assert (told["lookup"], told["idempotency_key"]) == (None, "k")
    [ended] = [line for line in logs if line["event"] == "owned write ended without a definite outcome"]
    assert (ended["graph"], ended["log_level"], ended["contained_process"]) == ("atlas", "warning", False)
    assert served.operations.contained is None
    again = done(merge(idempotency_key="k"))
    assert (again["branch_deleted"], again["idempotent_replay"]) == (True, True)


def test_a_deletion_after_a_merge_that_memory_can_not_take_over_stops_the_process(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(served.post("/graphs/atlas/branches", {"name": "b"}))
    heads = served.registry.graph("atlas").core.heads
    adopt = heads.adopt

    def full(head: KnownHead) -> KnownHead:
        if not head.live:
            raise MemoryError
        return adopt(head)

    with monkeypatch.context() as patched:
        patched.setattr(heads, "adopt", full)
        merged = done(served.post("/graphs/atlas/branches/merge", {"source": "b", "delete_branch": True}))
    assert merged["branch_delete_error_details"]["code"] == "recovery_required"
    assert served.operations.contained == "X3"


@pytest.mark.parametrize("by_fault", [False, True])
def test_a_server_is_said_to_stop_only_where_the_same_fault_stops_it(
    served: Served, monkeypatch: pytest.MonkeyPatch, by_fault: bool
) -> None:
    """Not because it happens to be asked to stop meanwhile."""

    def lost(*given: Any) -> Any:
        served.operations.draining = True
        commit = "main@2-0011223344556677"
        error = OutcomeUnknown("x", kind="commit", branch="main", base_commit_id=None, graph_commit_id=commit)
        error.by_fault = by_fault
        raise error

    monkeypatch.setattr(engine_graph, "write", lost)
    told = refused(served.post(MUTATE, INSERT), 500, "outcome_unknown", effects="unknown")
    assert told["outcome_unknown"]["server_stopping"] is by_fault


@pytest.mark.parametrize(
    ("fault", "status", "retry"),
    [(Refuse(StorageClass.DENIED), 500, "recover"), (Refuse(StorageClass.CONNECTION, sent=False), 503, "retry")],
)
def test_a_refused_publication_did_nothing_and_the_next_write_works(
    faulty: Faulty, fault: Refuse, status: int, retry: str
) -> None:
    faulty.publish_with(fault)
    error = refused(faulty.served.post(MUTATE, INSERT), status, "storage_failure", effects="none")
    assert error["retry"] == retry
    assert error["storage_failure"] == {"class": str(fault.cls), "phase": "publish"}
    done(faulty.served.post(MUTATE, INSERT))


def test_a_failed_read_fails_alone(faulty: Faulty) -> None:
    served = faulty.served
    unknown = "main@9-0011223344556677"
    faulty.store.add(Rule(Refuse(StorageClass.DENIED), verb="read", key=MANIFEST))
    reply = served.get(f"/graphs/atlas/commits/{unknown}")
    error = refused(reply, 500, "storage_failure")
    assert error["storage_failure"] == {"class": "denied", "phase": "read"}
    refused(served.get(f"/graphs/atlas/commits/{unknown}"), 404, "commit_not_found")


# --- faults of the program (storage.md 5)


class Panic(BaseException):
    """What native code raises that gives up is no Exception."""


def breaking_after(really: Callable[..., Any], raised: BaseException) -> Callable[..., Any]:
    def breaks(*given: Any, **named: Any) -> Any:
        really(*given, **named)
        raise raised

    return breaks


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (ZeroDivisionError("s3://secret"), "X1"),
        (KeyError("secret"), "X1"),
        (Panic("s3://secret"), "X1"),
        (InternalError("x", effects=None), "X4"),
    ],
)
def test_a_fault_of_the_program_after_staging_began_is_unknown_tells_nothing_and_closes_admission(
    served: Served,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    raised: BaseException,
    reason: str,
) -> None:
    """The commit may stand: here it does."""
    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(engine_graph, "write", breaking_after(engine_graph.write, raised))
        reply = served.post(MUTATE, INSERT, x_request_id="mine")
    error = refused(reply, 500, "internal", effects="unknown")
    assert (error["retry"], error["request_id"]) == ("reconcile", "mine")
    assert served.operations.contained == reason
    refused(served.insert("B"), 503, "server_draining", effects="none")
    refused(served.get("/graphs/atlas/branches"), 503, "server_draining")
    assert served.get("/readyz").json()["status"] == "draining"
    told = {line["event"]: line for line in logs}
    assert told["engine failure without definite completion evidence"] == {
        "event": "engine failure without definite completion evidence",
        "log_level": "warning",
        "class": "unknown",
        "phase": None,
        "scoped_to_keys": False,
        "status": 500,
        "graph": "atlas",
        "req": "mine",
    }
    assert told["owned write ended without a definite outcome"] == {
        "event": "owned write ended without a definite outcome",
        "log_level": "error",
        "status": 500,
        "contained_process": True,
        "graph": "atlas",
        "req": "mine",
    }
    assert told["admission closed"] == {"event": "admission closed", "log_level": "error", "reason": reason}
    out, err = capfd.readouterr()
    assert "secret" not in str(error) + out + err + str(logs)
    assert omnigraph.open(root / "graphs" / "atlas.omni").query(CODES).scalars() == ["A"]


@pytest.mark.parametrize("raised", [ZeroDivisionError("secret"), Panic("secret"), InternalError("x", effects=None)])
def test_a_fault_of_the_program_before_staging_did_nothing_and_no_more(
    served: Served, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    def breaks(*given: Any) -> Any:
        raise raised

    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(MutateOperation, "plan", breaks)
        error = refused(served.post(MUTATE, INSERT), 500, "internal", effects="none")
    assert error["retry"] == "recover"
    assert served.operations.contained is None
    assert "admission closed" not in [line["event"] for line in logs]
    done(served.post(MUTATE, INSERT))
    assert served.codes() == ["A"]


def test_a_publication_that_memory_can_not_take_over_stops_the_process_and_stands(
    served: Served, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = served.registry.graph("atlas").core.heads
    version, adopt = heads.current("main").version, heads.adopt

    def full(head: KnownHead) -> KnownHead:
        if head.version > version:
            raise MemoryError
        return adopt(head)

    with monkeypatch.context() as patched:
        patched.setattr(heads, "adopt", full)
        error = refused(served.post(MUTATE, INSERT), 503, "recovery_required", effects="unknown")
    assert error["retry"] == "recover"
    told = error["recovery_required"]
    assert (served.operations.contained, told["reason"]) == ("X3", "not_adopted")
    graph = omnigraph.open(root / "graphs" / "atlas.omni")
    assert graph.head.graph_commit_id == told["operation_id"]
    assert heads.current("main").manifest.head_commit.id == CommitId.parse(told["operation_id"]), "storage was asked"


def test_an_unknown_outcome_is_no_reason_to_stop(faulty: Faulty) -> None:
    faulty.publish_with(LoseBefore(), times=5)
    with capture_logs() as logs:
        refused(faulty.served.post(MUTATE, INSERT), 500, "outcome_unknown", effects="unknown")
    assert faulty.served.operations.contained is None
    [ended] = [line for line in logs if line["event"] == "owned write ended without a definite outcome"]
    assert (ended["log_level"], ended["status"], ended["contained_process"]) == ("warning", 500, False)
    [failed] = [line for line in logs if line["event"] == "engine failure without definite completion evidence"]
    assert (failed["class"], failed["phase"], failed["req"]) == ("timeout", "publish", ended["req"])
    assert {line["graph"] for line in logs if "graph" in line} == {"atlas"}, "in the engine's lines too"
    assert [line["graph"] for line in logs if "re-issuing" in line["event"]] == ["atlas"] * 4
    done(faulty.served.post(MUTATE, INSERT))


@pytest.mark.parametrize("fault", [Refuse(StorageClass.DENIED), Refuse(StorageClass.CONNECTION, sent=False)])
def test_a_definite_failure_is_no_line_of_those(faulty: Faulty, fault: Refuse) -> None:
    faulty.publish_with(fault)
    with capture_logs() as logs:
        assert faulty.served.post(MUTATE, INSERT).status >= 500
    assert not [line for line in logs if "definite" in line["event"]]


@pytest.mark.parametrize("raised", [ValueError("secret"), Panic("secret")])
def test_a_fault_of_the_program_in_a_read_is_to_be_recovered_from(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], raised: BaseException
) -> None:
    def breaks(*given: Any, **named: Any) -> Any:
        raise raised

    monkeypatch.setattr(engine_graph, "run_query", breaks)
    with capture_logs() as logs:
        error = refused(served.post("/graphs/atlas/query", INSERT), 500, "internal")
    assert error["retry"] == "recover"
    out, err = capfd.readouterr()
    assert "secret" not in out + err + str(logs)
    assert "breaks" in str(logs), "the log says where"


# --- work that outlives its caller


class Gate:
    """Holds a publication until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.opened.wait(60)


@pytest.fixture
def gate(faulty: Faulty) -> Iterator[Gate]:
    gate = Gate()
    faulty.publish_with(Meanwhile(before=gate))
    yield gate
    gate.opened.set()


async def reached(gate: Gate) -> None:
    while not gate.reached.is_set():
        await asyncio.sleep(0.005)


def inserting(served: Served, code: str, **headers: str) -> Any:
    body = b'{"query": "query add() { insert Port { code: \\"%s\\" } }"}' % code.encode()
    given = [("content-type", "application/json"), *((n.replace("_", "-"), v) for n, v in headers.items())]
    return served.sending("POST", MUTATE, headers=given, body=body)


def test_a_write_whose_caller_is_gone_is_finished_and_gives_its_places_back(faulty: Faulty, gate: Gate) -> None:
    served, admission = faulty.served, faulty.served.operations.admission

    async def abandoned() -> None:
        request = asyncio.ensure_future(inserting(served, "A"))
        await reached(gate)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert (admission.used("write_ops"), admission.used("write_observers")) == (1, 0)
        gate.opened.set()

    served.run(abandoned())
    served.operations.finish()
    assert admission.used("write_ops") == admission.used("write_bytes") == admission.used("write_ingress") == 0
    assert served.codes() == ["A"]


def test_a_key_whose_first_request_is_still_running_is_told_so(faulty: Faulty, gate: Gate) -> None:
    served = faulty.served

    async def twice() -> tuple[Reply, Reply, Reply]:
        first = asyncio.ensure_future(inserting(served, "A", idempotency_key="k"))
        await reached(gate)
        second = await inserting(served, "A", idempotency_key="k")
        gate.opened.set()
        return await first, second, await inserting(served, "A", idempotency_key="k")

    first, second, third = served.run(twice())
    error = refused(second, 409, "idempotency_in_flight", effects="none")
    assert (error["retry"], second.headers["retry-after"]) == ("retry", "1")
    assert error["idempotency"] == {"key": "k", "graph_commit_id": None, "created_at": None}
    assert done(third) == {**done(first), "idempotent_replay": True}


def test_a_stopping_server_finishes_what_it_admitted_and_takes_nothing_new(faulty: Faulty, gate: Gate) -> None:
    served = faulty.served

    async def stopping() -> tuple[Reply, ...]:
        first = asyncio.ensure_future(inserting(served, "A"))
        await reached(gate)
        served.operations.draining = True
        late = await inserting(served, "B")
        read = await served.sending("GET", "/graphs/atlas/branches")
        ready, alive = await served.sending("GET", "/readyz"), await served.sending("GET", "/healthz")
        graphs = await served.sending("GET", "/graphs")
        gate.opened.set()
        return await first, late, read, ready, alive, graphs

    first, late, read, ready, alive, graphs = served.run(stopping())
    done(first)
    refused(late, 503, "server_draining", effects="none")
    assert late.headers["retry-after"] == "5"
    refused(read, 503, "server_draining")
    assert (ready.status, ready.json()["status"], alive.status) == (503, "draining", 200)
    assert [(g["state"], g["action"]) for g in graphs.json()["graphs"]] == [("stopping", "wait_for_restart")]
    served.operations.draining = False
    assert served.codes() == ["A"]


# --- a name that is used again (BM-07)


def test_a_branch_made_again_under_its_name_shows_nothing_of_the_one_before(served: Served, root: Path) -> None:
    base = "".join(f'{{"type": "Port", "data": {{"code": "M{n}"}}}}\n' for n in range(5))
    done(served.load(f"{NDJSON}?mode=append", base))
    old = omnigraph.open(root / "graphs" / "atlas.omni").on("b")
    hops = "query q() { match { $p: Port  $p ferry $q } return { $p.code as a, $q.code as b } order { a, b } }"
    for turn in range(6):
        done(served.post("/graphs/atlas/branches", {"name": "b"}))
        lines = "".join(f'{{"type": "Port", "data": {{"code": "T{turn}-{n}"}}}}\n' for n in range(turn + 1))
        lines += f'{{"edge": "Ferry", "from": "M0", "to": "T{turn}-0", "data": {{}}}}\n'
        done(served.load(f"{NDJSON}?mode=append&branch=b", lines))
        expected = [f"M{n}" for n in range(5)] + [f"T{turn}-{n}" for n in range(turn + 1)]
        assert served.codes(branch="b") == expected
        assert old.query("query q() { match { $p: Port } return { $p.code as c } order { c } }").scalars() == expected
        found = done(served.post("/graphs/atlas/query", {"query": hops, "branch": "b"}))
        assert found["rows"] == [{"a": "M0", "b": f"T{turn}-0"}]
        done(served.delete("/graphs/atlas/branches/b"))
        refused(served.post("/graphs/atlas/query", {"query": hops, "branch": "b"}), 404, "branch_not_found")
        with pytest.raises(omnigraph.errors.BranchNotFound):
            old.query(hops)
    assert served.codes() == [f"M{n}" for n in range(5)]


# --- a merge that fails, and who goes on (SM-02)


def test_a_merge_that_fails_at_any_of_its_requests_stops_nobody_and_is_repeated(faulty: Faulty) -> None:
    served = faulty.served
    done(served.post("/graphs/atlas/branches", {"name": "aside"}))
    merged: list[str] = []

    def merge(name: str) -> Reply:
        return served.post("/graphs/atlas/branches/merge", {"source": name})

    def prepared(name: str) -> int:
        """A branch with a commit; how many requests the store has seen when it is there."""
        done(served.post("/graphs/atlas/branches", {"name": name}))
        done(served.post(MUTATE, {"query": f'query add() {{ insert Port {{ code: "{name}" }} }}', "branch": name}))
        merged.append(name)
        return len(faulty.store.requests)

    before = prepared("b0")
    done(merge("b0"))
    needed = len(faulty.store.requests) - before
    assert needed >= 1
    for number in range(1, needed + 1):
        name = f"b{number}"
        faulty.store.add(Rule(Refuse(StorageClass.DENIED), ordinal=prepared(name) + number))
        refused(merge(name), 500, "storage_failure", effects="none")
        done(served.post(MUTATE, {"query": f'query add() {{ insert Port {{ code: "{name}" }} }}', "branch": "aside"}))
        assert done(merge(name))["outcome"] == "fast_forward"
    assert served.codes() == sorted(merged)
