"""The embedded door: graphs opened in a program of one's own, which respects the cluster that a graph belongs to.

`omnigraph.open` and `omnigraph.init` are these. Reading takes no lock. A graph that stands in a local cluster is written
under that cluster's lock, taken for each write, so that no program writes beside a running server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from omnigraph.cluster.inventory import not_there
from omnigraph.cluster.layout import CLUSTER_FOLDER
from omnigraph.cluster.ownership import cluster_of, shared
from omnigraph.engine.arguments import Source
from omnigraph.engine.effects import definite_failures
from omnigraph.engine.graph import Graph, init_graph, open_graph
from omnigraph.errors import GraphNotFound

__all__ = ["init", "open"]


def open(
    uri: str | PathLike[str],
    *,
    branch: str = "main",
    actor: str | None = None,
    mode: Literal["rw", "r"] = "rw",
    settings: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Open an existing graph: a folder, `file://…` or `s3://bucket/prefix`.

    The handle may be shared between threads, and not with a forked child, which may hang or die: start other processes
    by `spawn` or `forkserver` and open the graph there.

    Raises GraphNotFound if there is none, FormatMismatch if a newer program wrote it, InvalidRequest for a bad address or
    setting, StorageFailure. A write to a graph of a cluster raises LockHeld at once while another process, such as the
    cluster's server, holds the lock; nothing was done then.
    """
    try:
        graph = open_graph(
            uri, branch=branch, actor=actor, mode=mode, settings=settings, storage_options=storage_options
        )
    except GraphNotFound:
        cluster = cluster_of(uri)
        if cluster is None or not (Path(cluster) / CLUSTER_FOLDER).is_dir():
            raise
        raise not_there(cluster, str(uri)) from None
    graph.core.write_guard = _write_guard(uri)
    return graph


@definite_failures()
def init(
    uri: str | PathLike[str],
    *,
    schema: Source,
    actor: str | None = None,
    exist_ok: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Create a graph and open it. `schema` is text if a str, a file if a Path.

    Raises InvalidSchema before anything is written; AlreadyExists (`already_initialized`) unless `exist_ok`, and then, too,
    if the schema of the graph there means something else; LockHeld as `open`; StorageFailure. Repeating it after any
    failure is safe.
    """
    guard = _write_guard(uri)
    with guard():
        graph = init_graph(uri, schema=schema, actor=actor, exist_ok=exist_ok, storage_options=storage_options)
    graph.core.write_guard = guard
    return graph


def _write_guard(uri: str | PathLike[str]) -> Callable[[], AbstractContextManager[object]]:
    root = cluster_of(uri)
    return nullcontext if root is None else partial(shared, root)
