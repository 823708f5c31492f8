"""Every kind of write at every door: the same request in Python, on the command line and over HTTP.

    for write in WRITES:
        write.python(graph, "key")       write.words(harbour, "key")       write.request("key")

Those in WRITES take a key and come in two variants, so that a key can be used for another request. EVERY_WRITE has the
others too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph

SCHEMA_GROWN_BY = " node Quay { code: String @key }"
SCHEMA = "node Port { code: String @key  name: String? } edge Ferry: Port -> Port { line: String? }"
INSERT = "query add($c: String) { insert Port { code: $c } }"
CODES = "query codes() { match { $p: Port } return { $p.code as c } order { c } }"
GRAPH = "graphs/atlas.omni"


def prepared(root: Path, *more: str) -> omnigraph.Graph:
    """A cluster's graph with a port on main, what the mutations `more` add to it, and two branches with one more port
    each.
    """
    graph = omnigraph.init(root / GRAPH, schema=SCHEMA)
    graph.mutate(INSERT, c="0")
    for mutation in more:
        graph.mutate(mutation)
    for name in ("side", "other"):
        graph.branches.create(name)
        graph.on(name).mutate(INSERT, c=name)
    return graph


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes
    content_type: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Write:
    """One kind of write. `branch` and `codes`: where it can be seen, and what stands there when it was done once; without
    codes the branch is gone then. `built_on` is the branch whose head it follows. `kind` is what an unknown one is told as.
    `method` is None for what the server has no route for.
    """

    name: str
    arguments: Mapping[str, Any]
    changed: Mapping[str, Any]
    call: Callable[[omnigraph.Graph, Mapping[str, Any], str | None], Any]
    command: Callable[[Mapping[str, Any], Path], list[str]]
    http: Callable[[Mapping[str, Any]], tuple[str, str, bytes]]
    branch: str = "main"
    codes: tuple[str, ...] = ("0",)
    built_on: str = "main"
    kind: str = "commit"
    keyed: bool = True
    method: str | None = "POST"

    def given(self, changed: bool) -> Mapping[str, Any]:
        return {**self.arguments, **(self.changed if changed else {})}

    def python(self, graph: omnigraph.Graph, key: str | None = None, *, changed: bool = False) -> Any:
        """The result of the call."""
        return self.call(graph, self.given(changed), key)

    def words(self, root: Path, key: str | None = None, *, changed: bool = False) -> list[str]:
        """The words of the command, which may need a file."""
        keyed = [] if key is None or not self.keyed else ["--idempotency-key", key]
        return [*self.command(self.given(changed), root), "--store", str(root / GRAPH), *keyed, "--json"]

    def request(self, key: str | None = None, *, changed: bool = False) -> Request:
        assert self.method is not None
        path, content_type, body = self.http(self.given(changed))
        keyed = {} if key is None or not self.keyed else {"idempotency-key": key}
        headers = ({"content-type": content_type} if body else {}) | keyed
        return Request(self.method, f"/graphs/atlas{path}", body, content_type, headers)


def line(code: str) -> bytes:
    return json.dumps({"type": "Port", "data": {"code": code}}).encode() + b"\n"


def _json(path: str, **body: Any) -> tuple[str, str, bytes]:
    return path, "application/json", json.dumps(body).encode()


def _file(root: Path, code: str) -> str:
    place = root / f"{code}.jsonl"
    place.write_bytes(line(code))
    return str(place)


WRITES = (
    Write(
        "mutate",
        {"c": "A"},
        {"c": "B"},
        lambda graph, given, key: graph.mutate(INSERT, {"c": given["c"]}, idempotency_key=key),
        lambda given, _: ["mutate", "-e", INSERT, "--params", json.dumps({"c": given["c"]})],
        lambda given: _json("/mutate", query=INSERT, params={"c": given["c"]}),
        codes=("0", "A"),
    ),
    Write(
        "load",
        {"c": "L"},
        {"c": "M"},
        lambda graph, given, key: graph.load(line(given["c"]), mode="append", idempotency_key=key, progress=False),
        lambda given, root: ["load", "--data", _file(root, given["c"]), "--mode", "append"],
        lambda given: ("/load/ndjson?mode=append", "application/x-ndjson", line(given["c"])),
        codes=("0", "L"),
    ),
    Write(
        "load that forks",
        {"c": "F"},
        {"c": "G"},
        lambda graph, given, key: graph.load(
            line(given["c"]), mode="append", branch="new", from_="main", idempotency_key=key, progress=False
        ),
        lambda given, root: [
            *("load", "--data", _file(root, given["c"]), "--mode", "append"),
            *("--branch", "new", "--from", "main"),
        ],
        lambda given: (
            "/load/ndjson?mode=append&branch=new&from=main",
            "application/x-ndjson",
            line(given["c"]),
        ),
        branch="new",
        codes=("0", "F"),
    ),
    Write(
        "branch create",
        {"from": "side"},
        {"from": "main"},
        lambda graph, given, key: graph.branches.create("made", from_=given["from"], idempotency_key=key),
        lambda given, _: ["branch", "create", "made", "--from", given["from"]],
        lambda given: _json("/branches", **{"name": "made", "from": given["from"]}),
        branch="made",
        codes=("0", "side"),
        built_on="side",
        kind="branch_create",
    ),
    Write(
        "merge",
        {"source": "side"},
        {"source": "other"},
        lambda graph, given, key: graph.branches.merge(given["source"], idempotency_key=key),
        lambda given, _: ["branch", "merge", given["source"]],
        lambda given: _json("/branches/merge", source=given["source"]),
        codes=("0", "side"),
    ),
    Write(
        "branch statement",
        {"from": "side"},
        {"from": "main"},
        lambda graph, given, key: graph.mutate(f"branch create told from {given['from']}", idempotency_key=key),
        lambda given, _: ["mutate", "-e", f"branch create told from {given['from']}"],
        lambda given: _json("/mutate", query=f"branch create told from {given['from']}"),
        branch="told",
        codes=("0", "side"),
        built_on="side",
        kind="branch_create",
    ),
)


def _schema_file(root: Path, grown_by: str) -> str:
    place = root / "grown.pg"
    place.write_text(SCHEMA + grown_by)
    return str(place)


EVERY_WRITE = (
    *WRITES,
    Write(
        "merge that deletes",
        {"source": "side"},
        {"source": "other"},
        lambda graph, given, key: graph.branches.merge(given["source"], delete_branch=True, idempotency_key=key),
        lambda given, _: ["branch", "merge", given["source"], "--delete-branch"],
        lambda given: _json("/branches/merge", source=given["source"], delete_branch=True),
        codes=("0", "side"),
    ),
    Write(
        "branch delete",
        {"name": "side"},
        {"name": "other"},
        lambda graph, given, _: graph.branches.delete(given["name"]),
        lambda given, _: ["branch", "delete", given["name"]],
        lambda given: (f"/branches/{given['name']}", "", b""),
        branch="side",
        codes=(),
        built_on="side",
        kind="branch_delete",
        keyed=False,
        method="DELETE",
    ),
    Write(
        "branch delete statement",
        {"name": "side"},
        {"name": "other"},
        lambda graph, given, _: graph.mutate(f"branch delete {given['name']}"),
        lambda given, _: ["mutate", "-e", f"branch delete {given['name']}"],
        lambda given: _json("/mutate", query=f"branch delete {given['name']}"),
        branch="side",
        codes=(),
        built_on="side",
        kind="branch_delete",
        keyed=False,
    ),
    Write(
        "schema apply",
        {"grown_by": SCHEMA_GROWN_BY},
        {"grown_by": ""},
        lambda graph, given, _: graph.schema.apply(SCHEMA + given["grown_by"]),
        lambda given, root: ["schema", "apply", "--schema", _schema_file(root, given["grown_by"])],
        lambda _: ("", "", b""),
        keyed=False,
        method=None,
    ),
    Write(
        "optimize",
        {},
        {},
        lambda graph, _given, _key: graph.maintenance.optimize(),
        lambda _given, _root: ["optimize"],
        lambda _: ("", "", b""),
        keyed=False,
        method=None,
    ),
)
