"""Many callers at once on one real server: everything acknowledged is there exactly once, everything refused is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import httpx
import pytest

import omnigraph
from server.asgi import CODES
from server.conftest import SCHEMA
from server.processes import Running, running

GRAPHS = ("inserts", "branches", "claims", "sessions")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("cluster")
    for name in GRAPHS:
        omnigraph.init(root / "graphs" / f"{name}.omni", schema=SCHEMA)
    with running(root, env={"OMNIGRAPH_LOCAL_SYNC": "off"}) as server:
        yield server
        assert server.stopped() == 0
        assert not [event for event in server.events() if event["level"] == "error"]


def together(*work: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(work)) as pool:
        return [done.result(120) for done in [pool.submit(each) for each in work]]


def judged(answer: httpx.Response, *allowed: str) -> httpx.Response:
    """A success, or a refusal with one of the codes; never a fault of the server or a storage path."""
    if answer.status_code != 200:
        code = answer.json()["code"]
        assert code in allowed, answer.text
        assert answer.status_code in CODES[code]
        assert ".omni" not in answer.text
    return answer


def test_eight_clients_insert_and_each_acknowledged_row_is_there_exactly_once(server: Running) -> None:
    rounds = 6

    def client(number: int) -> list[str]:
        acknowledged: list[str] = []
        for each in range(rounds):
            code = f"{number}-{each}"
            answer = judged(server.insert(code, graph="inserts"), "read_set_conflict")
            if answer.status_code == 200:
                assert answer.json()["ids"] == [code]
                acknowledged.append(code)
        return acknowledged

    acknowledged = sorted(chain.from_iterable(together(*[lambda n=n: client(n) for n in range(8)])))
    assert len(acknowledged) == 8 * rounds, "inserts are prepared again, not refused"
    assert server.codes("inserts") == acknowledged
    commits = server.get("/graphs/inserts/commits?limit=1000").json()["commits"]
    assert len(commits) == len(acknowledged) + 1
    assert len({commit["graph_commit_id"] for commit in commits}) == len(commits)
    assert len({commit["graph_manifest_version"] for commit in commits}) < len(commits), "they share versions"


def test_of_twelve_clients_that_claim_with_the_head_of_their_own_answer_one_wins(server: Running) -> None:
    assert server.insert("task", graph="claims").status_code == 200

    def client(number: int) -> httpx.Response:
        query = {"query": 'query q() { match { $p: Port { code: "task" } } return { $p.name as name } }'}
        answer = server.post("/graphs/claims/query", query)
        if answer.json()["rows"][0].get("name") is not None:
            return answer
        claim = {
            "query": 'query c($w: String) { update Port set { name: $w } where code = "task" }',
            "params": {"w": str(number)},
        }
        condition = answer.json()["graph_commit_id"]
        path = "/graphs/claims/mutate/if-graph-commit"
        return judged(server.post(path, claim, omnigraph_if_graph_commit=condition), "commit_precondition_failed")

    answers = together(*[lambda n=n: client(n) for n in range(12)])
    won = [answer for answer in answers if "commit" in answer.json()]
    assert len(won) == 1
    for answer in answers:
        if answer.status_code == 412:
            assert answer.json()["effects"] == "none"
    commits = server.get("/graphs/claims/commits").json()["commits"]
    assert [commit["kind"] for commit in commits] == ["mutation", "mutation", "genesis"]


def test_ten_sessions_of_create_write_read_delete_leave_nothing_and_meet_no_fault(server: Running) -> None:
    def session(number: int) -> None:
        for turn in range(2):
            name = f"session/{number}"
            made = judged(server.post("/graphs/sessions/branches", {"name": name}))
            assert made.status_code == 200
            for code in ("a", "b", "c"):
                written = judged(server.insert(f"{number}-{turn}-{code}", graph="sessions", branch=name))
                assert written.status_code == 200
            assert server.codes("sessions", branch=name) == [f"{number}-{turn}-{code}" for code in "abc"]
            gone = judged(server.client.delete(f"/graphs/sessions/branches/session%2F{number}"))
            assert gone.json()["unmerged_commits"] == 3

    together(*[lambda n=n: session(n) for n in range(6)])
    assert server.get("/graphs/sessions/branches").json()["branches"] == ["main"]
    assert server.codes("sessions") == []


def test_branches_that_come_and_go_disturb_nobody(server: Running) -> None:
    """BM-08, short: creators and deleters of one name beside writers, readers, mergers and loads."""
    rounds, path = 8, "/graphs/branches"
    acknowledged: list[str] = []
    created: list[str] = []

    def storm(name: str, *, own: bool) -> None:
        for _ in range(rounds):
            made = server.post(f"{path}/branches", {"name": name})
            judged(made, *(() if own else ("branch_exists", "read_set_conflict")))
            if made.status_code == 200:
                created.append(f"{name}#{made.json()['life']}")
            gone = server.client.delete(f"{path}/branches/{name.replace('/', '%2F')}")
            judged(gone, *(() if own else ("branch_not_found",)))

    def mutate() -> None:
        for number in range(rounds):
            if judged(server.insert(f"m{number}", graph="branches")).status_code == 200:
                acknowledged.append(f"m{number}")

    def load() -> None:
        for number in range(rounds):
            line = f'{{"type": "Port", "data": {{"code": "l{number}"}}}}\n'
            answer = server.client.post(
                f"{path}/load/ndjson?mode=append", content=line, headers={"content-type": "application/x-ndjson"}
            )
            assert judged(answer).status_code == 200
            acknowledged.append(f"l{number}")

    def read() -> None:
        for _ in range(rounds):
            assert judged(server.get(f"{path}/branches")).json()["branches"][0] == "main"
            judged(server.get(f"{path}/commits"))
            judged(
                server.post(f"{path}/query", {"query": "query q() { match { $p: Port } return { count($p) as n } }"})
            )

    def merge() -> None:
        for number in range(rounds // 2):
            name = f"fifth-{number}"
            line = f'{{"type": "Port", "data": {{"code": "f{number}"}}}}\n'
            answer = server.client.post(
                f"{path}/load/ndjson?mode=append&branch={name}&from=main",
                content=line,
                headers={"content-type": "application/x-ndjson"},
            )
            assert judged(answer).json()["branch_created"] is True
            merged = judged(
                server.post(f"{path}/branches/merge", {"source": name}), "not_available", "read_set_conflict"
            )
            if merged.status_code == 200:
                acknowledged.append(f"f{number}")
            assert judged(server.client.delete(f"{path}/branches/{name}")).status_code == 200

    together(
        lambda: storm("tmp/one", own=True),
        lambda: storm("tmp/two", own=True),
        lambda: storm("tmp/both", own=False),
        lambda: storm("tmp/both", own=False),
        mutate,
        load,
        read,
        merge,
    )
    assert server.get(f"{path}/branches").json()["branches"] == ["main"]
    assert server.codes("branches") == sorted(acknowledged)
    assert len(created) == len(set(created)), "a life of a name is won by one"
