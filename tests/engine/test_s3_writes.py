"""Writes that look at what is stored, on a real object store: updates, deletes, constraints, and several processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import ConstraintViolation
from support.proxy import S3Proxy, delay
from support.seaweed import S3Server

SCHEMA = """
node Port { code: String @key  berths: U32?  flag: String?  claim: U64? @unique }
edge Ferry: Port -> Port @card(0..2) { line: String? }
"""
ROUNDS = 8

CLAIMER = """
import sys
import omnigraph
from omnigraph.errors import ConstraintViolation
root, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
graph = omnigraph.open(root)
for number in range(rounds):
    try:
        graph.mutate("query m($c: String, $u: U64) { insert Port { code: $c, claim: $u } }", c=f"{name}{number}", u=number)
    except ConstraintViolation as refused:
        assert refused.details["code"] == "W005", refused
    else:
        print(number, flush=True)
"""

COUNTER = """
import sys
import omnigraph
from omnigraph.errors import ReadSetConflict
root, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
graph = omnigraph.open(root)
done = 0
while done < rounds:
    seen = graph.query('query q() { match { $p: Port { code: "A" } } return { $p.berths as n } }').scalar()
    try:
        found = graph.mutate(
            'query m($n: U32, $next: U32) { update Port set { berths: $next } where code = "A" and berths = $n }',
            n=seen, next=seen + 1,
        )
    except ReadSetConflict:
        continue
    done += found.affected_nodes
"""


@pytest.fixture
def graph(s3_root: str) -> Graph:
    graph = omnigraph.init(s3_root, schema=SCHEMA)
    ports: list[dict[str, Any]] = [{"type": "Port", "data": {"code": code, "berths": 0}} for code in "ABC"]
    ferries = [{"edge": "Ferry", "from": a, "to": b, "id": a + b} for a, b in ("AB", "BC", "CA", "CC")]
    graph.load([*ports, *ferries], mode="append")
    return graph


def ports(uri: str) -> dict[str, Any]:
    """As a handle sees them that has nothing in memory yet."""
    text = "query q() { match { $p: Port } return { $p.code as c, $p.flag as f } order { c } }"
    return {row["c"]: row["f"] for row in omnigraph.open(uri).query(text)}


def ferries(uri: str) -> list[str]:
    text = "query q() { match { $a $f:ferry $b } return { $f.@id as id } order { id } }"
    return omnigraph.open(uri).query(text).scalars()


def test_updates_and_deletes_stand_for_whoever_opens_the_graph(graph: Graph) -> None:
    before = graph.head.graph_commit_id
    result = graph.mutate('query m() { update Port set { flag: "NO" } where code != "B" }')
    assert result.affected_nodes == 2
    assert ports(graph.uri) == {"A": "NO", "B": None, "C": "NO"}
    result = graph.mutate('query m() { delete Ferry where @src = "C" and @dst = "C" }')
    assert (result.affected_nodes, result.affected_edges) == (0, 1)
    other = omnigraph.open(graph.uri)
    result = other.mutate('query m() { delete Port where code = "A" }')
    assert (result.affected_nodes, result.affected_edges) == (1, 2)
    assert ports(graph.uri) == {"B": None, "C": "NO"}
    assert ferries(graph.uri) == ["BC"]
    graph.mutate('query m() { insert Port { code: "A" } update Port set { flag: "PT" } where flag is null }')
    assert ports(graph.uri) == {"A": "PT", "B": "PT", "C": "NO"}
    past = graph.query("query q() { match { $p: Port } return { $p.flag as f } }", snapshot=before)
    assert past.scalars() == [None, None, None]


@pytest.mark.parametrize("fresh", [False, True])
def test_constraints_are_held_against_what_is_stored(graph: Graph, fresh: bool) -> None:
    graph.load([{"type": "Port", "data": {"code": "D", "claim": 2**64 - 1}}], mode="append")
    writer = omnigraph.open(graph.uri) if fresh else graph
    head = graph.head.graph_commit_id
    for code, text in {
        "W005": "insert Port { code: 'E', claim: 18446744073709551615 }",
        "W006": "insert Ferry { from: 'A', to: 'Z' }",
        "W007": "insert Ferry { from: 'C', to: 'B' }",
    }.items():
        with pytest.raises(ConstraintViolation) as caught:
            writer.mutate(f"query m() {{ {text} }}".replace("'", '"'))
        assert caught.value.details["code"] == code
    with pytest.raises(ConstraintViolation):
        writer.load([{"type": "Port", "data": {"code": "A", "claim": 2**64 - 1}}], mode="merge")
    assert omnigraph.open(graph.uri).head.graph_commit_id == head
    writer.mutate('query m() { delete Ferry where @src = "C" and @dst = "A"  }')
    writer.mutate('query m() { insert Ferry { from: "C", to: "B" } }')
    writer.mutate('query m() { update Port set { claim: 7 } where code = "D" }')
    writer.mutate('query m() { insert Port { code: "E", claim: 18446744073709551615 } }')


def in_two_processes(program: str, uri: str) -> list[str]:
    """What each of them printed. The environment leads them to the server."""
    command = [sys.executable, "-c", program, uri]
    started = [
        subprocess.Popen([*command, name, str(ROUNDS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in "xy"
    ]
    said: list[str] = []
    for process in started:
        printed, failure = process.communicate(timeout=240)
        assert process.returncode == 0, failure
        said.append(printed)
    return said


def test_a_unique_value_goes_to_one_of_two_processes(graph: Graph) -> None:
    first, second = (set(map(int, said.split())) for said in in_two_processes(CLAIMER, graph.uri))
    assert first | second == set(range(ROUNDS))
    assert first & second == set()
    text = "query q() { match { $p: Port } return { $p.claim as n, $p.code as c } order { n } }"
    held = {row["n"]: row["c"] for row in omnigraph.open(graph.uri).query(text) if row["n"] is not None}
    assert held == {n: f"{'x' if n in first else 'y'}{n}" for n in range(ROUNDS)}


def test_no_update_of_two_processes_is_lost(graph: Graph) -> None:
    in_two_processes(COUNTER, graph.uri)
    text = 'query q() { match { $p: Port { code: "A" } } return { $p.berths as n } }'
    assert omnigraph.open(graph.uri).query(text).scalar() == 2 * ROUNDS


def test_the_base_is_looked_at_while_the_table_commit_is_under_way(
    s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who does not own the graph, and once for all who share a version: a look is a round trip."""
    with S3Proxy(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
        graph = omnigraph.init(s3_root, schema="node Note { text: String }")
        graph.mutate('query m() { insert Note { text: "first" } }')
        proxy.break_next(delay(0.5), key="_transactions/")
        with proxy.recording() as seen:
            graph.mutate('query m() { insert Note { text: "second" } }')
        order = [each.verb if "__manifest" in each.key else each.key.split("/")[-2] for each in seen]
        assert order == ["GET", "data", "HEAD", "_transactions", "_versions", "PUT"]
        release = threading.Barrier(8)

        def write(number: int) -> None:
            release.wait()
            graph.mutate("query m($t: String) { insert Note { text: $t } }", t=str(number))

        proxy.latency_seconds = 0.05
        with proxy.recording() as seen, ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        chain = [each for each in seen if "__manifest" in each.key]
        published = sum(each.verb == "PUT" and each.status == 200 for each in chain)
        assert published < 8
        assert sum(each.verb == "HEAD" for each in chain) <= published
