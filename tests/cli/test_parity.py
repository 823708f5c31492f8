"""`--json` on a store and an answer over HTTP are the same bytes for the same state."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnigraph.ambient import SystemClock
from omnigraph.server.app import create_app
from omnigraph.server.limits import ServerLimits
from omnigraph.server.operations import Operations
from omnigraph.server.registry import Registry
from omnigraph.server.services import Services
from support.command_line import RECORDS, Run

QUERY = "query q($n: U32) { match { $v: Vessel  $v.imo < $n } return { $v, $v.tonnage as t } order { $v.imo } }"


@pytest.fixture
def loaded(cluster: Path, run: Run) -> Path:
    records = "\n".join(map(json.dumps, RECORDS))
    assert (
        run("load", "--cluster", cluster, "--graph", "atlas", "--data", "-", "--mode", "append", stdin=records).code
        == 0
    )
    return cluster


class Client:
    """The server's application, asked without a network."""

    def __init__(self, storage: Path) -> None:
        registry = Registry(str(storage), owner=False)
        registry.load()
        self._app = create_app(Services(registry, Operations(ServerLimits(), SystemClock()), SystemClock()))

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, f"/graphs/atlas{path}", **options)

        return asyncio.run(ask())


@pytest.fixture
def client(loaded: Path) -> Client:
    return Client(loaded / "data")


def test_reads_give_the_same_bytes(run: Run, loaded: Path, client: Client) -> None:
    graph = ("--cluster", str(loaded), "--graph", "atlas")
    served = client.request("POST", "/query", json={"query": QUERY, "params": {"n": 9}})
    assert served.status_code == 200
    direct = run("query", *graph, "-e", QUERY, "-p", "n=9", "--json")
    assert direct.out.encode() == served.content + b"\n"
    for route, words in {
        "/branches": ("branch", "list"),
        "/commits": ("commit", "list"),
        "/snapshot": ("snapshot",),
        "/schema": ("schema", "show"),
    }.items():
        assert run(*words, *graph, "--json").out.encode() == client.request("GET", route).content + b"\n", route


@pytest.mark.parametrize(("form", "media"), [("csv", "text/csv"), ("jsonl", "application/x-ndjson")])
def test_rows_give_the_same_bytes(run: Run, loaded: Path, client: Client, form: str, media: str) -> None:
    served = client.request("POST", "/query", json={"query": QUERY, "params": {"n": 9}}, headers={"accept": media})
    words = ("query", "--cluster", loaded, "--graph", "atlas", "-e", QUERY, "-p", "n=9", "--format", form)
    assert run(*words, "--out", loaded / "rows").code == 0
    assert (loaded / "rows").read_bytes() == served.content


def test_a_refusal_differs_by_the_request_id_only(run: Run, loaded: Path, client: Client) -> None:
    served = client.request("POST", "/query", json={"query": "query busy { }"}).json()
    direct = run("query", "--cluster", loaded, "--graph", "atlas", "-e", "query busy { }", "--json").json
    assert direct == {key: value for key, value in served.items() if key != "request_id"}


def test_a_repeat_through_the_other_door_gives_the_first_receipt(run: Run, loaded: Path, client: Client) -> None:
    source = "query rename($to: String) { update Vessel set { title: $to } where imo = 1 }"
    body = {"query": source, "params": {"to": "Once"}}
    first = client.request("POST", "/mutate", json=body, headers={"idempotency-key": "k"})
    assert first.status_code == 200
    words = (
        "mutate",
        "--cluster",
        str(loaded),
        "--graph",
        "atlas",
        "-e",
        source,
        "-p",
        "to=Once",
        "--idempotency-key",
        "k",
    )
    assert run(*words, "--json").json == {**first.json(), "idempotent_replay": True}
