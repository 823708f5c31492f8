"""A cluster with one graph behind an application, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.ambient import SystemClock
from omnigraph.server.app import create_app
from omnigraph.server.limits import ServerLimits
from omnigraph.server.operations import Operations
from omnigraph.server.registry import Registry
from omnigraph.server.services import Services
from server.asgi import Door

SCHEMA = "node Port { code: String @key  name: String?  depth: I64? } edge Ferry: Port -> Port { line: String? }"


class Served(Door):
    """An application over a storage root, with what it stands on."""

    def __init__(
        self, root: Path | str, *, limits: ServerLimits | None = None, load: bool = True, **given: Any
    ) -> None:
        self.root = Path(root)
        clock = SystemClock()
        opening = {"opening": given.pop("opening")} if "opening" in given else {}
        self.operations = Operations(limits or ServerLimits(), clock)
        self.registry = Registry(str(root), owner=True, fence=self.operations.fence, **opening)
        self.services = Services(self.registry, self.operations, clock)
        super().__init__(create_app(self.services, **given))
        if load:
            try:
                self.registry.load()
            except BaseException:
                self.close()
                raise

    def insert(self, code: str, **headers: str) -> Any:
        """The reply of an insert."""
        body = {"query": "query add($c: String) { insert Port { code: $c } }", "params": {"c": code}}
        return self.post("/graphs/atlas/mutate", body, **headers)

    def codes(self, **given: Any) -> list[str]:
        query = "query codes() { match { $p: Port } return { $p.code as c } order { c } }"
        reply = self.post("/graphs/atlas/query", {"query": query, **given})
        assert reply.status == 200, reply.body
        return [row["c"] for row in reply.json()["rows"]]

    def head(self) -> str:
        return self.get("/graphs/atlas/commits?limit=1").json()["commits"][0]["graph_commit_id"]


Serve = Callable[..., Served]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    omnigraph.init(tmp_path / "graphs" / "atlas.omni", schema=SCHEMA)
    return tmp_path


@pytest.fixture
def serve(root: Path) -> Iterator[Serve]:
    """Makes applications over the root."""
    made: list[Served] = []

    def make(**given: Any) -> Served:
        served = Served(root, **given)
        made.append(served)
        return served

    yield make
    for served in made:
        served.operations.finish()
        served.close()


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve()
