"""From an address to graphs that are served: what is there to start from, and what callers see until it is open."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidRequest
from omnigraph.server.boot import applied_root
from server.asgi import done, refused
from server.conftest import SCHEMA, Serve


def test_a_root_is_served_if_something_was_made_there(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "graphs" / "atlas.omni", schema=SCHEMA)
    assert applied_root(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize(
    ("config", "served"),
    [(None, False), ("version: 1\n", True), ("version: 1\ngraphs: { atlas: { schema: x.pg } }\n", False)],
)
def test_an_empty_root_is_served_if_its_folder_declares_no_graph(
    tmp_path: Path, config: str | None, served: bool
) -> None:
    if config is not None:
        (tmp_path / "cluster.yaml").write_text(config)
    if served:
        assert applied_root(str(tmp_path)) == str(tmp_path.resolve())
    else:
        with pytest.raises(InvalidRequest) as error:
            applied_root(str(tmp_path))
        assert error.value.code == "cluster_state_missing"


def test_a_root_that_was_owned_once_may_hold_no_graph(tmp_path: Path) -> None:
    (tmp_path / "__cluster").mkdir()
    assert applied_root(str(tmp_path)) == str(tmp_path)


def test_a_bucket_is_served_if_it_holds_a_graph(s3_root: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        applied_root(s3_root)
    assert error.value.code == "cluster_state_missing"
    omnigraph.init(f"{s3_root}/graphs/atlas.omni", schema=SCHEMA)
    assert applied_root(s3_root) == s3_root


def test_until_graphs_are_open_they_are_told_to_be_loading(serve: Serve) -> None:
    served = serve(load=False)
    ready = served.get("/readyz")
    assert (ready.status, ready.json()["status"]) == (503, "loading")
    assert done(served.get("/healthz"))["status"] == "ok"
    reply = served.insert("A")
    error = refused(reply, 503, "graph_unavailable", effects="none")
    assert (error["retry"], reply.headers["retry-after"]) == ("retry", "2")
    assert error["graph_unavailable"] == {"graph_id": "atlas", "state": "loading", "action": "wait_for_startup"}
    served.registry.load()
    assert done(served.get("/readyz"))["status"] == "serving"
    done(served.insert("A"))
    refused(served.get("/graphs/nothing"), 404, "graph_not_found")
